"""Which rows of two runs answer the same question, and what became of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from graphrag.command_lines import eval_line_here
from graphrag.eval.errors import UsageError
from graphrag.eval.judged import JUDGED_METRICS
from graphrag.eval.results.rows import QuestionKey, Row, gate_score
from graphrag.eval.stats.intervals import Score

NEW, BASELINE = "new run", "baseline"
Change: TypeAlias = Literal[
    "newly wrong", "newly right", "unchanged", "search failed", "unscored", "not compared"
]
MetricKey: TypeAlias = tuple[str, str]
"""Method and metric."""
_SHOWN = 80  # characters of a question in a sentence


class Joined(NamedTuple):
    """One method's (new row, baseline row) of the questions of both runs, and the rows of one."""

    pairs: list[tuple[Row, Row]]
    new: list[Row]
    baseline: list[Row]


class MetricPairs(NamedTuple):
    """The questions of one method on one metric, as the gate and the difference see them.

    ``scores`` are (new, baseline) of every question that the baseline holds, see ``gate_score``;
    the new score is None where the new run lacks the question, its verdict, or judged it by another
    accepted answer. ``documents`` and ``ids`` are theirs. ``n_only_baseline`` questions stand in
    the baseline alone, ``n_other_reference`` have another accepted answer now.
    """

    scores: list[tuple[Score, Score]]
    documents: list[str]
    ids: list[str]
    n_only_baseline: int
    n_other_reference: int


@dataclass(frozen=True, slots=True)
class Flip:
    """One question that is ``newly`` wrong or right, as the gate counts it.

    The document is "", the question's text None, where neither run knows it.
    """

    method: str
    metric: str
    document: str
    question_id: str
    question: str | None
    newly: str


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """One question of one method on one metric in two runs; ``told`` is the change in words.

    The document is "", the question's text None, where neither run knows it. A search that failed
    in the new run is that, whatever it was before: the gate counts it as not done well.
    "unscored": a run lacks the verdict. "not compared": a run lacks the question, or its accepted
    answer is another now. ``seconds``: of the new run's search; None when it was not measured.
    """

    method: str
    metric: str
    document: str
    question_id: str
    question: str | None
    change: Change
    told: str
    seconds: float | None = None


def join_rows(new: Sequence[Row], baseline: Sequence[Row], method: str) -> Joined:
    """Join two runs on (document, id); UsageError if one holds several responses to a question."""
    now, then = _by_key(new, method), _by_key(baseline, method)
    return Joined(
        pairs=[(row, then[key]) for key, row in now.items() if key in then],
        new=[row for key, row in now.items() if key not in then],
        baseline=[row for key, row in then.items() if key not in now],
    )


def pairs_of_metric(joined: Joined, metric: str) -> MetricPairs:
    """Return the scores of one metric; verdicts by different accepted answers are no pair."""
    reads = "ground_truth" in JUDGED_METRICS[metric].fields
    changed = [reads and _has_other_reference(new, old) for new, old in joined.pairs]
    scores: list[tuple[Score, Score]] = [
        (None if other else gate_score(new, metric), gate_score(old, metric))
        for (new, old), other in zip(joined.pairs, changed, strict=True)
    ]
    both = [*joined.pairs, *((old, old) for old in joined.baseline)]
    return MetricPairs(
        scores=[*scores, *((None, gate_score(old, metric)) for old in joined.baseline)],
        documents=[old.document for _, old in both],
        ids=[old.question_id for _, old in both],
        n_only_baseline=len(joined.baseline),
        n_other_reference=sum(changed),
    )


def check_questions(joined: Mapping[str, Joined]) -> list[str]:
    """Refuse questions that carry a known id and are others; return what weakens the rest.

    ``joined``: method -> its rows. UsageError if a question has other words under the same document
    and id, or the same id in another document only. Case and blanks make no other words. Warned of
    are accepted answers that changed.
    """
    pairs = {old.key: (new, old) for each in joined.values() for new, old in each.pairs}
    other = [pair for pair in pairs.values() if _has_other_words(*pair)]
    if other:
        new, old = other[0]
        msg = (
            f"{len(other):,} of {len(pairs):,} questions have other words in the new run than "
            f"under the same id in the baseline, e.g. {old.question_id}"
            f"{f' of {old.document}' if old.document else ''}: {_short(new.question)} now, "
            f"{_short(old.question)} then; {_remedy()}"
        )
        raise UsageError(msg)
    _refuse_moved(joined)
    warnings: list[str] = []
    if answers := sum(_has_other_reference(*pair) for pair in pairs.values()):
        warnings.append(
            f"the accepted answers of {answers:,} of {len(pairs):,} questions differ; verdicts "
            "that go by them are left out of the pairs"
        )
    return warnings


def flips_of(joined: Joined, pairs: MetricPairs, key: MetricKey) -> tuple[Flip, ...]:
    """Return the questions that flipped, the newly wrong first, else in their order.

    They are those that the gate counts: a missing verdict flips nothing.
    """
    flips = [
        Flip(
            *key,
            *old.key,
            new.question or old.question,
            "right" if now else "wrong",
        )
        for (new, old), (now, then) in zip(joined.pairs, pairs.scores, strict=False)
        if now is not None and then is not None and now != then
    ]
    return tuple(sorted(flips, key=lambda flip: flip.newly == "right"))


def changes_of(joined: Joined, pairs: MetricPairs, key: MetricKey) -> list[QuestionChange]:
    """Return what became of every question that either run holds."""

    def record(new: Row, old: Row, change: Change, told: str) -> QuestionChange:
        return QuestionChange(
            *key,
            *old.key,
            new.question or old.question,
            change,
            told,
            None if new is old else new.latency_s,
        )

    changes: list[QuestionChange] = []
    for (new, old), scores in zip(joined.pairs, pairs.scores, strict=False):
        change, told = _compare(new, old, key[1])
        if change not in ("unscored", "search failed") and None in scores:
            change, told = "not compared", "its accepted answer is another now"
        changes.append(record(new, old, change, told))
    for rows, side in ((joined.new, NEW), (joined.baseline, BASELINE)):
        changes += [record(row, row, "not compared", f"only in the {side}") for row in rows]
    return changes


def _compare(new: Row, old: Row, metric: str) -> tuple[Change, str]:
    now, then = gate_score(new, metric), gate_score(old, metric)
    if new.censored:
        return "search failed", f"the search failed; {BASELINE}: {_word(old, metric)}"
    for row, score, side in ((new, now, NEW), (old, then, BASELINE)):
        if score is None:
            return "unscored", f"no verdict in the {side}: {_word(row, metric)}"
    told = f"{metric} {then} -> {now}: {_word(old, metric)} -> {_word(new, metric)}"
    if now == then:
        return "unchanged", told
    return ("newly right" if now else "newly wrong"), told


def _word(row: Row, metric: str) -> str:
    """Return how a question ended, with the judge's score where there is one."""
    score = row.scores[metric]
    return row.states[metric].value.replace("_", " ") if score is None else f"judged {score}"


def _refuse_moved(joined: Mapping[str, Joined]) -> None:
    """Refuse ids that stand in one document in the one run and only in another in the other."""
    moved: dict[str, tuple[str, str]] = {}
    for each in joined.values():
        kept = {old.question_id for _, old in each.pairs}
        then = {row.question_id: row.document for row in each.baseline}
        for row in each.new:
            if row.question_id in then and row.question_id not in kept:
                moved.setdefault(row.question_id, (row.document, then[row.question_id]))
    if moved:
        key, (now, before) = next(iter(moved.items()))
        msg = (
            f"{len(moved):,} questions stand in another document than under the same id in the "
            f"baseline, e.g. {key}: in {now} now, in {before} then; {_remedy()}"
        )
        raise UsageError(msg)


def _remedy() -> str:
    pin = eval_line_here("compare", "RUN", "--pin")
    return f"give other questions other ids, or pin a run that asked these with: {pin}"


def _by_key(rows: Sequence[Row], method: str) -> dict[QuestionKey, Row]:
    own = [row for row in rows if row.method == method]
    by_key = {row.key: row for row in own}
    if len(own) > len(by_key):
        msg = (
            f"A run holds {len(own)} responses of {method} to {len(by_key)} question ids; ids must "
            "differ."
        )
        raise UsageError(msg)
    return by_key


def _has_other_words(new: Row, old: Row) -> bool:
    if new.question is None or old.question is None:
        return False
    now, then = (" ".join(text.casefold().split()) for text in (new.question, old.question))
    return now != then


def _has_other_reference(new: Row, old: Row) -> bool:
    return None not in (new.reference, old.reference) and new.reference != old.reference


def _short(text: str | None) -> str:
    folded = " ".join((text or "").split())
    return repr(folded if len(folded) <= _SHOWN else f"{folded[: _SHOWN - 3]}...")
