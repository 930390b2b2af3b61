"""Paths and names of an answer against the index: real searches, and faults of every kind."""

import asyncio
import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lighthouse import TEXT
from support.projects import OFFLINE_SETTINGS

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import Hop, Retrieved
from graphrag.eval.runner.index_building import build_index
from graphrag.eval.scorers.citations import check_citations
from graphrag.eval.scorers.index_view import IndexView
from graphrag.eval.scorers.measuring import measure, measure_answer, summarize_measures
from graphrag.eval.scorers.paths import check_paths
from graphrag.eval.scorers.quotes import NamedText
from graphrag.eval.scorers.response import Answered
from graphrag.eval.scorers.retrieved import RetrievalReader
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index_tables import IndexTables

NAMES = {
    "path_edges_exist",
    "path_joins_meet",
    "path_edges_supported",
    "answer_entities_traced",
}
QUESTION = "How are Marta Quill and Berta Lindqvist related?"

UNITS = {
    "u0": "Oak Hill was founded by Ada. Ada's brother Ben sold it.",
    "u1": "Ben met 王五 at the pier, with a 🚀.",
    "u2": "Nobody is named here.",
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
]
TITLES = ["ADA", "OAK HILL", "BEN", "王五", "🚀", "HILL", "ZED", "ADA LEE"]


def make_records():
    return IndexView(
        IndexTables(
            text_units=pd.DataFrame(
                {
                    "id": list(UNITS),
                    "human_readable_id": range(3),
                    "text": list(UNITS.values()),
                    "document_id": ["d"] * 3,
                }
            ),
            relationships=pd.DataFrame(
                [(number, *edge) for number, edge in enumerate(EDGES)],
                columns=["human_readable_id", "id", "source", "target", "text_unit_ids"],
            ),
            entities=pd.DataFrame(
                {
                    "human_readable_id": range(len(TITLES)),
                    "title": TITLES,
                    "text_unit_ids": [[]] * len(TITLES),
                }
            ),
        )
    )


RECORDS = make_records()


def hop(number, relationship, forward=True, **changes):
    source, target = next(edge[1:3] for edge in EDGES if edge[0] == relationship)
    made = Hop(number, source, target, relationship, forward, 1.0)
    return replace(made, **changes)


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


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Return a built index and one search of it by three methods."""
    root = tmp_path_factory.mktemp("isle")
    (root / "input").mkdir()
    (root / "input" / "isle.txt").write_text(TEXT, encoding="utf-8")
    (root / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")

    async def make():
        await build_index(root, lambda _: None)
        index = await GraphIndex.open(root)
        found = {m: await index.search(m, QUESTION) for m in ("tog", "local", "basic")}
        return index.tables, found

    loop = asyncio.new_event_loop()
    made = loop.run_until_complete(make())
    loop.close()
    return made


def test_everything_that_a_real_search_walks_and_cites_is_in_the_index(real):
    tables, results = real
    records, reader = IndexView(tables), RetrievalReader(tables)
    for method, result in results.items():
        retrieved = reader.read(method, result.context_data)
        paths = check_paths(retrieved, result.response, records)
        cites = check_citations(retrieved, result.response, records, str(result.context_text))
        assert cites.values["citation_validity"] == cites.values["citations_in_index"] == 1
        assert 0 < cites.values["sources_cited"] <= 1
        assert cites.n_shown_sources == len(result.context_data["sources"])
        assert paths.values["answer_entities_traced"] == 1
        if method in ("tog", "ppr"):
            assert paths.n_edges == len(set(result.context_data["paths"]["relationship_id"]))
            assert paths.n_joins > 0
            assert paths.values["path_edges_exist"] == paths.values["path_joins_meet"] == 1
            assert paths.values["path_edges_supported"] == 1
        else:
            assert paths.values["path_edges_exist"] is paths.values["path_joins_meet"] is None


def test_a_real_path_with_a_turned_edge_no_longer_meets(real):
    tables, results = real
    retrieved = RetrievalReader(tables).read("tog", results["tog"].context_data)
    at = next(i for i, path in enumerate(retrieved.paths) if path[-1].hop > 1)
    path = retrieved.paths[at]
    turned = tuple(replace(h, forward=not h.forward) if h.hop == 1 else h for h in path)
    paths = (*retrieved.paths[:at], turned, *retrieved.paths[at + 1 :])
    found = check_paths(replace(retrieved, paths=paths), "", IndexView(tables))
    assert len(found.broken_joins) == 1
    assert found.missing_edges == ()


def test_a_whole_path_holds_in_all_respects():
    found = check_paths(shown(WHOLE), "Ada and Ben.", RECORDS)
    assert (found.n_edges, found.n_joins) == (4, 3)
    assert found.values == dict.fromkeys(NAMES, 1.0)
    assert json.loads(json.dumps(found.to_dict()))["measures"] == found.values


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
    found = check_paths(shown([changed, *WHOLE[1:]]), "", RECORDS)
    assert found.values["path_edges_exist"] == found.values["path_edges_supported"] == 0.75
    assert len(found.missing_edges) == 1
    assert changed.relationship_id in found.missing_edges[0]


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
    found = check_paths(shown(path), "", RECORDS)
    assert (found.n_joins, len(found.broken_joins)) == (n_joins, n_broken)
    expected = None if n_joins == 0 else (n_joins - n_broken) / n_joins
    assert found.values["path_joins_meet"] == expected


def test_support_is_a_text_unit_with_both_ends_and_an_edge_counts_once():
    paths = [
        [hop(1, "r1"), hop(2, "r4")],
        [hop(1, "r1"), hop(2, "r5")],
        [hop(1, "r4")],
        [hop(1, "r6")],
    ]
    paths.append([hop(1, "r7")])
    found = check_paths(shown(*paths), "", RECORDS)
    assert found.n_edges == 5
    assert found.unsupported_edges == (
        "ADA -> HILL (r4)",
        "ADA -> BEN (r5)",
        "BEN -> ZED (r6)",
        "ZED -> BEN (r7)",
    )
    assert found.values["path_edges_supported"] == 1 / 5
    assert found.values["path_edges_exist"] == 1


def test_names_are_whole_words_in_any_case_and_never_blank():
    text = NamedText("Oak-hill was ADA\u2019s; 王五 said 🚀 to Adam.")
    for name in ("oak hill", "Oak Hill", "ada", "王五", "🚀"):
        assert name in text
    for name in ("oak hills", "Hil", "said Adam", "", "  ", "!", "🛰"):
        assert name not in text


@pytest.mark.parametrize(
    ("response", "named", "untraced"),
    [
        ("Ada's brother sold Oak Hill.", ("ADA", "OAK HILL"), ()),
        ("The hill is Ada's.", ("HILL", "ADA"), ("HILL",)),
        ("ZED and 王五 flew the 🚀.", ("ZED", "王五", "🚀"), ("ZED",)),
        ("Ada Lee left.", ("ADA LEE",), ("ADA LEE",)),
        ("Zed [Data: Sources (1); Ada (2)]", ("ZED",), ("ZED",)),
    ],
)
def test_entities_of_the_answer_are_on_a_path_or_in_a_source(response, named, untraced):
    found = check_paths(shown([hop(1, "r0")], units=["u1"]), response, RECORDS)
    assert found.answer_entities == named
    assert found.untraced_entities == untraced
    assert found.values["answer_entities_traced"] == pytest.approx(1 - len(untraced) / len(named))


def test_an_end_of_a_shown_relationship_counts_for_methods_without_paths():
    response = "Ada knows Oak Hill."
    without = check_paths(shown(units=["u2"]), response, RECORDS).values
    assert without["answer_entities_traced"] == 0
    with_edge = check_paths(
        shown(units=["u2"], relationships=["r0", "gone"]), response, RECORDS
    ).values
    assert with_edge["answer_entities_traced"] == 1


@pytest.mark.parametrize(
    ("retrieved", "records"),
    [
        (None, RECORDS),
        (shown(WHOLE), None),
        (Retrieved("global"), RECORDS),
        (shown(), IndexView(IndexTables())),
    ],
    ids=["not recorded", "no index", "no list", "empty index"],
)
def test_with_nothing_to_measure_every_measure_is_none(retrieved, records):
    assert check_paths(retrieved, "Ada", records).values == dict.fromkeys(NAMES)


def test_an_answer_that_names_nothing_known_is_unmeasured():
    assert check_paths(shown(WHOLE), "Nobody.", RECORDS).values["answer_entities_traced"] is None


def test_they_are_measures_of_the_evaluation():
    sample = Sample("s", "k", "Who?", "Ada")
    answered = Answered(
        "s", "k", "tog", "Ada [Data: Sources (0, 7)]", "", shown(WHOLE, units=["u0"])
    )
    values = measure_answer(sample, answered, RECORDS)
    assert {name: values[name] for name in NAMES} == dict.fromkeys(NAMES, 1.0)
    assert values["citation_validity"] == 0.5
    failed = measure_answer(sample, replace(answered, failed=True), RECORDS)
    assert list(failed) == list(values)
    assert all(failed[name] is None for name in (*NAMES, "citation_validity", "context_cited"))
    abstained = replace(answered, abstained=True)
    assert measure_answer(sample, abstained, RECORDS)["context_cited"] is None
    measured = [
        measure(sample, each, RECORDS) for each in (replace(answered, retrieved=None), answered)
    ]
    summary = summarize_measures(measured)["tog"].measures["citation_validity"]
    assert (summary.estimate.mean, summary.n_excluded) == (0.5, 1)


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
    values = check_paths(shown(*paths, units=["u0"]), response, RECORDS).values
    assert set(values) == NAMES
    assert all(value is None or 0 <= value <= 1 for value in values.values())
    mixed = [random.sample(path, len(path)) for path in random.sample(paths, len(paths))]
    assert check_paths(shown(*mixed, units=["u0"]), response, RECORDS).values == values
    exist, supported = values["path_edges_exist"], values["path_edges_supported"]
    assert (exist is None) == (not any(paths))
    assert exist is None or supported <= exist


@given(
    st.lists(st.sampled_from(["ada", "ben", "zed", "oak hill", "hill", "and", "oak"]), max_size=8)
)
def test_known_names_are_found_whatever_stands_between_them(words):
    found = RECORDS.entities_in(", ".join(words))
    joined = " ".join(words).replace("oak hill", "oak_hill").split()
    expected = dict.fromkeys(
        word.replace("_", " ").upper() for word in joined if word not in ("and", "oak")
    )
    assert found == tuple(expected)
