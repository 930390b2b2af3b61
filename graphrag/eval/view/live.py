"""A run as far as it is, by what the store holds of it and nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag.eval.analysis import FAILED_AS_0, Row, paid_usages, stored_metadata, stored_rows
from graphrag.eval.dataset import Sample
from graphrag.eval.judged import JUDGED_METRICS
from graphrag.eval.records import METRICS, JudgeResult, measured_latency
from graphrag.eval.reports import has_two_means, money, percent
from graphrag.eval.run import judgeable
from graphrag.eval.statistics import Outcome, Outcomes, summarize_outcomes
from graphrag.eval.store import EvaluationStore, Run, StoredResponse
from graphrag.query.usage import Usage, sum_usages
from graphrag.text.phrases import counted

_SLOWEST = 5
_CAUSES = 20
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class LiveRun:
    """How far a run is.

    Attributes
    ----------
    run : Run
    n_planned : int or None
        Searches planned; None in a run of an older release.
    n_searched, n_done : int
        Searches that answered or failed, and those of them that wait for no verdict.
    n_failed, n_unscored, n_in_flight : int
        Failed searches, verdicts and judgements that are missing as the judge failed, and calls
        that were sent and not answered.
    failures : sequence of (str, str, str, int)
        Method, what is missing, its cause, how often; the most frequent first.
    means : sequence of (str, str, str, int)
        Method, metric, mean in per cent with its interval, results behind it.
    slowest : sequence of (str, str, str)
        Seconds, method, question; the slowest first.
    spent : str
    recorded_at : str or None
        When the latest result was kept.
    embedded_models : str or None
    """

    run: Run
    n_planned: int | None
    n_searched: int
    n_done: int
    n_failed: int
    n_unscored: int
    n_in_flight: int
    failures: Sequence[tuple[str, str, str, int]]
    means: Sequence[tuple[str, str, str, int]]
    slowest: Sequence[tuple[str, str, str]]
    spent: str
    recorded_at: str | None
    embedded_models: str | None

    @property
    def go_on(self) -> str:
        """The command that goes on with the run: the one that began it, where that is kept."""
        given = None if self.run.details is None else self.run.details.command
        begun = given or "graphrag eval"
        return begun if "--resume" in begun.split() else f"{begun} --resume"


def read_live(store: EvaluationStore, run: Run) -> LiveRun:
    """Read how far a run is; nothing of it is an estimate of what is still to come."""
    samples = {sample.id: sample for sample in store.samples(run.run_id)}
    responses = store.responses(run.run_id, with_texts=False)
    verdicts = store.verdicts(run.run_id)
    done = {
        (found.sample_id, found.method)
        for unit, found in responses.items()
        if found.trial == 0 and _is_done(run, found, samples, verdicts.get(unit, {}))
    }
    judgements = [each for each in store.judgements(run.run_id) if each.failed]
    unscored = [
        (responses[unit].method, metric, verdict)
        for unit, of_unit in verdicts.items()
        if unit in responses
        for metric, verdict in of_unit.items()
        if verdict.failure is not None
    ]
    failed = [found for found in responses.values() if found.failure is not None]
    causes = Counter(
        [
            *((f.method, "search failed, counts 0", _cause(f)) for f in failed),
            *((m, f"{metric} unscored, left out", _cause(v)) for m, metric, v in unscored),
            *(("", f"{each.kind} unscored, in full or in part", "") for each in judgements),
        ]
    )
    return LiveRun(
        run=run,
        n_planned=None if run.details is None else run.details.n_units,
        n_searched=len(responses),
        n_done=sum(
            _is_done(run, found, samples, verdicts.get(unit, {}))
            for unit, found in responses.items()
        ),
        n_failed=len(failed),
        n_unscored=len(unscored) + len(judgements),
        n_in_flight=store.calls_in_flight(run.run_id),
        failures=[(*cause, times) for cause, times in causes.most_common(_CAUSES)],
        means=_means(run, [r for r in _rows(store, run) if (r.question_id, r.method) in done]),
        slowest=_slowest(list(responses.values()), samples),
        spent=_spent(sum_usages(used), used) if (used := paid_usages(store, run)) else "nothing",
        recorded_at=store.recorded_at(run.run_id),
        embedded_models=stored_metadata(store, run).embedded_models,
    )


def _rows(store: EvaluationStore, run: Run) -> list[Row]:
    return [] if run.setup.is_of_suites else stored_rows(store, run)


def _is_done(
    run: Run,
    found: StoredResponse,
    samples: Mapping[str, Sample],
    verdicts: Mapping[str, JudgeResult],
) -> bool:
    """Whether a unit waits for no verdict of the metrics that the run asks for."""
    collects = run.details is not None and run.details.skip_judge
    if found.failure is not None or collects or run.setup.is_of_suites:
        return True
    asked = [metric for metric in run.setup.metrics or () if metric in METRICS]
    sample = samples.get(found.sample_id)
    return {*(asked if sample is None else judgeable(sample, asked))} <= {*verdicts}


def _means(run: Run, rows: Sequence[Row]) -> list[tuple[str, str, str, int]]:
    told: list[tuple[str, str, str, int]] = []
    for metric in run.setup.metrics or ():
        for method in run.setup.methods if metric in METRICS else ():
            found = _outcomes(metric, [row for row in rows if row.method == method])
            told.append((method, metric, percent(found.mean), found.mean.n))
            if has_two_means(found):
                both = found.end_to_end
                told.append((method, f"{metric}{FAILED_AS_0}", percent(both), both.n))
    return told


def _outcomes(metric: str, rows: Sequence[Row]) -> Outcomes:
    ends = Counter(Outcome(r.states[metric], r.scores[metric], r.document) for r in rows)
    return summarize_outcomes(
        ends,
        n_planned=len(rows),
        failed_search_is_zero=JUDGED_METRICS[metric].zero_if_failed,
        stratified=True,
    )


def _slowest(
    responses: Sequence[StoredResponse], samples: Mapping[str, Sample]
) -> list[tuple[str, str, str]]:
    timed = [(measured_latency(found.latency_s), found) for found in responses]
    known = [(seconds, found) for seconds, found in timed if seconds is not None]
    known.sort(key=lambda each: -each[0])
    return [
        (
            f"{seconds:.2f}",
            f"{found.method} (failed)" if found.failure else found.method,
            _text(found, samples.get(found.sample_id)),
        )
        for seconds, found in known[:_SLOWEST]
    ]


def _text(found: StoredResponse, sample: Sample | None) -> str:
    text = sample.question if sample is not None and sample.question else found.sample_id
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."


def _cause(found: StoredResponse | JudgeResult) -> str:
    failure = found.failure
    return "" if failure is None else f"{failure.kind}: {failure.message}"[:300]


def _spent(total: Usage, used: Sequence[Usage]) -> str:
    least = "" if total.is_counted else "at least "
    tokens = total.prompt_tokens + total.output_tokens + total.embedding_tokens
    calls = f"{least}{counted(total.llm_calls + total.embedding_calls, 'call')}, {tokens:,} tokens"
    if total.cost_usd is not None:
        return f"{money(total.cost_usd, '$')}, {calls}"
    known = sum(each.cost_usd for each in used if each.cost_usd is not None)
    return f"{money(known, '$')} and calls of unknown price, {calls}"
