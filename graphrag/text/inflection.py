"""Decides whether one word is a form of another: with an ending, a particle or in the plural.

It compares stems in the languages that the words may be of. If there is no stemmer, or names
decline in a language, it compares the beginnings of the words.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from graphrag.text.languages import Languages
from graphrag.text.sound_changes import changes_of, endings_after_change, possible_beginnings
from graphrag.text.stems import ENGLISH, has_stemmer
from graphrag.text.tokenize import script_of, unspaced_runs, word_key

# Letters that stand for short words and are written in one word with the next word.
_PROCLITICS = {
    "HEBREW": frozenset("ובהכלמש"),
    "ARABIC": frozenset("وفبكلس"),
    "ETHIOPIC": frozenset("በለከየእ"),
    "SYRIAC": frozenset("ܒܕܘܠ"),
}
_MOST_PROCLITICS = 3
# Languages in Latin letters whose names and nouns take a short ending at most.
_UNDECLINED = frozenset(
    (
        *("af", "br", "ca", "cy", "da", "de", "en", "es", "fr", "fy", "ga", "gl", "gv", "id", "it"),
        *("jv", "lb", "mg", "ms", "mt", "nb", "nl", "nn", "no", "oc", "pt", "su", "sv", "tl", "vi"),
    )
)
# Languages with short endings, of at most four letters.
_SHORT_ENDINGS = frozenset(
    (
        *("be", "bg", "bs", "cs", "el", "hr", "is", "la", "lt", "lv", "mk", "pl", "ro", "ru", "sk"),
        *("sl", "sq", "sr", "uk"),
    )
)
_PLURALS = frozenset(("s", "es"))
# Particles of Korean, by what they follow: a consonant, a vowel, either.
_AFTER_CONSONANT = frozenset(["은", "이", "을", "과", "으로", "아", "이나", "이랑", "으로부터"])
_AFTER_VOWEL = frozenset(["는", "가", "를", "와", "야", "나", "랑", "로부터"])
_AFTER_EITHER = frozenset(
    (
        *("의", "에", "에서", "에게", "에게서", "에는", "에도", "께", "께서", "한테", "로", "도"),
        *("만", "까지", "부터", "처럼", "보다", "마다", "조차", "마저", "밖에"),
    )
)
_LONGEST_PARTICLE = 4
TRUNK = 3
"""Least number of characters that two forms of a word share."""


def trunk(word: str) -> str:
    """Return the beginning that all forms of a word share, to look them up by.

    It has three letters, or two and a hyphen for a word of up to three, without accents.
    """
    plain = plain_letters(word)
    return plain[:TRUNK] if len(plain) > TRUNK else f"{plain[: TRUNK - 1]}-"


@lru_cache(maxsize=65_536)
def plain_letters(word: str) -> str:
    """Return a word of Latin letters without accents; other words stay as they are."""
    if word.isascii() or script_of(word) != "LATIN":
        return word
    marked = unicodedata.normalize("NFD", word)
    return "".join(c for c in marked if unicodedata.category(c) != "Mn")


def has_proclitics(word: str) -> bool:
    """Say whether a word's script joins short words, such as "and" or "in", to the next word."""
    return script_of(word) in _PROCLITICS


@lru_cache(maxsize=65_536)
def bare_words(word: str) -> tuple[str, ...]:
    """Return a word as it is, and without the short words and the article joined to it."""
    proclitics = _PROCLITICS.get(script_of(word))
    if proclitics is None:
        return (word,)
    words, rest = [word], word
    for _ in range(_MOST_PROCLITICS):
        words += bare_names(rest)[1:]
        if len(rest) < 3 or rest[0] not in proclitics:
            break
        rest = rest[1:]
        words.append(rest)
    return tuple(dict.fromkeys(words))


def bare_names(name: str) -> tuple[str, ...]:
    """Return a word of a name as it is, and without an Arabic article.

    After the preposition l the article has lost its first letter.
    """
    has_article = name.startswith(("\u0627\u0644", "\u0644\u0644")) and len(name) > 4
    return (name, name[2:]) if has_article else (name,)


def can_be_inflected(word: str) -> bool:
    """Say whether a word can take endings.

    It begins with a letter, and has no digit and no character of Hangul or a script without spaces.
    """
    return word[:1].isalpha() and not any(map(str.isdigit, word)) and not unspaced_runs(word)


def without_particles(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words of a Korean name without each particle that may be at its end.

    ``words`` are those of ``word_key``.
    """
    for n in range(1, min(_LONGEST_PARTICLE, len(words) - 2) + 1):
        particle, before = "".join(words[-n:]), words[-n - 1]
        follows = _AFTER_CONSONANT if _ends_in_consonant(before) else _AFTER_VOWEL
        if particle in follows or particle in _AFTER_EITHER:
            yield words[:-n]


def _ends_in_consonant(syllable: str) -> bool:
    """Say whether a syllable of Hangul ends in a consonant.

    Unicode lists 28 endings of each beginning; the first is none.
    """
    return (ord(syllable[-1]) - ord("가")) % 28 > 0


class Inflection:
    """Compares the forms of words in the languages of a collection of texts.

    ``by_stems``: if there are stems, a word that begins like another is its form only if the rest
    is an ending. So Annika is no form of Anna; forms that stems miss are no forms either.
    """

    def __init__(self, languages: Languages, *, by_stems: bool = False) -> None:
        self._languages, self._by_stems = languages, by_stems
        latin = languages.of_script("LATIN")
        self._latin_declines = not _UNDECLINED.issuperset(latin)
        # English verbs may have the stem of a name: died, die.
        self._is_english = latin == (ENGLISH,)
        self._changes = {
            script: changes_of(names)
            for script in languages.by_script
            if (names := languages.of_script(script))
        }

    def has_short_endings(self, word: str) -> bool:
        """Say whether all languages that a word may be of have endings of few letters."""
        return _SHORT_ENDINGS.issuperset(self._languages.of_script(script_of(word)))

    def trunks(self, word: str) -> tuple[str, ...]:
        """Return the trunks of all words that a word may be a form of."""
        begun: list[str] = []
        for bare in bare_words(word):
            plain = plain_letters(bare)
            changes = self._changes.get(script_of(bare), ())
            for one in (plain, *possible_beginnings(plain, changes)):
                begun += (trunk(one), f"{one[: TRUNK - 1]}-")
        return tuple(dict.fromkeys(begun))

    def may_be_name(self, word: str, text: str) -> bool:
        """Say whether a folded word of a text may be a name with an ending.

        In English only a word with a capital letter may: "makes" says nothing of an entity MAKE.
        """
        if not self.is_english(word):
            return True
        return any(w[:1].isupper() and word in word_key(w).split() for w in text.split())

    def is_english(self, word: str) -> bool:
        """Say whether a word has Latin letters, and all such words count as English."""
        return self._is_english and script_of(word) == "LATIN"

    def has_stems(self, word: str) -> bool:
        """Say whether there is a stemmer for a language that a word may be of."""
        return any(map(has_stemmer, self._languages.of_script(script_of(word))))

    def nearest(
        self, names: Mapping[int, Sequence[str]], words: Sequence[str], *, either_way: bool = False
    ) -> list[int]:
        """Return the numbers of the names that ``words`` are forms of and that differ least.

        Names that differ by one letter more than the nearest are returned as well. ``either_way``:
        also names that are forms of the words.
        """
        away: dict[int, int] = {}
        for number, name in names.items():
            ways = [(name, words), (words, name)] if either_way else [(name, words)]
            distances = [d for way in ways if (d := self.distance(*way)) is not None]
            if distances:
                away[number] = min(distances)
        most = min(away.values(), default=0) + 1
        return [number for number, distance in away.items() if distance <= most]

    def distance(self, name: Sequence[str], words: Sequence[str]) -> int | None:
        """Return how many letters differ between a name and as many words that are its forms.

        None if they are not. A function word is a form of nothing.
        """
        if len(words) == 1 and self._languages.is_function_word(words[0]):
            return None
        total = 0
        for base, word in zip(name, words, strict=True):
            differing = self._differing(base, word, len(name) > 1)
            if differing is None:
                return None
            total += differing
        return total

    def are_forms(self, word: str, other: str) -> bool:
        """Say whether one of two different words is a form of the other."""
        # If endings are short, stems that differ in the last letter are different words.
        are_stems = self.has_stems(word) and self.has_short_endings(word)
        return (not are_stems or _are_near_stems(other, word)) and (
            self.distance([other], [word]) is not None or self.distance([word], [other]) is not None
        )

    def _differing(self, base: str, word: str, in_name: bool) -> int | None:
        if base == word:
            return 0
        if not (can_be_inflected(base) and can_be_inflected(word)):
            return None
        distances: list[int] = []
        for before, bare in enumerate(bare_words(word)):
            for own in bare_names(base):
                plain, ended = plain_letters(own), plain_letters(bare)
                lost, ending = _differing(plain, ended)
                if self._is_form(own, bare, lost, ending, in_name):
                    distances.append(len(lost) + len(ending) + before)
                changes = self._changes.get(script_of(own), ())
                endings = endings_after_change(plain, ended, changes)
                distances += (len(ending) + before + 1 for ending in endings)
        return min(distances, default=None)

    def _is_form(self, own: str, bare: str, lost: str, ending: str, in_name: bool) -> bool:
        if min(len(own), len(bare)) < (TRUNK - 1 if in_name else TRUNK):
            return False
        if own == bare:
            return True
        is_plural = (not lost and ending in _PLURALS) or (lost, ending) == ("y", "ies")
        if script_of(own) == "LATIN" and not self._latin_declines:
            if not in_name and len(own) <= TRUNK:
                return False
            is_short = len(lost) <= 1 and len(ending) <= 2
            return is_plural or (is_short and not self._is_english and self._share_stem(own, bare))
        shared = len(plain_letters(own)) - len(lost)
        # No name loses two letters and takes no ending, as far as stems are known.
        is_cut = len(lost) > 1 and not ending and self.has_stems(own)
        is_too_long = len(ending) > TRUNK == shared and self.has_short_endings(own)
        is_more = self._by_stems and not self._is_ending(bare, ending)
        is_other = is_cut or is_too_long or is_more
        is_alike = not is_other and alike(shared, len(lost), len(ending), in_name)
        # A vowel sign distinguishes short words, where another last letter may be an ending.
        return is_alike or (
            shared >= TRUNK - (f"{ending}{lost}"[:1].isalpha()) and self._share_stem(own, bare)
        )

    def _is_ending(self, word: str, ending: str) -> bool:
        """Say whether the last letters of a word are not in its stem; True without a stemmer."""
        if not self.has_stems(word):
            return True
        return min(map(len, self._languages.stems(word))) <= len(word) - len(ending)

    def _share_stem(self, left: str, right: str) -> bool:
        stems = self._languages.stems
        return not set(stems(left)).isdisjoint(stems(right))


def alike(shared: int, lost: int, ending: int, in_name: bool = False) -> bool:
    """Say whether a word that begins like a name but ends differently may be the name.

    They share ``shared`` letters; after these the name has ``lost`` letters, the word ``ending``.
    """
    if shared < TRUNK:
        return False
    if lost <= 1:
        return ending <= min(6, max(3, shared + 1))
    if in_name and lost <= min(3, shared - 1) and ending <= 3:
        return True
    return (
        shared > TRUNK
        and lost <= min(3, shared - 2)
        and ending <= (5 if shared > 5 else shared - 2)
    )


def _are_near_stems(left: str, right: str) -> bool:
    lost, ending = _differing(left, right)
    return len(left) - len(lost) > TRUNK or not (lost and ending)


def _differing(left: str, right: str) -> tuple[str, str]:
    """Return the rest of each of two words after the letters that they share."""
    n = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        n += 1
    return left[n:], right[n:]
