"""How much of a document's text its text units hold."""

from collections.abc import Sequence

_BROKEN = "\N{REPLACEMENT CHARACTER}"
_MAX_PREFIX_LINES = 20
_MAX_DISTANT_MISSES = 50


def measure_coverage(document: str, units: Sequence[str], enough: float) -> tuple[int, int]:
    """Count a document's characters and those of them that lie in a text unit.

    Each text unit, in their order, is looked up in the document, and what several hold is counted
    once. Where not all are found as they are, white space is left out of the text and of the
    counts, up to 20 lines of prepended metadata are set aside, and so are broken characters at a
    text unit's ends, as a token that ends inside a character leaves them. ``enough``, in [0, 1], is
    the share with which the first, quicker reading is trusted.
    """
    covered = _cover(document, units)
    if covered is not None and covered >= enough * len(document):
        return covered, len(document)
    squeezed = _squeeze(document)
    return _Placer(squeezed).cover(units), len(squeezed)


def _cover(text: str, units: Sequence[str]) -> int | None:
    """Return the characters covered; None as soon as a unit is not found from where the last is."""
    covered = start = end = 0
    for unit in units:
        start = _find_near(text, unit, start, end)
        if start < 0:
            return None
        covered += max(0, start + len(unit) - max(start, end))
        end = max(end, start + len(unit))
    return covered


def _find_near(text: str, unit: str, start: int, end: int) -> int:
    # Of several places the last: in a text that repeats itself units would seem to overlap.
    found = text.rfind(unit, start, end + len(unit))
    return found if found >= 0 else text.find(unit, end)


def _squeeze(text: str) -> str:
    return "".join(text.split())


class _Placer:
    """Finds units in a text without white space, and remembers how long their prefixes are."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = 0
        self._prefix_lines = 0
        self._misses = 0

    def cover(self, units: Sequence[str]) -> int:
        spans = [span for unit in units if (span := self._place(unit))]
        covered = reached = 0
        for start, end in sorted(spans):
            covered += max(0, end - max(start, reached))
            reached = max(reached, end)
        return covered

    def _place(self, unit: str) -> tuple[int, int] | None:
        lines = unit.splitlines()
        last = min(_MAX_PREFIX_LINES, len(lines) - 1)
        dropped = [self._prefix_lines, *(n for n in range(last + 1) if n != self._prefix_lines)]
        for n_lines in dropped:
            found = _squeeze(" ".join(lines[n_lines:])).strip(_BROKEN)
            at = self._find(found) if found else -1
            if at >= 0:
                self._prefix_lines = n_lines
                self._start, self._end = at, at + len(found)
                return self._start, self._end
        self._misses += 1
        return None

    def _find(self, unit: str) -> int:
        if self._misses >= _MAX_DISTANT_MISSES:
            # The text is another one: looking everywhere for each unit would take its square.
            return self._text.rfind(unit, self._start, self._end + 2 * len(unit))
        found = _find_near(self._text, unit, self._start, self._end)
        return found if found >= 0 else self._text.find(unit)
