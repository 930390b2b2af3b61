"""Stems words by language, and measures how much of one text another one covers."""

import re
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from graphrag.text.sentences import LISTS
from graphrag.text.tokenize import fold, pairs, script_of, split_words, unspaced_runs

ENGLISH = "en"
STOP_WORDS = frozenset(LISTS["stop_words"].split())
_IRREGULAR = {
    form: base
    for base, _, forms in (line.partition(": ") for line in LISTS["irregular"].splitlines())
    for form in forms.split()
}
_NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty"""
NUMBER_WORDS = {word: str(n) for n, word in enumerate(_NUMBERS.split()) if n} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "hundred": "100",
}
"""Number word -> digits; ``zero`` is left out because it is also a name."""

_DIGITS_COMMA = re.compile(r",(?<=\d,)(?=\d{3}\b)")
_SNOWBALL: Mapping[str, str] = {
    **{"ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german"},
    **{"el": "greek", "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian"},
    **{"eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish"},
    **{"hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian"},
    **{"lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho"},
    **{"sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish"},
    # These languages share the endings of the named one.
    **{"bs": "serbian", "hr": "serbian", "ms": "indonesian", "nb": "norwegian", "nn": "norwegian"},
}
# Function words that the library's list leaves out.
_ALSO_FUNCTION_WORDS = {
    "ur": "\u06a9\u0627 \u06a9\u06d2 \u0646\u06d2 \u06c1\u06cc\u06ba \u062a\u06be\u0627"
}
_LISTED_AS = {"bs": "hr", "nb": "no", "nn": "no", "sr": "hr"}
_SCRIPTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("ar", "fa", "ps", "sd", "ug", "ur"), ("ARABIC",)),
    **dict.fromkeys(("as", "bn"), ("BENGALI",)),
    **dict.fromkeys(("be", "bg", "kk", "ky", "mk", "mn", "ru", "tg", "tt", "uk"), ("CYRILLIC",)),
    **dict.fromkeys(("hi", "mr", "ne", "sa"), ("DEVANAGARI",)),
    **dict.fromkeys(("am", "ti"), ("ETHIOPIC",)),
    **dict.fromkeys(("he", "yi"), ("HEBREW",)),
    **{"dv": ("THAANA",), "el": ("GREEK",), "gu": ("GUJARATI",), "hy": ("ARMENIAN",)},
    **{"ja": ("HIRAGANA", "KATAKANA", "CJK"), "ka": ("GEORGIAN",), "km": ("KHMER",)},
    **{"kn": ("KANNADA",), "ko": ("HANGUL",), "lo": ("LAO",), "ml": ("MALAYALAM",)},
    **{"my": ("MYANMAR",), "or": ("ORIYA",), "pa": ("GURMUKHI",), "si": ("SINHALA",)},
    **{"ta": ("TAMIL",), "te": ("TELUGU",), "th": ("THAI",), "zh": ("CJK",)},
    **dict.fromkeys(("az", "ku", "uz"), ("LATIN", "CYRILLIC", "ARABIC")),
    "sr": ("CYRILLIC", "LATIN"),
}
_LATIN = ("LATIN",)
# The Arabic article, which Snowball keeps before a short word.
_ARTICLE = re.compile("^[\u0648\u0641]?(?:[\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=.{3})")
# The only Turkish ending without vowel harmony, as in "the one in a place".
_DAKI = re.compile("(?<=[dt]a)k\u0131$")
_BACK = frozenset("a\u00e2o\u0131u")
_VOWELS = frozenset("a\u00e2eio\u00f6u\u00fc\u0131")


def has_stemmer(language: str) -> bool:
    """Say whether there is a stemmer for a language, given by its ISO 639-1 code."""
    return language in _SNOWBALL


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the words of a language that mean little by themselves; empty without a list."""
    if language == ENGLISH:
        return STOP_WORDS
    import stopwordsiso

    name = _LISTED_AS.get(language, language)
    listed = stopwordsiso.stopwords(name) if stopwordsiso.has_lang(name) else ()
    also = _ALSO_FUNCTION_WORDS.get(language, "").split()
    return frozenset(fold(word) for word in (*listed, *also))


def scripts_of_language(language: str) -> tuple[str, ...]:
    """Return the scripts that a language is written in; Latin if none is listed."""
    return _SCRIPTS.get(language, _LATIN)


@lru_cache(maxsize=262_144)
def stem(word: str, language: str = ENGLISH) -> str:
    """Return a word of :func:`split_terms` without its ending (Snowball), never empty.

    A word stays as it is in another script than the language's, or in a language without stemmer.
    """
    name = _SNOWBALL.get(language)
    if name is None or script_of(word) not in _SCRIPTS.get(language, _LATIN):
        return word
    if language == ENGLISH:
        word = _IRREGULAR.get(word, word)
    elif name == "turkish":
        word = _harmonize(word)
    elif name == "arabic":
        word = _ARTICLE.sub("", word)
    return _stemmers.of(name)(word) or word


def _harmonize(word: str) -> str:
    """Return a Turkish word with dotless i restored by vowel harmony; folding had dotted it."""
    letters = list(word)
    back = False
    for position, letter in enumerate(letters):
        if letter == "i" and back:
            letters[position] = "\u0131"
        if letter in _VOWELS:
            back = letters[position] in _BACK
    return _DAKI.sub("ki", "".join(letters))


class _Stemmers(threading.local):
    """Keeps a stemmer for each thread and language, because a stemmer can't be shared."""

    def __init__(self) -> None:
        self._made: dict[str, Callable[[str], str]] = {}

    def of(self, name: str) -> Callable[[str], str]:
        if name not in self._made:
            snowball: Any = import_module("Stemmer")
            # Words are kept above, for all threads.
            self._made[name] = snowball.Stemmer(name, 0).stemWord
        return self._made[name]


_stemmers = _Stemmers()


_READ_AS: ContextVar[str] = ContextVar("language", default=ENGLISH)


@contextmanager
def read_as(language: str) -> Generator[None]:
    """Make :func:`terms` read texts in a language inside the ``with`` block; outside in English."""
    before = _READ_AS.set(language)
    try:
        yield
    finally:
        _READ_AS.reset(before)


def language_read() -> str:
    """Return the language in which :func:`terms` reads texts now."""
    return _READ_AS.get()


def terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """Return the comparable terms of a text, in order, with repetitions.

    They are the words of :func:`split_words`, stemmed in the language of :func:`read_as`. Scripts
    without spaces, and Hangul, give pairs of characters. Stop words are left out unless
    ``keep_stop_words``. In English possessives are cut off, and number words become digits.
    """
    language = _READ_AS.get()
    return [
        term for word in split_words(text) for term in _terms_of(word, keep_stop_words, language)
    ]


@lru_cache(maxsize=65_536)
def _terms_of(word: str, keep_stop_words: bool, language: str) -> tuple[str, ...]:
    if runs := unspaced_runs(word):
        return tuple(pair for run in runs for pair in pairs(run))
    word = _DIGITS_COMMA.sub("", word)
    if language == ENGLISH:
        word = word.removesuffix("'s")
    if not word or (not keep_stop_words and word in function_words(language) and word != "one"):
        return ()
    return ((language == ENGLISH and NUMBER_WORDS.get(word)) or stem(word, language),)


def share_covered(expected: Iterable[str], present: Collection[str]) -> float:
    """Return the share, in [0, 1], of distinct expected terms that are present.

    0 if no term is expected.
    """
    distinct = set(expected)
    return sum(term in present for term in distinct) / len(distinct) if distinct else 0.0
