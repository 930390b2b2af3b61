"""What an answer cites against what was shown: reading citations, and faults of every kind."""

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.records import Retrieved
from graphrag.eval.scorers.citations import (
    Citation,
    check_citations,
    read_citations,
    strip_citations,
)
from graphrag.eval.scorers.index_view import IndexView
from graphrag.query.index_tables import IndexTables

NAMES = {"citations_in_index", "citation_validity", "context_cited", "sources_cited"}
N = 12


def make_records():
    units = {"id": [f"u{n}" for n in range(N)], "human_readable_id": range(N), "text": ["t"] * N}
    units["document_id"] = ["d"] * N
    edges = {
        "id": [f"r{n}" for n in range(N)],
        "human_readable_id": range(N),
        "source": ["A"] * N,
        "target": ["B"] * N,
        "text_unit_ids": [[]] * N,
    }
    entities = {"human_readable_id": range(N), "title": [f"E{n}" for n in range(N)]}
    entities["text_unit_ids"] = [[]] * N
    return IndexView(
        IndexTables(
            text_units=pd.DataFrame(units),
            relationships=pd.DataFrame(edges),
            entities=pd.DataFrame(entities),
        )
    )


RECORDS = make_records()
# Sources 1, 2; relationships 3, 4, 5; entity 6. The text unit u9 was not shown itself.
SHOWN = Retrieved(
    "local",
    text_unit_ids=("u1", "u2", "u9"),
    n_sources=2,
    entities=("E6",),
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
        ("A. [Data: Sources (1, 2); Relationships (3, +more)]", ["sources 1 2", "relationships 3"]),
        ("A [Data: Sources (15, 16), Reports (1), Entities (5, 7)].", None),
        ("[data:source(1)] [DATA: SOURCES (1,1; 2)]", ["sources 1 2"]),
        ("[Data: Sources (1, + more)] [Data: Reports (2, more)]", ["sources 1", "reports 2"]),
        ("\uff3bData\uff1a Sources \uff081\uff0c2\uff09\uff3d", ["sources 1 2"]),
        ("cut off [Data: Sources (1, 2", ["sources 1 2"]),
        ("[Data: Sources\n(1,\n2)]", ["sources 1 2"]),
        ("[Data: General Knowledge (href)]", ["general knowledge href"]),
        ("[Data: Sources ()] and [1] and (Sources 2)", []),
    ],
)
def test_citations_are_read_as_models_write_them(response, expected):
    if expected is None:
        expected = ["sources 15 16", "reports 1", "entities 5 7"]
    found: dict[str, list[str]] = {}
    for citation in read_citations(response):
        found.setdefault(citation.table, []).append(citation.id)
    assert [f"{table} {' '.join(ids)}" for table, ids in found.items()] == expected


def test_a_citation_without_a_table_can_not_hold():
    found = check_citations(SHOWN, "A [Data: 1, 2] B [Data: Sources (1)]", RECORDS)
    assert found.cited == (Citation("", "1, 2"), Citation("sources", "1"))
    assert found.values["citation_validity"] == 0.5


@pytest.mark.parametrize(
    ("cited", "validity", "in_index"),
    [
        ("Sources (1, 2); Relationships (3); Entities (6)", 1, 1),
        ("Sources (1, 9)", 0.5, 1),  # its relationship was shown, its text was not
        ("Sources (1, 99)", 0.5, 0.5),
        ("Relationships (6)", 0, 1),  # an id of another table
        ("Entities (6, 7, 99, six)", 0.25, 0.5),
        ("Reports (7, 8); Claims (2)", 1, 1),
        ("Reports (9); Claims (7)", 0, 0),
        ("Sources (11)", 0, 1),
        ("Rumours (1)", 0, 0),
    ],
)
def test_a_cited_id_is_looked_for_in_its_own_table(cited, validity, in_index):
    values = check_citations(SHOWN, f"So it is. [Data: {cited}]", RECORDS, REPORTS).values
    assert values["citation_validity"] == validity
    assert values["citations_in_index"] == in_index


def test_the_share_of_the_context_counts_each_row_once():
    response = "A [Data: Sources (1, 99)] B [Data: Sources (1); Reports (7)] C [Data: Entities (6)]"
    found = check_citations(SHOWN, response, RECORDS, REPORTS)
    assert (found.n_shown, found.n_cited_rows) == (2 + 3 + 1 + 2 + 1, 3)
    assert found.values["context_cited"] == pytest.approx(3 / 9)
    assert found.values["sources_cited"] == 0.5
    assert found.not_shown == found.not_in_index == ("sources (99)",)
    assert json.loads(json.dumps(found.to_dict()))["measures"] == found.values


def test_reports_of_global_search_have_no_heading():
    text = 'id|title|occurrence weight|content\n4|North|1.0|"About\nit"\n5|South|0.5|Other\n'
    values = check_citations(Retrieved("global"), "[Data: Reports (4, 6)]", RECORDS, text).values
    assert values == {
        "citations_in_index": 0.5,
        "citation_validity": 0.5,
        "context_cited": 0.5,
        "sources_cited": None,
    }


def test_an_answer_without_citations_uses_none_of_its_context():
    assert check_citations(SHOWN, "So it is.", RECORDS).values == {
        "citations_in_index": None,
        "citation_validity": None,
        "context_cited": 0,
        "sources_cited": 0,
    }


def test_a_search_that_showed_nothing_makes_every_citation_invalid():
    nothing = Retrieved("tog", text_unit_ids=())
    values = check_citations(nothing, "A [Data: Sources (1)]", RECORDS).values
    assert values["citation_validity"] == 0
    assert values["context_cited"] is values["sources_cited"] is None


@pytest.mark.parametrize(
    ("retrieved", "response", "records"),
    [
        (None, "A [Data: Sources (1)]", RECORDS),
        (SHOWN, "A [Data: Sources (1)]", None),
        (SHOWN, " ", RECORDS),
        (Retrieved("global"), "A [Data: Reports (1)]", RECORDS),
    ],
    ids=["not recorded", "no index", "no answer", "context unknown"],
)
def test_with_nothing_to_measure_every_measure_is_none(retrieved, response, records):
    assert check_citations(retrieved, response, records).values == dict.fromkeys(NAMES)


def test_a_table_name_inside_a_source_is_no_report():
    text = "-----Sources-----\nid|text\n1|Act\n-----Finale-----\n40|curtain\n"
    values = check_citations(SHOWN, "A [Data: Finale (40)]", RECORDS, text).values
    assert values["citation_validity"] == 0


TABLES = st.sampled_from(["Sources", "Relationships", "Entities", "Reports", "Maps"])
CITED = st.lists(st.tuples(TABLES, st.integers(0, 15)), max_size=10)


@given(CITED, st.randoms(use_true_random=False))
def test_what_is_written_is_read_and_scored_alike_in_any_order(cited, random):
    def write(pairs):
        return "Text. " + " x ".join(f"[Data: {table} ({number})]" for table, number in pairs)

    expected = tuple(dict.fromkeys(Citation(t.lower(), str(n)) for t, n in cited))
    assert read_citations(write(cited)) == expected
    values = check_citations(SHOWN, write(cited), RECORDS, REPORTS).values
    assert set(values) == NAMES
    assert all(value is None or 0 <= value <= 1 for value in values.values())
    mixed = random.sample(cited, len(cited))
    assert check_citations(SHOWN, write(mixed), RECORDS, REPORTS).values == values
    if cited:
        assert values["citation_validity"] <= values["citations_in_index"]


@given(st.text(), CITED)
def test_without_citations_nothing_is_cited(text, cited):
    response = f"{text} \uff3bData: Maps (1)]" + " ".join(
        f"[Data: {table} ({number})]" for table, number in cited
    )
    assert read_citations(strip_citations(response)) == ()
