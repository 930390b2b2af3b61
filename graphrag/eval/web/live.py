"""A run as far as it is, by sums of what the store holds of it and nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.judged import JUDGED_METRICS, METRICS
from graphrag.eval.records import (
    EfficiencyMetrics,
    Failure,
    JudgeResult,
    MetricScores,
    QueryResult,
    failed_search_scores,
)
from graphrag.eval.report.cells import has_two_means, money, percent
from graphrag.eval.report.run_tables import tabulate_failures
from graphrag.eval.report.table import Table
from graphrag.eval.results.rows import FAILED_AS_0, rows_of
from graphrag.eval.results.runs import stored_metadata
from graphrag.eval.scorers.judge import judgeable
from graphrag.eval.stats.outcomes import Outcome, summarize_outcomes
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run
from graphrag.eval.store.sums import SearchCount, VerdictCount
from graphrag.query.model_facts import is_offline
from graphrag.query.usage import Usage, sum_usages
from graphrag.text.phrases import counted

_SLOWEST = 5
_PACE = 200
"""Of the latest answers, by whose pace the time that is left is told."""
_STILL_S = 120
"""Without an answer for so long, nothing is said of the time that is left."""
_CAUSES = 20
_LONGEST_TEXT = 200
_WITH_TRUTH = Sample("", "", "", "known")
_WITHOUT_TRUTH = Sample("", "", "", "", expected_sources=("somewhere",))


@dataclass(frozen=True, slots=True)
class LiveRun:
    """How far a run is.

    Of ``n_planned`` searches (None: unknown) ``n_searched`` answered or failed, of which ``n_done``
    wait for no verdict; ``n_failed`` searches, ``n_unscored`` verdicts and judgments failed,
    ``n_in_flight`` calls were sent and not answered. ``failures`` are by cause, the most frequent
    first; ``means``: method, metric, mean in per cent with its interval, results behind it;
    ``slowest``: seconds, method, question, the slowest first; ``spent`` what it took, ``left`` how
    long it may go on, "" where unknown; ``recorded_at`` when the latest result was kept.
    """

    run: Run
    n_planned: int | None
    n_searched: int
    n_done: int
    n_failed: int
    n_unscored: int
    n_in_flight: int
    failures: Table | None
    means: Sequence[tuple[str, str, str, int]]
    slowest: Sequence[tuple[str, str, str]]
    spent: str
    left: str
    recorded_at: str | None
    embedded_models: str | None

    @property
    def go_on(self) -> str:
        """The command that goes on with the run: the one that began it, where that is kept."""
        begun = self.run.details.command or "graphrag eval"
        return begun if "--resume" in begun.split() else f"{begun} --resume"

    def tables(self) -> list[Table]:
        """Return methods x metrics, what failed, and the slowest searches, where there are any."""
        cells = {(method, name): f"{mean} n {n:,}" for method, name, mean, n in self.means}
        names = list(dict.fromkeys(name for _, name in cells))
        far = "" if self.run.status == "finished" else " of what is done so far; not a result"
        means = Table(
            f"Mean scores in % (95 % interval){far}",
            [("method", "text"), *((name, "percent") for name in names)],
            [
                [method, *(cells.get((method, name)) for name in names)]
                for method in dict.fromkeys(method for method, _ in cells)
            ],
            "Quick answers come first, so this is not a fair sample of the run. Each interval "
            "holds for one look: don't stop because it looks good."
            if far
            else "",
        )
        slowest = Table(
            "Slowest searches",
            [("seconds", "seconds"), ("method", "text"), ("question", "text")],
            self.slowest,
        )
        every = (means, self.failures, slowest)
        return [table for table in every if table is not None and table.rows]


def read_live(store: EvaluationStore, run: Run) -> LiveRun:
    """Read how far a run is; nothing of it is an estimate of what is still to come."""
    sums = store.sums(run.run_id)
    asked = [metric for metric in run.setup.metrics or () if metric in METRICS]
    waits = not (run.details.skip_judge or run.setup.is_of_suites)
    searches, verdicts = sums.ends(asked, judgeable(_WITHOUT_TRUTH, asked), waits)
    judgements = [each for each in store.judgements(run.run_id) if each.failed]
    failed, unscored = sums.failed_searches(), sums.missing_verdicts()
    causes = Counter[tuple[str, str, str]]()
    for method, failure, n in failed:
        causes[method, "search failed, counts 0", _cause(failure)] += n
    for method, metric, failure, n in unscored:
        causes[method, f"{metric} unscored, left out", _cause(failure)] += n
    for each in judgements:
        causes["", f"{each.kind} unscored, in full or in part", ""] += 1
    return LiveRun(
        run=run,
        n_planned=run.details.n_units,
        n_searched=sum(each.n for each in searches),
        n_done=sum(each.n for each in searches if each.is_done),
        n_failed=sum(n for *_, n in failed),
        n_unscored=sum(n for *_, n in unscored) + len(judgements),
        n_in_flight=store.calls_in_flight(run.run_id),
        failures=tabulate_failures(causes.most_common(_CAUSES)) if causes else None,
        means=[] if run.setup.is_of_suites else _means(run, searches, verdicts),
        slowest=[
            (f"{seconds:.2f}", f"{method} (failed)" if failed else method, _short(text))
            for seconds, method, failed, text in sums.slowest(_SLOWEST)
        ],
        spent=_spent(store, run),
        left=_left(run, store, sum(each.n for each in searches if each.is_done)),
        recorded_at=store.recorded_at(run.run_id),
        embedded_models=_label(store, run, sums.models()),
    )


def _means(
    run: Run, searches: Sequence[SearchCount], verdicts: Sequence[VerdictCount]
) -> list[tuple[str, str, str, int]]:
    done = [each for each in searches if each.is_first and each.is_done]
    means: list[tuple[str, str, str, int]] = []
    for metric in run.setup.metrics or ():
        for method in run.setup.methods if metric in METRICS else ():
            ends = Counter[Outcome]()
            for each in done:
                if each.method == method:
                    ends[_outcome(each, metric)] += each.n
            for each in verdicts:
                if (each.method, each.metric) == (method, metric):
                    waiting = SearchCount(
                        method, each.document, False, True, False, each.abstained, True, 0
                    )
                    ends[_outcome(waiting, metric)] -= each.n
                    ends[_outcome(each, metric)] += each.n
            of = summarize_outcomes(
                +ends,
                n_planned=sum((+ends).values()),
                failed_search_is_zero=JUDGED_METRICS[metric].zero_if_failed,
                stratified=True,
            )
            means.append((method, metric, percent(of.mean), of.mean.n))
            if has_two_means(of):
                both = of.end_to_end
                means.append((method, f"{metric}{FAILED_AS_0}", percent(both), both.n))
    return means


def _outcome(of: SearchCount | VerdictCount, metric: str) -> Outcome:
    """Return how verdicts, or searches without one, ended, as the row of a result has it."""
    scores, failure = MetricScores(), None
    if isinstance(of, VerdictCount):
        lost = None if of.failure is None else Failure("judge", of.failure, "")
        scores = MetricScores.of({metric: JudgeResult(of.score, "", lost)})
    elif of.failed:
        sample = _WITHOUT_TRUTH if of.lacks_answer else _WITH_TRUTH
        scores = failed_search_scores(judgeable(sample, METRICS))
        failure = Failure("search", "error", "")
    result = QueryResult(of.document, "", "", "", scores, EfficiencyMetrics.of(None, Usage()))
    (row,) = rows_of([replace(result, failure=failure, abstained=of.abstained)])
    return Outcome(row.states[metric], row.scores[metric], of.document)


def _label(store: EvaluationStore, run: Run, models: set[str]) -> str | None:
    """Return the label of the embedded models; who played which part is read only if one did."""
    if models and not any(map(is_offline, models)):
        return None
    return stored_metadata(store, run).embedded_models


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."


def _cause(failure: Mapping[str, str]) -> str:
    return f"{failure['kind']}: {failure['message']}"[:300]


def _left(run: Run, store: EvaluationStore, n_done: int) -> str:
    """Return how long the run goes on at the pace of its latest answers; "" where none is seen."""
    times = store.sums(run.run_id).latest(_PACE)
    if run.status == "finished" or len(times) < 3:
        return ""
    first, last = (datetime.fromisoformat(at) for at in (times[-1], times[0]))
    since = (datetime.now(UTC) - last).total_seconds()
    seconds = (last - first).total_seconds() / (len(times) - 1) * (run.details.n_units - n_done)
    if since > _STILL_S or seconds <= 0:
        return ""
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _spent(store: EvaluationStore, run: Run) -> str:
    kept, known = store.sums(run.run_id).spent(run.setup.responses_of is None)
    others = list(store.unclaimed_usage(run.run_id).values())
    total = sum_usages([kept, *others])
    if not (total.llm_calls or total.embedding_calls or total.prompt_tokens):
        return "nothing"
    least = "" if total.is_counted else "at least "
    tokens = total.prompt_tokens + total.output_tokens + total.embedding_tokens
    calls = f"{least}{counted(total.llm_calls + total.embedding_calls, 'call')}, {tokens:,} tokens"
    if total.cost_usd is not None:
        return f"{money(total.cost_usd, '$')}, {calls}"
    known += sum(each.cost_usd for each in others if each.cost_usd is not None)
    return f"{money(known, '$')} and calls of unknown price, {calls}"
