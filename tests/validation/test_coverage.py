"""How much of a text its pieces hold, whatever way it was cut."""

from collections.abc import Sequence

import pytest
from graphrag_chunking.chunker_factory import create_chunker
from graphrag_chunking.chunking_config import ChunkingConfig
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.validation.checks import measure_coverage
from graphrag.index.workflows.create_base_text_units import chunk_document
from graphrag.tokenizer.get_tokenizer import get_tokenizer

# No character repeats, so that a piece has only one place.
LETTERS = [chr(0x4E00 + number) for number in range(400)]


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str], set[int]]:
    """Draw a text, pieces of it in order, and the places that they hold."""
    length = draw(st.integers(1, len(LETTERS)))
    text = "".join(LETTERS[:length])
    starts = sorted(draw(st.lists(st.integers(0, length - 1), max_size=12)))
    spans = [(start, draw(st.integers(start + 1, length))) for start in starts]
    held = {place for start, end in spans for place in range(start, end)}
    return text, [text[start:end] for start, end in spans], held


def share(document: str, units: Sequence[str]) -> float:
    covered, length = measure_coverage(document, units, 0.9)
    return covered / length


@given(cut_texts(), st.randoms())
def test_every_character_is_counted_once(cut, random):
    text, units, held = cut
    assert measure_coverage(text, units, 0.9) == (len(held), len(text))
    random.shuffle(units)
    assert measure_coverage(text, units, 0.9) == (len(held), len(text))


def overlapping(text: str, size: int, step: int) -> list[str]:
    return [text[i : i + size] for i in range(0, max(1, len(text) - size + step), step)]


@pytest.mark.parametrize("pattern", ["x", "ab", "no, no. ", "one line of a log\n"])
def test_a_text_that_repeats_itself_is_covered(pattern):
    text = pattern * 500
    assert share(text, overlapping(text, 120, 100)) > 0.999


ISLE = "The keeper lit the lamp. The ferry saw it from afar, and the storm passed by."
HEAD = "title: isle.txt.\nauthor: Quill.\n"


@pytest.mark.parametrize(
    ("text", "units", "covered", "length"),
    [
        ("lamp", [], 0, 4),
        (" \n", [], 0, 0),
        ("lamp", ["", "lamp"], 4, 4),
        ("The keeper lit the lamp.", ["Nobody was there."] * 200, 0, 20),
        ("A  first\n\n one.\tA second one.", ["A first one. A", "second   one."], 21, 21),
        # Metadata put before a piece and characters cut in two are set aside.
        (
            ISLE,
            [f"{HEAD}{half}\N{REPLACEMENT CHARACTER}" for half in (ISLE[:40], ISLE[40:])],
            62,
            62,
        ),
    ],
)
def test_what_is_covered_is_counted_without_white_space(text, units, covered, length):
    assert measure_coverage(text, units, 0.9) == (covered, length)


MIXED = "ยามเฝ้าประภาคารจุดไฟทุกคืน 🗼🔥 灯台守は毎晩火をともす。 Marta Quill keeps the lamp. 👩🏽‍🚀🚢 "


def test_what_the_release_cuts_inside_of_characters_is_found_again():
    tokenizer = get_tokenizer(encoding_model="o200k_base")
    config = ChunkingConfig(size=31, overlap=7, encoding_model="o200k_base")
    chunker = create_chunker(config, tokenizer.encode, tokenizer.decode)
    text = "".join(f"{number}. {MIXED}" for number in range(20))
    document = {"id": "1", "title": "mixed.txt", "text": text}
    units = chunk_document(document, chunker, prepend_metadata=["title"])
    assert len(units) > 20
    assert all(unit.startswith("title: mixed.txt") for unit in units)
    assert any("\N{REPLACEMENT CHARACTER}" in unit for unit in units)
    assert share(text, units) > 0.98
    assert share(text, [*units[:8], *units[16:]]) < 0.9
