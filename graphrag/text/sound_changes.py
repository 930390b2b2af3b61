"""Rules of how a name's stem changes before endings: Karel, Karla; Львів, Львова; Turku, Turun.

Snowball does not undo these changes, and some of the languages have no stemmer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_VOWELS = frozenset("aeiouyаеиіїоуыюяєэ")  # noqa: RUF001
_SHORTEST, _LONGEST_ENDING = 3, 5


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a stem: a part of it, and what that becomes before endings.

    ``then`` is what follows the part in the name: one consonant ("C"), one vowel ("V") or nothing
    ("").
    """

    part: str
    becomes: str
    then: str


def _changes(then: str, *pairs: str) -> tuple[_Change, ...]:
    """Return changes that are written as ``part>becomes``."""
    parted = (pair.partition(">") for pair in pairs)
    return tuple(_Change(part, becomes, then) for part, _, becomes in parted)


_LATIN_SLAVIC = _changes("V", "k>c", "g>z", "h>z", "ch>s")
_CYRILLIC_SLAVIC = _changes("V", "к>ц", "г>з", "х>с")  # noqa: RUF001
_SOUTH_SLAVIC = _changes("C", "a>", "а>") + _LATIN_SLAVIC + _CYRILLIC_SLAVIC  # noqa: RUF001
_RUSSIAN = _changes("C", "е>", "о>", "е>ь")  # noqa: RUF001
_CZECH = _changes("C", "e>", "u>o") + _LATIN_SLAVIC
_FINNISH = (
    *_changes("V", "k>", "p>", "t>", "t>d", "p>v", "k>g", "t>n", "t>l", "t>r", "p>m"),
    *_changes("V", "d>t"),
    *_changes("", "nen>s", "s>ks"),
)
_OF_LANGUAGE: Mapping[str, Sequence[_Change]] = {
    "be": _RUSSIAN + _CYRILLIC_SLAVIC,
    "bg": _changes("C", "ъ>", "е>", "о>"),  # noqa: RUF001
    "bs": _SOUTH_SLAVIC,
    "cs": _CZECH,
    "el": _changes("", "ων>οντ"),
    "fi": _FINNISH,
    "hr": _SOUTH_SLAVIC,
    "hu": _changes("C", "e>", "o>"),
    "lv": _changes("", "is>", "us>", "as>"),
    "mk": _changes("C", "е>", "о>"),  # noqa: RUF001
    "ml": _changes("", "\u0d02>\u0d24\u0d4d\u0d24"),
    "mr": _changes("", "\u0947>\u094d\u092f"),
    "pl": (
        *_changes("C", "e>", "ie>"),
        *_changes("V", "g>dz", "k>c", "ch>sz", "r>rz", "t>c", "d>dz"),
        *_changes("", "\u0142>l"),
    ),
    "ru": _RUSSIAN,
    "sk": _changes("C", "e>", "o>") + _LATIN_SLAVIC,
    "sl": _changes("C", "e>", "a>") + _LATIN_SLAVIC,
    "sr": _SOUTH_SLAVIC,
    "uk": _RUSSIAN + _CYRILLIC_SLAVIC + _changes("C", "і>о", "і>е", "ї>є"),  # noqa: RUF001
}


def changes_of(languages: Sequence[str]) -> tuple[_Change, ...]:
    """Return the changes of some languages, each once."""
    return tuple(dict.fromkeys(c for name in languages for c in _OF_LANGUAGE.get(name, ())))


def endings_after_change(name: str, word: str, changes: Sequence[_Change]) -> Iterator[str]:
    """Yield the endings that a word has if it is a name with a changed stem.

    Both ``name`` and ``word`` are in letters without accents.
    """
    for change in changes:
        stem = _changed(name, change)
        if len(stem) < _SHORTEST - (change.then == "V") or not word.startswith(stem):
            continue
        ending = word[len(stem) :]
        begins_well = not change.then or ending[:1] in _VOWELS
        if begins_well and len(ending) <= min(len(stem) + 1, _LONGEST_ENDING):
            yield ending


def _changed(name: str, change: _Change) -> str:
    """Return a name's stem after a change; "" if the name has no such part there."""
    letters = name.removesuffix("ь")
    last = letters[-1:] if change.then else ""
    stem = letters[: len(letters) - len(last)]
    is_there = stem.endswith(change.part) and len(stem) > len(change.part)
    if not is_there or (change.then and (last in _VOWELS) != (change.then == "V")):
        return ""
    kept = name[len(stem) :] if change.then == "C" else ""
    return f"{stem[: len(stem) - len(change.part)]}{change.becomes}{kept}"


def possible_beginnings(word: str, changes: Sequence[_Change]) -> Iterator[str]:
    """Yield a word with each change undone at its second or third letter.

    ``word`` is in letters without accents. Names that it may be a form of are looked up by these.
    """
    for change in changes:
        for at in (1, 2):
            if word.startswith(change.becomes, at):
                yield f"{word[:at]}{change.part}{word[at + len(change.becomes) :]}"
