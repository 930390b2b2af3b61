"""Real searches of a small index: what they retrieved, how it scores, where answers were lost."""

import asyncio
import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lighthouse import METHODS

from graphrag.eval.config.sections import MeasuresSettings
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import Retrieved
from graphrag.eval.scorers.index_view import IndexView
from graphrag.eval.scorers.loss import (
    GRAPH_STAGES,
    NOT_NEEDED,
    STAGES,
    LossRecord,
    summarize_loss,
    trace_loss,
)
from graphrag.eval.scorers.measures import Answered, measure, rank_sources, summarize_measures
from graphrag.eval.scorers.retrieved import RetrievalReader
from graphrag.eval.scorers.traced import check_citations, check_paths
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index_header import IndexTables

QUOTE = "Oswin Tarrant was an engineer from Port Merrow."
SAMPLE = Sample("s1", "isle", "What was Oswin Tarrant?", "An engineer", evidence=(QUOTE,))
TABLES = ("documents", "text_units", "entities", "relationships")


@pytest.fixture(scope="module")
def isle(lighthouse):
    """Return a built index's tables, opened, and one search by every method."""

    async def make():
        index = await GraphIndex.open(lighthouse)
        return index.tables, {m: await index.search(m, SAMPLE.question) for m in METHODS}

    return asyncio.run(make())


@pytest.fixture(scope="module")
def tables(isle):
    return {name: isle[0].table(name) for name in TABLES}


@pytest.fixture(scope="module")
def view(tables):
    return IndexView(IndexTables(**tables))


@pytest.fixture(scope="module")
def reader(isle):
    return RetrievalReader(isle[0])


@pytest.mark.parametrize("method", METHODS)
def test_what_a_search_showed_is_read_in_the_ids_of_the_index(isle, tables, reader, method):
    data = isle[1][method].context_data
    found = reader.read(method, data)
    assert Retrieved.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.n_unknown_ids == 0
    if method == "global":
        assert found.text_unit_ids is None
        return
    frames = [data] if "sources" in data else list(data.values())
    shown = list(dict.fromkeys(text for frame in frames for text in frame["sources"]["text"]))
    texts = tables["text_units"].set_index("id")["text"]
    assert [texts[unit] for unit in found.shown_text_unit_ids] == shown
    assert len(set(found.text_unit_ids)) == len(found.text_unit_ids)
    assert set(found.entities) <= set(tables["entities"]["title"])
    assert set(found.relationship_ids) <= set(tables["relationships"]["id"])
    assert bool(found.paths) == (method in ("tog", "ppr"))


def test_the_paths_of_think_on_graph_bring_their_text_units(isle, reader):
    frames = {**isle[1]["tog"].context_data, "sources": pd.DataFrame({"id": [], "text": []})}
    paths = frames["paths"]
    walked = list(dict.fromkeys(unit for units in paths["text_unit_ids"] for unit in units))
    found = reader.read("tog", frames)
    assert list(found.text_unit_ids[: len(walked)]) == walked
    assert found.n_sources == 0
    hops = [hop for path in found.paths for hop in path]
    assert [hop.source for hop in hops] == list(paths["source"])
    assert [hop.forward for hop in hops] == list(paths["traversed_forward"])


def test_rows_out_of_context_are_left_out_and_unknown_ids_counted(reader):
    frame = pd.DataFrame({"id": ["0", "1", "999"], "in_context": [True, False, True]})
    found = reader.read("local", {"Sources": frame})
    assert (found.n_sources, found.n_unknown_ids) == (1, 1)
    assert reader.read("other", {}).text_unit_ids is None
    assert reader.read("other", {"sources": frame[:0]}).text_unit_ids == ()


@pytest.mark.parametrize("method", ["tog", "ppr", "local", "basic"])
def test_everything_that_a_real_search_walks_and_cites_is_in_the_index(isle, view, reader, method):
    result = isle[1][method]
    retrieved = reader.read(method, result.context_data)
    paths = check_paths(retrieved, result.response, view)
    cites = check_citations(retrieved, result.response, view, str(result.context_text))
    assert cites["citation_validity"] == cites["citations_in_index"] == 1
    assert 0 < cites["sources_cited"] <= 1
    assert paths["answer_entities_traced"] == 1
    if method in ("local", "basic"):
        assert paths["path_edges_exist"] is paths["path_joins_meet"] is None
        return
    assert paths["path_edges_exist"] == paths["path_edges_supported"] == 1
    assert paths["path_joins_meet"] == 1
    at = next(i for i, path in enumerate(retrieved.paths) if path[-1].hop > 1)
    path = retrieved.paths[at]
    turned = tuple(replace(h, forward=not h.forward) if h.hop == 1 else h for h in path)
    walked = (*retrieved.paths[:at], turned, *retrieved.paths[at + 1 :])
    found = check_paths(replace(retrieved, paths=walked), "", view)
    assert found["path_joins_meet"] < 1 == found["path_edges_exist"]


def answered(view, **changes):
    (unit,) = view.sources.units_with(QUOTE)
    retrieved = Retrieved("tog", (unit,), 1, entities=("OSWIN TARRANT",))
    given = Answered("s1", "isle", "tog", "An engineer.", "", retrieved, 1, 1000, 2.0)
    return replace(given, **changes)


def trace(sample, given, index):
    return trace_loss(sample, given, index, NOT_NEEDED.get(given.method, GRAPH_STAGES))


SHOWN = {"retrieved": None, "context_text": f'1|"{QUOTE}"'}
HIDDEN = {"retrieved": None, "context_text": "Port Merrow. Oswin Tarrant was there."}
MARKED = "Oswin Tarrant was [...] from Port Merrow. [4]"
YES, NO, UNKNOWN = True, False, None


@pytest.mark.parametrize(
    ("changes", "lost", "last_stages"),
    [
        ({}, None, (YES, YES, YES, YES)),
        ({"evidence": ("keeps the",)}, "extracted", (YES, YES, YES, YES)),
        ({"evidence": (QUOTE, "keeps the")}, "extracted", (YES, YES, YES, YES)),  # every source
        ({"evidence": ()}, None, (UNKNOWN,) * 4),
        ({"expected_entities": ("oswin  tarrant",)}, None, (YES, YES, YES, YES)),
        ({"expected_entities": ("Oswin Tarrant", "Nobody")}, "extracted", (YES, YES, YES, YES)),
        ({"retrieved": Retrieved("tog", ())}, "retrieved", (NO, NO, YES, YES)),
        ({"context_text": "nothing of it", "n_sources": 0}, "in_context", (YES, NO, YES, YES)),
        ({"response": "A baker.", "correctness": 0}, "in_answer", (YES, YES, NO, NO)),
        ({"correctness": 0}, "judged_correct", (YES, YES, YES, NO)),
        # The verdict outranks the words, and words in the context count.
        ({"response": "He built bridges.", **SHOWN}, None, (YES, YES, YES, YES)),
        ({"response": "Bridges.", "correctness": None, **SHOWN}, "in_answer", (YES, YES, NO, None)),
        ({"evidence": (MARKED,), **SHOWN}, None, (YES, YES, YES, YES)),
        ({"evidence": (MARKED,), **HIDDEN}, "in_context", (None, NO, YES, YES)),
        # An unknown list is not lost, but a context without the quote is.
        ({"retrieved": None}, "in_context", (UNKNOWN, NO, YES, YES)),
        ({"failed": True, "correctness": 0}, "retrieved", (NO, NO, NO, NO)),
    ],
)
def test_each_stage_can_be_the_first_to_break(view, changes, lost, last_stages):
    of_sample = {k: v for k, v in changes.items() if k in ("evidence", "expected_entities")}
    given = answered(
        view, **{k: changes[k] for k in changes.keys() - of_sample.keys() - {"n_sources"}}
    )
    if "n_sources" in changes:
        given = replace(given, retrieved=replace(given.retrieved, n_sources=0))
    record = trace(replace(SAMPLE, **of_sample), given, view)
    assert record.first_break == lost
    assert record.stages[4:] == last_stages
    if lost is None and of_sample != {"evidence": ()}:
        assert record.stages[:4] == (YES,) * 4


def test_a_fact_of_the_source_that_no_text_unit_kept_is_lost_in_the_cutting(tables):
    (row,) = [n for n, text in enumerate(tables["text_units"]["text"]) if QUOTE in text][:1]
    kept = tables["text_units"].drop(index=tables["text_units"].index[row])
    kept = kept[~kept["text"].str.contains("Tarrant")]
    index = IndexView(IndexTables(**{**tables, "text_units": kept}))
    given = Answered("s1", "isle", "basic", "A baker", correctness=0)
    assert trace(SAMPLE, given, index).first_break == "in_text_unit"


def test_a_fact_without_a_relationship_is_not_connected(view, tables):
    index = IndexView(IndexTables(**{**tables, "relationships": tables["relationships"][:0]}))
    for method, lost in (("tog", "connected"), ("local", None), ("basic", None), ("mine", None)):
        record = trace(SAMPLE, answered(view, method=method), index)
        assert record.stage("connected") is False
        assert record.first_break == lost


def test_evidence_that_is_missing_or_not_in_the_text_is_left_out_and_counted(view):
    nowhere = "Oswin Tarrant was a baker."
    partly = replace(SAMPLE, id="s6", evidence=(QUOTE, nowhere))
    wholly = replace(SAMPLE, id="s7", evidence=(nowhere,))
    without = replace(SAMPLE, id="s5", evidence=())
    records = [trace(s, answered(view), view) for s in (partly, wholly, without)]
    assert [(r.n_evidence, r.n_unmatched, r.first_break) for r in records] == [
        (1, 1, None),
        (0, 1, None),
        (0, 0, None),
    ]
    assert records[1].stages == records[2].stages == (None,) * 8
    (film, _) = summarize_loss(records)
    assert (film.n, film.n_unmatched, film.n_partly_unmatched) == (3, 1, 1)
    assert (film.n_untraced, film.n_kept, sum(film.lost.values())) == (1, 1, 0)
    rows = [measure(s, answered(view), view) for s in (partly, wholly)]
    assert [row.values["recall"] for row in rows] == [1, None]
    summary = summarize_measures(rows)["tog"]
    assert summary.measures["hit_rate"].estimate.n == 1
    assert (summary.n_with_unmatched_sources, summary.n_without_matched_sources) == (2, 1)


stage_values = st.tuples(*[st.sampled_from([True, False, None])] * 8)
records = st.builds(
    LossRecord,
    imdb_key=st.sampled_from("ab"),
    method=st.sampled_from(["tog", "basic"]),
    n_evidence=st.integers(0, 2),
    stages=stage_values,
    not_needed=st.sampled_from([(), GRAPH_STAGES]),
    n_unmatched=st.integers(0, 2),
)


@settings(max_examples=60)
@given(st.lists(records, max_size=20))
def test_the_counts_of_every_row_add_up(given_records):
    rows = summarize_loss(given_records)
    for row in rows:
        lost = sum(row.lost.values())
        left_out = row.n_untraced + row.n_unmatched
        assert row.n == left_out + lost + row.n_kept + row.n_unjudged
        assert all(row.right_anyway[stage] <= row.lost[stage] for stage in STAGES)
    total = [row for row in rows if row.imdb_key is None]
    assert sum(row.n for row in total) == len(given_records)


def test_right_without_evidence_and_retrieved_but_wrong_are_counted(view):
    lucky = answered(view, retrieved=Retrieved("tog", ()))
    unlucky = answered(view, correctness=0)
    rows = summarize_loss([trace(SAMPLE, a, view) for a in (lucky, unlucky)])
    assert (rows[0].n_right_without_evidence, rows[0].n_retrieved_but_wrong) == (1, 1)
    assert (rows[0].lost["retrieved"], rows[0].right_anyway["retrieved"]) == (1, 1)


FULL = replace(
    SAMPLE,
    expected_entities=("Oswin Tarrant", "Nobody"),
    keywords=("engineer",),
    aspects=("his trade as an engineer",),
    tags={"time_limit_s": 1},
)


def test_every_measure_of_a_response_has_its_value(view):
    values = measure(FULL, answered(view), view, MeasuresSettings(cutoffs=(2,))).values
    labelled = {name: value for name, value in values.items() if value is not None}
    ones = """hit_rate mrr recall precision shown_hit_rate shown_recall hit_rate_at_2 recall_at_2
    keyword_relevance judge_score combined_score"""
    # It walked no path and cites nothing of what was shown.
    zeros = "aspect_coverage time_score context_cited sources_cited"
    halves = "precision_at_2 indexed_entity_recall retrieved_entity_recall"
    assert labelled == {
        **dict.fromkeys(ones.split(), 1),
        **dict.fromkeys(zeros.split(), 0),
        **dict.fromkeys(halves.split(), 0.5),
    }


def test_without_labels_a_measure_is_undefined_and_a_failed_search_scores_0(view):
    bare, unknown = replace(SAMPLE, evidence=()), answered(view, retrieved=None, correctness=None)
    values = measure(bare, unknown, view).values
    assert set(values.values()) == {None}
    assert list(values) == list(measure(FULL, answered(view), view).values)
    values = dict(measure(FULL, answered(view, failed=True, correctness=0), view).values)
    assert values.pop("indexed_entity_recall") == 0.5
    assert set(values.values()) <= {0, None}
    assert values["hit_rate"] == values["keyword_relevance"] == values["time_score"] == 0


def test_every_method_scores_on_real_searches(isle, view, reader):
    rows, records = [], []
    for method, result in isle[1].items():
        retrieved = reader.read(method, result.context_data)
        given = Answered("s1", "isle", method, result.response, "", retrieved, 1, 100, 1.0)
        rows.append(measure(SAMPLE, given, view))
        records.append(trace(SAMPLE, given, view))
        ranking = rank_sources(view.evidence_of(SAMPLE), retrieved.text_unit_ids)
        assert rows[-1].values["recall"] == ranking.recall()
    summary = summarize_measures(rows)
    listing = set(METHODS) - {"global"}
    assert {m for m in METHODS if summary[m].measures["hit_rate"].estimate.mean == 1} == listing
    assert summary["global"].n_without_list == 1
    assert {record.method for record in records if record.stage("retrieved")} == listing
    without_graph = {record.method for record in records if record.not_needed == GRAPH_STAGES}
    assert without_graph == {"ppr", "basic", "bm25", "hybrid", "agentic"}
