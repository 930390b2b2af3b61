"""Paths, names and citations of an answer against the index and what was shown."""

from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.answers import answer

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.measures import measure, summarize_measures
from graphrag.eval.metrics.traced import (
    CITATION_MEASURES,
    PATH_MEASURES,
    Citation,
    check_citations,
    check_paths,
    read_citations,
    strip_citations,
)
from graphrag.eval.records.answers import Hop, Retrieved
from graphrag.query.index_header import IndexTables

UNITS = {
    "u0": "Oak Hill was founded by Ada. Ada's brother Ben sold it.",
    "u1": "Ben met 王五 at the pier, with a 🚀.",
    "u2": "Nobody is named here.",
    **{f"u{n}": "t" for n in range(3, 12)},
}
EDGES = [
    ("r0", "ADA", "OAK HILL", ["u0"]),
    ("r1", "BEN", "ADA", ["u2", "u0"]),
    ("r2", "BEN", "王五", ["u1"]),
    ("r3", "王五", "🚀", ["u1"]),
    ("r4", "ADA", "HILL", ["u2"]),
    ("r5", "ADA", "BEN", []),
    ("r6", "BEN", "ZED", ["u1"]),
    ("r7", "ZED", "BEN", ["u1"]),
    *((f"r{n}", "A", "B", []) for n in range(8, 12)),
]
TITLES = ["ADA", "OAK HILL", "BEN", "王五", "🚀", "HILL", "ZED", "ADA LEE"]
ENTITIES = [*TITLES, *(f"E{n}" for n in range(8, 12))]
INDEX = IndexView(
    IndexTables(
        text_units=pd.DataFrame(
            {
                "id": list(UNITS),
                "human_readable_id": range(12),
                "text": list(UNITS.values()),
                "document_id": "d",
            }
        ),
        relationships=pd.DataFrame(
            [(number, *edge) for number, edge in enumerate(EDGES)],
            columns=["human_readable_id", "id", "source", "target", "text_unit_ids"],
        ),
        entities=pd.DataFrame(
            {"human_readable_id": range(12), "title": ENTITIES, "text_unit_ids": [[]] * 12}
        ),
    )
)


def hop(number, relationship, forward=True, **changes):
    source, target = next(edge[1:3] for edge in EDGES if edge[0] == relationship)
    return replace(Hop(number, source, target, relationship, forward, 1.0), **changes)


def shown(*paths, units=(), relationships=()):
    return Retrieved(
        "tog",
        text_unit_ids=tuple(units),
        n_sources=len(units),
        relationship_ids=tuple(relationships),
        paths=tuple(map(tuple, paths)),
    )


# OAK HILL <- ADA <- BEN -> 王五 -> 🚀
WHOLE = [hop(1, "r0", False), hop(2, "r1", False), hop(3, "r2"), hop(4, "r3")]


def test_a_whole_path_holds_in_all_respects():
    found = check_paths(shown(WHOLE), "Ada and Ben.", INDEX)
    assert found == dict.fromkeys(PATH_MEASURES, 1.0)


@pytest.mark.parametrize(
    "changed",
    [
        hop(1, "r0", False, source="OAK HILL", target="ADA"),
        hop(1, "r0", False, source="ZED"),
        hop(1, "r0", False, relationship_id="gone"),
    ],
    ids=["turned", "other end", "other index"],
)
def test_an_edge_that_the_index_does_not_have_so_is_missing_and_unsupported(changed):
    found = check_paths(shown([changed, *WHOLE[1:]]), "", INDEX)
    assert found["path_edges_exist"] == found["path_edges_supported"] == 0.75


@pytest.mark.parametrize(
    ("path", "n_joins", "n_broken"),
    [
        ([WHOLE[0], hop(2, "r1")], 1, 1),  # walked backwards
        ([WHOLE[0], hop(2, "r3")], 1, 1),  # another place
        ([WHOLE[0], WHOLE[2]], 2, 2),  # a hop that was not read
        ([hop(2, "r1", False), WHOLE[2]], 2, 1),  # the first hop was not read
        ([WHOLE[0], WHOLE[1], hop(2, "r5")], 1, 0),  # parallel, either way
        ([WHOLE[0], WHOLE[1], hop(2, "r4")], 1, 1),  # not parallel
        ([WHOLE[0]], 0, 0),
    ],
)
def test_hops_must_meet(path, n_joins, n_broken):
    found = check_paths(shown(path), "", INDEX)
    expected = None if n_joins == 0 else (n_joins - n_broken) / n_joins
    assert found["path_joins_meet"] == expected


def test_support_is_a_text_unit_with_both_ends_and_an_edge_counts_once():
    paths = [[hop(1, "r1"), hop(2, "r4")], [hop(1, "r1"), hop(2, "r5")], [hop(1, "r4")]]
    found = check_paths(shown(*paths, [hop(1, "r6")], [hop(1, "r7")]), "", INDEX)
    assert found["path_edges_supported"] == 1 / 5
    assert found["path_edges_exist"] == 1


@pytest.mark.parametrize(
    ("response", "named", "untraced"),
    [
        ("Ada's brother sold Oak Hill.", ("ADA", "OAK HILL"), ()),
        ("The hill is Ada's.", ("HILL", "ADA"), ("HILL",)),
        ("ZED and 王五 flew the 🚀.", ("ZED", "王五", "🚀"), ("ZED",)),
        ("Ada Lee left.", ("ADA LEE",), ("ADA LEE",)),
        ("Zed [Data: Sources (1); Ada (2)]", ("ZED",), ("ZED",)),
        ("Nobody.", (), ()),
    ],
)
def test_entities_of_the_answer_are_on_a_path_or_in_a_source(response, named, untraced):
    found = check_paths(shown([hop(1, "r0")], units=["u1"]), response, INDEX)
    assert INDEX.entities_in(strip_citations(response)) == named
    share = pytest.approx(1 - len(untraced) / len(named)) if named else None
    assert found["answer_entities_traced"] == share


@pytest.mark.parametrize(("relationships", "share"), [((), 0), (("r0", "gone"), 1)])
def test_an_end_of_a_shown_relationship_counts_for_methods_without_paths(relationships, share):
    retrieved = shown(units=["u2"], relationships=relationships)
    values = check_paths(retrieved, "Ada knows Oak Hill.", INDEX)
    assert values["answer_entities_traced"] == share


@pytest.mark.parametrize(
    ("retrieved", "index"),
    [
        (None, INDEX),
        (shown(WHOLE), None),
        (Retrieved("global"), INDEX),
        (shown(), IndexView(IndexTables())),
    ],
    ids=["not recorded", "no index", "no list", "empty index"],
)
def test_without_paths_every_measure_is_none(retrieved, index):
    assert check_paths(retrieved, "Ada", index) == dict.fromkeys(PATH_MEASURES)


def test_they_are_measures_of_the_evaluation():
    sample = Sample("s", "k", "Who?", "Ada")
    retrieved = shown(WHOLE, units=["u0"])
    made = partial(answer, "tog", "Ada [Data: Sources (0, 7)]")
    answered = made(retrieved=retrieved)
    values = measure(sample, answered, INDEX).values
    assert {name: values[name] for name in PATH_MEASURES} == dict.fromkeys(PATH_MEASURES, 1.0)
    assert values["citation_validity"] == 0.5
    failed = measure(sample, made(retrieved=retrieved, failed=True), INDEX).values
    assert list(failed) == list(values)
    assert {failed[name] for name in (*PATH_MEASURES, *CITATION_MEASURES)} == {None}
    abstained = measure(sample, made(retrieved=retrieved, abstained=True), INDEX).values
    assert abstained["context_cited"] is None
    silent = measure(sample, made(), INDEX)
    summary = summarize_measures([silent, measure(sample, answered, INDEX)])["tog"]
    validity = summary.measures["citation_validity"]
    assert (validity.estimate.mean, validity.n_excluded) == (0.5, 1)


HOPS = st.builds(
    Hop,
    hop=st.integers(1, 4),
    source=st.sampled_from(TITLES),
    target=st.sampled_from(TITLES),
    relationship_id=st.sampled_from(["r0", "r1", "r2", "gone"]),
    forward=st.booleans(),
    score=st.just(1.0),
)


@given(
    st.lists(st.lists(HOPS, max_size=5), max_size=4),
    st.text(st.sampled_from("Ada Ben Zed.🚀王五'"), max_size=30),
    st.randoms(use_true_random=False),
)
def test_measures_lie_between_0_and_1_and_do_not_depend_on_the_order(paths, response, random):
    values = check_paths(shown(*paths, units=["u0"]), response, INDEX)
    assert all(value is None or 0 <= value <= 1 for value in values.values())
    mixed = [random.sample(path, len(path)) for path in random.sample(paths, len(paths))]
    assert check_paths(shown(*mixed, units=["u0"]), response, INDEX) == values
    exist, supported = values["path_edges_exist"], values["path_edges_supported"]
    assert (exist is None) == (not any(paths))
    assert exist is None or supported <= exist


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
            shown(),
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
