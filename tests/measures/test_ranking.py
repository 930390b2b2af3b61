"""Rank metrics, the combined score, success criteria, and where quotes stand in an index."""

import ir_measures
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, P, Qrel, R, ScoredDoc, Success
from pydantic import ValidationError

from graphrag.eval.config.sections import SuccessCriterion
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.results.figures import check_criteria
from graphrag.eval.scorers.combined import (
    CombinedInput,
    CombinedSettings,
    combined_score,
    summarize_combined,
)
from graphrag.eval.scorers.evidence import Evidence, SourceIndex
from graphrag.eval.scorers.quotes import fold_text, phrase_key
from graphrag.eval.scorers.ranking import score_retrieval

DOCUMENT = (
    "Marta Quill keeps the lighthouse. \u201cThe lamp \u2013 she said \u2013 is mine\u201d. "
    "Oswin built it in 1871 with great care."
)
CUT = DOCUMENT.index("in 1871")


def item(*units):
    return Evidence("x", "quote", frozenset(units), bool(units))


def units_table(texts, document="d1"):
    return pd.DataFrame(
        {
            "id": [f"u{n}" for n in range(len(texts))],
            "human_readable_id": range(len(texts)),
            "text": texts,
            "document_id": document,
        }
    )


def source_index(**changes):
    documents = pd.DataFrame({"id": ["d1"], "title": ["Isle.txt"], "text": [DOCUMENT]})
    table = units_table([DOCUMENT[:CUT], DOCUMENT[CUT:], "Another isle."])
    return SourceIndex(table, **{"documents": documents, **changes})


def sample(**fields):
    return Sample("s", "isle", "Who?", "Oswin", **fields)


ids = st.integers(0, 15).map("u{}".format)


@settings(max_examples=60, deadline=None)
@given(st.lists(ids, max_size=20), st.sets(ids, min_size=1, max_size=5), st.integers(1, 12))
def test_the_rank_metrics_are_those_of_ir_measures(ranked, relevant, k):
    found = score_retrieval([item(unit) for unit in sorted(relevant)], ranked, (k,))
    unique = list(dict.fromkeys(ranked))
    run = [ScoredDoc("q", unit, -float(rank)) for rank, unit in enumerate(unique)]
    qrels = [Qrel("q", unit, 1) for unit in relevant]
    wanted = ir_measures.calc_aggregate([P @ k, R @ k, Success @ k, RR, R @ 1000], qrels, run)
    assert found.at[0].precision == pytest.approx(wanted[P @ k])
    assert found.at[0].recall == pytest.approx(wanted[R @ k])
    assert found.at[0].hit_rate == wanted[Success @ k]
    assert found.mrr == pytest.approx(wanted[RR])
    assert found.recall == pytest.approx(wanted[R @ 1000])


def test_an_item_is_found_where_the_first_of_its_units_stands():
    found = score_retrieval([item("a", "b"), item("c")], ["x", "b", "x", "a", "c"], (2, 4))
    assert (found.mrr, found.recall, found.hit_rate) == (0.5, 1, 1)
    assert found.n_retrieved == 4
    assert found.precision == 0.75
    assert [at.recall for at in found.at] == [0.5, 1]
    assert [at.precision for at in found.at] == [0.5, 0.75]


def test_a_missing_list_is_0_and_a_missing_label_is_no_score():
    found = score_retrieval([item("a")], None)
    at_k = [score for at in found.at for score in (at.hit_rate, at.recall, at.precision)]
    assert {found.hit_rate, found.mrr, found.recall, found.precision, *at_k} == {0.0}
    assert not found.has_list
    assert score_retrieval([item("a")], []).has_list
    assert score_retrieval([], ["a"]) is None


def test_what_no_text_unit_holds_cannot_be_found_and_is_counted():
    found = score_retrieval([item(), item("a")], ["a"])
    assert (found.recall, found.n_unmatched) == (0.5, 1)


def test_a_cutoff_below_1_is_refused():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        score_retrieval([item("a")], ["a"], (0,))


def test_quotes_are_found_whatever_their_case_quotes_and_dashes():
    assert source_index().units_with('"THE LAMP - she\n said - is mine"') == {"u0"}


def test_a_quote_across_a_border_counts_for_the_unit_with_at_least_the_stated_part():
    quote = "Oswin built it in 1871 with"
    assert source_index().units_with(quote) == {"u0"}
    assert source_index(min_part=0.4).units_with(quote) == {"u0", "u1"}
    assert source_index(min_part=0.8).units_with(quote) == frozenset()
    assert source_index().units_with("it in 1871 with great care") == {"u1"}


@pytest.mark.parametrize(
    "quote",
    [
        "Marta Quill keeps ... the lamp she said",
        "Marta Quill keeps [\u2026] she said is mine",
        "Marta Quill keeps the lighthouse [12]",
        "Marta Quill keeps the lighthouse.\u00b9\u00b2",
        "[M]arta Quill keeps the light-\nhouse, [3], [4-6]",
        "Marta Quill keeps the light\u00ad\n house",
        "\u00abThe lamp\u00bb -- she said -- is mine",
        "MARTA\tQUILL KEEPS . . . the lamp she said [sic]",
        "Marta Quill keeps\nis mine",  # below three words: too short to be looked for by itself
    ],
)
def test_a_quote_with_marks_and_gaps_is_found_by_its_parts(quote):
    (found,) = source_index().evidence_of(sample(evidence=(quote,)))
    assert (found.unit_ids, found.in_source, found.is_held) == ({"u0"}, True, True)


@pytest.mark.parametrize(
    "quote",
    [
        "the lamp she said ... Marta Quill keeps",  # the other way round
        "Marta Quill keeps ... the lamp she stole",
        "Marta Quill owns the lighthouse",
        "Marta Quill keeps the lighthouses",
        "Marta ... Oswin",  # parts that are too short tell nothing
        "Quill, keeps",  # and two words with another comma are no exact quote
        "[...]",
    ],
)
def test_a_quote_is_not_guessed_at(quote):
    (found,) = source_index().evidence_of(sample(evidence=(quote,)))
    assert (found.unit_ids, found.in_source, found.is_held) == (frozenset(), False, False)


def test_parts_that_stand_in_different_text_units_are_items_of_their_own():
    quote = "Marta Quill keeps [...] 1871 with great care [2]"
    for documents in (pd.DataFrame({"id": ["d1"], "title": ["I"], "text": [DOCUMENT]}), None):
        found = source_index(documents=documents).evidence_of(sample(evidence=(quote,)))
        assert [(e.text, e.unit_ids) for e in found] == [
            ("Marta Quill keeps", {"u0"}),
            ("1871 with great care", {"u1"}),
        ]
    apart = "1871 with great care [...] Another isle of Man"
    (neither,) = source_index().evidence_of(sample(evidence=(apart,)))
    assert not neither.is_held


def test_a_sign_that_is_no_mark_is_part_of_an_exact_quote():
    texts = ["The plot has 40 m\u00b2 of [1] grass.", "Only C++ here.", "See C here."]
    index = SourceIndex(units_table(texts))
    for quote, unit in (("40 m\u00b2", "u0"), ("of [1] grass", "u0"), ("C++", "u1")):
        assert index.units_with(quote) == {unit}


@given(st.data())
def test_any_passage_is_found_in_one_of_two_units_by_its_halves(data):
    first = data.draw(st.integers(0, len(DOCUMENT) - 12))
    passage = DOCUMENT[first : data.draw(st.integers(first + 10, len(DOCUMENT)))]
    if len(fold_text(passage)) >= 8:
        assert source_index().units_with(passage)


def test_a_part_outside_0_and_1_is_refused():
    with pytest.raises(ValueError, match="min_part"):
        source_index(min_part=0)


@pytest.mark.parametrize(
    ("entry", "kind", "units"),
    [
        ("isle.TXT", "document", {"u0", "u1", "u2"}),
        ("d1", "document", {"u0", "u1", "u2"}),
        ("u1", "text_unit", {"u1"}),
        ("2", "text_unit", {"u2"}),
        ("keeps the lighthouse", "quote", {"u0"}),
        ("nowhere said", "source", set()),
    ],
)
def test_an_expected_source_names_a_document_a_text_unit_or_quotes(entry, kind, units):
    (found,) = source_index().evidence_of(sample(expected_sources=(entry,)))
    assert (found.kind, found.unit_ids) == (kind, units)
    assert found.in_source is (bool(units))


def test_quotes_serve_when_no_source_is_expected_and_are_never_names():
    index = source_index()
    (found,) = index.evidence_of(sample(evidence=("2", "  ")))
    assert found.kind == "quote"
    both = sample(evidence=("keeps",), expected_sources=("u1",))
    assert [e.text for e in index.evidence_of(both)] == ["u1"]


def test_what_no_unit_holds_is_of_unknown_source_without_the_documents():
    bare = source_index(documents=None)
    assert bare.evidence_of(sample(evidence=("nowhere said",)))[0].in_source is None


def test_phrases_are_whole_words_in_every_script():
    assert phrase_key("Oak Hill") in phrase_key("At (oak-hill).")
    assert phrase_key("Oak Hill") not in phrase_key("oak hills")
    assert phrase_key("灯塔") in phrase_key("她守着灯塔。")
    assert phrase_key("?!") == ""


@pytest.mark.parametrize(
    ("found", "score"),
    [
        (CombinedInput(1, 1, 1000), 1),
        (CombinedInput(0.5, 0.81, 4000), 0.25 * 0.729 / 2),
        (CombinedInput(1, 0, 10), 0),
        (CombinedInput(1, 1, 0), None),
        (CombinedInput(1, None, 10), None),
        (CombinedInput(None, 1, 10), None),
        (CombinedInput(1, 1, None), None),
    ],
)
def test_the_combined_score_is_its_formula_or_undefined(found, score):
    assert combined_score(found) == (None if score is None else pytest.approx(score))


def test_the_exponents_are_settings():
    found = CombinedInput(0.5, 0.5, 2000)
    assert combined_score(found, CombinedSettings(1, 0, 0)) == 0.5
    assert combined_score(found, CombinedSettings(0, 1, 0)) == 0.5
    assert combined_score(found, CombinedSettings(0, 0, 2)) == 0.25
    with pytest.raises(ValueError, match="must lie in"):
        CombinedSettings(alpha=-1)


def test_both_aggregations_can_rank_methods_in_opposite_order():
    steady = summarize_combined([CombinedInput(1, 1, 1000), CombinedInput(1, 1, 1000)])
    uneven = summarize_combined(
        [CombinedInput(1, 1, 400), CombinedInput(1, 1, 4000), CombinedInput(1, None, 10)]
    )
    assert uneven.mean_of_scores > steady.mean_of_scores
    assert uneven.score_of_means < steady.score_of_means
    assert (uneven.n, uneven.n_excluded) == (2, 1)
    assert summarize_combined([CombinedInput(1, None, 1)]).mean_of_scores is None


def test_a_score_of_another_scale_is_refused():
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        combined_score(CombinedInput(1, 4, 10))


def test_criteria_are_met_missed_or_not_measured():
    recall = SuccessCriterion(metric="recall", minimum=0.5, target=0.8)
    slow = SuccessCriterion(metric="seconds", minimum=4, target=2, lower_is_better=True)
    assert [recall.check(v) for v in (0.81, 0.8, 0.5)] == ["met target", "met minimum", "missed"]
    assert [slow.check(v) for v in (1.9, 2, 4)] == ["met target", "met minimum", "missed"]
    (found, none) = check_criteria([recall], {"tog": {"recall": 0.9}, "basic": {}})
    assert (found.method, found.result) == ("tog", "met target")
    assert none.result == "not measured"


@pytest.mark.parametrize(
    "fields", [{"minimum": 0.9}, {"minimum": 0.1, "lower_is_better": True}, {"goal": 1}]
)
def test_a_criterion_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ValidationError):
        SuccessCriterion(**{"metric": "recall", "minimum": 0.2, "target": 0.5, **fields})


@pytest.mark.parametrize("value", [-1, 51, float("nan"), float("inf")])
def test_an_exponent_that_gives_no_finite_score_is_refused_by_name(value):
    with pytest.raises(ValueError, match="beta of the combined score must lie in"):
        CombinedSettings(beta=value)


@pytest.mark.parametrize("tokens", [float("nan"), float("inf")])
def test_tokens_that_are_no_count_are_refused(tokens):
    with pytest.raises(ValueError, match="tokens must be a finite number"):
        combined_score(CombinedInput(1, 1, tokens))


@pytest.mark.parametrize(
    ("beta", "tokens", "score"), [(0, 10**9, 1), (50, 1, 1e150), (50, 10**9, 1e-300)]
)
def test_a_score_stays_finite_up_to_the_largest_exponent(beta, tokens, score):
    found = combined_score(CombinedInput(1, 1, tokens), CombinedSettings(beta=beta))
    assert found == pytest.approx(score, rel=1e-9)
