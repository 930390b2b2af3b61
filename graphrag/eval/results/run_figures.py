"""Computes a run's figures beyond the verdicts: retrieval, losses, further judges, criteria.

It only adds up: measures are defined in metrics/measures.py, further judges in the modules that
metrics/scorer_registry.py lists.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from statistics import fmean
from typing import TypeAlias, cast
from urllib.parse import quote

from pydantic_core import to_jsonable_python

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import MeasuresSettings, Met, SuccessCriterion
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.failure_stage import (
    GRAPH_NEEDED,
    LossRecord,
    LossRow,
    summarize_loss,
    trace_loss,
)
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.measure_means import MethodMeasures, summarize_measures
from graphrag.eval.metrics.measures import MeasuredAnswer, measure
from graphrag.eval.metrics.quality import QUALITY
from graphrag.eval.metrics.scorer import PartSummary, Scorer, ScoreSummary
from graphrag.eval.metrics.scorer_registry import OWN_SCORERS, SCORERS, list_pairs
from graphrag.eval.results.evaluation_results import AVERAGES, EvaluationResults
from graphrag.eval.results.scored_rows import NOT_KEPT, Section
from graphrag.eval.results.usage import calls_of, tokens_of
from graphrag.eval.stats.intervals import grouped, mean_binary, mean_real
from graphrag.eval.store.index_costs import IndexCost
from graphrag.eval.store.records import CLAIMS, Judgement, Unit, pair_kind
from graphrag.eval.types.query_results import QueryResult, ReadWhole
from graphrag.query.client.usage import Usage, sum_known, sum_usages
from graphrag.text.json_records import json_pieces

_Judged: TypeAlias = Sequence[tuple[Unit, Judgement]]
_Gradings: TypeAlias = Mapping[str, Mapping[tuple[str, str], Mapping[str, object]]]
"""Scorer -> question id and method of a first answer -> the scorer's grading."""
_UNSAFE = re.compile(r"[^\w.-]")
_OF_ANSWERS = ("correctness", "quality", "tokens", "latency_s", "failed")
_AVERAGED = ("hit_rate", "mrr", "judge_score", "combined_score", "num_tokens")


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """Whether a method's mean on a metric meets its success criterion."""

    method: str
    metric: str
    value: float | None
    minimum: float | None
    target: float | None
    result: Met
    lower_is_better: bool = False


Scores = Mapping[str, Mapping[str, ScoreSummary]]
"""Scorer -> method, or "a vs b" for a pair -> summary of its gradings."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run's first trial that need more than verdicts.

    - ``measures``: method -> measures that need no model.
    - ``loss``: where answers were lost, by method and index, then by method.
    - ``criteria``: each method's result on each success criterion.
    - ``scores``: the summaries of the further judges that were asked.
    - ``usage``: what the further judges cost.
    - ``retrieval``: the content of retrieval_results.json, except what was retrieved, see
      :func:`retrieval_pieces`.
    - ``evaluations``: method -> the content of its evaluation file, see :func:`evaluation_names`.
    - ``traced``: the measures and the loss record of each first answer; in no file.
    - ``index_costs``: index key -> what it took to build, None if that is not known.
    """

    measures: dict[str, MethodMeasures]
    loss: list[LossRow]
    criteria: list[CriterionResult]
    scores: Scores
    usage: Usage
    retrieval: Section
    evaluations: dict[str, Section]
    traced: Sequence[tuple[MeasuredAnswer, LossRecord]] = field(default=(), repr=False)
    index_costs: Mapping[str, IndexCost | None] = field(default_factory=dict[str, IndexCost | None])

    def to_dict(self) -> Section:
        """Return the sections of the summary file with these figures."""
        cost = self.usage.cost_usd
        graded: Section = {
            name: {method: SCORERS[name].describe(summary) for method, summary in by_method.items()}
            for name, by_method in self.scores.items()
        }
        own = {name: graded.pop(name, {}) for name in OWN_SCORERS}
        is_there = (graded, *(own[name] for name in OWN_SCORERS if name != CLAIMS))
        taken = {"calls": calls_of(self.usage), "tokens": tokens_of(self.usage), "cost_usd": cost}
        return {
            "measures": {method: measures.to_dict() for method, measures in self.measures.items()},
            "loss": [asdict(row) for row in self.loss],
            "criteria": [asdict(result) for result in self.criteria],
            **to_jsonable_python({**own, **({"graded": graded} if graded else {})}),
            "further_judges_cost_usd": cost,
            "further_judges": taken if any(is_there) else None,
            "index_cost": {k: c and c.to_dict() for k, c in self.index_costs.items()},
        }


def compute_figures(
    config: EvaluationConfig,
    results: EvaluationResults,
    run_samples: Sequence[Sample],
    views: Mapping[str, IndexView],
    judged: _Judged = (),
    is_judged: bool = True,
) -> Figures:
    """Compute the figures of a run beyond the verdicts.

    - ``run_samples``: the questions of the run.
    - ``views``: name of an index -> its :class:`IndexView`; results on other indexes are not
      measured.
    - ``judged``: the judgments of further judges.
    - ``is_judged``: whether the judge was to be asked; if not, a failed search has no judge's score
      either.
    """
    first = [result for result in results.results if result.trial == 0]
    samples = {sample.id: sample for sample in run_samples}
    settings, metadata = config.measures, results.metadata
    gradings = _group_gradings(judged)
    details = [
        _describe_answer(result, samples.get(result.sample_id), config, is_judged, gradings)
        for result in first
    ]
    index_of = results.conditions.index_of
    is_there = [index_of(r.imdb_key, r.method) in views and r.sample_id in samples for r in first]
    measurable = list(compress(first, is_there))
    measured_details = list(compress(details, is_there))
    # A method that never reports what it retrieved has no retrieval measures, rather than bad ones.
    reporting = {result.method for result in measurable if result.retrieved is not None}
    asked: dict[str, dict[str, Sample]] = {name: {} for name in views}
    for result in measurable:
        name = index_of(result.imdb_key, result.method)
        asked[name][result.sample_id] = samples[result.sample_id]
    for name, view in views.items():
        view.look_for(asked[name].values())
    measured: list[MeasuredAnswer] = []
    records: list[LossRecord] = []
    has_verdicts = is_judged and "correctness" in config.metrics
    for result, detail in zip(results.read_whole(measurable), measured_details, strict=True):
        sample = samples[result.sample_id]
        view = views[index_of(result.imdb_key, result.method)]
        reports = result.method in reporting
        answer = measure(sample, result, view, settings, detail["judge_score"], reports)
        measured.append(answer)
        search = results.conditions.search_methods.get(result.method, "")
        needed = GRAPH_NEEDED.get(search, ())
        records.append(trace_loss(sample, result, view, needed, has_verdicts, answer.stages))
    measured = _drop_unknown(measured, measured_details)
    by_method = summarize_measures(measured, settings)
    scores = _score(config, first, samples, gradings)
    values = {(m.sample_id, m.method): m.values for m in measured}
    entries = grouped(
        (
            result.method,
            {
                "question": result.question,
                **{k: measures.get(k) for k in ("hit_rate", "mrr")},
                "judge_score": detail["judge_score"],
                "num_tokens": detail["tokens"],
                "combined_score": measures.get("combined_score"),
            },
        )
        for result, detail in zip(first, details, strict=True)
        for measures in [values.get((result.sample_id, result.method), {})]
    )
    evaluations = _evaluation_files(config, entries, metadata)
    means: dict[str, dict[str, float | None]] = {
        method: {
            **results.by_method.get(method, {}),
            **{k: v for k, v in results.efficiency.get(method, {}).items() if k in AVERAGES},
            **(by_method[method].means() if method in by_method else {}),
            **{
                f"{name}.{part}": summary.estimate.mean
                for name, summaries in scores.items()
                if method in summaries
                for part, summary in summaries[method].parts.items()
            },
            "judge_score": report["summary"]["avg_judge_score"],
        }
        for method, report in evaluations.items()
    }
    return Figures(
        measures=by_method,
        loss=summarize_loss(records),
        criteria=check_criteria(settings.criteria, means),
        scores=scores,
        usage=sum_usages(judgement.usage for _, judgement in judged),
        retrieval=retrieval_report(
            [samples[key] for key in dict.fromkeys(r.sample_id for r in measurable)],
            list(zip(measured_details, measured, strict=True)),
            settings,
            metadata,
        ),
        evaluations=evaluations,
        traced=list(zip(measured, records, strict=True)),
        index_costs=results.conditions.index_costs,
    )


def _group_gradings(judged: _Judged) -> _Gradings:
    gradings: dict[str, dict[tuple[str, str], Mapping[str, object]]] = {}
    for unit, judgement in judged:
        if unit.trial == 0:
            gradings.setdefault(judgement.kind, {})[unit.sample.id, unit.method] = judgement.value
    return gradings


def _drop_unknown(
    measured: Sequence[MeasuredAnswer], details: Sequence[Section]
) -> list[MeasuredAnswer]:
    """Leave out measures of the shown text if no answer reports it: failures are no 0."""
    answered = [m for m, detail in zip(measured, details, strict=True) if not detail["failed"]]
    known = {(m.method, k) for m in answered for k, value in m.values.items() if value is not None}
    unknown = {(m.method, k) for m in measured for k in m.values if k.startswith("shown_")} - known
    return [
        replace(m, values={k: None if (m.method, k) in unknown else v for k, v in m.values.items()})
        for m in measured
    ]


def _describe_answer(
    result: QueryResult,
    sample: Sample | None,
    config: EvaluationConfig,
    is_judged: bool,
    gradings: _Gradings,
) -> Section:
    """Return the figures of a response in files, besides its measures.

    A failed search counts 0 in what the judge was to be asked, and in nothing else. Its quality
    counts 0 only once that judge has graded an answer.
    """
    has_failed, grades = result.failure is not None, gradings.get("quality", {})
    value = grades.get((result.sample_id, result.method))
    quality = None if value is None else QUALITY.numbers(value)["overall_score"]
    if has_failed and is_judged and grades and (sample is None or QUALITY.asks(sample)):
        quality = 0.0
    has_verdict = not has_failed or (is_judged and "correctness" in config.metrics)
    correctness = result.scores.correctness.score if has_verdict else None
    return {
        "correctness": correctness,
        "quality": quality,
        "tokens": result.efficiency.tokens,
        "latency_s": result.efficiency.latency,
        "failed": has_failed,
        "judge_score": quality if config.judge.quality else correctness,
    }


def _score(
    config: EvaluationConfig,
    results: Sequence[QueryResult],
    samples: Mapping[str, Sample],
    gradings: _Gradings,
) -> Scores:
    """Add up the gradings of first answers, or of pairs of them, by scorer.

    A scorer that grades failed searches is left out until it was asked about an answer.
    """
    of_method = grouped((result.method, result) for result in results)
    alone = (*config.judge.scorers, *[CLAIMS] * config.judges_claims)
    of_single = [s for s in map(SCORERS.find, alone) if s is not None and not s.of_pairs]
    scores: dict[str, dict[str, ScoreSummary]] = {}

    def add(scorer: Scorer, row: str, method: str, kind: str) -> None:
        graded = gradings.get(kind, {})
        if scorer.of_no_answer is None or graded:
            answers = of_method.get(method, ())
            scores.setdefault(scorer.name, {})[row] = _summarize(scorer, answers, samples, graded)

    for scorer in of_single:
        for method in of_method:
            add(scorer, row=method, method=method, kind=scorer.name)
    for scorer, a, b in list_pairs(config):
        add(scorer, row=f"{a} vs {b}", method=a, kind=pair_kind(scorer.name, a, b))
    return scores


def _summarize(
    scorer: Scorer,
    results: Sequence[QueryResult],
    samples: Mapping[str, Sample],
    gradings: Mapping[tuple[str, str], Mapping[str, object]],
) -> ScoreSummary:
    answers = [(r, samples.get(r.sample_id, NOT_KEPT)) for r in results]
    planned = [(r, sample) for r, sample in answers if scorer.asks(sample)]
    values = [
        scorer.grading(sample, r.failure is not None, gradings.get((r.sample_id, r.method)))
        for r, sample in planned
    ]
    return summarize_gradings(scorer, values, [r.imdb_key for r, _ in planned])


def summarize_gradings(
    scorer: Scorer, values: Sequence[Mapping[str, object] | None], documents: Sequence[str]
) -> ScoreSummary:
    """Add up a scorer's gradings of answers (None: it has not graded that one).

    ``documents``: the document of each answer's question. Raises ValueError unless there are as
    many as gradings.
    """
    counts = Counter[str]()
    for value in values:
        counts.update({} if value is None else scorer.count(value))
    numbers = [{} if value is None else scorer.numbers(value) for value in values]
    parts: dict[str, PartSummary] = {}
    for part in scorer.parts:
        scores = [by_part.get(part) for by_part in numbers]
        tally = Counter(f"{score + 0.0:g}" for score in scores if score is not None)
        least = scorer.good
        good = None if least is None else [None if s is None else s >= least for s in scores]
        parts[part] = PartSummary(
            mean_binary(scores, documents)
            if scorer.is_binary
            else mean_real(scores, documents, scorer.limits),
            dict(sorted(tally.items(), key=lambda entry: float(entry[0]))),
            None if good is None else mean_binary(good, documents),
        )
    return ScoreSummary(len(values), parts, counts)


def check_criteria(
    criteria: Iterable[SuccessCriterion], means: Mapping[str, Mapping[str, float | None]]
) -> list[CriterionResult]:
    """Return how each method's means compare with each criterion's minimum and target.

    ``means``: method -> metric -> mean. The result is "not measured" if a metric is missing.
    """
    return [
        CriterionResult(
            *(method, each.metric, value, each.minimum, each.target, each.check(value)),
            lower_is_better=each.lower_is_better,
        )
        for each in criteria
        for method, value in ((method, values.get(each.metric)) for method, values in means.items())
    ]


def evaluation_names(methods: Sequence[str]) -> dict[str, str]:
    """Return method -> name of its evaluation file; unsafe characters are escaped as in URLs."""
    if len(methods) == 1:
        return {methods[0]: "evaluation.json"}
    return {
        name: f"evaluation_{_UNSAFE.sub(lambda match: quote(match[0], safe=''), name)}.json"
        for name in methods
    }


def _evaluation_files(
    config: EvaluationConfig,
    entries: Mapping[str, Sequence[Section]],
    metadata: Mapping[str, object],
) -> dict[str, Section]:
    """Return method -> content of its evaluation file, with means over the defined figures.

    ``entries``: method -> its responses in the first trial, in the dataset's order.
    """
    judge = cast("Mapping[str, object]", metadata.get("judge") or {})
    files: dict[str, Section] = {}
    for method in dict.fromkeys((*config.methods, *entries)):
        rows = entries.get(method, ())
        columns = {name: [r[name] for r in rows if r[name] is not None] for name in _AVERAGED}
        averages = {f"avg_{k}": fmean(values) if values else None for k, values in columns.items()}
        tokens = averages.pop("avg_num_tokens")
        files[method] = {
            "timestamp": metadata["timestamp"],
            "num_questions": len(rows),
            "summary": {
                **averages,
                "best_combined_score": max(columns["combined_score"], default=None),
                "avg_num_tokens": tokens,
                "total_tokens": sum_known([row["num_tokens"] for row in rows]),
            },
            "metadata": {
                "ground_truth_file": config.dataset.path,
                "search_mode": method,
                "judge_model": judge.get("model"),
                "judge_score": "quality" if config.judge.quality else "correctness",
                **{k: metadata.get(k) for k in ("embedded_models", "run_id", "is_complete")},
            },
            "results": list(rows),
        }
    return files


def retrieval_report(
    samples: Sequence[Sample],
    responses: Sequence[tuple[Section, MeasuredAnswer]],
    settings: MeasuresSettings,
    metadata: Mapping[str, object],
) -> Section:
    """Return the content of retrieval_results.json, except what was retrieved.

    - ``responses``: for each question and method, the measures and the other figures.
    - ``settings``: those that the responses were measured with.
    - ``metadata``: JSON-ready values, written as they are.

    An undefined measure is None. Means are in the summary file. :func:`retrieval_pieces` adds what
    was retrieved.
    """
    methods = {sample.id: Section() for sample in samples}
    for detail, measured in responses:
        methods[measured.sample_id][measured.method] = {
            "measures": dict(measured.values),
            "n_unmatched_sources": measured.n_unmatched,
            **{name: detail[name] for name in _OF_ANSWERS},
        }
    return {
        "timestamp": metadata.get("timestamp"),
        "num_questions": len(methods),
        "metadata": {**metadata, "settings": settings.model_dump(exclude={"criteria"})},
        "results": [
            {
                "id": sample.id,
                "imdb_key": sample.imdb_key,
                "question": sample.question,
                "expected_sources": list(sample.expected_sources or sample.evidence),
                "methods": methods[sample.id],
            }
            for sample in samples
        ],
    }


def retrieval_pieces(
    report: Mapping[str, object], results: Iterable[QueryResult], read_whole: ReadWhole
) -> Iterator[str]:
    """Yield a report as JSON text, a question at a time, with what each response retrieved.

    ``report``: from :func:`retrieval_report`. ``results``: at least those in the report.
    ``read_whole``: gives them with what they retrieved. Raises ValueError if a value is NaN or
    infinite.
    """
    entries = cast("list[Section]", report["results"])
    by_answer = {(r.sample_id, r.method): r for r in results if r.trial == 0}
    full = iter(read_whole(by_answer[e["id"], name] for e in entries for name in e["methods"]))
    questions = (
        {
            **entry,
            "methods": {
                name: {
                    "measures": response["measures"],
                    "retrieved": retrieved and retrieved.to_dict(),
                    **response,
                }
                for name, response in entry["methods"].items()
                for retrieved in [next(full).retrieved]
            },
        }
        for entry in entries
    )
    yield from json_pieces({**report, "results": questions}, indent=2)
    yield "\n"
