"""Texts made comparable: terms, names, cuts and word statistics, in any script."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.query.graph import build_in_memory
from graphrag.query.graph.prompts import csv_line
from graphrag.text.message_phrases import shorten
from graphrag.text.ranking import WordIndex
from graphrag.text.tokenize import split_terms, word_keys


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Don't PANIC, Straße!", ["don", "t", "panic", "strasse"]),
        ("東京タワーは高い", ["東京", "京タ", "タワ", "ワー", "ーは", "は高", "高い"]),
        ("茶 tea", ["茶", "tea"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مرحبا، العالم", ["مرحبا", "العالم"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("\uff21\uff22", ["ab"]),
        ("", []),
        ("...", []),
    ],
)
def test_terms_of_any_script(text, terms):
    """Words keep their marks; scripts without spaces give character pairs."""
    assert split_terms([text, "x"]) == [terms, ["x"]]


PUNCTUATION = "\u2026\u201c\u201d\u2018\u2019\u2013\u2014"
PLAIN = st.text(st.characters(max_codepoint=127), max_size=60)


@given(PLAIN | st.text(st.sampled_from(f"ab- {PUNCTUATION}"), max_size=30))
def test_plain_texts_are_split_as_any_other(text):
    """The fast way and the general one agree; printed punctuation separates words."""
    assert [*split_terms([text])[0], "é"] == split_terms([f"{text} é"])[0]
    assert f"{word_keys([text])[0]} é".strip() == word_keys([f"{text} é"])[0]
    spaced = text.translate(dict.fromkeys(map(ord, PUNCTUATION), " "))
    assert split_terms([text]) == split_terms([spaced])


@given(st.text(max_size=40))
def test_a_text_holds_its_own_name(text):
    """Looking for a name in itself always succeeds, and folding twice changes nothing."""
    key = word_keys([text])[0]
    assert word_keys([key]) == [key]
    assert word_keys([f"x {text} y"])[0].split()[1:-1] == key.split()


@given(st.text(max_size=60), st.integers(2, 30))
def test_shortening_keeps_to_the_limit(text, limit):
    """One line, never longer than asked, of whole words where that is wanted and can be."""
    for at_space in (False, True):
        short = shorten(text, limit, "…", at_space)
        assert len(short) <= limit
        assert len(short.splitlines()) <= 1
    line, words = " ".join(text.split()), short.removesuffix("…")
    if len(line) > limit and " " in line[: limit - 1]:
        assert line.startswith(f"{words} ")


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["a", ""]])
def test_word_statistics_of_next_to_nothing(texts):
    """Empty texts and collections score 0 and raise nothing."""
    assert WordIndex.of(texts).scores("zebra").tolist() == [0.0] * len(texts)
    assert WordIndex.of(texts).scores("").tolist() == [0.0] * len(texts)


def test_a_row_is_shown_the_same_on_every_python():
    """Bars and quotes are quoted, line breaks are not, whatever the csv module does."""
    assert csv_line([1, "a|b", 'say "x"', "two\nlines"]) == '1|"a|b"|"say ""x"""|two\nlines'


def test_names_are_found_in_a_long_text_as_in_a_short_one():
    """Words that come again are hashed once; where a word begins counts for the first of a name."""
    names = ["RIVER KEY", "버들 마을", "MOLE", "OLD MOLE"]
    people = pd.DataFrame({"id": names, "title": names})
    none = pd.DataFrame({"source": [], "target": []})
    short = pd.DataFrame({"id": ["a"], "text": ["The old mole kept a river key at 버들 마을에서."]})
    long = short.assign(
        text="No word of it. " * 2_000 + short["text"] + " Not here, 새버들." * 2_000
    )
    found = [
        build_in_memory(people, none, units).graph.arrays.unit_names.tolist()
        for units in (short, long)
    ]
    assert found == [[0, 1, 3]] * 2
