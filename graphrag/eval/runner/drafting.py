"""Drafts questions from an index by a model, and keeps those that further calls confirm."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Literal, TypeAlias, TypeVar

from pydantic import ConfigDict, JsonValue

from graphrag.eval.dataset.dataset_reader import Assertion, Sample, Statement
from graphrag.eval.dataset.drafts import (
    ANYBODY,
    KNOWN,
    Asker,
    Cause,
    Draft,
    Passage,
    check_draft,
    find_quote,
)
from graphrag.eval.errors import RunStoppedError
from graphrag.eval.metrics.assertions import AssertionEvaluation, judge_assertions
from graphrag.eval.metrics.judge import (
    Form,
    JudgeModel,
    LLMJudge,
    Unanswered,
    fill_prompt,
    write_prompt,
)
from graphrag.eval.runner.draft_materials import Material, Materials
from graphrag.eval.runner.scheduler import check_asked
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.types.verdicts import Failure
from graphrag.query.client.structured_output import ReplyForm
from graphrag.query.client.usage import CallLog, Usage, measure_calls

_S = TypeVar("_S", Draft, Material, Sample)
_T = TypeVar("_T")
Proofs: TypeAlias = dict[str, JsonValue]
"""The models' replies about a draft, see ``Draft.row``."""
MOST_TRIES = 4
"""Most drafts that are tried for each question that is wanted."""
CALLS_A_DRAFT = {"fact": 6, "link": 10, "global": 8, "unanswerable": 2}
"""Kind -> model calls for a draft that is kept (a link or global one: of two texts)."""
_AT_ONCE = 8
_N_DISTRACTORS = 2

_BY_ANYBODY = """
- Somebody asks who works with these documents and has not read this one. Ask what such a reader
  wants to know, not how the text is worded."""
_BY_ASKER = """
- "asker" says who asks, without having read this text. Ask what such a person wants to know, in
  the words of such a person, and not how the text is worded."""
_IN_STYLE = {
    "": "",
    "question": """
- "question" is one full question, as it is put to a colleague.""",
    "keywords": """
- "question" is what is typed into a search box: two to seven words, no sentence and no question
  mark, with the names that tell what is looked for.""",
    "vague": """
- "question" is put as by somebody who knows little and is in a hurry: short, and in everyday words
  in the place of the text's own, but for names. It is still clear what is asked.""",
}
_ASKER = (
    _BY_ANYBODY
    + """
- Name people, places and things, and never write "the text", "this report", "the man" or a pronoun
  in the place of a name.
- Write in the language of the texts.
- "difficulty" is how hard it is to find and put together: "easy", "medium" or "hard".
- If no sound question of this kind can be asked here, "question", "answer" and "quotes" are empty.
"""
)
_QUOTES = """- "quotes" are passages copied from the texts letter by letter, each of two sentences
  at most. Together, each beside its text's title, they prove the answer to somebody who sees
  nothing else: one of them, or a title, says what "it" is in "It holds five.". Quote nothing that
  proves nothing, and nothing only to name what a title names.
"""
_RULES = (
    _ASKER
    + """- One answer alone is right, also to who knows more than the texts: not "Which edition?"
  where both a year and a number are right.
- The answer is as short as it can be. It does not stand in the question, unless this lets choose
  between alternatives that it names.
"""
    + _QUOTES
)
_DRAFT_SHAPE = '{"question": "...", "answer": "...", "quotes": ["..."], "difficulty": "easy"}'
_GLOBAL_SHAPE = (
    '{"question": "...", "answer": "...", "quotes": ["..."], "difficulty": "hard", '
    '"assertions": [{"text": "...", "weight": "vital" or "okay"}]}'
)
_TASKS = {
    "fact": "Write one question that the text answers with a single fact.\n" + _RULES,
    "link": """Write one question that can be answered only by who has read all of the texts.
"about" says what joins them, and "form" which kind of question to prefer; take another where it
suits the texts better. A "bridge" asks for something in one text by what another says of it, and
leaves out the name that joins them. A "comparison" asks how two things differ or which is more,
earlier or larger. A "set" asks for all that the texts name of one kind.

- Quote each of the texts at least once.
- It is something to want to know: no riddle made of pieces of the texts, and no count of years
  between things that have nothing to do with each other.
"""
    + _RULES.lstrip(),
    "global": """Write one question about what the texts have in common: a theme, a change, a
pattern or a reason. No single one of them answers it. "about" is a summary of a larger group of
texts. "assertions" are three to six statements, each true by the texts and whole by itself:
"vital" is what a good answer must say, "okay" what it may say.
"""
    + _ASKER
    + """- The answer says all that is vital, and no more.
"""
    + _QUOTES,
    "unanswerable": """Write one question that sounds as if the text answered it, about the people,
places or things in it, but which it does not answer, and to which the answer is not widely known.
Documents like this one could well answer it: it asks for a reason, a name, a date, a place, a way
or an amount that matters to who works with them. It takes nothing for granted that the text does
not say: not "How many complained?" where nobody is said to. "answer" is "". "quotes" holds the one
passage, copied letter by letter, that comes nearest.
"""
    + _ASKER,
}


PROPOSE_PROMPT = write_prompt(
    """Write what answers to a question are to be held to: one to six statements, each of which
follows from "answer", the accepted one, or from "quotes", which prove it.

- A statement says one thing, and is whole by itself: it names people, places and things.
- "vital" is what an answer must say to be right and complete, "okay" what it may well say.
- At least one is vital. No two say the same.
""",
    '{"assertions": [{"text": "...", "weight": "vital" or "okay"}]}',
    "question answer quotes",
)
_ORACLE_SHAPE = '{"found": true or false, "answer": "..."}'
ORACLE_PROMPT = write_prompt(
    """Answer a question from the given texts and from nothing else. What the question takes for
granted is no evidence: the texts or their titles must say themselves what their statements are
about. If they do not, or do not give the answer, "found" is false and "answer" is "".
""",
    _ORACLE_SHAPE,
    "question texts",
)
CLOSED_BOOK_PROMPT = write_prompt(
    'Answer a question from what you know. If you do not know, "found" is false and "answer" is '
    '"".\n',
    _ORACLE_SHAPE,
    "question",
)
SAME_PROMPT = write_prompt(
    """Two people answered the same question. Would a reader of either answer end up believing the
same? Write what one of these readers would believe that the other would not, as far as the question
asks for it. "same" is 1 if that is nothing, else 0.
""",
    '{"difference": "...", "same": 0 or 1}',
    "question one other",
)
"""The judge's second phrasing of whether an answer is right."""


REPAIR_PROMPT = write_prompt(
    """The "quotes" are to prove the answer to a question, and some do not stand in the texts. Write
them again: passages copied from the texts letter by letter, each at most two sentences long, which
prove the answer to somebody who sees nothing else.
""",
    '{"quotes": ["..."]}',
    "question answer quotes texts",
)


class _Reply(ReplyForm):
    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)


class _Statement(Statement, ReplyForm):
    pass


class _DraftReply(_Reply):
    question: str
    answer: str
    quotes: list[str]
    difficulty: Literal["easy", "medium", "hard"] = "medium"


class _GlobalReply(_DraftReply):
    assertions: list[_Statement]


class _QuotesReply(_Reply):
    quotes: list[str]


class _AssertionsReply(_Reply):
    assertions: list[_Statement]


class _OracleReply(_Reply):
    found: bool
    answer: str


class _SameReply(_Reply):
    difference: str = ""
    same: Literal[0, 1]


def _as_rows(passages: Sequence[Passage]) -> list[dict[str, str]]:
    return [{"title": p.title or p.document, "text": p.text} for p in passages]


def _copy_quotes(quotes: Sequence[str], passages: Sequence[Passage]) -> dict[str, str | None]:
    """Return quote -> the same passage as its text has it; None if no text contains it."""
    copies = {
        quote: [find_quote(quote, passage.text) for passage in passages]
        for quote in map(str.strip, quotes)
        if quote
    }
    return {quote: next(filter(None, matches), None) for quote, matches in copies.items()}


def _read_assertions(statements: Sequence[Statement]) -> tuple[Assertion, ...]:
    return tuple(Assertion(text=item.text, weight=item.weight) for item in statements)


@dataclass(frozen=True, slots=True)
class ThrownAway:
    """A draft that was not kept, and why; ``draft`` is None if no draft could be read."""

    kind: str
    cause: Cause
    draft: Draft | None
    detail: str

    def to_dict(self) -> dict[str, JsonValue]:
        """Return JSON-ready values."""
        row = {} if self.draft is None else self.draft.row(None, None)
        return {**row, "kind": self.kind, "cause": self.cause.value, "detail": self.detail}


@dataclass(slots=True)
class Drafted:
    """The result of drafting from one index.

    - ``assertions``: id of a dataset's row -> the assertions kept for it.
    - ``short``: kind -> number of questions missing because materials or tries ran out.
    - ``n_kept_calls``: calls among ``usages`` that an earlier draft stored and that were not sent
      again.
    - ``unread``: the keys of the calls of each draft whose last reply can't be used.
    - ``is_rehearsal``: whether an embedded model drafted.
    """

    kept: list[tuple[Draft, Proofs]] = field(default_factory=list[tuple[Draft, Proofs]])
    assertions: dict[str, list[Assertion]] = field(default_factory=dict[str, list[Assertion]])
    thrown_away: list[ThrownAway] = field(default_factory=list[ThrownAway])
    usages: list[Usage] = field(default_factory=list[Usage])
    short: dict[str, int] = field(default_factory=dict[str, int])
    n_kept_calls: int = 0
    unread: list[set[str]] = field(default_factory=list[set[str]])
    is_rehearsal: bool = False

    def causes(self) -> Counter[Cause]:
        """Return how many drafts were thrown away, by cause."""
        return Counter(draft.cause for draft in self.thrown_away)


class _Failed(Exception):
    """A draft is thrown away; ``cause`` says why."""

    def __init__(self, cause: Cause, detail: str = "") -> None:
        super().__init__(detail)
        self.cause = cause


def _no_reply(failure: Failure) -> Exception:
    """Return the error of a call without a usable reply; a refused request stops everything."""
    if failure.kind == "refused":
        return RunStoppedError(f"The model's service refuses the requests: {failure.message}")
    is_call = failure.kind == "error"
    return _Failed(Cause.CALL_FAILED if is_call else Cause.UNREADABLE, failure.message)


def _throw_away(subject: Draft | Material | Sample, cause: Cause, detail: str = "") -> ThrownAway:
    if isinstance(subject, Sample):
        return ThrownAway(
            kind="assertions", cause=cause, draft=None, detail=f"{subject.name}: {detail}"
        )
    return ThrownAway(
        kind=subject.kind,
        cause=cause,
        draft=subject if isinstance(subject, Draft) else None,
        detail=detail,
    )


class Drafter:
    """Drafts questions and checks them.

    - ``model``: drafts, answers and judges; as for LLMJudge.
    - ``new_log``: makes the log of one draft's calls, with the limit and journal that all share.
    - ``on_progress``: called with kind, number kept so far, number wanted.
    - ``keeps_known``: whether to keep, with a tag, a question that is answered without any text.
    - ``askers``: personas and styles in which questions are asked, taken in turn.
    """

    def __init__(
        self,
        model: object,
        new_log: Callable[[], CallLog],
        on_progress: Callable[[str, int, int], object] = lambda kind, done, number: None,
        keeps_known: bool = False,
        askers: Sequence[Asker] = (ANYBODY,),
    ) -> None:
        self._model = JudgeModel(model)
        self._judge = LLMJudge(model)
        self._new_log, self._on_progress, self._keeps_known = new_log, on_progress, keeps_known
        self._askers = askers

    async def draft(
        self,
        materials: Materials,
        n_questions: Mapping[str, int],
        past_questions: Sequence[str],
        drafted: Drafted | None = None,
    ) -> Drafted:
        """Draft questions of each kind until there are enough or the materials or tries run out.

        - ``n_questions``: kind -> number.
        - ``past_questions``: questions not to ask again.
        - ``drafted``: filled as drafts end, so that an early stop loses none.

        Raises RunStoppedError if the service refuses every request or is down, or the allowed cost
        is spent.
        """
        drafted = drafted or Drafted()
        turns = cycle(self._askers)
        for kind, number in n_questions.items():
            left = islice(materials.of(kind), MOST_TRIES * number)
            open_ = [*islice(turns, number)]
            while pairs := [*zip(open_[:_AT_ONCE], left, strict=False)]:
                batch = [replace(material, asker=asker) for asker, material in pairs]
                for draft in await self._try_batch(batch, materials, past_questions, drafted):
                    open_.remove(draft.asker)
                self._on_progress(kind, number - len(open_), number)
            if open_:
                drafted.short[kind] = len(open_)
        return drafted

    async def draft_assertions(self, samples: Sequence[Sample], drafted: Drafted) -> None:
        """Propose assertions for dataset rows; keep those that the row's answer and quotes support.

        ``drafted.assertions`` is filled as rows end. Raises RunStoppedError like :meth:`draft`.
        """
        for start in range(0, len(samples), _AT_ONCE):
            batch = samples[start : start + _AT_ONCE]
            outcomes = await self._ask_together(batch, self._propose_assertions, drafted)
            for sample, outcome in zip(batch, outcomes, strict=True):
                if outcome is not None:
                    drafted.assertions[sample.id], left = outcome
                    drafted.thrown_away += (
                        _throw_away(sample, Cause.NOT_BORNE_OUT, assertion.text)
                        for assertion in left
                    )
            self._on_progress("rows", start + len(batch), len(samples))

    async def _propose_assertions(self, sample: Sample) -> tuple[list[Assertion], list[Assertion]]:
        """Return the assertions of a row that its answer and quotes support, and the other ones."""
        texts = [text for text in (sample.ground_truth, *sample.evidence) if text]
        if not texts or not sample.answerable:
            raise _Failed(Cause.NOTHING_SAID)
        reply = await self._ask(
            _AssertionsReply,
            PROPOSE_PROMPT,
            question=sample.question,
            answer=sample.ground_truth,
            quotes=[*sample.evidence],
        )
        proposed = {assertion.text: assertion for assertion in _read_assertions(reply.assertions)}
        ruled = await self._rule_on(sample.question, "\n\n".join(texts), [*proposed.values()])
        met_texts = {ruling.text for ruling in ruled.rulings if ruling.is_met}
        kept = [assertion for text, assertion in proposed.items() if text in met_texts]
        if not any(assertion.weight == "vital" for assertion in kept):
            raise _Failed(Cause.NOT_BORNE_OUT, "; ".join(proposed) or "nothing was proposed")
        return kept, [assertion for text, assertion in proposed.items() if text not in met_texts]

    async def _try_batch(
        self, batch: Sequence[Material], materials: Materials, past: Sequence[str], into: Drafted
    ) -> list[Draft]:
        kept_before = [draft for draft, _ in into.kept]
        sound: list[Draft] = []
        for draft in filter(None, await self._ask_together(batch, self._propose, into)):
            others = [*kept_before, *sound]
            cause = check_draft(draft, [*past, *(other.question for other in others)], others)
            if cause is None:
                sound.append(draft)
            else:
                into.thrown_away.append(_throw_away(draft, cause))
        checked = await self._ask_together(sound, lambda draft: self._check(draft, materials), into)
        kept = [each for each in checked if each is not None]
        into.kept += kept
        return [draft for draft, _ in kept]

    async def _ask_together(
        self, subjects: Sequence[_S], ask: Callable[[_S], Awaitable[_T]], into: Drafted
    ) -> list[_T | None]:
        """Ask about all subjects at once; a failed one is thrown away and becomes None."""

        async def measured(subject: _S) -> _T | _Failed:
            log = self._new_log()
            try:
                with measure_calls(log):
                    return await ask(subject)
            except _Failed as error:
                if error.cause is Cause.UNREADABLE:
                    into.unread.append(log.counted)
                return error
            finally:
                into.usages.append(log.usage())
                into.n_kept_calls += log.replayed
                check_asked(log)

        # Even if one is stopped, the calls of the others are paid for, and are kept.
        ends = await asyncio.gather(*map(measured, subjects), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, _Failed):
                raise end
        into.thrown_away += (
            _throw_away(subject, end.cause, str(end))
            for subject, end in zip(subjects, ends, strict=True)
            if isinstance(end, _Failed)
        )
        return [None if isinstance(end, BaseException) else end for end in ends]

    async def _ask(self, reply_form: type[Form], prompt: str, **values: object) -> Form:
        reply = await self._model.ask(fill_prompt(prompt, values), reply_form)
        if isinstance(reply, Unanswered):
            raise _no_reply(reply.failure)
        return reply

    async def _propose(self, material: Material) -> Draft:
        is_global, asker = material.kind == "global", material.asker
        who = (_BY_ASKER if asker.persona else _BY_ANYBODY) + _IN_STYLE[asker.style]
        reply = await self._ask(
            _GlobalReply if is_global else _DraftReply,
            write_prompt(
                _TASKS[material.kind].replace(_BY_ANYBODY.lstrip(), who.lstrip()),
                _GLOBAL_SHAPE if is_global else _DRAFT_SHAPE,
                "asker form about texts" if asker.persona else "form about texts",
            ),
            asker=asker.persona,
            form=material.form,
            about=material.about,
            texts=_as_rows(material.passages),
        )
        if not reply.question:
            raise _Failed(Cause.NO_QUESTION)
        assertions = _read_assertions(reply.assertions) if isinstance(reply, _GlobalReply) else ()
        if not reply.answer and material.kind != "unanswerable":
            raise _Failed(Cause.UNREADABLE, "it has no answer")
        if is_global and not any(assertion.weight == "vital" for assertion in assertions):
            raise _Failed(Cause.UNREADABLE, "it has no vital assertion")
        quotes = _copy_quotes(reply.quotes, material.passages)
        if None in quotes.values():
            again = await self._ask(
                _QuotesReply,
                REPAIR_PROMPT,
                question=reply.question,
                answer=reply.answer,
                quotes=[*quotes],
                texts=_as_rows(material.passages),
            )
            quotes = _copy_quotes(again.quotes, material.passages)
        return Draft(
            kind=material.kind,
            question=reply.question,
            answer=reply.answer,
            quotes=tuple(dict.fromkeys(copied or quote for quote, copied in quotes.items())),
            passages=material.passages,
            difficulty=reply.difficulty,
            assertions=assertions,
            asker=asker,
        )

    async def _check(self, draft: Draft, materials: Materials) -> tuple[Draft, Proofs]:
        """Return a checked draft as it is kept, and its proofs; cheap checks come first."""
        if draft.kind == "unanswerable":
            best = await asyncio.to_thread(materials.best, draft.question)
            oracle = await self._oracle(draft.question, [*dict.fromkeys((*draft.passages, *best))])
            if oracle.found:
                raise _Failed(Cause.NOT_DECLINED, oracle.answer)
            return draft, {"oracle": None}
        oracle = None
        if draft.kind == "global":
            draft, oracle = await self._check_global(draft)
        closed = await self._ask(_OracleReply, CLOSED_BOOK_PROMPT, question=draft.question)
        is_known = closed.found and await self._accepts(draft, closed)
        if is_known and not self._keeps_known:
            raise _Failed(Cause.KNOWN_ALREADY, closed.answer)
        notes: Proofs = {"closed_book": closed.answer if closed.found else None}
        notes |= {KNOWN: True} if is_known else {}
        if oracle is not None:
            return draft, {"oracle": oracle.answer, **notes}
        sources = {
            quote: next(p for p in draft.passages if quote in p.text) for quote in draft.quotes
        }
        quotes = [replace(passage, text=quote) for quote, passage in sources.items()]
        oracle = await self._oracle(draft.question, quotes)
        if not oracle.found:
            raise _Failed(Cause.ORACLE_FAILS, "declined")
        is_right = await self._is_right(draft, oracle)
        pair = {"one": oracle.answer, "other": draft.answer}
        is_same = (await self._ask(_SameReply, SAME_PROMPT, question=draft.question, **pair)).same
        if not (is_right and is_same):
            cause = Cause.JUDGES_DIFFER if is_right or is_same else Cause.ORACLE_FAILS
            raise _Failed(cause, oracle.answer)
        if draft.kind == "link":
            await self._check_link(draft, materials)
        return draft, {"oracle": oracle.answer, **notes}

    async def _check_link(self, draft: Draft, materials: Materials) -> None:
        """Check that no text can be left out; two similar texts replace it, to prevent a guess."""
        most = len(draft.passages) + _N_DISTRACTORS
        best = await asyncio.to_thread(materials.best, draft.question, most)
        near = [passage for passage in best if passage not in draft.passages][:_N_DISTRACTORS]
        for passage in draft.sources:
            others = [other for other in draft.passages if other != passage]
            without = await self._oracle(draft.question, [*others, *near])
            if without.found and await self._is_right(draft, without):
                raise _Failed(Cause.ONE_TEXT_DOES, passage.document)

    async def _check_global(self, draft: Draft) -> tuple[Draft, _OracleReply]:
        """Return the draft with the assertions that its texts support; at most one may be missing.

        Checks that its answer meets these assertions, and that no single document does (or no
        single text, if there is one document).
        """
        oracle = await self._oracle(draft.question, draft.passages)
        if not oracle.found:
            raise _Failed(Cause.ORACLE_FAILS, "declined")
        # The statements are checked against the texts, not against the oracle's words.
        texts = "\n\n".join(passage.text for passage in draft.passages)
        ruled = (await self._rule_on(draft.question, texts, draft.assertions)).rulings
        supported = tuple(a for a, r in zip(draft.assertions, ruled, strict=True) if r.is_met)
        has_vital = any(assertion.weight == "vital" for assertion in supported)
        if len(supported) < len(ruled) - 1 or not has_vital:
            raise _Failed(Cause.ORACLE_FAILS, "its assertions do not follow from the texts")
        draft = replace(draft, assertions=supported)
        if not (await self._rule_on(draft.question, draft.answer, supported)).is_whole:
            raise _Failed(Cause.ORACLE_FAILS, "its answer does not meet its assertions")
        by_document = grouped((passage.document, passage.text) for passage in draft.passages)
        documents = ["\n\n".join(parts) for parts in by_document.values()]
        for text in documents if len(documents) > 1 else (p.text for p in draft.passages):
            if (await self._rule_on(draft.question, text, supported)).is_whole:
                raise _Failed(Cause.ONE_TEXT_DOES, text)
        return draft, oracle

    async def _accepts(self, draft: Draft, reply: _OracleReply) -> bool:
        """Say whether an answer is right or, for a global question, meets the assertions."""
        if draft.kind != "global":
            return bool(await self._is_right(draft, reply))
        return bool((await self._rule_on(draft.question, reply.answer, draft.assertions)).is_whole)

    async def _oracle(self, question: str, texts: Sequence[Passage]) -> _OracleReply:
        return await self._ask(
            _OracleReply, ORACLE_PROMPT, question=question, texts=_as_rows(texts)
        )

    async def _rule_on(
        self, question: str, text: str, assertions: Sequence[Assertion]
    ) -> AssertionEvaluation:
        ruled = await judge_assertions(self._model, question, text, assertions)
        if ruled.failure is not None:
            raise _no_reply(ruled.failure)
        return ruled

    async def _is_right(self, draft: Draft, reply: _OracleReply) -> int:
        verdict = await self._judge.judge_correctness(draft.question, draft.answer, reply.answer)
        if verdict.failure is not None:
            raise _no_reply(verdict.failure)
        return int(verdict.score or 0)
