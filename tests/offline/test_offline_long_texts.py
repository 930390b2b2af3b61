"""That the embedded models' work grows with a text, and not with its square."""

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

from graphrag.offline.extraction import extract_graph
from graphrag.text.words import sentences


def n_calls(do: Callable[[], object]) -> int:
    """Count the function calls that a piece of work takes: the same on every machine."""
    profile = cProfile.Profile()
    profile.runcall(do)
    counted: Any = pstats.Stats(profile)
    return int(counted.total_calls)


def town(n_people: int) -> str:
    """Return a text that names people in full, and then by their surnames."""
    names = [f"Carr{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(n_people)]
    full = [f"Then Anna {name} met the baker." for name in names]
    short = [f"Then the baker met {name}." for name in names]
    return " ".join([*full, *short])


def test_extraction_takes_four_times_the_work_for_four_times_the_names():
    extract_graph(town(10))  # loads the stemmer, and what is remembered
    few, many = (n_calls(lambda n=n: extract_graph(town(n))) for n in (100, 400))
    assert many < 4 * 1.3 * few


def test_short_names_are_still_joined_to_the_one_long_form():
    entities, _ = extract_graph(town(60))
    full = {entity.name for entity in entities if entity.name.startswith("Anna ")}
    assert len(full) == 60
    told = next(entity for entity in entities if entity.name == "Anna Carraa")
    assert "Then the baker met Carraa." in told.sentences


def test_initials_end_no_sentence_however_many_there_are():
    text = "It was signed by " + "J. K. " * 3000 + "and by Agnes Holt. Nobody read it."
    first, second = sentences(text)
    assert first.endswith("and by Agnes Holt.")
    assert second == "Nobody read it."
