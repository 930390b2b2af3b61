"""Finds the languages of texts offline, and stems words in these languages.

English is recognized by its function words, any other language by py3langid.
"""

import errno
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from graphrag.text.input_files import InputFileError
from graphrag.text.stems import ENGLISH, STOP_WORDS, function_words, scripts_of_language, stem
from graphrag.text.tokenize import script_of

_SAMPLE = 200
_CHARS = 400
# Shorter texts are joined before they are looked at: a name or two identify no language.
_FEWEST_CHARS = 40
_LEAST_SHARE = 0.15
_ASCII_WORD = re.compile("[a-z]+")
_FEWEST_WORDS = 6
# About half of an English text's words are on the list, a tenth of a Dutch or German text's.
_FUNCTION_WORDS = 0.28


class Languages:
    """Lists the languages of a collection of texts, by script, as ``find_languages`` finds them.

    A word is stemmed in the language of its text if that is written in the word's script, else in
    the first language that is. Latin letters count as English if no language in Latin letters was
    found.
    """

    def __init__(self, by_script: Mapping[str, Sequence[str]]) -> None:
        self.by_script = {script: tuple(names) for script, names in by_script.items() if names}
        self._by_script = {"LATIN": (ENGLISH,), **self.by_script}
        self._is_mixed = any(len(names) > 1 for names in self.by_script.values())
        self.stem_in: Callable[[str, str], str] = lru_cache(maxsize=262_144)(self._stem_in)
        """Returns the stem of a word in a text of a language: ``stem_in(word, language)``."""
        self.telling_stems: Callable[[str], tuple[str, ...]] = lru_cache(maxsize=262_144)(
            self._telling_stems
        )
        """Returns the stems of a word; () for a function word."""

    @classmethod
    def named(cls, names: Iterable[str]) -> "Languages":
        """Make the languages with these ISO 639-1 codes."""
        by_script: defaultdict[str, list[str]] = defaultdict(list)
        for name in names:
            for script in scripts_of_language(name):
                by_script[script].append(name)
        return cls(by_script)

    @property
    def names(self) -> tuple[str, ...]:
        """The codes of the languages, each once."""
        return tuple(dict.fromkeys(n for names in self.by_script.values() for n in names))

    def of_script(self, script: str) -> tuple[str, ...]:
        """Return the languages that are written in a script."""
        return self._by_script.get(script, ())

    def of_text(self, text: str) -> str:
        """Return the language of a text; "" if no script has several languages to choose from."""
        if not self._is_mixed:
            return ""
        among = self.of_script(_main_script(text[:_CHARS]))
        if len(among) < 2:
            return among[0] if among else ""
        if ENGLISH in among and _is_english(text[:_CHARS]):
            return ENGLISH
        return next(name for name in (*_rank(text[:_CHARS]), *among) if name in among)

    def _telling_stems(self, word: str) -> tuple[str, ...]:
        return () if self.is_function_word(word) else self.stems(word)

    def _stem_in(self, word: str, language: str) -> str:
        among = self.of_script(script_of(word))
        if not among:
            return word
        return stem(word, language if language in among else among[0])

    def is_function_word(self, word: str) -> bool:
        """Say whether a word is a function word in a language that it may be of."""
        return any(word in function_words(name) for name in self.of_script(script_of(word)))

    def stems(self, word: str) -> tuple[str, ...]:
        """Return the stems of a question's word, one for each language that it may be of."""
        among = self.of_script(script_of(word))
        return tuple(dict.fromkeys(stem(word, name) for name in among)) or (word,)


def sample(n: int) -> list[int]:
    """Return the positions of the texts, 200 of ``n`` at most, by which languages are found."""
    return np.unique(np.linspace(0, n - 1, min(_SAMPLE, n)).astype(int)).tolist()


def find_languages(texts: Sequence[str]) -> Languages:
    """Find the languages of texts, by script, the most frequent first.

    At most 200 texts are looked at, spread over all. Scripts and languages with a share below 15 %
    are dropped, because they are more often mistaken than meant; a language's share is of the texts
    in its script.
    """
    of_script: defaultdict[str, list[str]] = defaultdict(list)
    for text in _long_enough(texts[position][:_CHARS] for position in sample(len(texts))):
        of_script[_main_script(text)].append(text)
    least = _LEAST_SHARE * sum(map(len, of_script.values()))
    return Languages(
        {
            script: _vote(samples)
            for script, samples in sorted(of_script.items())
            if script and len(samples) >= least
        }
    )


def main_language(texts: Iterable[str]) -> str:
    """Return the language of most of a few texts, among those in their most frequent script.

    English if there is no letter, or only a name or two in Latin letters.
    """
    of_script: defaultdict[str, list[str]] = defaultdict(list)
    for text in _long_enough(text[:_CHARS] for text in texts if text.strip()):
        of_script[_main_script(text)].append(text)
    script = max(of_script, key=lambda name: len(of_script[name]), default="")
    samples = of_script.get(script, [])
    if not script or (script == "LATIN" and max(map(len, samples)) < _FEWEST_CHARS):
        return ENGLISH
    return _vote(samples)[0]


def _vote(texts: Sequence[str]) -> list[str]:
    others = [text for text in texts if not _is_english(text)]
    votes = Counter({ENGLISH: len(texts) - len(others)})
    if len(others) >= _LEAST_SHARE * len(texts):  # else no other language could count
        votes.update(_rank(text)[0] for text in others)
    return [name for name, n in votes.most_common() if n >= _LEAST_SHARE * len(texts)]


def _long_enough(texts: Iterable[str]) -> Iterable[str]:
    joined, has_any = "", False
    for text in texts:
        joined = f"{joined} {text}" if joined else text
        if len(joined) >= _FEWEST_CHARS:
            yield joined
            joined, has_any = "", True
    if joined and not has_any:
        yield joined


def _main_script(text: str) -> str:
    scripts = Counter[str]()
    for character, n in Counter(text).items():  # each character once: a text has few
        if character.isalpha():
            scripts[script_of(character)] += n
    return max(scripts, key=scripts.__getitem__, default="")


def _is_english(text: str) -> bool:
    words = _ASCII_WORD.findall(text.lower())
    n = sum(word in STOP_WORDS for word in words)
    return len(words) >= _FEWEST_WORDS and n >= _FUNCTION_WORDS * len(words)


@lru_cache(maxsize=1024)
def _rank(text: str) -> tuple[str, ...]:
    """Return all known languages, the likeliest first."""
    return tuple(name for name, _ in _identifier().rank(text))


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    try:
        return LanguageIdentifier.from_model_file(MODEL_FILE)
    except OSError as error:  # it unpacks its model into a temporary file
        folder = tempfile.tempdir or "the folder of temporary files"
        msg = f"the languages of the texts can't be detected: {folder} can't take 70 MB for a "
        msg += f"moment ({error.strerror}); make room there, or name another folder in TMPDIR"
        raise InputFileError(error.errno or errno.ENOSPC, msg) from error
