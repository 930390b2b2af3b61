"""Where quotes and expected sources stand in an index."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.scorers.evidence import NamedText, SourceIndex, fold_text, phrase_key

DOCUMENT = (
    "Marta Quill keeps the lighthouse. \u201cThe lamp \u2013 she said \u2013 is mine\u201d. "
    "Oswin built it in 1871 with great care."
)
CUT = DOCUMENT.index("in 1871")


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


def test_quotes_are_found_whatever_their_case_quotes_and_dashes():
    assert source_index().units_with('"THE LAMP - she\n said - is mine"') == {"u0"}


def test_a_quote_across_a_border_counts_for_the_unit_with_at_least_half_of_it():
    assert source_index().units_with("Oswin built it in 1871 with") == {"u0"}
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


def test_names_are_whole_words_in_any_case_and_never_blank():
    text = NamedText("Oak-hill was ADA\u2019s; 王五 said 🚀 to Adam.")
    for name in ("oak hill", "Oak Hill", "ada", "王五", "🚀"):
        assert name in text
    for name in ("oak hills", "Hil", "said Adam", "", "  ", "!", "🛰"):
        assert name not in text
