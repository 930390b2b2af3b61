"""Expected entities against the titles of an index: looked at once, and only if they are asked."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from support.answers import answer

from graphrag.eval.config.sections import MeasuresSettings
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.entities import NameRule, score_entities
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.measures import measure
from graphrag.query.index.tables import IndexTables

NAMES = st.sampled_from(["Oak Hill", "OAK-HILL", "oak_hill ", " ", "", "Straße", "STRASSE", "ﬁn"])
TITLES = pd.DataFrame(
    {"title": ["OAK HILL", "PIER"], "human_readable_id": [0, 1], "text_unit_ids": [["t"], ["t"]]}
)
UNITS = pd.DataFrame(
    {"id": ["t"], "human_readable_id": [0], "text": ["Oak Hill"], "document_id": ["d"]}
)


class CountingTables(IndexTables):
    """Counts how often the entities are read."""

    n_read = 0

    def columns(self, name, columns):
        """Return columns of a table."""
        self.n_read += name == "entities"
        return super().columns(name, columns)


def test_the_entities_of_an_index_are_read_once_and_only_for_questions_that_expect_some():
    tables = CountingTables(text_units=UNITS, entities=TITLES)
    view = IndexView(tables)
    bare = Sample("s1", "a", "Where?", "There", evidence=("Oak Hill",))
    for _ in range(3):
        result = answer("tog", "There")
        assert measure(bare, result, view).values["indexed_entity_recall"] is None
    assert tables.n_read == 0
    for wanted, recall in ((("Oak-Hill",), 1.0), (("Oak Hill", "Mill"), 0.5), (("Mill",), 0.0)):
        asking = Sample("s1", "a", "Where?", "There", expected_entities=wanted)
        result = answer("tog", "There")
        assert measure(asking, result, view).values["indexed_entity_recall"] == recall
    assert tables.n_read == 1


@given(st.lists(NAMES), st.lists(NAMES), st.dictionaries(NAMES, NAMES, max_size=4))
def test_the_recall_on_an_index_is_that_of_comparing_every_title(titles, expected, aliases):
    entities = pd.DataFrame({"title": pd.Series(titles, dtype=object)})
    view = IndexView(IndexTables(text_units=UNITS, entities=entities))
    sample = Sample("q", "a", "Where?", "There", expected_entities=tuple(expected))
    settings = MeasuresSettings(aliases=aliases)
    value = measure(sample, answer("tog", ""), view, settings).values["indexed_entity_recall"]
    assert value == score_entities(titles, expected, NameRule(aliases=aliases)).recall
