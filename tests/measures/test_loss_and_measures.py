"""Real searches of a small index: what they retrieved, how it scores, where answers were lost."""

import asyncio
import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answers import answer
from support.lighthouse import METHODS

from graphrag.eval.config.sections import MeasuresSettings
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.citations import check_citations
from graphrag.eval.metrics.failure_stage import (
    GRAPH_NEEDED,
    STAGES,
    LossRecord,
    summarize_loss,
    trace_loss,
)
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.measure_means import summarize_measures
from graphrag.eval.metrics.measures import measure, rank_sources
from graphrag.eval.metrics.retrieved_context import RetrievalReader
from graphrag.eval.types.query_results import Retrieved
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index.tables import IndexTables

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
    assert bool(found.walk) == (method in ("tog", "ppr"))


def test_the_paths_of_think_on_graph_bring_their_text_units(isle, reader):
    frames = {**isle[1]["tog"].context_data, "sources": pd.DataFrame({"id": [], "text": []})}
    paths = frames["paths"]
    walked = list(dict.fromkeys(unit for units in paths["text_unit_ids"] for unit in units))
    found = reader.read("tog", frames)
    assert list(found.text_unit_ids[: len(walked)]) == walked
    assert found.n_sources == 0


def test_rows_out_of_context_are_left_out_and_unknown_ids_counted(reader):
    frame = pd.DataFrame({"id": ["0", "1", "999"], "in_context": [True, False, True]})
    found = reader.read("local", {"Sources": frame})
    assert (found.n_sources, found.n_unknown_ids) == (1, 1)
    assert reader.read("other", {}).text_unit_ids is None
    assert reader.read("other", {"sources": frame[:0]}).text_unit_ids == ()


@pytest.mark.parametrize("method", ["tog", "ppr", "local", "basic"])
def test_everything_that_a_real_search_cites_is_in_the_index(isle, view, reader, method):
    result = isle[1][method]
    retrieved = reader.read(method, result.context_data)
    cites = check_citations(retrieved, result.response, view, str(result.context_text))
    assert cites["citation_validity"] == cites["citations_in_index"] == 1
    assert 0 < cites["sources_cited"] <= 1


def answered(view, **changes):
    (unit,) = view.sources.units_with(QUOTE)
    retrieved = Retrieved("tog", (unit,), 1, entities=("OSWIN TARRANT",))
    given = {"method": "tog", "response": "An engineer.", "retrieved": retrieved, "correctness": 1}
    return answer(**{**given, "tokens": 1000, "latency_s": 2.0, **changes})


def trace(sample, given, index, is_judged=True):
    return trace_loss(sample, given, index, GRAPH_NEEDED.get(given.method, ()), is_judged)


SHOWN = {"retrieved": None, "context_text": f'1|"{QUOTE}"'}
HIDDEN = {"retrieved": None, "context_text": "Port Merrow. Oswin Tarrant was there."}
NOTHING = {"retrieved": Retrieved("tog", ())}
MARKED = "Oswin Tarrant was [...] from Port Merrow. [4]"
BARE = "keeps the"  # names no entity
WRONG = {"response": "A baker.", "correctness": 0}
LOCAL = {"method": "local"}


@pytest.mark.parametrize(
    ("changes", "lost", "end"),
    [
        ({}, None, "right"),
        ({"evidence": ()}, None, "right"),
        ({"evidence": (), **WRONG}, None, "unknown"),
        # Nothing was lost before a text that was shown, whatever the graph lacks of it.
        ({"evidence": (BARE,)}, None, "right"),
        ({"evidence": (BARE,), **LOCAL}, None, "right"),
        ({"expected_entities": ("Oswin Tarrant", "Nobody"), **LOCAL}, None, "right"),
        # Where nothing was shown, the graph lost it only if the method depends on the graph.
        ({"evidence": (BARE,), **NOTHING, **WRONG}, "retrieved", "retrieved"),
        ({"evidence": (BARE,), **NOTHING, **WRONG, "method": "ppr"}, "retrieved", "retrieved"),
        ({"evidence": (BARE,), **NOTHING, **WRONG, **LOCAL}, "extracted", "extracted"),
        ({"expected_entities": ("Nobody",), **NOTHING, **LOCAL}, "extracted", "right_anyway"),
        (
            {"expected_entities": ("oswin  tarrant",), **NOTHING, **LOCAL},
            "retrieved",
            "right_anyway",
        ),
        ({**NOTHING}, "retrieved", "right_anyway"),
        # Every source counts, and one that was shown is lost nowhere.
        ({"evidence": (BARE, QUOTE), **SHOWN, **WRONG}, "in_context", "in_context"),
        ({"context_text": "nothing of it", "n_sources": 0}, "in_context", "right_anyway"),
        (WRONG, "in_answer", "in_answer"),
        ({"correctness": 0}, "judged_correct", "judged_correct"),
        # The verdict outranks the words, and words in the context count.
        ({"response": "He built bridges.", **SHOWN}, None, "right"),
        ({"response": "Bridges.", "correctness": None, **SHOWN}, None, "unjudged"),
        ({"evidence": (MARKED,), **SHOWN}, None, "right"),
        ({"evidence": (MARKED,), **HIDDEN, **WRONG}, "in_context", "in_context"),
        # An unknown list is not lost, but a context without the quote is.
        ({"retrieved": None}, "in_context", "right_anyway"),
        ({"failed": True, "correctness": 0}, "retrieved", "retrieved"),
    ],
)
def test_each_answer_is_lost_at_one_stage_that_its_method_depends_on(view, changes, lost, end):
    of_sample = {k: v for k, v in changes.items() if k in ("evidence", "expected_entities")}
    given = answered(
        view, **{k: changes[k] for k in changes.keys() - of_sample.keys() - {"n_sources"}}
    )
    if "n_sources" in changes:
        given = replace(given, retrieved=replace(given.retrieved, n_sources=0))
    record = trace(replace(SAMPLE, **of_sample), given, view)
    assert (record.first_break, record.end) == (lost, end)


def test_a_run_that_asks_for_no_verdict_still_tells_where_evidence_went(view):
    changes = ({}, NOTHING, WRONG | SHOWN)
    given = [answered(view, **{**each, "correctness": None}) for each in changes]
    found = [trace(SAMPLE, each, view, is_judged=False).end for each in given]
    assert found == ["unjudged", "retrieved", "in_answer"]


def test_an_answer_whose_context_is_not_known_is_not_said_to_have_had_it(view):
    given = answered(view, retrieved=None, **WRONG)
    of_unit = replace(SAMPLE, expected_sources=tuple(view.sources.units_with(QUOTE)))
    assert trace(of_unit, given, view).end == "unknown"


def test_a_fact_of_the_source_that_no_text_unit_kept_is_lost_in_the_cutting(tables):
    (row,) = [n for n, text in enumerate(tables["text_units"]["text"]) if QUOTE in text][:1]
    kept = tables["text_units"].drop(index=tables["text_units"].index[row])
    kept = kept[~kept["text"].str.contains("Tarrant")]
    index = IndexView(IndexTables(**{**tables, "text_units": kept}))
    given = answer("basic", "A baker", correctness=0)
    assert trace(SAMPLE, given, index).first_break == "in_text_unit"


def test_a_fact_without_a_relationship_is_lost_to_global_search_alone(view, tables):
    index = IndexView(IndexTables(**{**tables, "relationships": tables["relationships"][:0]}))
    lost = {"global": "connected"}
    for method in (*METHODS, "mine"):
        record = trace(SAMPLE, answered(view, method=method, **NOTHING, **WRONG), index)
        assert record.first_break == lost.get(method, "retrieved"), method


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
    (film, _) = summarize_loss(records)
    assert (film.n, film.n_unmatched, film.n_partly_unmatched) == (3, 1, 1)
    assert (film.n_untraced, film.n_kept, sum(film.lost.values())) == (1, 3, 0)
    rows = [measure(s, answered(view), view) for s in (partly, wholly)]
    assert [row.values["recall"] for row in rows] == [1, None]
    summary = summarize_measures(rows)["tog"]
    assert summary.measures["hit_rate"].estimate.n == 1
    assert (summary.n_with_unmatched_sources, summary.n_without_matched_sources) == (2, 1)


records = st.builds(
    LossRecord,
    imdb_key=st.sampled_from("ab"),
    method=st.sampled_from(["tog", "basic"]),
    n_evidence=st.integers(0, 2),
    first_break=st.sampled_from([None, *STAGES]),
    is_right=st.sampled_from([True, False, None]),
    n_unmatched=st.integers(0, 2),
)


@settings(max_examples=60)
@given(st.lists(records, max_size=20))
def test_the_counts_of_every_row_add_up_to_the_verdicts(given_records):
    rows = summarize_loss(given_records)
    for row in rows:
        own = [
            r
            for r in given_records
            if r.method == row.method and row.imdb_key in (None, r.imdb_key)
        ]
        assert row.n_kept + sum(row.right_anyway.values()) == sum(r.is_right is True for r in own)
        wrong = sum(row.lost.values()) + row.n_unknown + row.n_unjudged
        assert wrong == sum(not r.is_right for r in own)
        assert row.n == len(own)
    total = [row for row in rows if row.imdb_key is None]
    assert sum(row.n for row in total) == len(given_records)


FULL = replace(
    SAMPLE,
    expected_entities=("Oswin Tarrant", "Nobody"),
    keywords=("engineer",),
    aspects=("his trade as an engineer",),
    tags={"time_limit_s": 1},
)


def test_every_measure_of_a_response_has_its_value(view):
    values = measure(FULL, answered(view), view, MeasuresSettings(cutoffs=(2,)), 1.0).values
    labelled = {name: value for name, value in values.items() if value is not None}
    ones = """hit_rate mrr recall precision shown_hit_rate shown_recall shown_unit_recall
    hit_rate_at_2 recall_at_2 keyword_relevance judge_score combined_score"""
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
        given = answer(method, result.response, retrieved=retrieved, correctness=1)
        rows.append(measure(SAMPLE, given, view))
        records.append(trace(SAMPLE, given, view))
        ranking = rank_sources(view.evidence_of(SAMPLE), retrieved.text_unit_ids)
        assert rows[-1].values["recall"] == ranking.recall()
    summary = summarize_measures(rows)
    listing = set(METHODS) - {"global"}
    assert {m for m in METHODS if summary[m].measures["hit_rate"].estimate.mean == 1} == listing
    assert summary["global"].n_without_list == 1
    assert {record.method for record in records if record.end == "right"} == listing
