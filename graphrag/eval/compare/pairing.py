"""Which rows of two runs answer the same question, and what became of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from graphrag.command_lines import eval_line_here
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import UsageError
from graphrag.eval.judged.discovery import JUDGED_METRICS
from graphrag.eval.records import measured_latency
from graphrag.eval.results.rows import Row, gate_score
from graphrag.eval.stats.intervals import Score

Key: TypeAlias = tuple[str, str]
"""Document and id of a question; the document is "" where a run does not know it."""
_SHOWN = 80  # characters of a question in a sentence


class Joined(NamedTuple):
    """The rows of one method in two runs.

    Attributes
    ----------
    pairs : list
        (new row, baseline row) of the questions that both hold.
    new, baseline : list of Row
        What only one of them holds.
    """

    pairs: list[tuple[Row, Row]]
    new: list[Row]
    baseline: list[Row]


class MetricPairs(NamedTuple):
    """The questions of one method on one metric, as the gate and the difference see them.

    Attributes
    ----------
    scores : list
        (new, baseline) of every question that the baseline holds, see ``gate_score``; the new
        score is None where the new run lacks the question, its verdict, or judged it by another
        accepted answer.
    documents, ids : list of str
        Of the questions, in the order of the scores.
    n_only_baseline, n_other_reference : int
        Questions that only the baseline holds, and that have another accepted answer now.
    """

    scores: list[tuple[Score, Score]]
    documents: list[str]
    ids: list[str]
    n_only_baseline: int
    n_other_reference: int


def join_rows(new: Sequence[Row], baseline: Sequence[Row], method: str) -> Joined:
    """Join two runs on (document, id); on the id where a run does not know its documents.

    Raises
    ------
    UsageError
        If a run holds several responses to one question.
    """
    ours, theirs = ([row for row in side if row.method == method] for side in (new, baseline))
    by_id = any(not row.document for row in (*ours, *theirs))
    now, then = _by_key(ours, method, by_id), _by_key(theirs, method, by_id)
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
    absent = [(None, gate_score(old, metric)) for old in joined.baseline]
    return MetricPairs(
        scores=[*scores, *absent],
        documents=[
            *(new.document or old.document for new, old in joined.pairs),
            *(old.document for old in joined.baseline),
        ],
        ids=[old.question_id for old in (*(old for _, old in joined.pairs), *joined.baseline)],
        n_only_baseline=len(absent),
        n_other_reference=sum(changed),
    )


def check_questions(joined: Mapping[str, Joined]) -> list[str]:
    """Refuse questions that carry a known id and are others; return what weakens the rest.

    Parameters
    ----------
    joined : dict
        Method -> its rows.

    Returns
    -------
    list of str
        Warnings: wordings that are not known, accepted answers that changed.

    Raises
    ------
    UsageError
        If a question has other words under the same document and id, or the same id in another
        document only. Case and blanks make no other words.
    """
    pairs = {_key(old): (new, old) for each in joined.values() for new, old in each.pairs}
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
    unknown = sum(None in (new.question, old.question) for new, old in pairs.values())
    if unknown:
        warnings.append(
            f"not known whether {unknown:,} of {len(pairs):,} questions have the same words in "
            "both runs: one of them was kept without"
        )
    if answers := sum(_has_other_reference(*pair) for pair in pairs.values()):
        warnings.append(
            f"the accepted answers of {answers:,} of {len(pairs):,} questions differ; verdicts "
            "that go by them are left out of the pairs"
        )
    return warnings


def check_samples(samples: Sequence[Sample], baseline: Sequence[Row]) -> None:
    """Refuse, before they are asked, questions that the baseline holds as others.

    Raises
    ------
    UsageError
        As ``check_questions``.
    """
    for method in dict.fromkeys(row.method for row in baseline):
        asked = [
            Row(
                question_id=sample.id,
                document=sample.imdb_key,
                method=method,
                states={},
                scores={},
                question=sample.question,
            )
            for sample in samples
        ]
        check_questions({method: join_rows(asked, baseline, method)})


def _refuse_moved(joined: Mapping[str, Joined]) -> None:
    """Refuse ids that stand in one document in the one run and only in another in the other."""
    found: dict[str, tuple[str, str]] = {}
    for each in joined.values():
        kept = {old.question_id for _, old in each.pairs}
        then = {row.question_id: row.document for row in each.baseline}
        for row in each.new:
            if row.question_id in then and row.question_id not in kept:
                found.setdefault(row.question_id, (row.document, then[row.question_id]))
    if found:
        key, (now, before) = next(iter(found.items()))
        msg = (
            f"{len(found):,} questions stand in another document than under the same id in the "
            f"baseline, e.g. {key}: in {now} now, in {before} then; {_remedy()}"
        )
        raise UsageError(msg)


def _remedy() -> str:
    pin = eval_line_here("baseline", "set", "RUN")
    return f"give other questions other ids, or pin a run that asked these with: {pin}"


def _key(row: Row, by_id: bool = False) -> Key:
    return "" if by_id else row.document, row.question_id


def _by_key(rows: Sequence[Row], method: str, by_id: bool) -> dict[Key, Row]:
    found = {_key(row, by_id): row for row in rows}
    if len(rows) > len(found):
        where = " (and it, or the other run, does not know its documents)" if by_id else ""
        msg = (
            f"A run holds {len(rows)} responses of {method} to {len(found)} question ids{where}; "
            "ids must differ."
        )
        raise UsageError(msg)
    return found


def _has_other_words(new: Row, old: Row) -> bool:
    if new.question is None or old.question is None:
        return False
    return _fold(new.question) != _fold(old.question)


def _has_other_reference(new: Row, old: Row) -> bool:
    return None not in (new.reference, old.reference) and new.reference != old.reference


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _short(text: str | None) -> str:
    folded = " ".join((text or "").split())
    return repr(folded if len(folded) <= _SHOWN else f"{folded[: _SHOWN - 3]}...")


@dataclass(frozen=True, slots=True)
class Flip:
    """One question that flipped for one method on one metric, as the gate counts it.

    Attributes
    ----------
    method, metric, document, question_id : str
        The document is "" where neither run knows it.
    question : str or None
        Its text; None where neither run was kept with it.
    newly : {"wrong", "right"}
        What it is in the new run; in the baseline it was the other.
    """

    method: str
    metric: str
    document: str
    question_id: str
    question: str | None
    newly: str


def flips_of(joined: Joined, method: str, metric: str) -> tuple[Flip, ...]:
    """Return the questions of a method that flipped, the newly wrong first, else in their order.

    They are those that the gate counts: a missing verdict flips nothing.
    """
    pairs = pairs_of_metric(joined, metric)
    texts = {
        (new.document or old.document, old.question_id): new.question or old.question
        for new, old in joined.pairs
    }
    flips = [
        Flip(method, metric, document, name, texts[document, name], "right" if now else "wrong")
        for (now, then), document, name in zip(
            pairs.scores, pairs.documents, pairs.ids, strict=True
        )
        if now is not None and then is not None and now != then
    ]
    return tuple(sorted(flips, key=lambda flip: flip.newly == "right"))


Change: TypeAlias = Literal[
    "newly wrong", "newly right", "unchanged", "search failed", "unscored", "not compared"
]


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """One question of one method on one metric in two runs.

    Attributes
    ----------
    method, metric, document, question_id : str
        The document is "" where neither run knows it.
    question : str or None
        Its text; None where neither run was kept with it.
    change : str
        A search that failed in the new run is that, whatever it was before: the gate counts it
        as not done well. "unscored": a run lacks the verdict. "not compared": a run lacks the
        question, or its accepted answer is another now.
    told : str
        The change in words.
    seconds : float or None
        Of the new run's search; None when it was not measured.
    """

    method: str
    metric: str
    document: str
    question_id: str
    question: str | None
    change: Change
    told: str
    seconds: float | None = None


def changes_of(
    joined: Mapping[str, Joined], metrics: Sequence[str], sides: tuple[str, str]
) -> tuple[QuestionChange, ...]:
    """Return what became of every question, method by method.

    Parameters
    ----------
    joined : dict
        Method -> its rows.
    metrics : sequence of str
    sides : tuple of str
        What the new run and the baseline are called.
    """
    return tuple(
        change
        for method, rows in joined.items()
        for metric in metrics
        for change in _of_method(rows, method, metric, sides)
    )


def _of_method(
    joined: Joined, method: str, metric: str, sides: tuple[str, str]
) -> list[QuestionChange]:
    scores = pairs_of_metric(joined, metric).scores
    found: list[QuestionChange] = []
    for (new, old), (now, then) in zip(joined.pairs, scores, strict=False):
        change, told = _compare(new, old, metric, sides)
        if change not in ("unscored", "search failed") and None in (now, then):
            change, told = "not compared", "its accepted answer is another now"
        found.append(_record(new, old, (method, metric), change, told))
    for rows, side in ((joined.new, sides[0]), (joined.baseline, sides[1])):
        told = f"only in the {side}"
        found += [_record(row, row, (method, metric), "not compared", told) for row in rows]
    return found


def _compare(new: Row, old: Row, metric: str, sides: tuple[str, str]) -> tuple[Change, str]:
    now, then = gate_score(new, metric), gate_score(old, metric)
    if new.censored:
        return "search failed", f"the search failed; {sides[1]}: {_word(old, metric)}"
    for row, score, side in ((new, now, sides[0]), (old, then, sides[1])):
        if score is None:
            return "unscored", f"no verdict in the {side}: {_word(row, metric)}"
    told = f"{metric} {then} -> {now}: {_word(old, metric)} -> {_word(new, metric)}"
    if now == then:
        return "unchanged", told
    return ("newly right" if now else "newly wrong"), told


def _word(row: Row, metric: str) -> str:
    """Return how a question ended, with the judge's score where there is one."""
    score = row.scores[metric]
    state = row.states[metric].value.replace("_", " ")
    return state if score is None else f"judged {score}"


def _record(new: Row, old: Row, key: tuple[str, str], change: Change, told: str) -> QuestionChange:
    return QuestionChange(
        *key,
        new.document or old.document,
        old.question_id,
        new.question or old.question,
        change,
        told,
        None if new is old else measured_latency(new.latency_s),
    )
