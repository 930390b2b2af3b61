"""Judges faithfulness claim by claim: splits an answer into claims and checks each of them.

The judge checks each claim against the context that the model was shown. Splitting an answer into
claims and checking each comes from FActScore (Min et al. 2023, arXiv 2305.14251), comparing
citations with claims from ALCE (Gao et al. 2023, arXiv 2305.14627). The prompts and the counting
are defined here.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from graphrag.eval.metrics.citations import Citation, read_citations
from graphrag.eval.metrics.judge import JudgeModel, Numbered, fill_prompt, rule_on, write_prompt
from graphrag.eval.metrics.quote_matching import fold_text
from graphrag.eval.metrics.scorer import Scorer, ScoreSummary
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.structured_output import ReplyForm, read_texts
from graphrag.text.citations import CITATION
from graphrag.text.context_tables import read_context
from graphrag.text.json_records import Stored
from graphrag.text.search_trace import name_row
from graphrag.text.sentences import STOPS, ends_sentence, sentences

CLAIMS_VERSION = 3
"""To be raised if the meaning of a ruling changes otherwise than by the text of the prompts."""
Ruling = Literal["supported", "contradicted", "not_found"]
_MOST_NAMED = 3
_LEADING = re.compile(
    rf"(?:\s*{CITATION.pattern}[.;,{STOPS}\u3001\u060c\u061b\uff0c\uff1b]?)+", re.IGNORECASE
)
_HEADING = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
# Chinese and Japanese have no blank after a number or a point.
_ITEM = re.compile(
    r"^[ \t\u3000]*(?:(?:[-*+|\u2022]|\d+[.)])(?=\s)|[\u30fb\u25cf\u25a0\u2460-\u2473]"
    r"|\d{1,2}(?:[\u3001\uff09]|\uff0e(?!\d)))",
    re.MULTILINE,
)
_NUMBER = re.compile(r"\d{1,2}[.)]")
_WORD = re.compile(r"\w")
_SPLIT_SHAPE = '{"sentences": [{"number": 1, "claims": ["...", ...]}, ...]}'
_RULING_SHAPE = (
    '{"claims": [{"number": 1, "reason": "...", "texts": ["Sources (2)", ...], '
    '"ruling": "supported", "contradicted" or "not_found"}, ...]}'
)


_EACH = ", one entry for each number"
SPLIT_PROMPT = write_prompt(
    """Take an answer apart into the claims that it makes. Its sentences are numbered.

A claim is one fact that can be true or false by itself. Write each so that it can be understood
alone: put names in the place of pronouns, and complete a short answer by its question. To "What
does it run on?", "Trio." claims that it runs on Trio. Leave out no fact that a sentence states, and
add none. A fact that is hedged ("probably in 1954") is a claim.

What an answer says about its sources is no claim: that they do not give, name or mention something,
or that they are unsure. Nor is what states no fact: a heading, a greeting, a remark about the
answer itself. A sentence without a claim has an empty list.
""",
    _SPLIT_SHAPE,
    "question sentences",
    _EACH,
)
"""Fields: question, and sentences, a JSON object of number to text."""
RULING_PROMPT = write_prompt(
    """Hold numbered claims against a text. Rule on each by itself, by this text alone:

supported: the text says so, or it follows from the text by an obvious step.
contradicted: the text says something that can't be true together with the claim.
not_found: the text does neither, even if you know the claim to be true.

Where parts of the text contradict each other, a claim that one of them makes is supported, unless
another says that this one is wrong or no longer holds: then it is contradicted.

Before the ruling, "reason" says in at most one sentence what the text says about the claim, and
"texts" names every row of the text's tables that supports the claim, alone or together with
another, or contradicts it, as the table and the row's id: "Sources (2)". A table without a name is
"Sources". The list is empty for not_found, and for a text without tables.
""",
    _RULING_SHAPE,
    "text claims",
    _EACH,
)
"""Fields: text, and claims, a JSON object of number to claim."""


class _Split(Numbered):
    claims: list[str]


class _SplitReply(ReplyForm):
    sentences: list[_Split]


class _RuledClaim(Numbered):
    reason: str = ""
    texts: Annotated[list[str], BeforeValidator(read_texts)] = Field(default_factory=list[str])
    ruling: Ruling


class _RulingReply(ReplyForm):
    claims: list[_RuledClaim]


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of an answer.

    - ``sentence``: the sentence of the answer that makes the claim, letter by letter.
    - ``ruling``: None if the judge gave none.
    - ``texts``: the rows of the context that the judge names as supporting or contradicting the
      claim, such as ``Sources (2)``.
    - ``reason``: the judge's; "" if it gave none, and in rulings of version 1.
    """

    text: str
    sentence: str
    ruling: Ruling | None
    texts: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MisplacedCitation:
    """A citation of a row that supports none of the claims it is given for.

    ``sentence`` is the sentence of the answer that contains it.
    """

    sentence: str
    citation: str


@dataclass(frozen=True, slots=True)
class ClaimEvaluation(Stored):
    """The claims of one answer, in order.

    ``n_citations`` counts the citations of context rows that can be checked, because the judge
    named the rows that support the claims; a row counts once per sentence. ``misplaced`` lists the
    ones that support no claim they are given for.
    """

    claims: tuple[Claim, ...]
    n_citations: int = 0
    misplaced: tuple[MisplacedCitation, ...] = ()
    failure: Failure | None = None

    @property
    def supported(self) -> float | None:
        """Share of the claims that are supported, in [0, 1]; None without a claim or a ruling."""
        rulings = [claim.ruling for claim in self.claims]
        if not rulings or self.failure is not None:
            return None
        return rulings.count("supported") / len(rulings)

    @property
    def verdict(self) -> JudgeResult:
        """The verdict on faithfulness: 1 if every claim is supported, else 0.

        The score is None if there is no claim, or if a ruling is missing.
        """
        n, score, failure = len(self.claims), None, self.failure
        false = [claim for claim in self.claims if claim.ruling != "supported"]
        false.sort(key=lambda claim: claim.ruling != "contradicted")
        if failure is not None:
            reason = f"Unscored: {failure.message}"
        elif not n:
            reason = "Nothing to judge: no claims"
        elif not false:
            score, reason = 1, f"Supported: {n} of {n} claims."
        else:
            first = (f'{name_ruling(c.ruling)}: "{c.text}"' for c in false[:_MOST_NAMED])
            more = [f"and {len(false) - _MOST_NAMED} more"] * (len(false) > _MOST_NAMED)
            reason = f"Not supported: {len(false)} of {n} claims ({'; '.join([*first, *more])})."
            score = 0
        return JudgeResult(score=score, reason=reason, failure=failure, claims=self.to_dict())

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values, ``supported`` first."""
        return {"supported": self.supported, **Stored.to_dict(self)}


def name_ruling(ruling: Ruling | None) -> str:
    """Return a ruling in words, such as "not found"."""
    return "no ruling" if ruling is None else ruling.replace("_", " ")


class Sentence(NamedTuple):
    """A sentence of an answer, letter by letter, and the number of its paragraph."""

    text: str
    paragraph: int


def split_sentences(answer: str) -> list[Sentence]:
    """Return the sentences of an answer, each with the number of its paragraph.

    Headings and list items are paragraphs of their own; the number of an item belongs to its first
    sentence. Citations after the end of a sentence belong to that sentence. A piece without a word
    is left out.
    """
    spaced = _ITEM.sub(r"\n\n\g<0>", _HEADING.sub(r"\n\n\g<0>\n\n", answer))
    spans: list[tuple[int, int, int]] = []
    offset = 0
    for paragraph, block in enumerate(re.split(r"\n\s*\n", spaced)):
        pieces = sentences(block)
        if len(pieces) > 1 and _NUMBER.fullmatch(pieces[0]):
            pieces[:2] = [" ".join(pieces[:2])]
        for sentence in pieces:
            match = re.compile(r"\s+".join(map(re.escape, sentence.split()))).search(answer, offset)
            assert match is not None  # only white space differs
            start, offset = match.span()
            leading = _LEADING.match(answer, start, offset)
            if leading is not None and spans:
                spans[-1] = (spans[-1][0], leading.end(), spans[-1][2])
                start = leading.end()
            if _WORD.search(CITATION.sub("", answer[start:offset])):
                spans.append((start, offset, paragraph))
    return [Sentence(answer[start:end].strip(), paragraph) for start, end, paragraph in spans]


async def judge_claims(
    judge: JudgeModel, question: str, answer: str, context: str
) -> ClaimEvaluation:
    """Check an answer's claims against the context that its method showed to the model.

    One call splits the answer into claims, one rules on all of them. Sentences and claims that a
    reply leaves out are asked for again, at most ``max_retries`` times. If some are still left out,
    they have no ruling and the answer has no score. A failure is returned, not raised.
    """
    parts = split_sentences(answer)
    splits, failure = await rule_on(
        judge,
        [" ".join(CITATION.sub(" ", part.text).split()) for part in parts],
        lambda left: fill_prompt(SPLIT_PROMPT, {"question": question, "sentences": left}),
        _SplitReply,
        lambda reply: reply.sentences,
        lambda split: split.claims,
    )
    if failure is not None:
        return ClaimEvaluation((), failure=failure)
    stated = [
        (part.text, claim.strip())
        for part, split in zip(parts, splits, strict=True)
        for claim in (split.claims if split is not None else ())
        if claim.strip()
    ]
    rulings, failure = await rule_on(
        judge,
        [claim for _, claim in stated],
        lambda left: fill_prompt(RULING_PROMPT, {"text": context, "claims": left}),
        _RulingReply,
        lambda reply: reply.claims,
        lambda ruling: ruling.ruling,
    )
    records = read_context(context, ("|", ","))
    rows = frozenset(Citation(fold_text(record.table), fold_text(record.id)) for record in records)
    claims = tuple(
        Claim(text=text, sentence=part, ruling=None)
        if ruled is None
        else Claim(
            text=text,
            sentence=part,
            ruling=ruled.ruling,
            texts=_read_rows(ruled.texts, rows),
            reason=ruled.reason,
        )
        for (part, text), ruled in zip(stated, rulings, strict=True)
    )
    citations = {} if failure is not None else _check_citations(parts, claims, rows)
    misplaced = tuple(place for place, supports in citations.items() if not supports)
    return ClaimEvaluation(
        claims=claims, n_citations=len(citations), misplaced=misplaced, failure=failure
    )


def _read_rows(names: Iterable[str], rows: AbstractSet[Citation]) -> tuple[str, ...]:
    """Return the context rows that the names cite; without a table, the id must fit one row."""
    tables = {row.table for row in rows}
    citations: list[Citation] = []
    for citation in (c for name in names for c in read_citations(f"[Data: {name}]")):
        matches = [row for row in rows if row.id == citation.id]
        if citation.table in tables:
            matches = [row for row in matches if row.table == citation.table]
        citations += matches if len(matches) == 1 else ()
    return tuple(name_row(row.table, row.id) for row in dict.fromkeys(citations))


def _check_citations(
    parts: Sequence[Sentence], claims: Sequence[Claim], rows: AbstractSet[Citation]
) -> dict[MisplacedCitation, bool]:
    """Return each citation of a context row, and whether it supports a claim it is given for.

    A citation is given for the claims of its sentence. After the end of a sentence, it is also
    given for the sentences before it, back to the last citation of the paragraph. If the judge does
    not name the rows that support one of these claims, only citations that do support a claim are
    returned.
    """
    by_sentence = defaultdict[str, list[Claim]](list)
    for claim in claims:
        by_sentence[claim.sentence].append(claim)
    citations: dict[MisplacedCitation, bool] = {}
    uncited: list[Sentence] = []
    for part in parts:
        uncited = [sentence for sentence in uncited if sentence.paragraph == part.paragraph]
        matches = list(CITATION.finditer(part.text))
        for match in matches:
            is_after = ends_sentence(CITATION.sub("", part.text[: match.start()]))
            span = [*uncited, part] if is_after else [part]
            in_scope = [claim for sentence in span for claim in by_sentence[sentence.text]]
            supported = [claim.texts for claim in in_scope if claim.ruling == "supported"]
            named_rows = {text for texts in supported for text in texts}
            for text in _read_rows([match[0][match[0].index(":") + 1 :].rstrip("]")], rows):
                if in_scope and (text in named_rows or all(supported)):
                    citations[MisplacedCitation(part.text, text)] = text in named_rows
        uncited = [] if matches else [*uncited, part]
    return citations


def _list_rulings(value: Mapping[str, object]) -> Iterator[str]:
    evaluation = ClaimEvaluation.from_dict(value)
    if not evaluation.claims and evaluation.failure is None:
        yield "faithfulness: no claims"
    for claim in evaluation.claims:
        texts = f" [{', '.join(claim.texts)}]" if claim.texts else ""
        why = f" ({claim.reason})" if claim.reason else ""
        yield f"  {name_ruling(claim.ruling)}: {claim.text}{texts}{why}"
    for misplaced in evaluation.misplaced:
        yield f"  misplaced citation: {misplaced.citation} in: {misplaced.sentence}"


def _count(value: Mapping[str, object]) -> dict[str, int]:
    evaluation = ClaimEvaluation.from_dict(value)
    rulings = Counter(c.ruling for c in evaluation.claims if evaluation.failure is None)
    return {
        "n_without": int(not evaluation.claims and evaluation.failure is None),
        "n_unscored": int(evaluation.failure is not None),
        "n_claims": rulings.total(),
        "n_contradicted": rulings["contradicted"],
        "n_not_found": rulings["not_found"],
        "n_citations": evaluation.n_citations,
        "n_misplaced": len(evaluation.misplaced),
    }


_NONE = _count(ClaimEvaluation(()).to_dict()) | {"n_without": 0}


def _describe(summary: ScoreSummary) -> dict[str, object]:
    return {"supported": summary.parts["supported"].estimate, **_NONE, **summary.counts}


CLAIMED = Scorer(
    name="claims",
    title="Claims that what was shown supports, in %",
    parts=("supported",),
    limits=(0.0, 1.0),
    in_percent=True,
    prompt=SPLIT_PROMPT + RULING_PROMPT,
    version=CLAIMS_VERSION,
    reads=("question", "answer", "context"),
    grade=None,
    count=_count,
    counted={
        "n_without": "no claims",
        "n_claims": "claims",
        "n_contradicted": "contradicted",
        "n_not_found": "not found",
        "n_citations": "citations",
        "n_misplaced": "misplaced",
    },
    note="Supported: mean over responses of the share of their claims that are; a response without "
    "a claim has no share. A citation is misplaced if the text that it names supports no claim "
    "that it is given for.",
    words=_list_rulings,
    describe=_describe,
)
"""The scorer of faithfulness verdicts that are given claim by claim."""
