"""Finds proper names by capitals, titles and particles; joins their forms, finds their kinds.

A kind is PERSON, PLACE, ORGANIZATION, EVENT or OBJECT.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from graphrag.text.sentences import word_lists
from graphrag.text.stems import STOP_WORDS

_WORDS = {
    name: frozenset(words.split())
    for name, words in word_lists(Path(__file__).with_name("lexicon.txt")).items()
}
"""Lists of general English words; lexicon.txt explains some of them."""
QUESTION_WORDS, PLACE_HEADS = _WORDS["question_words"], _WORDS["place_heads"]
_TITLES, _PARTICLES = _WORDS["titles"], _WORDS["particles"]
_SPEECH_AND_ACTION, _NOT_NAMES = _WORDS["speech_and_action"], _WORDS["not_names"]
_PLACE_BEFORE = {
    word: weight
    for weight, words in {
        2.0: "in into near outside inside",
        1.5: "through across",
        1.0: "towards toward at reach reaches",
        0.7: "from",
        0.5: "leave",
        0.3: "to",
    }.items()
    for word in words.split()
}

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019\-\u2010][^\W_]+)*")
_OPENERS = frozenset("\"“”\u2018'([{:—\u2013-…«*")
_NO_NAME = STOP_WORDS | _NOT_NAMES
_CONTRACTIONS = ("n't", "'ll", "'re", "'ve", "'m", "'d")

_SAME_KIND = {
    "PERSON": ("person", "people", "character", "individual"),
    "PLACE": ("place", "geo", "location", "gpe", "city", "country"),
    "ORGANIZATION": ("organization", "organisation", "group", "company"),
    "EVENT": ("event",),
    "OBJECT": ("object", "artifact", "item", "thing", "product"),
}
_HEADS = (
    ("PLACE", PLACE_HEADS),
    ("ORGANIZATION", _WORDS["organization_heads"]),
    ("EVENT", _WORDS["event_heads"]),
    ("OBJECT", _WORDS["object_heads"]),
)
# A name on its own in running text is a person more often than anything else.
_PERSON_BIAS = 0.6

Key = tuple[str, ...]
"""Words of a name, case-folded."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a sentence, and the text between it and the word before."""

    text: str
    gap: str
    possessive: bool

    @property
    def low(self) -> str:
        """The word, case-folded."""
        return self.text.casefold()

    @property
    def capital(self) -> bool:
        """Whether the word starts with a capital letter."""
        return self.text[0].isupper()


@dataclass(frozen=True, slots=True)
class Mention:
    """A name where a sentence mentions it: words ``[start, stop)`` of the sentence."""

    name: str
    start: int
    stop: int
    opens_sentence: bool


def split_words(sentence: str) -> list[Word]:
    """Split a sentence into words, without possessive endings."""
    words: list[Word] = []
    end = 0
    for match in _TOKEN.finditer(sentence):
        text = match.group().replace("\u2019", "'")
        bare = text[:-2] if text[-2:] in {"'s", "'S"} and len(text) > 2 else text
        words.append(Word(bare, sentence[end : match.start()], bare != text))
        end = match.end()
    return words


def name_key(name: str) -> Key:
    """Return the words of a name, case-folded for comparison."""
    return tuple(word.casefold() for word in _TOKEN.findall(name))


def _core(name: str) -> Key:
    """Return a name's words without titles and particles; all words if nothing is left."""
    key = name_key(name)
    return tuple(word for word in key if word not in _TITLES and word not in _PARTICLES) or key


def quiet_emphasis(
    sentences: Sequence[Sequence[Word]], speakers: Iterable[str]
) -> list[list[Word]]:
    """Lower the capitals of words that a script writes in capitals for emphasis ("he RUNS").

    A word in capitals becomes capitalized if it is in a speaker's name (one of the script's cue
    lines) or another sentence has it capitalized; otherwise it becomes lower case.
    """
    names = {word for name in speakers for word in name_key(name)} | _TITLES
    names |= {w.low for words in sentences for w in words[1:] if w.capital and not w.text.isupper()}

    def calm(word: Word) -> Word:
        if len(word.text) == 1 or not word.text.isupper():
            return word
        text = word.text.capitalize() if word.low in names else word.low
        return Word(text, word.gap, word.possessive)

    return [[calm(word) for word in words] for words in sentences]


def find_mentions(sentences: Sequence[Sequence[Word]]) -> list[list[Mention]]:
    """Find the names mentioned in each sentence of one text, in order of appearance."""
    raw = [_runs(words) for words in sentences]
    vouched = {
        word
        for mentions in raw
        for mention in mentions
        if not mention.opens_sentence or len(_core(mention.name)) > 1
        for word in name_key(mention.name)
    }
    lower = {w.low for words in sentences for w in words if not w.capital}
    keep = partial(_is_name, vouched=vouched, lower=lower)
    return [
        [mention for mention in mentions if keep(mention, words)]
        for words, mentions in zip(sentences, raw, strict=True)
    ]


def _runs(words: Sequence[Word]) -> list[Mention]:
    mentions: list[Mention] = []
    at = 0
    while at < len(words):
        stop = at + 1
        if words[at].capital:
            stop = _run_end(words, at)
            mention = _trim(words, at, stop)
            mentions += [mention] if mention else []
        at = stop
    return mentions


def _run_end(words: Sequence[Word], start: int) -> int:
    stop = start + 1
    while stop < len(words) and not words[stop - 1].possessive:
        ahead = stop
        while ahead - stop < 2 and ahead < len(words) and _links(words, start, ahead):
            ahead += 1
        if ahead >= len(words) or not words[ahead].capital:
            break
        if not _joins(words[ahead - 1], words[ahead]) or words[ahead].low in STOP_WORDS:
            break
        stop = ahead + 1
    return stop + 3 if _is_first_half_of_firm(words, stop) else stop


def _links(words: Sequence[Word], start: int, at: int) -> bool:
    """Say whether a small word may link the parts of a name."""
    text, before = words[at].text, words[at - 1]
    if words[at].gap != " ":
        return False
    if text in {"the", "a"}:
        is_titled_person = words[start].low in _TITLES and at - 1 - start > 1
        return before.text in {"of", "with"} and not is_titled_person
    if text == "with":
        # "the painting Boy with Apple": an everyday word in capitals opens a title.
        return at - start == 1 and start > 0 and before.low in _NOT_NAMES
    return text in _PARTICLES


def _is_first_half_of_firm(words: Sequence[Word], stop: int) -> bool:
    return (
        stop + 2 < len(words)
        and words[stop].text == "and"
        and words[stop + 1].capital
        and words[stop + 2].capital
        and words[stop + 2].low in _WORDS["organization_heads"]
        and all(word.gap == " " for word in words[stop : stop + 3])
        and not words[stop - 1].possessive
    )


def _joins(before: Word, after: Word) -> bool:
    if after.gap.strip() == "":
        return True
    initial = len(before.text) == 1 and before.capital and before.text not in {"I", "V", "X"}
    return (after.gap == ". " and (initial or before.low in _TITLES)) or after.gap in {" & ", "."}


def _trim(words: Sequence[Word], start: int, stop: int) -> Mention | None:
    gap = words[start].gap
    opens = start == 0 or (gap != " " and gap.rstrip()[-1:] in _OPENERS)
    while start < stop and _is_no_part(words, start, stop, opens):
        start, opens = start + 1, False
    while stop > start and (words[stop - 1].low in _NO_NAME or words[stop - 1].text in _PARTICLES):
        stop -= 1
    while start < stop and words[start].text in _PARTICLES | {"the", "with", "a"}:
        start += 1
    if start == stop:
        return None
    name = words[start].text
    for word in words[start + 1 : stop]:
        name += (". " if word.gap.startswith(". ") else word.gap or " ") + word.text
    if len(words[stop - 1].text) == 1 and stop - start > 1:
        name += "."
    return Mention(name=" ".join(name.split()), start=start, stop=stop, opens_sentence=opens)


def _is_no_part(words: Sequence[Word], at: int, stop: int, opens: bool) -> bool:
    """Say whether the first word of a run does not belong to the name behind it."""
    low, more = words[at].low, stop - at > 1
    if more and (low in _TITLES or words[at + 1].text == "with"):
        return False
    if low in STOP_WORDS or (low in _NOT_NAMES and (opens or not more)):
        return True
    if not (opens and more) or low in _WORDS["organization_heads"]:
        return False
    return low.endswith("ing") or (low.endswith("s") and words[at + 1].text == "of")


def _is_name(
    mention: Mention, words: Sequence[Word], *, vouched: set[str], lower: set[str]
) -> bool:
    first = words[mention.start]
    low = first.low
    if mention.stop - mention.start > 1:
        return low in _TITLES or any(len(word) > 1 for word in _core(mention.name))
    if len(low) < 2 or first.text[1:2] == "'" or {low, low.removesuffix("s")} & _WORDS["demonyms"]:
        return False
    if low in _TITLES:
        return mention.start > 0 and words[mention.start - 1].low == "the"
    if low in _SPEECH_AND_ACTION or low.endswith(_CONTRACTIONS):
        return False
    if not mention.opens_sentence:
        return low in vouched and not (first.text.isupper() and low in lower)
    return low not in lower and (low in vouched or _reads_as_subject(mention, words))


def _reads_as_subject(mention: Mention, words: Sequence[Word]) -> bool:
    """Say whether a sentence's first word, known from nowhere else, reads like a person's name."""
    word = words[mention.start]
    if word.low.endswith(("ly", "ing", "ed")):
        return False
    if word.possessive:
        return True
    if word.low.endswith("s") or mention.stop >= len(words):
        return False
    after = words[mention.stop]
    is_verb = after.low in _SPEECH_AND_ACTION or after.low == "had" or after.low.endswith("s")
    return after.gap == " " and is_verb


def resolve_aliases(names: Iterable[str]) -> dict[str, str]:
    """Map every name of one text to the fullest form of it in the text, often itself.

    A short form maps to a longer one only if the text has just one longer form that fits: "Jones"
    stays itself if there are both "Indiana Jones" and "Henry Jones".
    """
    counts = Counter(names)
    spelled: dict[Key, str] = {}
    for name in sorted(counts, key=lambda n: (n.isupper(), -counts[n], n)):
        spelled.setdefault(name_key(name), name)
    with_word: dict[str, list[Key]] = {}
    for key in spelled:
        for word in dict.fromkeys(key):
            with_word.setdefault(word, []).append(key)
    longer = {key: _longer_form(key, with_word) for key in spelled}
    fullest: dict[str, str] = {}
    for name in counts:
        key = name_key(name)
        for _ in spelled:
            key = longer[key] or key
        fullest[name] = spelled[key]
    return fullest


def _longer_form(key: Key, with_word: dict[str, list[Key]]) -> Key | None:
    """Return the one form that a form is short for; None if there is none or more than one.

    ``with_word``: word -> forms that contain it.
    """
    if not key or len(_core(" ".join(key))) > 2:
        return None
    core = [word for word in key if word not in _TITLES] or key[:1]
    shared = min((with_word[word] for word in core), key=len)
    fitting = [other for other in shared if _is_short_for(key, other)]
    # In a chain "Jones", "Dr. Jones", "Dr. Henry Jones" the last one is used for all.
    tops = (one for one in fitting if not any(_is_short_for(one, other) for other in fitting))
    first, second = next(tops, None), next(tops, None)
    return first if second is None else None


def _is_short_for(short: Key, full: Key) -> bool:
    if len(short) >= len(full) or not set(short) - _TITLES <= set(full):
        return False
    if short[0] in _TITLES and len(short) == 1:
        return full[0] == short[0]
    if kind_by_name(" ".join(full)) not in {None, "PERSON"}:
        return False
    core, full_core = _core(" ".join(short)), _core(" ".join(full))
    if not set(core) <= set(full_core):
        return False
    if len(core) == 1 and core[0] not in {full_core[0], full_core[-1]}:
        return False
    if set(full) & _PARTICLES and core[0] != full_core[0]:
        return False  # named after a place
    return short[0] not in _TITLES or full[0] == short[0] or core[0] == full_core[0]


@dataclass(slots=True)
class Evidence:
    """Votes for each kind, from the positions where a name occurs."""

    person: float = _PERSON_BIAS
    place: float = 0.0
    object: float = 0.0

    def add(self, mention: Mention, words: Sequence[Word]) -> None:
        """Count the votes of the words before and after one mention."""
        if mention.stop < len(words):
            after = words[mention.stop].low
            if after in _SPEECH_AND_ACTION:
                self.person += 2.0
            elif after.endswith(("s", "ed")) or after == "who":
                self.person += 0.5
        if words[mention.stop - 1].possessive:
            self.person += 0.5
            return
        before = words[mention.start - 1].low if mention.start else ""
        earlier = words[mention.start - 2].low if mention.start > 1 else ""
        if before == "the":
            self.object += 1.0
            before = earlier
        elif (before == "to" and earlier in _WORDS["motion"]) or (
            before == "of" and earlier in PLACE_HEADS
        ):
            self.place += 2.0
        if before in _SPEECH_AND_ACTION and before not in _PLACE_BEFORE:
            self.person += 1.0
        self.place += _PLACE_BEFORE.get(before, 0.0)


def kind_by_name(name: str) -> str | None:
    """Return the kind that the words of a name show; None if they show none."""
    key = [*name_key(name)]
    if key[0] in _TITLES:
        return "PERSON"
    if "with" in key:
        return "OBJECT"
    if len(key) > 1 and key[0] in _WORDS["place_first"]:
        return "PLACE"
    head = key[key.index("of") - 1] if "of" in key[1:] else key[-1]
    last = "PLACE" if key[-1] in _WORDS["place_names"] and "of" not in key else None
    return next((kind for kind, heads in _HEADS if head in heads), last)


def kind_of(name: str, evidence: Evidence) -> str:
    """Return the kind of a name: PERSON, PLACE, ORGANIZATION, EVENT or OBJECT."""
    votes = {"PERSON": evidence.person, "PLACE": evidence.place, "OBJECT": evidence.object}
    return kind_by_name(name) or max(votes, key=votes.__getitem__)


def as_requested(kind: str, kinds: Iterable[str]) -> str:
    """Return the caller's own word for a kind, or the kind itself if the caller has none."""
    same = (name.upper() for name in kinds if name.casefold() in _SAME_KIND[kind])
    return next(same, kind)
