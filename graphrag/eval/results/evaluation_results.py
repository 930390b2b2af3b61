"""Adds results up to an :class:`EvaluationResults`, and renders and saves it."""

import itertools
import pkgutil
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic_core import to_jsonable_python

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.errors import UsageError
from graphrag.eval.results.analysis import Analysis, RepeatAnalysis, analyse, analyse_repeats
from graphrag.eval.results.method_conditions import Conditions
from graphrag.eval.results.question_groups import Grouping
from graphrag.eval.results.scored_rows import Row, Section, rows_of, state_of
from graphrag.eval.results.usage import (
    cost_of_searches,
    cost_of_verdicts,
    label_embedded,
    mean_efficiency,
    refused_parameters,
)
from graphrag.eval.stats.family import EQUIVALENCE_MARGIN
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.outcomes import Outcomes
from graphrag.eval.store.atomic_files import DETAILED_FILE, SUMMARY_FILE, write_whole
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS, METRICS
from graphrag.eval.types.query_results import (
    EfficiencyMetrics,
    QueryResult,
    ReadCalls,
    ReadWhole,
    no_calls,
)
from graphrag.eval.types.verdicts import MetricScores
from graphrag.text.accepted_answers import fold_wording
from graphrag.text.json_records import json_pieces, whole_json
from graphrag.text.message_phrases import counted

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "EfficiencyMetrics",
    "EvaluationResults",
    "MethodSummary",
    "MetricScores",
    "QueryResult",
    "aggregate_results",
]

_NOTEBOOK_VIEW = (
    "graphrag.eval.web.notebook:render_cell"  # by name: how results look is defined above them
)
_NESTED = ("scores", "reasons", "efficiency", "failure")
_DETAILED = (
    *("response", "scores", "reasons", "efficiency", "failure"),
    *("cut_replies", "cached_prompt_tokens"),
)
AVERAGES = {"avg_latency": 3, "avg_llm_calls": 1, "avg_prompt_tokens": 0, "avg_output_tokens": 0}
"""The means over a method's searches that can be success criteria, and the digits shown of each."""
_DIGITS = {**dict.fromkeys(DEFAULT_METRICS, 3), **AVERAGES}


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """The figures of one method, from :meth:`EvaluationResults.summaries`.

    - ``correctness``, ``faithfulness``, ``relevance``, ``completeness``: mean scores in [0, 1] over
      failed searches and scored responses. None if there are none, or only failed searches on a
      metric that was not asked. ``means`` has every metric.
    - ``avg_latency``: seconds, over responses whose latency was measured. The other averages are
      per search, None if calls are not counted.
    - ``count``: results; ``n_search_failed`` of them failed.
    - ``n_scored``, ``n_unscored``, ``n_not_judged``: metric -> responses with a verdict, without
      one because the judge failed, and without one because none was asked for.
    """

    correctness: float | None
    faithfulness: float | None
    relevance: float | None
    completeness: float | None
    avg_latency: float | None
    avg_llm_calls: float | None
    avg_prompt_tokens: float | None
    avg_output_tokens: float | None
    count: int
    method: str = ""
    n_search_failed: int = 0
    means: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    n_scored: Mapping[str, int] = field(default_factory=dict[str, int])
    n_unscored: Mapping[str, int] = field(default_factory=dict[str, int])
    n_not_judged: Mapping[str, int] = field(default_factory=dict[str, int])

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the four scores, the averages and the count.

        Scores and seconds are rounded to 3 digits, calls to 1, tokens to 0.
        """
        values: dict[str, float | None] = {name: getattr(self, name) for name in _DIGITS}
        return {
            **{k: v if v is None else float(round(v, _DIGITS[k])) for k, v in values.items()},
            "count": self.count,
        }


@dataclass(frozen=True)
class EvaluationResults:
    """The results of an evaluation, with their plain means and their analysis.

    Made by :func:`aggregate_results`. ``results.by_method["tog"]["correctness"]`` is a mean, and
    ``results.to_pandas()`` has a row per response.

    - ``metadata``: timestamp, total_questions (distinct), methods, movies (index keys), metrics
      (those that responses were to be judged on, the primary one first), models, embedded_models (a
      label that says in which roles offline baseline models were asked, None if in none), cost_usd
      (of the searches and verdicts in ``results``; None if a price or a result's cost is not known;
      further judges are in further_judges_cost_usd), earlier_attempts (the cost of what was asked
      again or not used, in no other figure), unfinished_answers (the cost of unfinished ones), and
      what the run adds.
    - ``results``: every trial. ``rows``: one per result, in the same order.
    - ``by_method``: method -> metric -> mean in [0, 1] or None. A failed search counts 0 if the
      metric was asked, an unscored verdict is left out. A question that was searched more than once
      counts with the mean of its scores.
    - ``by_movie``: index key -> the same.
    - ``efficiency``: method -> see ``usage.mean_efficiency``.
    - ``counts``: method -> n (searches), n_search_failed and, per metric, n_scored, n_unscored and
      n_not_judged.
    - ``analysis``: None if the results were not made by :func:`aggregate_results`.
    - ``repeats``: None if nothing was repeated.
    - ``kinds``: groups of questions, by columns of the dataset.
    - ``conditions``: what methods were given and need.
    - ``figures``: further sections of the summary file, see ``run_figures.Figures``.
    - ``read_whole``, ``read_calls``: give results with their contexts, which the commands leave in
      the store, and their model calls.
    - ``command``: the command that began the run. ``roomy``: warnings of contexts that contain most
      of a text. Neither is in a file.
    """

    metadata: Section
    results: list[QueryResult] = field(repr=False)
    by_method: dict[str, dict[str, float | None]]
    by_movie: dict[str, dict[str, dict[str, float | None]]]
    efficiency: dict[str, Section]
    counts: dict[str, Section] = field(default_factory=dict[str, Section])
    analysis: Analysis | None = field(default=None, repr=False)
    repeats: RepeatAnalysis | None = field(default=None, repr=False)
    kinds: Sequence[Grouping] = field(default=(), repr=False)
    conditions: Conditions = field(default_factory=Conditions, repr=False)
    figures: Section = field(default_factory=Section, repr=False)
    read_whole: ReadWhole = field(default=iter, repr=False, compare=False)
    read_calls: ReadCalls = field(default=no_calls, repr=False, compare=False)
    command: str = field(default="", repr=False, compare=False)
    roomy: tuple[str, ...] = field(default=(), repr=False, compare=False)
    rows: Sequence[Row] = field(default=(), repr=False, compare=False)

    def under_conditions(self, conditions: Conditions) -> "EvaluationResults":
        """Return these results with conditions; if budgets differ, ``is_pareto`` becomes None."""
        analysis, metadata = self.analysis, {**self.metadata, "context_budgets": conditions.budgets}
        if conditions.handicaps:
            handicaps = {m: [each.to_dict() for each in h] for m, h in conditions.handicaps.items()}
            metadata["conditions"] = handicaps
        if refused := refused_parameters(self.results):
            metadata["refused_parameters"] = refused
        if analysis is not None and conditions.differ:
            unknown = {m: replace(e, is_pareto=None) for m, e in analysis.efficiency.items()}
            analysis = replace(analysis, efficiency=unknown)
        return replace(self, conditions=conditions, analysis=analysis, metadata=metadata)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to be judged on; the default ones if the metadata names none."""
        return tuple(self.metadata.get("metrics", DEFAULT_METRICS))

    def to_dict(self) -> dict[str, object]:
        """Return the summary as JSON-ready values, without sections that were not computed."""
        values: dict[str, object] = {
            "metadata": self.metadata,
            "by_method": self.by_method,
            "by_movie": self.by_movie,
            "efficiency": self.efficiency,
        }
        if self.analysis is not None:
            values |= {"counts": self.counts, **self.analysis.to_dict()}
            values["repeats"] = to_jsonable_python(self.repeats)
            values["by_kind"] = {grouping.column: grouping.to_dict() for grouping in self.kinds}
        return {**values, **self.figures}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the summary as JSON text, which contains no NaN."""
        return whole_json(self.to_dict(), indent)

    def to_detailed_dict(self) -> dict[str, object]:
        """Return every response with its verdicts, grouped by question, as JSON-ready values.

        Responses of further trials are under ``trials``, repeated verdicts under ``repeats``.
        """
        return {"metadata": self.metadata, "results": list(_list_questions(self.results))}

    def to_detailed_json(self, indent: int | None = 2) -> str:
        """Return every response as JSON text."""
        return "".join(self.detailed_pieces(indent))

    def detailed_pieces(self, indent: int | None = 2) -> Iterator[str]:
        """Yield the JSON text of every response, a question at a time."""
        values = {"metadata": self.metadata, "results": _list_questions(self.results)}
        yield from json_pieces(values, indent)
        yield "\n"

    def save(self, output_dir: Path | str) -> tuple[Path, Path]:
        """Write the summary and the detailed file, both or neither, and return their paths.

        Raises StoreError if the folder can't be written.
        """
        summary, detailed = write_whole(
            Path(output_dir), {SUMMARY_FILE: self.to_json(), DETAILED_FILE: self.detailed_pieces()}
        )
        return summary, detailed

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame with a row per result: question, method, response, scores and costs.

        It also has reasons and, in columns such as ``rubric_relevance`` and ``quality_reasoning``,
        the grades of further judges. A failed search has the score 0, a missing verdict none.
        """
        import pandas as pd

        return pd.DataFrame([_wide_row(result) for result in self.results])

    def summaries(self) -> list[MethodSummary]:
        """Return the figures of each method, in the methods' order."""
        summaries: list[MethodSummary] = []
        for method in self.metadata.get("methods", self.by_method):
            counts = dict(self.counts.get(method, {"n": 0}))
            means, efficiency = self.by_method.get(method, {}), self.efficiency.get(method, {})
            values = {metric: means.get(metric) for metric in DEFAULT_METRICS}
            values |= {name: efficiency.get(name) for name in AVERAGES}
            count = counts.pop("n")
            summaries.append(
                MethodSummary(**values, count=count, method=method, means=means, **counts)
            )
        return summaries

    def _repr_html_(self) -> str:
        return pkgutil.resolve_name(_NOTEBOOK_VIEW)(self)


def aggregate_results(
    results: Iterable[QueryResult],
    metrics: Sequence[str] = DEFAULT_METRICS,
    planned: Mapping[str, Mapping[str, int]] | None = None,
    equivalence_margin: float = EQUIVALENCE_MARGIN,
) -> EvaluationResults:
    """Add results up to means, costs, and comparisons of the methods.

    Parameters
    ----------
    results : iterable of QueryResult
        Joined on ``imdb_key`` and ``sample_id``, without an id on their text. More than one result
        for one trial of a question count as repeats, with a UserWarning.
    metrics : sequence of str
        What was judged; methods are compared on the first by tests that are corrected for the
        number of pairs, on the others exploratively.
    planned : dict, optional
        Method -> index key -> searches that it was to make; None: those that any method has a
        result for.
    equivalence_margin : float
        The difference of two means, in (0, 1), below which methods count as equivalent.

    Returns
    -------
    EvaluationResults
        With total_questions 0 and empty sections if ``results`` is empty.

    Raises
    ------
    UsageError
        If a metric does not exist, or if results of one id have different texts, or results of
        one text different ids: they would count as two questions.
    ValueError
        If a result has an impossible figure, such as NaN tokens, or if there are more results than
        were planned.

    Examples
    --------
    >>> answers = await runner.run_evaluation(rows)
    >>> results = aggregate_results(results=answers, metrics=["correctness"])
    >>> results.by_method["tog"]["correctness"]
    0.75
    """
    results, repeated = _number_repeats(results)
    if repeated:
        first, verb = repeated[0], "repeats" if len(repeated) == 1 else "repeat"
        message = (
            f"{counted(len(repeated), 'result')} {verb} the question of another, e.g. "
            f"{first.method}'s for {first.question!r} of {first.imdb_key!r}; they count as repeats "
            "of one question."
        )
        warnings.warn(message, stacklevel=2)
    _check(results, metrics)
    of_method = grouped((result.method, result) for result in results)
    methods = list(of_method)
    usages = [u for r in results for u in (r.usage, r.judge_usage) if u is not None]
    costs = [cost_of_searches(results), cost_of_verdicts(results)]
    rows = rows_of(results)
    analysis = analyse(rows, methods, metrics, planned, equivalence_margin)
    return EvaluationResults(
        metadata={
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "total_questions": len({(r.imdb_key, r.sample_id, r.question) for r in results}),
            "methods": methods,
            "movies": list(dict.fromkeys(result.imdb_key for result in results)),
            "metrics": list(metrics),
            "models": sorted({model for usage in usages for model in usage.models}),
            "embedded_models": label_embedded(results),
            "cost_usd": None if None in costs else sum(cost for cost in costs if cost),
        },
        results=results,
        by_method={m: _plain_means(outcomes) for m, outcomes in analysis.outcomes.items()},
        by_movie={
            movie: {m: _plain_means(outcomes) for m, outcomes in by_method.items()}
            for movie, by_method in analysis.outcomes_by_document.items()
        },
        efficiency={m: mean_efficiency(searches) for m, searches in of_method.items()},
        counts={m: _counts(outcomes, of_method[m]) for m, outcomes in analysis.outcomes.items()},
        analysis=analysis,
        repeats=analyse_repeats(results, rows, methods, metrics),
        rows=rows,
    )


def _number_repeats(results: Iterable[QueryResult]) -> tuple[list[QueryResult], list[QueryResult]]:
    """Return the results, each with a trial of its own, and those whose trial was taken."""
    numbered = list(results)
    keys = [(*key, r.method) for key, r in zip(_keys(numbered), numbered, strict=True)]
    taken = defaultdict[tuple[str, ...], set[int]](set)
    for key, result in zip(keys, numbered, strict=True):
        taken[key].add(result.trial)
    seen = set[tuple[tuple[str, ...], int]]()
    repeated: list[QueryResult] = []
    for place, (key, result) in enumerate(zip(keys, numbered, strict=True)):
        if (key, result.trial) in seen and any(key[1:3]):
            trial = next(n for n in itertools.count() if n not in taken[key])
            taken[key].add(trial)
            numbered[place] = replace(result, trial=trial)
            repeated.append(result)
        seen.add((key, result.trial))
    return numbered, repeated


def _keys(results: Sequence[QueryResult]) -> list[tuple[str, str, str]]:
    folded = {text: fold_wording(text) for text in {result.question for result in results}}
    return [(r.imdb_key, r.sample_id, folded[r.question]) for r in results]


def _check(results: Sequence[QueryResult], metrics: Sequence[str]) -> None:
    for metric in metrics:
        if metric not in METRICS:
            msg = f"There is no metric {metric!r}{nearest(metric, METRICS)}"
            raise UsageError(as_sentence(msg))
    keys = _keys(results)
    for part in (1, 2):  # by id, and by text
        times = Counter(
            (key[0], key[part], result.method, result.trial)
            for key, result in zip(keys, results, strict=True)
            if key[part]
        )
        for (document, question, method, trial), n in times.most_common(1):
            if n > 1:
                raise UsageError(
                    f"{method} has {n} results for {question!r} of {document!r} in trial {trial}, "
                    f"and would count it {n} times; keep one, or number the repeats by their trial."
                )


def _plain_means(outcomes: Mapping[str, Outcomes]) -> dict[str, float | None]:
    return {metric: v.end_to_end.mean for metric, v in outcomes.items()}


def _counts(outcomes: Mapping[str, Outcomes], results: Sequence[QueryResult]) -> Section:
    return {
        "n": len(results),
        "n_search_failed": sum(result.failure is not None for result in results),
        "n_scored": {k: v.n_scored for k, v in outcomes.items()},
        "n_unscored": {k: v.n_judge_failed + v.n_judge_unparseable for k, v in outcomes.items()},
        "n_not_judged": {k: v.n_not_judged + v.n_abstained for k, v in outcomes.items()},
    }


def _list_questions(results: Sequence[QueryResult]) -> Iterator[dict[str, object]]:
    """Yield each question with every response to it, in the order of the results."""
    keys = ((r.imdb_key, r.sample_id, r.question) for r in results)
    for of_question in grouped(zip(keys, results, strict=True)).values():
        trials = grouped((r.method, _detail(r)) for r in of_question if r.trial)
        first = of_question[0]
        yield {
            "id": first.sample_id,
            "imdb_key": first.imdb_key,
            "question": first.question,
            "ground_truth": first.ground_truth,
            "methods": {r.method: _detail(r) for r in of_question if r.trial == 0},
            **({"trials": trials} if trials else {}),
        }


def _detail(result: QueryResult) -> dict[str, object]:
    values = result.to_dict()
    repeats = {metric: list(result.scores.get(metric).repeats) for metric in METRICS}
    return {
        **{name: values[name] for name in _DETAILED},
        "states": _states(result),
        **({"repeats": repeats} if any(repeats.values()) else {}),
        **result.grades,
    }


def _states(result: QueryResult) -> dict[str, str]:
    return {metric: state_of(result, metric).value for metric in METRICS}


def _wide_row(result: QueryResult) -> dict[str, object]:
    ungraded = replace(result, grades={}).to_dict()
    return {
        **{name: value for name, value in ungraded.items() if name not in _NESTED},
        **result.scores.to_dict(),
        **{f"{metric}_state": state for metric, state in _states(result).items()},
        **{f"{metric}_reason": result.scores.get(metric).reason for metric in METRICS},
        **result.efficiency.to_dict(),
        "failure": result.failure.message if result.failure else None,
        **_flatten_grades(result.grades),
    }


def _flatten_grades(grades: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return further judges' grades as columns; a score is named after what it scores."""
    columns: dict[str, object] = {}
    for name, value in grades.items():
        if name == "failure":  # the reasoning says so
            continue
        if isinstance(value, Mapping):
            columns |= _flatten_grades(cast("Mapping[str, object]", value), f"{prefix}{name}_")
        else:
            columns[prefix.removesuffix("_") if name == "score" else f"{prefix}{name}"] = value
    return columns
