"""Citations of an answer against the index and what was shown."""

from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.answers import answer

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.citations import (
    CITATION_MEASURES,
    Citation,
    check_citations,
    read_citations,
    strip_citations,
)
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.measure_means import summarize_measures
from graphrag.eval.metrics.measures import measure
from graphrag.eval.types.query_results import Retrieved
from graphrag.query.index.tables import IndexTables

N = range(12)
INDEX = IndexView(
    IndexTables(
        text_units=pd.DataFrame(
            {
                "id": [f"u{n}" for n in N],
                "human_readable_id": N,
                "text": "t",
                "document_id": "d",
            }
        ),
        relationships=pd.DataFrame(
            [(n, f"r{n}", "A", "B", []) for n in N],
            columns=["human_readable_id", "id", "source", "target", "text_unit_ids"],
        ),
        entities=pd.DataFrame(
            {"human_readable_id": N, "title": [f"E{n}" for n in N], "text_unit_ids": [[]] * 12}
        ),
    )
)


def test_they_are_measures_of_the_evaluation():
    sample = Sample("s", "k", "Who?", "Ada")
    retrieved = Retrieved("tog", text_unit_ids=("u0",), n_sources=1)
    made = partial(answer, "tog", "Ada [Data: Sources (0, 7)]")
    answered = made(retrieved=retrieved)
    values = measure(sample, answered, INDEX).values
    assert values["citation_validity"] == 0.5
    failed = measure(sample, made(retrieved=retrieved, failed=True), INDEX).values
    assert list(failed) == list(values)
    assert {failed[name] for name in CITATION_MEASURES} == {None}
    abstained = measure(sample, made(retrieved=retrieved, abstained=True), INDEX).values
    assert abstained["context_cited"] is None
    silent = measure(sample, made(), INDEX)
    summary = summarize_measures([silent, measure(sample, answered, INDEX)])["tog"]
    validity = summary.measures["citation_validity"]
    assert (validity.estimate.mean, validity.n_excluded) == (0.5, 1)


# Sources 1, 2; relationships 3, 4, 5; entity 8. The text unit u9 was not shown itself.
SHOWN = Retrieved(
    "local",
    text_unit_ids=("u1", "u2", "u9"),
    n_sources=2,
    entities=("E8",),
    relationship_ids=("r3", "r4", "r5"),
)
REPORTS = """-----Reports-----
id|title|content
7|North|"About
the north"
8|South|Other

-----Claims-----
id|entity|status
2|A|TRUE

-----Sources-----
id|text
11|not read from here
"""


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("A. [Data: Sources (1, 2); Relationships (3, +more)]", "sources 1 2 relationships 3"),
        (
            "[Data: Sources (15), Reports (1), Entities (5, 7)].",
            "sources 15 reports 1 entities 5 7",
        ),
        ("[data:source(1)] [DATA: SOURCES (1,1; 2)]", "sources 1 2"),
        ("[Data: Sources (1, + more)] [Data: Reports (2, more)]", "sources 1 reports 2"),
        ("\uff3bData\uff1a Sources \uff081\uff0c2\uff09\uff3d", "sources 1 2"),
        ("cut off [Data: Sources (1, 2", "sources 1 2"),
        ("[Data: Sources\n(1,\n2)]", "sources 1 2"),
        ("[Data: General Knowledge (href)]", "general knowledge href"),
        ("[Data: Sources ()] and [1] and (Sources 2)", ""),
    ],
)
def test_citations_are_read_as_models_write_them(response, expected):
    tables: dict[str, list[str]] = {}
    for citation in read_citations(response):
        tables.setdefault(citation.table, []).append(citation.id)
    assert " ".join(f"{table} {' '.join(ids)}" for table, ids in tables.items()) == expected


@pytest.mark.parametrize(
    ("cited", "validity", "in_index"),
    [
        ("Sources (1, 2); Relationships (3); Entities (8)", 1, 1),
        ("Sources (1, 9)", 0.5, 1),  # its relationship was shown, its text was not
        ("Sources (1, 99)", 0.5, 0.5),
        ("Relationships (6)", 0, 1),  # an id of another table
        ("Entities (8, 7, 99, six)", 0.25, 0.5),
        ("Reports (7, 8); Claims (2)", 1, 1),
        ("Reports (9); Claims (7)", 0, 0),
        ("Sources (11)", 0, 1),
        ("Rumours (1)", 0, 0),
    ],
)
def test_a_cited_id_is_looked_for_in_its_own_table(cited, validity, in_index):
    values = check_citations(SHOWN, f"So it is. [Data: {cited}]", INDEX, REPORTS)
    assert values["citation_validity"] == validity
    assert values["citations_in_index"] == in_index


def test_the_share_of_the_context_counts_each_row_once():
    response = "A [Data: Sources (1, 99)] B [Data: Sources (1); Reports (7)] C [Data: Entities (8)]"
    found = check_citations(SHOWN, response, INDEX, REPORTS)
    assert found["context_cited"] == pytest.approx(3 / (2 + 3 + 1 + 2 + 1))
    assert found["sources_cited"] == 0.5
    assert found["citation_validity"] == found["citations_in_index"] == 0.75


def test_a_citation_without_a_table_or_of_another_table_can_not_hold():
    found = check_citations(SHOWN, "A [Data: 1, 2] B [Data: Sources (1)]", INDEX)
    assert found["citation_validity"] == 0.5
    within = "-----Sources-----\nid|text\n1|Act\n-----Finale-----\n40|curtain\n"
    values = check_citations(SHOWN, "A [Data: Finale (40)]", INDEX, within)
    assert values["citation_validity"] == 0
    # Reports of global search have no heading.
    text = 'id|title|occurrence weight|content\n4|North|1.0|"About\nit"\n5|South|0.5|Other\n'
    values = check_citations(Retrieved("global"), "[Data: Reports (4, 6)]", INDEX, text)
    assert values == dict.fromkeys(CITATION_MEASURES, 0.5) | {"sources_cited": None}


@pytest.mark.parametrize(
    ("retrieved", "response", "index", "expected"),
    [
        (SHOWN, "So it is.", INDEX, {"context_cited": 0, "sources_cited": 0}),
        (
            Retrieved("tog", text_unit_ids=()),
            "A [Data: Sources (1)]",
            INDEX,
            {"citation_validity": 0, "citations_in_index": 1},
        ),
        (None, "A [Data: Sources (1)]", INDEX, {}),
        (SHOWN, "A [Data: Sources (1)]", None, {}),
        (SHOWN, " ", INDEX, {}),
        (Retrieved("global"), "A [Data: Reports (1)]", INDEX, {}),
    ],
    ids=["none", "nothing shown", "not recorded", "no index", "no answer", "context unknown"],
)
def test_with_nothing_to_measure_a_measure_is_none(retrieved, response, index, expected):
    values = check_citations(retrieved, response, index)
    assert values == dict.fromkeys(CITATION_MEASURES) | expected


TABLES = st.sampled_from(["Sources", "Relationships", "Entities", "Reports", "Maps"])
CITED = st.lists(st.tuples(TABLES, st.integers(0, 15)), max_size=10)


@given(CITED, st.randoms(use_true_random=False))
def test_what_is_written_is_read_and_scored_alike_in_any_order(cited, random):
    def write(pairs):
        return "Text. " + " x ".join(f"[Data: {table} ({number})]" for table, number in pairs)

    expected = tuple(dict.fromkeys(Citation(t.lower(), str(n)) for t, n in cited))
    assert read_citations(write(cited)) == expected
    assert read_citations(strip_citations(write(cited) + " \uff3bData: Maps (1)]")) == ()
    values = check_citations(SHOWN, write(cited), INDEX, REPORTS)
    assert all(value is None or 0 <= value <= 1 for value in values.values())
    mixed = random.sample(cited, len(cited))
    assert check_citations(SHOWN, write(mixed), INDEX, REPORTS) == values
    if cited:
        assert values["citation_validity"] <= values["citations_in_index"]
