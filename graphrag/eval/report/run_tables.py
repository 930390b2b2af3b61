"""Builds the tables of a run, the same on a terminal, on its page and in a notebook."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from graphrag.eval.metrics.failure_stage import LossRow, Stage
from graphrag.eval.metrics.measures import Group, MeasureForm
from graphrag.eval.metrics.scorer_registry import SCORERS
from graphrag.eval.report.formatting import (
    EACH_ALONE,
    MISSING,
    UNKNOWN,
    UNSCORED,
    has_two_means,
    mean_and_n,
    mean_cell,
    mean_with_n,
    number,
    p_value,
    percent,
    plain,
    seconds,
    unfinished,
)
from graphrag.eval.report.table import METHOD, Kind, LinkedValue, Table, Value
from graphrag.eval.results.scored_rows import FAILED_AS_0
from graphrag.query.client.usage import sum_known
from graphrag.text.float_compare import number_beside
from graphrag.text.message_phrases import counted, join_names

if TYPE_CHECKING:
    from graphrag.eval.metrics.measure_means import MethodMeasures
    from graphrag.eval.results.analysis import Analysis, RepeatAnalysis
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.run_figures import Figures
    from graphrag.eval.stats.outcomes import Outcomes
    from graphrag.eval.types.verdicts import Failure

RIGHT = {
    "correctness": "right",
    "faithfulness": "faithful",
    "relevance": "relevant",
    "completeness": "complete",
}
"""Metric -> the adjective for an answer that scores 1 on it."""
_BY_LABELS = {True: "by people's labels", False: "corrected by people's labels"}
_MOST_DOCUMENTS = 200
_MOST_CAUSE = 300
_MEASURES: Mapping[str, tuple[Group, ...]] = {
    "Measured without a model": ("ranking", "entities", "words"),
    "Traced to the index": ("traced",),
}
STAGE_NAMES: dict[Stage, str] = {
    "in_source": "source",
    "in_text_unit": "unit",
    "extracted": "entity",
    "connected": "graph",
    "retrieved": "found",
    "in_context": "shown",
    "in_answer": "said",
    "judged_correct": "verdict",
}
"""Stage -> the heading of its column."""
LOST: dict[Stage, str] = {
    "in_source": "not in the source",
    "in_text_unit": "in no text unit",
    "extracted": "entity not extracted",
    "connected": "entity without a relationship",
    "retrieved": "not found",
    "in_context": "found, not shown",
    "in_answer": "shown, not said",
    "judged_correct": "said, judged wrong",
}
"""Stage -> the state of the evidence that was lost there."""
FailureKind: TypeAlias = tuple[str, str | None, str]
"""Method, metric and cause. The metric is None if the search failed; the method is "" if a further
scorer's judgment did."""


def label_results(results: "EvaluationResults") -> str | None:
    """Return the label that a run's tables must carry; None if there is none."""
    label = results.metadata["embedded_models"]
    parts = [label] if label else []
    if not results.metadata.get("is_complete", True):
        parts.append("incomplete: {n_done} of {n_planned}".format(**results.metadata))
    return "; ".join(parts) or None


def by_score(analysis: "Analysis") -> list[str]:
    """Return the methods by their score on the primary metric, highest first, unscored last."""
    means = {method: score.mean for method, score in analysis.scores.items()}
    return sorted(means, key=lambda m: (means[m] is None, -(means[m] or 0)))


def score_table(results: "EvaluationResults", analysis: "Analysis") -> Table:
    """Return the main table: score, its basis and its cost, the best method first.

    A column without information is left out: all judged, none failed or declined, no price. Scores
    that labels correct come first, the judge's next to them.
    """
    primary, rows = analysis.primary, list[list[Value]]()
    corrected = analysis.scores if analysis.scored_by_labels else {}
    for method in by_score(analysis):
        outcomes, n = analysis.outcomes[method][primary], results.counts[method]["n"]
        answered = [r for r in results.results if r.method == method and r.failure is None]
        usage = results.efficiency[method]
        rows.append(
            [
                method,
                join_names([str(each) for each in results.conditions.handicaps.get(method, ())]),
                percent(corrected[method]) if method in corrected else None,
                mean_cell(outcomes) if results.metrics else None,
                f"{outcomes.n_scored:,} of {outcomes.n_planned:,}" if results.metrics else None,
                _found(results.counts[method]["n_search_failed"], f"is:{method}", "search_failed"),
                _found(sum(r.abstained for r in answered), f"is:{method}", "declined"),
                sum_known([usage["avg_prompt_tokens"], usage["avg_output_tokens"]]),
                seconds(analysis.efficiency[method].latency_median),
                None if usage["cost_usd"] is None else usage["cost_usd"] / n,
            ]
        )
    right = f"{RIGHT.get(primary, primary)} %"
    by_labels = f"the first score is {_BY_LABELS[analysis.labels_are_complete]}"
    of_judge = "by the judge %" if corrected else right
    columns: list[tuple[str, Kind, str]] = [
        (*METHOD, ""),
        ("conditions", "text", ""),
        (right, "percent", by_labels),
        (of_judge, "percent", "in brackets: each score's own 95 % interval"),
        ("judged", "count", "judged: answers with a verdict, of those planned"),
        ("failed", "count", ""),
        ("declined", "count", "declined: the method says that it has no answer"),
        ("tokens", "tokens", "tokens: mean of a question"),
        ("seconds", "seconds", "seconds: median"),
        ("$", "money", ""),
    ]
    planned = {f"{by_metric[primary].n_planned:,}" for by_metric in analysis.outcomes.values()}
    nothing = (None, MISSING, "", 0, *(f"{n} of {n}" for n in planned))
    places = [n for n in range(len(columns)) if any(row[n] not in nothing for row in rows)]
    note = "; ".join(filter(None, (columns[n][2] for n in places)))
    note = f"{note[:1].upper()}{note[1:]}."
    if results.repeats is not None and results.repeats.n_trials > 1:
        note += (
            f" Each question was searched {results.repeats.n_trials} times: searches are counted, "
            "and a score is the mean of the questions' means."
        )
        if corrected:
            note += " Labels are of the first search."
    title = f"Score: {primary}" if results.metrics else "Searches"
    return Table(
        title=title,
        columns=[columns[n][:2] for n in places],
        rows=[[row[n] for n in places] for row in rows],
        note=note,
    )


def _found(n: int, name: str, outcome: str) -> Value:
    return LinkedValue(n, {name: outcome}) if n else n


def metrics_table(metrics: Sequence[str], analysis: "Analysis") -> Table:
    """Return each method's means on all metrics by the judge, with interval and n."""
    return means_table(metrics, analysis.outcomes, by_judge(analysis)) if metrics else Table()


def means_table(
    metrics: Sequence[str], outcomes: "Mapping[str, Mapping[str, Outcomes]]", by_judge: str = ""
) -> Table:
    """Return each method's means on metrics.

    If searches failed on a metric for which they leave nothing to judge, a second column has the
    mean in which they count 0.
    """
    columns = list[tuple[str, bool]]()
    for metric in metrics:
        columns.append((metric, False))
        if any(has_two_means(by_metric[metric]) for by_metric in outcomes.values()):
            columns.append((metric, True))
    return Table(
        title=f"Every metric in %{by_judge} (95 % interval each), n questions",
        columns=[
            METHOD,
            *((f"{m}{FAILED_AS_0 if as_0 else ''}", "percent") for m, as_0 in columns),
        ],
        rows=[
            [name, *(mean_and_n(by_metric[metric], failed_as_0=as_0) for metric, as_0 in columns)]
            for name, by_metric in outcomes.items()
        ],
        note=EACH_ALONE,
        most=3,
    )


def by_judge(analysis: "Analysis") -> str:
    """Return ", by the judge" if the run's scores are by labels and these means are not, or ""."""
    return ", by the judge" if analysis.scored_by_labels else ""


def documents_table(analysis: "Analysis") -> Table:
    """Return means on the primary metric by document and method; empty with one document."""
    by_document, methods = analysis.outcomes_by_document, list(analysis.outcomes)
    if len(by_document) < 2:
        return Table()
    rows: list[list[Value]] = []
    for document, by_method in list(by_document.items())[:_MOST_DOCUMENTS]:
        rows.append([document])
        for method in methods:
            outcomes = by_method.get(method, {}).get(analysis.primary)
            query = {"film": document, f"is:{method}": "0", "metric": analysis.primary}
            rows[-1].append(None if outcomes is None else LinkedValue(mean_and_n(outcomes), query))
    left = len(by_document) - len(rows)
    return Table(
        title=f"Documents x methods: {analysis.primary} in %{by_judge(analysis)} "
        "(95 % interval each), n questions",
        columns=[("document", "text"), *((method, "percent") for method in methods)],
        rows=rows,
        note=f"{left:,} more documents are in the summary file." if left else "",
        most=3,
    )


_OTHER_CALLS = {
    "earlier_attempts": "earlier attempts, failed or lost",
    "unfinished_answers": "answers that are not finished",
}


def spent_without_result(results: "EvaluationResults") -> dict[str, list[Any]]:
    """Return name -> calls, tokens and dollars (None: unknown) of calls without a result."""
    metadata = results.metadata
    usages: dict[str, Any] = {group: metadata.get(name) for name, group in _OTHER_CALLS.items()}
    return {
        group: [
            usage["calls"],
            sum_known(count for name, count in usage.items() if name.endswith("_tokens")),
            usage["cost_usd"],
        ]
        for group, usage in usages.items()
        if usage
    }


def spent_table(results: "EvaluationResults") -> Table:
    """Return the totals of the run: calls, tokens, and dollars if any were paid.

    If the run judged another run's responses again, that run's searches are left out.
    """
    by_method, further = results.efficiency, results.figures.get("further_judges")
    if not by_method:
        return Table()
    names = ("calls", "tokens", "cost_usd")
    origin: str | None = results.metadata.get("setup", {}).get("responses_of")
    spent: dict[str, list[float | None]] = {}
    if origin is None:
        spent = {m: [row[n] for n in names] for m, row in by_method.items()}
    spent["judging"] = [sum_known(row[f"judge_{n}"] for row in by_method.values()) for n in names]
    if further:
        spent["further judges"] = [further[name] for name in names]
    spent |= spent_without_result(results)
    spent["total"] = [sum_known(column) for column in zip(*spent.values(), strict=True)]
    paid = any(amounts[2] != 0 for amounts in spent.values())
    columns: list[tuple[str, Kind]] = [("calls", "count"), ("tokens", "tokens"), ("$", "money")]
    return Table(
        title="What the run took",
        columns=[("searches by", "text"), *columns[: 2 + paid]],
        rows=[[name, *amounts[: 2 + paid]] for name, amounts in spent.items()],
        note=f"The searches are those of run {origin}, which paid for them."
        if origin
        else ""
        if paid
        else "Neither the searches nor the judge cost a dollar.",
    )


def efficiency_table(results: "EvaluationResults", analysis: "Analysis") -> Table:
    """Return how fast and how expensive each method's searches are."""
    paid = any(usage["cost_usd"] != 0 for usage in results.efficiency.values())
    rows: list[list[Value]] = []
    for method in by_score(analysis):
        usage, further = results.efficiency[method], analysis.efficiency[method]
        latencies = (further.latency_median, further.latency_p95)
        rows.append(
            [
                method,
                *(seconds(latency) + unfinished(latency) for latency in latencies),
                number(usage["avg_llm_calls"]),
                number(usage["avg_exploring_calls"]),
                *([further.cost_per_correct.value] if paid else []),
                {None: None, True: "yes", False: "no"}[further.is_pareto],
            ]
        )
    note = (
        "LLM calls: the mean of a search; exploring: those that choose what to read before the "
        "answer. Pareto: no other method beats it in score, tokens or median seconds without "
        "losing in another; chance is left aside."
    )
    if any(efficiency.latency_median.censored_share for efficiency in analysis.efficiency.values()):
        note += " Unfinished: searches that failed; they count as the slowest."
    return Table(
        title="Efficiency of the searches",
        columns=[
            METHOD,
            *(("median s", "seconds"), ("p95 s", "seconds")),
            *(("LLM calls", "count"), ("exploring", "count")),
            *([("$ a correct", "money")] if paid else []),
            ("Pareto", "count"),
        ],
        rows=rows,
        note=note,
    )


def repeats_table(repeats: "RepeatAnalysis") -> Table:
    """Return how often a repeated search, and a repeated verdict, changes a score."""
    return Table(
        title=f"What repeats change, over {counted(repeats.n_trials, 'search', 'searches')} and "
        f"{counted(repeats.n_verdicts, 'verdict')} each, in %",
        columns=[
            *(METHOD, ("metric", "text")),
            *(("search flips", "percent"), ("judge flips", "percent")),
        ],
        rows=[[f.method, f.metric, f.search_flip_rate, f.judge_flip_rate] for f in repeats.figures],
        note="Flips: chance that a repeat changes a score.",
    )


def pairs_table(analysis: "Analysis") -> Table:
    """Return the difference of every pair of methods on the primary metric."""
    rows: list[list[Value]] = []
    for pair in analysis.comparisons:
        decided, limits = pair.decided
        if not pair.in_family or limits is None:
            continue
        rows.append(
            [
                f"{pair.a} - {pair.b}",
                decided.n_pairs,
                decided.difference,
                (limits.low_simultaneous, limits.high_simultaneous),
                f"{decided.n10} : {decided.n01}",
                p_value(decided.p_holm),
                pair.verdict,
            ]
        )
    is_graded = any(pair.decided[0].is_graded for pair in analysis.comparisons)
    counted_pairs = "first : second ahead" if is_graded else "only first : only second right"
    return Table(
        title=f"Paired differences on {analysis.primary} in percentage points",
        columns=[
            *(("pair", "text"), ("pairs", "count"), ("difference", "interval")),
            *(("interval", "interval"), (counted_pairs, "count")),
            *(("Holm", "count"), ("shown", "text")),
        ],
        rows=rows,
        note="All intervals hold together at 95 % confidence, and p is corrected by Holm over "
        "these pairs. All is by people's labels where they cover every answer; where they cover "
        "some, the counts are of the judge's verdicts.",
    )


def failures_table(results: "EvaluationResults") -> Table:
    """Return failed searches and missing verdicts by cause; no row if there are none."""
    return tabulate_failures(
        Counter(
            (result.method, metric, name_cause(failure))
            for result in results.results
            for metric, failure in ((None, result.failure), *result.scores.failures.items())
            if failure is not None
        )
    )


def name_cause(failure: "Failure") -> str:
    """Return the kind and message of a failure, cut to fit into a table and a list."""
    return f"{failure.kind}: {failure.message}"[:_MOST_CAUSE]


def tabulate_failures(causes: Counter[FailureKind], most: int | None = None) -> Table:
    """Return how often each failure occurred, the most frequent first; no row without any."""
    rows: list[list[Value]] = []
    for (method, metric, cause), times in causes.most_common(most):
        result, query = "search failed, counts 0", {"cause": cause}
        if metric is not None:
            result = f"{metric} unscored, {'left out' if method else 'in full or in part'}"
            query |= {"metric": metric, f"is:{method}": "unscored"}
        rows.append([method, result, LinkedValue(times, query), cause])
    return Table(
        title="Failures and missing verdicts, by cause",
        columns=[METHOD, ("failure", "text"), ("times", "count"), ("cause", "text")],
        rows=rows,
    )


def measures_tables(measures: "Mapping[str, MethodMeasures]") -> Iterable[Table]:
    """Yield a table of measures without a model, and one of measures traced to the index."""
    for title, groups in _MEASURES.items():
        by_name = {
            name: summary.form
            for row in measures.values()
            for name, summary in row.measures.items()
            if summary.form.measure.group in groups
        }
        means = {
            name: [row.measures[name].estimate.mean for row in measures.values()]
            for name in by_name
        }
        forms = [f for f in _columns(list(by_name.values())) if set(means[f.name]) != {None}]
        if not forms:
            continue
        full = [f for f in forms if len(measures) > 1 and set(means[f.name]) == {1}]
        columns = [form for form in forms if form not in full]
        sizes = {row.measures[form.name].estimate.n for row in measures.values() for form in forms}
        sizes.discard(0)
        note = f"Over {counted(max(sizes), 'question')}, as labels allow. {EACH_ALONE}"
        if is_mixed := len(sizes) > 1:
            note = f"n: questions with what a measure needs. {EACH_ALONE}"
        render = mean_with_n if is_mixed else percent
        if full:
            note = f"100 % in every row: {', '.join(form.heading for form in full)}. {note}"
        yield Table(
            title=f"{title}, in % (95 % interval)",
            columns=[METHOD, *((form.heading, "percent") for form in columns)],
            rows=[
                [method, *(render(row.measures[form.name].estimate) for form in columns)]
                for method, row in measures.items()
            ],
            note=note,
            most=3 if is_mixed else 0,
        )


def _columns(forms: Sequence[MeasureForm]) -> list[MeasureForm]:
    """Return the measures over everything and at the middle cutoff, in the order of columns."""
    cutoffs = sorted({form.k for form in forms if form.k is not None})
    middle = cutoffs[len(cutoffs) // 2] if cutoffs else None
    columns = [
        (form.measure.column, form)
        for form in forms
        if form.measure.column is not None
        and (form.k is None or (form.k == middle and form.measure.shows_cutoff))
    ]
    return [form for _, form in sorted(columns, key=lambda column: column[0])]


def loss_table(figures: "Figures") -> Table:
    """Return at which stage answers were lost; empty if no question has evidence."""
    traced = _list_traced(figures)
    if not traced:
        return Table()
    counts = [_count_ends(row) for row in traced]
    names = [name for name in counts[0] if any(ends[name] for ends in counts)]
    # Every method is asked the same questions, except an oracle: the largest count is theirs.
    totals = [row for row in figures.loss if row.imdb_key is None]
    left_out = [
        f"{part} evidence of {counted(n, 'question')}"
        for part, n in (
            ("all", max((row.n_unmatched for row in totals), default=0)),
            ("a part of the", max((row.n_partly_unmatched for row in totals), default=0)),
        )
        if n
    ]
    meanings = {STAGE_NAMES[stage]: phrase for stage, phrase in LOST.items()} | {
        "unknown": "wrong, and where is not known, as without evidence",
        "right": "by the verdict on correctness",
        "right anyway": "the same, although evidence was lost",
        "unjudged": "no verdict",
    }
    note = (
        "Each question counts once, so a row adds up to all of them. An answer that is not right "
        "counts at the first stage that the method depends on and that its evidence did not pass, "
        f"as far as words show. {'; '.join(f'{name}: {meanings[name]}' for name in names)}."
    )
    if left_out:
        note += (
            f" Left out here and in the retrieval measures: {' and '.join(left_out)}, because the "
            "text does not contain it."
        )
    return Table(
        title="Where answers were lost: each question once, by the first stage",
        columns=[("index  method", "text"), *((name, "count") for name in names)],
        rows=[
            [f"{row.imdb_key or 'all'}  {row.method}", *(ends[name] for name in names)]
            for row, ends in zip(traced, counts, strict=True)
        ],
        note=note,
    )


def split_loss(figures: "Figures") -> tuple[Table, Table]:
    """Return :func:`loss_table` over all documents, and one by document if there are several."""
    table, n = loss_table(figures), sum(row.imdb_key is not None for row in _list_traced(figures))
    if n == len(table.rows):
        return table, Table()
    by_document = replace(table, title="The same by document", rows=table.rows[:n], note="")
    return replace(table, rows=table.rows[n:]), by_document


def _list_traced(figures: "Figures") -> list[LossRow]:
    """Return the loss rows of each document and, if there are several, the rows over all."""
    documents = {row.imdb_key for row in figures.loss if row.imdb_key is not None}
    return [
        row
        for row in figures.loss
        if row.n > row.n_untraced and (row.imdb_key is not None or len(documents) > 1)
    ]


def _count_ends(row: LossRow) -> dict[str, Value]:
    """Return column -> number of answers; each answer counts in one column."""
    ends: dict[str, tuple[int, str]] = {
        **{STAGE_NAMES[stage]: (n, stage) for stage, n in row.lost.items()},
        "unknown": (row.n_unknown, "unknown"),
        "right": (row.n_kept, "right"),
        "right anyway": (sum(row.right_anyway.values()), "right_anyway"),
        "unjudged": (row.n_unjudged, "unjudged"),
    }
    film = row.imdb_key or ""
    return {
        name: LinkedValue(n, {"lost": f"{row.method}|{end}", "film": film}) if n else n
        for name, (n, end) in ends.items()
    }


def score_tables(figures: "Figures") -> list[Table]:
    """Return a table for each further scorer with results: means of its parts, and counts."""
    tables: list[Table] = []
    for name, by_method in figures.scores.items():
        rows = by_method.values()
        if not any(row.counts or any(p.estimate.n for p in row.parts.values()) for row in rows):
            continue
        scorer = SCORERS[name]
        render = percent if scorer.in_percent else partial(plain, missing=UNSCORED)
        columns = scorer.columns or scorer.parts
        counts = {method: row.counts for method, row in by_method.items()}
        titles, noun = scorer.counted, "pairs" if scorer.of_pairs else "responses"
        if not titles and len(scorer.parts) == 1:
            (part,) = scorer.parts
            counts = {method: row.parts[part].distribution for method, row in by_method.items()}
            titles = {g: g for g in sorted({g for row in counts.values() for g in row}, key=float)}
        tests = {} if scorer.test is None else {m: scorer.test(r) for m, r in by_method.items()}
        tables.append(
            Table(
                title=f"{scorer.title} (95 % interval)",
                columns=[
                    ("pair", "text") if scorer.of_pairs else METHOD,
                    *((part.replace("_", " "), "percent") for part in columns),
                    *((heading, "count") for heading in titles.values()),
                    *([("p", "count")] if tests else []),
                ],
                rows=[
                    [
                        method,
                        *(
                            f"{render(estimate)} n {estimate.n:,}"
                            for estimate in (row.parts[part].estimate for part in columns)
                        ),
                        *(counts[method].get(key, 0) for key in titles),
                        *([p_value(tests[method])] if tests else []),
                    ]
                    for method, row in by_method.items()
                ],
                note=f"{scorer.note} n: {noun} with a score. {EACH_ALONE}".strip(),
            )
        )
    return tables


def criteria_table(figures: "Figures") -> Table:
    """Return which success criteria each method reached; empty without criteria."""
    methods = list(dict.fromkeys(criterion.method for criterion in figures.criteria))
    cells: dict[str, dict[str, str]] = {}
    for criterion in figures.criteria:
        beyond = "below" if criterion.lower_is_better else "above"
        bounds = [b for b in (criterion.minimum, criterion.target) if b is not None]
        limits = ", target ".join(f"{bound:.10g}" for bound in bounds)
        label, value = f"{criterion.metric} {beyond} {limits}", criterion.value
        if value is not None or label in cells:
            text = UNKNOWN if value is None else number_beside(value, *bounds)
            cells.setdefault(label, {})[criterion.method] = f"{text} {criterion.result}"
    if not cells:
        return Table()
    return Table(
        title="Success criteria",
        columns=[("measure", "text"), *((method, "count") for method in methods)],
        rows=[[label, *(row.get(method) for method in methods)] for label, row in cells.items()],
        most=3,
    )
