"""Compares two runs on the same questions: differences, flips, and the gate's decision."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.compare.setup_changes import (
    MetricKey,
    changed_indexes,
    judge_changes,
    list_setup_changes,
)
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.results.runs import PinnedBaseline, RunMetadata, RunRows
from graphrag.eval.results.scored_rows import QuestionKey, Row, gate_score, owes_nothing
from graphrag.eval.stats.family import correct_family, verdict_in_words
from graphrag.eval.stats.gates import (
    MARGIN,
    GateCase,
    GateDecision,
    GateOutcome,
    combine_outcomes,
    decide_gates,
)
from graphrag.eval.stats.intervals import Score
from graphrag.eval.stats.outcomes import NEVER_ASKED, State
from graphrag.eval.stats.paired import PairedDifference, paired_binary
from graphrag.eval.store.atomic_files import replace_files
from graphrag.eval.store.database import baseline_path
from graphrag.eval.types.metric_definitions import JUDGED_METRICS, METRICS
from graphrag.text.cli_hints import eval_line_here
from graphrag.text.message_phrases import fold_line, shorten

NEW, BASELINE = "new run", "baseline"
Change: TypeAlias = Literal[
    "newly wrong", "newly right", "unchanged", "search failed", "unscored", "not compared"
]
_SHOWN = 80  # characters of a question in a sentence


class Joined(NamedTuple):
    """One method's rows in two runs: (new, baseline) pairs, and the rows of one run only."""

    pairs: list[tuple[Row, Row]]
    new: list[Row]
    baseline: list[Row]


class MetricPairs(NamedTuple):
    """The pairs of scores of one method on one metric, for the gate and the difference.

    - ``scores``: (new, baseline) of every question in the baseline, see ``gate_score``, except
      questions that neither run judged. The new score is None if the new run lacks the question
      or its verdict, or judged it by another accepted answer.
    - ``documents``: the document of each pair.
    - ``n_other_reference``: pairs with another accepted answer.
    """

    scores: list[tuple[Score, Score]]
    documents: list[str]
    n_other_reference: int


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """The change of one question of one method on one metric between two runs.

    - ``document``, ``question``: "" and None if neither run knows it.
    - ``change``: "search failed" if it did in the new run, whatever it was before; "unscored" if a
      run lacks the verdict; "not compared" if a run lacks the question, or its accepted answer is
      another now.
    - ``text``: the change in words.
    - ``seconds``: of the new run's search, None if not measured.
    - ``newly``: "wrong" or "right" if the question flipped, as the gate counts it: a failed search
      may be newly wrong, and a missing verdict flips nothing.
    """

    method: str
    metric: str
    document: str
    question_id: str
    question: str | None
    change: Change
    text: str
    seconds: float | None = None
    newly: Literal["wrong", "right", ""] = ""


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """One method on one metric in two runs.

    - ``difference``: new run minus baseline, over the pairs of the gate.
    - ``verdict``: the difference in words, by the two-sided test.
    - ``decision``: the gate's, by the one-sided test.
    - ``only_new``, ``only_baseline``: ids of questions that only one run has to judge.
    - ``n_other_reference``: questions with another accepted answer now.
    - ``n_unanswered``: failed searches and abstentions that count as not done well, of the new run
      and of the baseline, among the questions that both have.
    - ``changed_indexes``: documents whose index is another now.
    - ``questions``: the change of every question that either run has.
    """

    method: str
    metric: str
    difference: PairedDifference
    verdict: str
    decision: GateDecision
    only_new: tuple[str, ...]
    only_baseline: tuple[str, ...]
    n_other_reference: int = 0
    n_unanswered: tuple[int, int] = (0, 0)
    changed_indexes: tuple[str, ...] = ()
    questions: tuple[QuestionChange, ...] = ()

    @property
    def flips(self) -> list[QuestionChange]:
        """The questions that flipped, the newly wrong first, else in their order."""
        flips = [change for change in self.questions if change.newly]
        return sorted(flips, key=lambda flip: flip.newly == "right")

    @property
    def n_without_verdict(self) -> int:
        """The number of questions in both runs that lack a verdict."""
        n_others = len(self.only_baseline) + self.n_other_reference
        return self.decision.n_dropped_pairs - n_others


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of two runs, from which every report is made.

    ``warnings``: reasons why the comparison is weaker than it looks.
    """

    new: RunMetadata
    baseline: RunMetadata
    items: tuple[MethodComparison, ...]
    warnings: tuple[str, ...]

    @property
    def flips(self) -> list[QuestionChange]:
        """Every question that flipped, item by item."""
        return [flip for item in self.items for flip in item.flips]

    @property
    def outcome(self) -> GateOutcome:
        """FAIL if any item fails, PASS if all pass, else INCONCLUSIVE."""
        return combine_outcomes(item.decision.outcome for item in self.items)


def pin_baseline(run: RunRows, store_path: Path) -> Path:
    """Copy a run's rows into the pinned baseline next to the store, and return the file.

    Raises UsageError if the run has no row, StoreError if the file can't be written.
    """
    if not run.rows:
        raise UsageError(f"{run.metadata.name} has no response to compare with; pin another run.")
    path = baseline_path(store_path)
    pinned_at = datetime.now(UTC).isoformat(timespec="seconds")
    pinned = PinnedBaseline(format=1, pinned_at=pinned_at, metadata=run.metadata, rows=run.rows)
    try:
        replace_files({path: pinned.model_dump_json(indent=1) + "\n"})
    except OSError as error:
        msg = f"{path} can't be written ({error.strerror}); choose another --output."
        raise StoreError(msg) from error
    return path


_AMOUNTS = ("cost_usd", "latency_s", "tokens")
"""Figures that the gate of 1.x decided on as well."""


def read_metric_terms(texts: Sequence[str]) -> dict[str, float | None]:
    """Parse ``NAME`` and ``NAME=MARGIN`` terms of judged metrics, separated by commas.

    Returns name -> its margin in (0, 1), None if none is given. Raises UsageError if a margin is no
    such number, or a name is given twice or is no longer decided on.
    """
    terms: dict[str, float | None] = {}
    for text in (term.strip() for line in texts for term in line.split(",")):
        name, has_margin, margin = (part.strip() for part in text.partition("="))
        if not name:
            if has_margin:
                raise UsageError(f"{text!r} names no metric; write NAME=MARGIN.")
            continue
        if name in _AMOUNTS:
            raise UsageError(
                f"The gate does not decide on {name} since version 2.0.0: the line Cost shows what "
                "both runs took, --max-cost stops a run, and thresholds in eval_config.yaml are "
                "means that a run must reach."
            )
        if name in terms:
            raise UsageError(f"{name} is named twice; name it once, with its margin.")
        terms[name] = _read_margin(name, margin) if has_margin else None
    return terms


def _read_margin(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UsageError(
            f"The margin of {name} must be a number of points between 0 and 1, such as 0.03, not "
            f"{text!r}."
        )
    return value


def compare_runs(
    new: RunRows,
    baseline: RunRows,
    methods: Sequence[str] | None = None,
    metrics: Mapping[str, float | None] | Sequence[str] | None = None,
    margin: float = MARGIN,
    accept_index_change: bool = False,
) -> RunComparison:
    """Compare two runs, joined on documents and question ids.

    - ``methods``: None: the methods in both runs, in the order of the new run.
    - ``metrics``: the primary ones, or metric -> its own margin. With the methods they make the
      family over which Holm corrects both tests. None: correctness if both runs judged it, else the
      first metric of the new run that both judged.
    - ``margin``: the loss, in (0, 1), that the gate still accepts on metrics without their own.
    - ``accept_index_change``: let the gate decide although indexes changed, as if questions were
      independent.

    Raises UsageError if a method, metric or margin can't be compared, if both are the same run, or
    if the same id has different questions.
    """
    if metrics is None:
        shared = shared_metrics(new.metrics, baseline.metrics)
        metrics = ["correctness" if "correctness" in shared else shared[0]]
    limits = metrics if isinstance(metrics, Mapping) else dict[str, float | None].fromkeys(metrics)
    margins = {metric: margin if limit is None else limit for metric, limit in limits.items()}
    _check_terms(new, baseline, list(margins), (margin, *margins.values()))
    chosen = _choose_methods(new.rows, baseline.rows, methods)
    joined = {method: join_rows(new.rows, baseline.rows, method) for method in chosen}
    doubts = check_questions(joined)
    keys = [(method, metric) for method in chosen for metric in metrics]
    judged = {key: _judged_rows(joined[key[0]], key[1]) for key in keys}
    pairs = {key: _pair_scores(judged[key], key[1]) for key in keys}
    sides = new.metadata, baseline.metadata
    changed = {key: changed_indexes(*sides, key[0], pairs[key].documents) for key in keys}
    decisions = decide_gates(
        {
            key: GateCase(
                pairs=pairs[key].scores,
                margin=margins[key[1]],
                coverages=_compute_coverages(judged[key], key[1]),
                documents=pairs[key].documents,
                undecided=undecided,
                assumed=assumed,
            )
            for key in keys
            for undecided, assumed in [judge_changes(changed[key], accept_index_change)]
        }
    )
    items = tuple(
        MethodComparison(
            method=key[0],
            metric=key[1],
            difference=result,
            verdict=verdict_in_words(result, NEW, BASELINE),
            decision=decisions[key],
            only_new=tuple(row.question_id for row in judged[key].new),
            only_baseline=tuple(row.question_id for row in judged[key].baseline),
            n_other_reference=pairs[key].n_other_reference,
            n_unanswered=_count_unanswered(joined[key[0]], key[1]),
            changed_indexes=tuple(changed[key]),
            questions=tuple(_list_changes(joined[key[0]], judged[key], pairs[key], key)),
        )
        for key, result in zip(
            keys, correct_family([_compute_difference(pairs[key]) for key in keys]), strict=True
        )
    )
    named = tuple(zip((NEW, BASELINE), sides, strict=True))
    facts = (new.metadata.indexes, baseline.metadata.indexes)
    return RunComparison(
        *sides,
        items,
        (
            *(f"the {name} is unfinished" for name, side in named if side.status == "unfinished"),
            *(
                f"of the {n} searches of each question in the {name} the first one is compared"
                for name, side in named
                if (n := side.setup.root.get("trials")) is not None
            ),
            *list_setup_changes(new.metadata.setup, baseline.metadata.setup, chosen, facts),
            *doubts,
            *(_list_lone_methods(new.rows, baseline.rows, chosen) if methods is None else ()),
        ),
    )


def shared_metrics(new: Sequence[str], baseline: Sequence[str]) -> list[str]:
    """Return the metrics that both runs judged, in the new run's order; UsageError if none."""
    shared = [metric for metric in new if metric in baseline]
    if not shared:
        own, other = (", ".join(names) or "none" for names in (new, baseline))
        raise UsageError(
            f"There is no metric to compare: the new run asks {own}, the baseline {other}; "
            f"judge a run again with: {eval_line_here('judge', 'RUN', '--metrics', 'NAME')}"
        )
    return shared


def _check_terms(
    new: RunRows,
    baseline: RunRows,
    metrics: Sequence[str],
    margins: Sequence[float],
) -> None:
    for margin in margins:
        if not 0 < margin < 1:
            raise UsageError(f"The margin must lie between 0 and 1, not {margin:g}.")
    if new.metadata.run_id is not None and new.metadata.run_id == baseline.metadata.run_id:
        msg = f"Both sides are run {new.metadata.run_id}; name another run to compare with."
        raise UsageError(msg)
    if not metrics:
        raise UsageError(f"No metric is named; choose of {', '.join(METRICS)}.")
    for metric in metrics:
        if metric not in METRICS:
            msg = f"There is no metric {metric!r}{nearest(metric, METRICS)}"
            raise UsageError(as_sentence(msg))


def _list_methods(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.method for row in rows))


def _choose_methods(
    new: Sequence[Row], baseline: Sequence[Row], names: Sequence[str] | None
) -> list[str]:
    own, other = _list_methods(new), _list_methods(baseline)
    both = [method for method in own if method in other]
    for method in names or ():
        if method not in both:
            msg = f"Not both runs have method {method!r}{nearest(method, both)}"
            raise UsageError(as_sentence(msg))
    if not both:
        raise UsageError(
            f"No method is in both runs: the new run has {', '.join(own) or 'none'}, the "
            f"baseline {', '.join(other) or 'none'}."
        )
    return both if names is None else list(names)


def _list_lone_methods(
    new: Sequence[Row], baseline: Sequence[Row], chosen: Sequence[str]
) -> list[str]:
    sides = ((NEW, _list_methods(new)), (BASELINE, _list_methods(baseline)))
    alone = {name: [m for m in methods if m not in chosen] for name, methods in sides}
    return [f"only the {name} has {', '.join(lone)}" for name, lone in alone.items() if lone]


def _compute_difference(pairs: MetricPairs) -> PairedDifference:
    counts = Counter[tuple[Score, Score, Hashable]](
        (*pair, document or None)
        for pair, document in zip(pairs.scores, pairs.documents, strict=True)
    )
    return paired_binary(counts, view_documents=bool(counts) and all(pairs.documents))


def _compute_coverages(joined: Joined, metric: str) -> tuple[float | None, float | None]:
    """Return, for each run, the share of the verdicts asked of the judge that exist; None if none.

    Joined questions count. A response that was not judged counts as missing. For a failed search or
    an abstention no judge was asked.
    """

    def share(side: int) -> float | None:
        states = Counter(pair[side].states[metric] for pair in joined.pairs)
        n_asked = states.total() - sum(states[state] for state in NEVER_ASKED)
        return states[State.SCORED] / n_asked if n_asked else None

    return share(0), share(1)


def _count_unanswered(joined: Joined, metric: str) -> tuple[int, int]:
    new, old = (
        sum(pair[side].states[metric] in NEVER_ASKED for pair in joined.pairs) for side in (0, 1)
    )
    return new, old


def join_rows(new: Sequence[Row], baseline: Sequence[Row], method: str) -> Joined:
    """Join the rows of a method in two runs on document and question id.

    Raises UsageError if a run has several responses to a question.
    """
    now, then = _by_key(new, method), _by_key(baseline, method)
    return Joined(
        pairs=[(row, then[key]) for key, row in now.items() if key in then],
        new=[row for key, row in now.items() if key not in then],
        baseline=[row for key, row in then.items() if key not in now],
    )


def _judged_rows(joined: Joined, metric: str) -> Joined:
    """Return the rows without the questions that leave nothing to judge."""
    pairs = [pair for pair in joined.pairs if not owes_nothing(*pair, metric)]
    alone = ([r for r in rows if r.states[metric] != State.NOT_JUDGED] for rows in joined[1:])
    return Joined(pairs, *alone)


def _pair_scores(joined: Joined, metric: str) -> MetricPairs:
    """Return the pairs of scores on a metric; different accepted answers make no pair."""
    reads = "ground_truth" in JUDGED_METRICS[metric].fields
    changed = [reads and _has_other_reference(new, old) for new, old in joined.pairs]
    scores: list[tuple[Score, Score]] = [
        (None if other else gate_score(new, metric), gate_score(old, metric))
        for (new, old), other in zip(joined.pairs, changed, strict=True)
    ]
    return MetricPairs(
        [*scores, *((None, gate_score(old, metric)) for old in joined.baseline)],
        [old.document for old in (*(old for _, old in joined.pairs), *joined.baseline)],
        sum(changed),
    )


def check_questions(joined: Mapping[str, Joined]) -> list[str]:
    """Raise UsageError if an id has another question in each run; return warnings about the rest.

    ``joined``: method -> its rows. It is an error if a question has other words under the same
    document and id, or if its id is only in another document. Case and blanks make no difference. A
    warning counts the accepted answers that changed.
    """
    pairs = {old.key: (new, old) for rows in joined.values() for new, old in rows.pairs}
    other = [pair for pair in pairs.values() if _has_other_words(*pair)]
    if other:
        new, old = other[0]
        raise UsageError(
            f"{len(other):,} of {len(pairs):,} questions have other words in the new run than "
            f"under the same id in the baseline, e.g. {old.question_id}"
            f"{f' of {old.document}' if old.document else ''}: "
            f"{shorten(new.question or '', _SHOWN)!r} now, "
            f"{shorten(old.question or '', _SHOWN)!r} then; {_remedy()}"
        )
    _refuse_moved(joined)
    warnings: list[str] = []
    if answers := sum(_has_other_reference(*pair) for pair in pairs.values()):
        warnings.append(
            f"the accepted answers of {answers:,} of {len(pairs):,} questions differ; verdicts "
            "that go by them are left out of the pairs"
        )
    return warnings


def _list_changes(
    joined: Joined, judged: Joined, pairs: MetricPairs, key: MetricKey
) -> list[QuestionChange]:
    def record(new: Row, old: Row, kind: Change, text: str) -> QuestionChange:
        seconds, question = None if new is old else new.latency_s, new.question or old.question
        return QuestionChange(*key, *old.key, question, kind, text, seconds)

    changes: list[QuestionChange] = []
    by_key = dict(zip((new.key for new, _ in judged.pairs), pairs.scores, strict=False))
    for new, old in joined.pairs:
        scores = by_key.get(new.key, (None, None))
        kind, text = _compare_question(new, old, key[1])
        if kind not in ("unscored", "search failed") and None in scores:
            kind, text = "not compared", "its accepted answer is another now"
        change = record(new, old, kind, text)
        if None not in scores and scores[0] != scores[1]:
            change = replace(change, newly="right" if scores[0] else "wrong")
        changes.append(change)
    for rows, side in ((joined.new, NEW), (joined.baseline, BASELINE)):
        changes += [record(row, row, "not compared", f"only in the {side}") for row in rows]
    return changes


def _compare_question(new: Row, old: Row, metric: str) -> tuple[Change, str]:
    now, then = gate_score(new, metric), gate_score(old, metric)
    if new.censored:
        return "search failed", f"the search failed; {BASELINE}: {_name_state(old, metric)}"
    for row, score, side in ((new, now, NEW), (old, then, BASELINE)):
        if score is None:
            return "unscored", f"no verdict in the {side}: {_name_state(row, metric)}"
    text = f"{metric} {then} -> {now}: {_name_state(old, metric)} -> {_name_state(new, metric)}"
    if now == then:
        return "unchanged", text
    return ("newly right" if now else "newly wrong"), text


def _name_state(row: Row, metric: str) -> str:
    score = row.scores[metric]
    return row.states[metric].value.replace("_", " ") if score is None else f"judged {score}"


def _refuse_moved(joined: Mapping[str, Joined]) -> None:
    """Raise UsageError if the id of a question belongs to another document in each run."""
    moved: dict[str, tuple[str, str]] = {}
    for rows in joined.values():
        ids = {old.question_id for _, old in rows.pairs}
        then = {row.question_id: row.document for row in rows.baseline}
        for row in rows.new:
            if row.question_id in then and row.question_id not in ids:
                moved.setdefault(row.question_id, (row.document, then[row.question_id]))
    if moved:
        key, (now, before) = next(iter(moved.items()))
        raise UsageError(
            f"{len(moved):,} questions are in another document than under the same id in the "
            f"baseline, e.g. {key}: in {now} now, in {before} then; {_remedy()}"
        )


def _remedy() -> str:
    pin = eval_line_here("compare", "RUN", "--pin")
    return f"give other questions other ids, or pin a run that asked these with: {pin}"


def _by_key(rows: Sequence[Row], method: str) -> dict[QuestionKey, Row]:
    own = [row for row in rows if row.method == method]
    by_key = {row.key: row for row in own}
    if len(own) > len(by_key):
        raise UsageError(
            f"A run has {len(own)} responses of {method} to {len(by_key)} question ids; ids must "
            "differ."
        )
    return by_key


def _has_other_words(new: Row, old: Row) -> bool:
    now, then = (fold_line(row.question or "") for row in (new, old))
    return None not in (new.question, old.question) and now != then


def _has_other_reference(new: Row, old: Row) -> bool:
    return None not in (new.reference, old.reference) and new.reference != old.reference
