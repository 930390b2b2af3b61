"""Find proper names in a text by capital letters, titles and particles.

Scripts without capital letters give no names. Only names that the text itself vouches for are
kept: a capital at the start of a sentence proves nothing.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from graphrag.offline.lexicon import (
    DEMONYMS,
    NOT_NAMES,
    ORGANIZATION_HEADS,
    PARTICLES,
    SPEECH_AND_ACTION,
    TITLES,
)
from graphrag.text.lexicon import STOP_WORDS

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019\-\u2010][^\W_]+)*")
_OPENERS = frozenset("\"“”\u2018'([{:—\u2013-…«*")
_NO_NAME = STOP_WORDS | NOT_NAMES


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a sentence, and what stands between it and the one before."""

    text: str
    gap: str
    possessive: bool

    @property
    def low(self) -> str:
        """The word case-folded."""
        return self.text.casefold()

    @property
    def capital(self) -> bool:
        """Whether it starts with a capital letter."""
        return self.text[0].isupper()


@dataclass(frozen=True, slots=True)
class Mention:
    """A name where a sentence mentions it: words ``[start, stop)`` of the sentence."""

    name: str
    start: int
    stop: int
    opens_sentence: bool


def split_words(sentence: str) -> list[Word]:
    """Words of a sentence, possessive endings taken off."""
    found: list[Word] = []
    end = 0
    for match in _TOKEN.finditer(sentence):
        text = match.group().replace("\u2019", "'")
        bare = text[:-2] if text[-2:] in {"'s", "'S"} and len(text) > 2 else text
        found.append(Word(bare, sentence[end : match.start()], bare != text))
        end = match.end()
    return found


def name_key(name: str) -> tuple[str, ...]:
    """Words of a name for comparison, case-folded."""
    return tuple(word.casefold() for word in _TOKEN.findall(name))


def core_words(name: str) -> tuple[str, ...]:
    """`name_key` without titles and particles; the whole key when nothing else is left."""
    key = name_key(name)
    core = tuple(word for word in key if word not in TITLES and word not in PARTICLES)
    return core or key


def quiet_emphasis(
    sentences: Sequence[Sequence[Word]], speakers: Sequence[str]
) -> list[list[Word]]:
    """Take the capitals of a script's shouted words ("he RUNS") for what they are.

    Parameters
    ----------
    sentences : Sequence[Sequence[Word]]
        Sentences of a script, from `split_words`.
    speakers : Sequence[str]
        Names in its cue lines; in capitals they stay names.

    Returns
    -------
    list[list[Word]]
        Words in capitals become capitalised when a speaker or another sentence has them so,
        and lower case otherwise.
    """
    known = {word for name in speakers for word in name_key(name)} | TITLES
    known |= {w.low for words in sentences for w in words[1:] if w.capital and not w.text.isupper()}

    def calm(word: Word) -> Word:
        if len(word.text) == 1 or not word.text.isupper():
            return word
        text = word.text.capitalize() if word.low in known else word.low
        return Word(text, word.gap, word.possessive)

    return [[calm(word) for word in words] for words in sentences]


def find_mentions(sentences: Sequence[Sequence[Word]]) -> list[list[Mention]]:
    """Names mentioned in each sentence of one text.

    Parameters
    ----------
    sentences : Sequence[Sequence[Word]]
        Sentences of the text, from `split_words`.

    Returns
    -------
    list[list[Mention]]
        One list a sentence, in order of appearance.
    """
    raw = [_runs(words) for words in sentences]
    vouched = {
        word
        for mentions in raw
        for mention in mentions
        if not mention.opens_sentence or len(core_words(mention.name)) > 1
        for word in name_key(mention.name)
    }
    lower = {w.low for words in sentences for w in words if not w.capital}
    keep = partial(_is_name, vouched=vouched, lower=lower)
    return [
        [mention for mention in mentions if keep(mention, words)]
        for words, mentions in zip(sentences, raw, strict=True)
    ]


def _runs(words: Sequence[Word]) -> list[Mention]:
    found: list[Mention] = []
    at = 0
    while at < len(words):
        if not words[at].capital:
            at += 1
            continue
        stop = _run_end(words, at)
        mention = _trim(words, at, stop)
        if mention is not None:
            found.append(mention)
        at = stop
    return found


def _run_end(words: Sequence[Word], start: int) -> int:
    stop = start + 1
    while stop < len(words) and not words[stop - 1].possessive:
        ahead = stop
        while ahead - stop < 2 and ahead < len(words) and _links(words, start, ahead):
            ahead += 1
        if ahead >= len(words) or not words[ahead].capital:
            break
        if not _joins(words, ahead) or words[ahead].low in STOP_WORDS:
            break
        stop = ahead + 1
    if _is_first_half_of_firm(words, stop):
        stop += 3
    return stop


def _links(words: Sequence[Word], start: int, at: int) -> bool:
    """Whether a small word may hold the parts of a name together."""
    text, before = words[at].text, words[at - 1]
    if words[at].gap != " ":
        return False
    if text in {"the", "a"}:
        return before.text in {"of", "with"} and not _is_titled_person(words, start, at - 1)
    if text == "with":
        # "the painting Boy with Apple": an everyday word in capitals opens a title.
        return at - start == 1 and start > 0 and before.low in NOT_NAMES
    return text in PARTICLES


def _is_titled_person(words: Sequence[Word], start: int, stop: int) -> bool:
    return words[start].low in TITLES and stop - start > 1


def _is_first_half_of_firm(words: Sequence[Word], stop: int) -> bool:
    return (
        stop + 2 < len(words)
        and words[stop].text == "and"
        and words[stop + 1].capital
        and words[stop + 2].capital
        and words[stop + 2].low in ORGANIZATION_HEADS
        and all(word.gap == " " for word in words[stop : stop + 3])
        and not words[stop - 1].possessive
    )


def _joins(words: Sequence[Word], at: int) -> bool:
    before, after = words[at - 1], words[at]
    if after.gap.strip() == "":
        return True
    initial = len(before.text) == 1 and before.capital and before.text not in {"I", "V", "X"}
    return (after.gap == ". " and (initial or before.low in TITLES)) or after.gap in {" & ", "."}


def _trim(words: Sequence[Word], start: int, stop: int) -> Mention | None:
    gap = words[start].gap
    opens = start == 0 or (gap != " " and gap.rstrip()[-1:] in _OPENERS)
    while start < stop and _is_no_part(words, start, stop, opens):
        start, opens = start + 1, False
    while stop > start and (words[stop - 1].low in _NO_NAME or words[stop - 1].text in PARTICLES):
        stop -= 1
    while start < stop and words[start].text in PARTICLES | {"the", "with", "a"}:
        start += 1
    if start == stop:
        return None
    name = words[start].text
    for word in words[start + 1 : stop]:
        name += (". " if word.gap.startswith(". ") else word.gap or " ") + word.text
    if len(words[stop - 1].text) == 1 and stop - start > 1:
        name += "."
    return Mention(" ".join(name.split()), start, stop, opens)


def _is_no_part(words: Sequence[Word], at: int, stop: int, opens: bool) -> bool:
    """Whether the first word of a run does not belong to the name behind it."""
    low, more = words[at].low, stop - at > 1
    if more and (low in TITLES or words[at + 1].text == "with"):
        return False
    if low in STOP_WORDS or (low in NOT_NAMES and (opens or not more)):
        return True
    if not (opens and more) or low in ORGANIZATION_HEADS:
        return False
    return low.endswith("ing") or (low.endswith("s") and words[at + 1].text == "of")


def _is_name(
    mention: Mention, words: Sequence[Word], *, vouched: set[str], lower: set[str]
) -> bool:
    first = words[mention.start]
    single = mention.stop - mention.start == 1
    if not single:
        return first.low in TITLES or any(len(word) > 1 for word in core_words(mention.name))
    low = first.low
    if (
        low.removesuffix("s") in DEMONYMS
        or low in DEMONYMS
        or len(low) < 2
        or first.text[1:2] == "'"
    ):
        return False
    if low in TITLES:
        return mention.start > 0 and words[mention.start - 1].low == "the"
    if low in SPEECH_AND_ACTION or low.endswith(("n't", "'ll", "'re", "'ve", "'m", "'d")):
        return False
    if not mention.opens_sentence:
        return low in vouched and not (first.text.isupper() and low in lower)
    if low in vouched:
        return low not in lower
    return low not in lower and _reads_as_subject(mention, words)


def _reads_as_subject(mention: Mention, words: Sequence[Word]) -> bool:
    """Whether an opening word of unknown standing is used like a person's name."""
    word = words[mention.start]
    if word.low.endswith(("ly", "ing", "ed")):
        return False
    if word.possessive:
        return True
    if word.low.endswith("s") or mention.stop >= len(words):
        return False
    after = words[mention.stop]
    verb_like: Callable[[str], bool] = lambda w: (  # noqa: E731
        w in SPEECH_AND_ACTION or w in {"is", "was", "has", "had", "does"} or w.endswith("s")
    )
    return after.gap == " " and verb_like(after.low)
