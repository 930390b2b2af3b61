"""Lists the handicaps of each method of a run: what it had to do without, and why."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from graphrag.text.message_phrases import join_names

Handicaps = Mapping[str, tuple["Handicap", ...]]
"""Method -> its handicaps; methods without any are left out."""


class Answered(Protocol):
    """A response of a method, stored or just made."""

    @property
    def method(self) -> str:
        """The method that was asked."""
        ...

    @property
    def lacked(self) -> str:
        """A note on what the search had to do without, and why; "" if nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Handicap:
    """Something that a method had to do without: ``what`` it is, and ``why``.

    It was missing in ``n`` of the method's ``of`` answers.
    """

    what: str
    why: str
    n: int
    of: int

    def __str__(self) -> str:
        share = "" if self.n == self.of else f" in {self.n:,} of {self.of:,} answers"
        return f"without {self.what}{share}"

    def to_dict(self) -> dict[str, object]:
        """Return the handicap as files have it."""
        return {"without": self.what, "why": self.why, "n": self.n, "of": self.of}


def read_handicaps(
    responses: Iterable[Answered], lacking: Mapping[str, Iterable[tuple[str, str]]] = {}
) -> dict[str, tuple[Handicap, ...]]:
    """Return method -> its handicaps, from the notes of its searches and what its index lacks.

    ``lacking``: method -> pairs of what it has to do without on all questions, and why.
    """
    totals: Counter[str] = Counter()
    notes: dict[str, Counter[str]] = {}
    for response in responses:
        totals[response.method] += 1
        if response.lacked:
            notes.setdefault(response.method, Counter())[response.lacked] += 1
    every: dict[str, tuple[Handicap, ...]] = {}
    for method, of in totals.items():
        lacks = [Handicap(what=what, why=why, n=of, of=of) for what, why in lacking.get(method, ())]
        if handicaps := [*_handicaps(notes.get(method, Counter()), of), *lacks]:
            every[method] = tuple(handicaps)
    return every


def _handicaps(notes: Counter[str], of: int) -> list[Handicap]:
    """Return a handicap for each kind of note, with its most frequent reason."""
    by_what: dict[str, list[tuple[str, int]]] = {}
    for note, n in notes.most_common():
        lead, _, why = note.partition(": ")
        by_what.setdefault(_WHAT.get(lead, lead), []).append((why or note, n))
    return [
        Handicap(what=what, why=reasons[0][0], n=sum(n for _, n in reasons), of=of)
        for what, reasons in by_what.items()
    ]


_WHAT = {"words alone ranked the texts": "vectors"}
"""The beginning of a search's note -> what the search did without."""


def format_handicaps(conditions: Handicaps) -> str:
    """Return which methods had to do without what, as the end of a sentence; "" if none had to."""
    groups: dict[str, list[str]] = {}
    for method, handicaps in conditions.items():
        groups.setdefault(join_names([str(each) for each in handicaps]), []).append(method)
    return "; ".join(f"{join_names(names)} {what}" for what, names in groups.items())


def explain_handicaps(conditions: Handicaps) -> list[str]:
    """Return lines on why methods had to do without something."""
    groups: dict[str, list[str]] = {}
    for method, handicaps in conditions.items():
        for each in handicaps:
            groups.setdefault(f"{each}: {each.why}", []).append(method)
    return [f"{join_names(names)} answered {what}." for what, names in groups.items()]
