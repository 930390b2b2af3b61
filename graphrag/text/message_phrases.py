"""Makes phrases for messages: numbers with nouns, lists of names, shortened lines."""

from collections.abc import Sequence


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number and its noun: 1 call, 2 calls."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def join_names(names: Sequence[str], most: int = 0, last: str = " and ") -> str:
    """Join names into a phrase, at most ``most`` of them; 0 for all."""
    if most and len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return last.join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def shorten(text: str, n_chars: int = 90, mark: str = "...", at_space: bool = False) -> str:
    """Return a text as one line of at most ``n_chars`` characters; a cut ends with ``mark``.

    ``at_space``: cut at a space if there is one.
    """
    line = " ".join(text.split())
    if len(line) <= n_chars:
        return line
    cut = line[: n_chars - len(mark)]
    return f"{cut.rpartition(' ')[0] if at_space and ' ' in cut else cut}{mark}"


def fold_line(text: str) -> str:
    """Return a text as one line without case and extra blanks."""
    return " ".join(text.casefold().split())
