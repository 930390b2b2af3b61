"""Defines drafted questions, and checks them by their words, without a model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise

from pydantic import JsonValue

from graphrag.eval.dataset.dataset_reader import DECLINED, Assertion, fold_wording
from graphrag.text.stems import terms

KINDS: tuple[str, ...] = ("fact", "link", "global", "unanswerable")
STYLES: tuple[str, ...] = ("question", "keywords", "vague")
REHEARSAL = "rehearsal"
"""Tag of questions by the embedded models, which only try out the steps and make little sense."""
KNOWN = "known"
"""Tag of questions that were kept although a model answered them without any text."""
_ALIKE = 0.8
"""Share of the words of two questions that both have (Jaccard), from which they count as one."""
# English alone: questions in other languages get only the remaining checks.
_POINTING = re.compile(
    r"\b(?:the|this|that|these|those) (?:above |given |following |same |said )?(?:text|passage|"
    r"document|excerpt|article|report|advisory|author|speaker|narrator|man|woman|boy|girl|person|"
    r"people|character|company|event|place|city|scene|section|paragraph|story|study)\b"
    r"(?!-\w| (?:of|who|whom|whose|that|which|called|named|in|on|at|from|with|about|by)\b)",
    re.IGNORECASE,
)
# Nouns that point to nothing before another noun: "the company card", "the event budget".
_COMPOUND = re.compile(
    r"(?:company|event|place|city|report|document|study|story) "
    r"(?!(?:is|are|was|were|be|has|have|had|and|or|not)\b)\w",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:do|does|did|can|could|will|would|shall|should|may|might|must) $", re.IGNORECASE
)
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_OR_AND = re.compile(r"\b(?:or|and)\b", re.IGNORECASE)
_CHOICE = re.compile(
    r"\b(?:which|who|whose|what) of\b|\bof the (?:two|three)\b|\bbetween\b|^of\b", re.IGNORECASE
)
_MARKS = (
    "'\u2018\u2019\u201a\u201b\u2032",
    '"\u201c\u201d\u201e\u201f\u00ab\u00bb',
    "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
)
"""Apostrophes, quotation marks, dashes: those of one kind are equal when a quote is searched."""
_PRONOUN = re.compile(r"\b(?:he|she|they|him|her|his|hers|them|their|it|its)\b", re.IGNORECASE)
_VAGUE_NOUNS = "name title kind"
# The 20 of "20 years", but not that of "U-20"; the I of "Grade I", which is not a term.
_ALONE = re.compile(r"(?!^A\b)(?<![\w-])(?:\d+(?:[.,]\d+)*\w*|[A-Z])(?![\w-])")
_NAME = re.compile(  # or code, as in `state-save`, --size, close(), max_size, os.path
    r"(?<!^)(?<![.?!] )\b[A-Z][\w'-]+|\d|`\w|--\w|\w\(\)|\w{2}[_.]\w{2}"
)


class Cause(StrEnum):
    """Why a draft was rejected; the value is its name in a report."""

    CALL_FAILED = "a call to the model failed"
    UNREADABLE = "a reply of the model can't be used"
    NO_QUESTION = "the model found no sound question there"
    NO_QUOTES = "it quotes nothing, or too few texts"
    NOT_IN_TEXT = "a quote does not occur in its text"
    REVEALS_ANSWER = "the answer occurs in the question"
    NO_SUBJECT = "it does not name what it asks about"
    DUPLICATE = "the same is asked already"
    ORACLE_FAILS = "the quotes do not answer it"
    JUDGES_DIFFER = "two phrasings of the judge differ"
    KNOWN_ALREADY = "it is answered without any text"
    ONE_TEXT_DOES = "it does not need all of its texts"
    NOT_DECLINED = "the texts answer it after all"
    NOTHING_SAID = "the row has neither an answer nor quotes"
    NOT_BORNE_OUT = "the row's answer and quotes do not bear it out"


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of a text unit that a question is drafted from.

    ``document`` is the document's title or id. If that is the name of a file, ``title`` is the
    title that the text itself has.
    """

    text: str
    document: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who asks, as described by the user who drafts questions, and the style of asking.

    ``style`` is one of ``STYLES``. "" is anybody who works with the documents, and any style.
    """

    persona: str = ""
    style: str = ""

    def columns(self) -> dict[str, JsonValue]:
        """Return the columns about the asker in a row of a dataset."""
        columns = {"persona": self.persona, "style": self.style}
        return {name: value for name, value in columns.items() if value}


ANYBODY = Asker()


@dataclass(frozen=True, slots=True)
class Draft:
    """A question as it was drafted; ``kind`` is one of ``KINDS``.

    - ``quotes``: copied letter by letter from the ``passages`` that the model was shown; for an
      unanswerable question, the near miss.
    - ``difficulty``: easy, medium or hard, as the model says.
    - ``assertions``: for a global question, the statements that an answer must make.
    """

    kind: str
    question: str
    answer: str
    quotes: tuple[str, ...]
    passages: tuple[Passage, ...]
    difficulty: str
    assertions: tuple[Assertion, ...] = ()
    asker: Asker = ANYBODY

    @property
    def lets_choose(self) -> bool:
        """Whether it offers alternatives to choose from: "A or B?", "Of A and B?"."""
        between = _OR_AND if _CHOICE.search(self.question) else _OR
        words = {*terms(self.answer)}
        names_it = [words <= {*terms(part)} for part in between.split(self.question)]
        return any(one != other for one, other in pairwise(names_it))

    @property
    def sources(self) -> tuple[Passage, ...]:
        """The passages that contain a quote."""
        return tuple(p for p in self.passages if any(quote in p.text for quote in self.quotes))

    def repeats(self, other: "Draft") -> bool:
        """Return whether it asks the same of the same texts as another draft, in whatever words."""
        is_same = {*terms(self.answer)} == {*terms(other.answer)} != set[str]()
        return is_same and {*self.sources} == {*other.sources}

    def row(
        self, key: str | None, proofs: JsonValue, is_rehearsal: bool = False
    ) -> dict[str, JsonValue]:
        """Return the draft as a row of a dataset.

        ``key`` is the key of its index. ``proofs`` are the models' replies about it.
        ``is_rehearsal``: whether it gets the tag ``REHEARSAL``.
        """
        is_answerable = self.kind != "unanswerable"
        documents = dict.fromkeys(passage.document for passage in self.sources)
        tags: list[JsonValue] = [REHEARSAL] if is_rehearsal else []
        if isinstance(proofs, dict) and proofs.get(KNOWN):
            tags.append(KNOWN)
        row: dict[str, JsonValue] = {
            **({"imdb_key": key} if key is not None else {}),
            "question": self.question,
            "answer": self.answer if is_answerable else DECLINED,
            "answerable": is_answerable,
            "evidence": list(self.quotes) if is_answerable else [],
            "kind": self.kind,
            "hops": len(self.sources) if self.kind == "link" else 1,
            "difficulty": self.difficulty,
            **self.asker.columns(),
            **({"tags": tags} if tags else {}),
            "documents": [*documents],
            "vetted_by": None,
            "proofs": proofs,
        }
        if self.assertions:
            row["assertions"] = [assertion.model_dump() for assertion in self.assertions]
        return row


def check_draft(draft: Draft, past: Sequence[str], others: Sequence[Draft] = ()) -> Cause | None:
    """Return why a draft is rejected by its words alone; None if nothing is wrong with them.

    ``past`` are the questions that exist already, ``others`` the drafts that were kept so far.
    """
    least = 2 if draft.kind == "link" else 1
    if not draft.quotes or (draft.kind != "global" and len(draft.quotes) < least):
        return Cause.NO_QUOTES
    if any(not any(q in p.text for p in draft.passages) for q in draft.quotes):
        return Cause.NOT_IN_TEXT
    if draft.kind == "link" and len(draft.sources) < least:
        return Cause.NO_QUOTES
    is_revealed = draft.kind in ("fact", "link") and _reveals_answer(draft.question, draft.answer)
    if is_revealed and not draft.lets_choose:
        return Cause.REVEALS_ANSWER
    if not _names_subject(draft.question):
        return Cause.NO_SUBJECT
    asks_again = any(_alike(draft.question, other) for other in past)
    return Cause.DUPLICATE if asks_again or any(map(draft.repeats, others)) else None


def find_quote(quote: str, text: str) -> str | None:
    """Return the passage of a text that a quote copies, in the text's own letters; None if none.

    White space, and the forms of apostrophes, quotation marks and dashes, make no difference.
    """
    words = ("".join(map(_any_form_of, word)) for word in quote.split())
    match = re.search(r"\s+".join(words), text) if quote.strip() else None
    return None if match is None else match[0]


def _any_form_of(letter: str) -> str:
    marks = next((marks for marks in _MARKS if letter in marks), None)
    return re.escape(letter) if marks is None else f"[{marks}]"


def _reveals_answer(question: str, answer: str) -> bool:
    words = terms(answer)
    is_there = bool(words) and set(words) <= set(terms(question))
    return is_there and {*_ALONE.findall(answer)} <= {*_ALONE.findall(question)}


def _names_subject(question: str) -> bool:
    """Return whether people who have not read the text can understand a question.

    They can if it names something. Otherwise it must have no pronoun, no words such as "the man" or
    "this advisory" in place of a name, and more than one word to find it by, unlike the question
    "What is the name of the airport?".
    """
    if _NAME.search(question):
        return True
    if _replaces_name(question):
        return False
    return not _PRONOUN.search(question) and len({*terms(question)} - {*terms(_VAGUE_NOUNS)}) > 1


def _replaces_name(question: str) -> bool:
    """Return whether "the man", "this event" or the like replaces a name, outside of a compound."""
    for match in _POINTING.finditer(question):
        noun = match.end() - len(match[0].split()[-1])
        if _VERB.search(question, 0, match.start()) or not _COMPOUND.match(question, noun):
            return True
    return False


def _alike(question: str, other: str) -> bool:
    """Return whether two questions are worded so similarly that one of them is enough."""
    if fold_wording(question) == fold_wording(other):
        return True
    one, two = _distinct_terms(question), _distinct_terms(other)
    return bool(one | two) and len(one & two) / len(one | two) >= _ALIKE


@cache  # each draft is compared with every question of the data set
def _distinct_terms(question: str) -> frozenset[str]:
    return frozenset(terms(question))
