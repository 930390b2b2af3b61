"""What the terminal shows: progress while a run goes on, tables when it ends; the log file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from graphrag.eval.analysis import has_impossible_latency
from graphrag.eval.dataset import name_question
from graphrag.eval.records import METRICS
from graphrag.eval.reports.answer import describe_answer
from graphrag.eval.reports.cells import (
    EACH_ALONE,
    MISSING,
    NOT_JUDGED,
    UNKNOWN,
    UNSCORED,
    money,
    number,
    percent,
    seconds,
    share,
    unfinished,
)
from graphrag.eval.reports.judge_error import describe_judge_error
from graphrag.eval.reports.pair_lines import (
    describe_comparisons,
    describe_documents,
    describe_race,
    describe_repeats,
)
from graphrag.eval.statistics import describe_tests
from graphrag.query.model_facts import (
    is_offline,
    model_price,
)
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.analysis import Analysis, RepeatAnalysis
    from graphrag.eval.records import QueryResult
    from graphrag.eval.results import EvaluationResults
    from graphrag.eval.statistics import (
        Outcomes,
        VarianceComponents,
    )

_HOLM = "Intervals of 95 %, not corrected; p corrected by Holm over these pairs."
_TOGETHER = (
    "All intervals hold together at 95 % confidence, and p is corrected by Holm over these pairs."
)
_MOST_INDEXES = 20  # beyond it a table of them leaves nothing else on the terminal
_PERMUTED = "Differences between the means of questions, by a permutation test."


def show_results(console: Console, results: "EvaluationResults") -> None:
    """Print the tables of a run: by method, by index, comparisons, efficiency, failures.

    Raises
    ------
    ValueError
        If the results hold no analysis, see :class:`EvaluationResults`.
    """
    analysis = results.analysis
    if analysis is None:
        msg = "these results hold no analysis; make them with aggregate_results"
        raise ValueError(msg)
    label = label_results(results)
    note = f" ({label})" if label else ""
    for line in describe_answer(results, note):
        console.print(line, style="bold", soft_wrap=True)
    title = f"Mean scores by method in % (95 % interval){note}"
    if results.metrics:
        table = _outcomes_table(title, results.metrics, analysis.outcomes.items())
        table.caption = EACH_ALONE
        console.print(table)
    if len(results.by_movie) > _MOST_INDEXES:
        n = len(results.by_movie)
        console.print(f"The summary file has the means on each of the {n:,} indexes.")
    elif results.metrics and len(results.by_movie) > 1:
        rows = [
            (f"{movie}  {method}", outcomes)
            for movie, by_method in analysis.outcomes_by_document.items()
            for method, outcomes in by_method.items()
        ]
        title = f"Mean scores by index and method in %{note}"
        console.print(_outcomes_table(title, results.metrics, rows))
    for line in describe_asked(results):
        console.print(line, soft_wrap=True)
    if analysis.comparisons:
        console.print(
            f"Comparisons on {analysis.primary} in percentage points{note}", style="italic"
        )
        console.print(f"  {_TOGETHER}", style="italic", soft_wrap=True)
    in_family = [compared.result for compared in analysis.comparisons if compared.in_family]
    lines = [
        *describe_race(results),
        *describe_comparisons(analysis),
        *describe_tests(in_family),
        *describe_documents(analysis),
    ]
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)
    for line in describe_judge_error(analysis, results.metadata.get("run_id")):
        console.print(line, soft_wrap=True)
    if results.repeats is not None:
        everything = label_results(results, of_first=False)
        console.print(_repeats_table(results.repeats, f" ({everything})" if everything else ""))
        if lines := describe_repeats(results.repeats, analysis.primary):
            console.print(f"  {_PERMUTED} {_HOLM}", style="italic", soft_wrap=True)
        for line in lines:
            console.print(f"  {line}", soft_wrap=True)
    console.print(_efficiency_table(results, analysis, note))
    told = (*describe_failures(results), *describe_abstentions(results))
    for line in (*describe_costs(results), *told, *describe_oddities(results)):
        console.print(line, soft_wrap=True)


def label_results(results: "EvaluationResults", of_first: bool = True) -> str | None:
    """Return what a table must be labelled with; None when there is nothing to say.

    ``of_first`` says that the table is of the first search of each question alone.
    """
    label = results.metadata["embedded_models"]
    parts = [label] if label else []
    if not results.metadata.get("is_complete", True):
        race = results.metadata.get("early_stop")
        end = "stopped early" if race is not None and race["stopped_early"] else "incomplete"
        parts.append("{}: {n_done} of {n_planned}".format(end, **results.metadata))
    if of_first and results.repeats is not None and results.repeats.n_trials > 1:
        parts.append(f"the first of {results.repeats.n_trials} searches each")
    return "; ".join(parts) or None


def describe_asked(results: "EvaluationResults") -> list[str]:
    """Return a line when the methods' means are over different numbers of questions."""
    asked = {method: counts["n"] for method, counts in results.counts.items()}
    if len(set(asked.values())) < 2:
        return []
    numbers = ", ".join(f"{method} {n:,}" for method, n in asked.items())
    return [
        f"The methods have answered different numbers of questions ({numbers}); only the "
        "comparisons take the same questions of both."
    ]


def describe_costs(results: "EvaluationResults") -> list[str]:
    """Return what the table of the searches leaves out: the verdicts, and what was forgotten."""
    earlier = results.metadata.get("earlier_attempts")
    lines = [_describe_judge_cost(results)]
    if earlier is not None:
        tokens = sum(count for name, count in earlier.items() if name.endswith("_tokens"))
        failed = f"{earlier['searches']} failed search{'' if earlier['searches'] == 1 else 'es'}"
        cost = money(earlier["cost_usd"], "$", UNKNOWN)
        lines.append(
            f"The earlier attempts of {failed} cost {tokens:,} tokens, {cost} on top of that."
        )
    return lines


def _describe_judge_cost(results: "EvaluationResults") -> str:
    costs = [figures["judge_cost_usd"] for figures in results.efficiency.values()]
    known = [cost for cost in costs if cost is not None]
    total = money(sum(known) if len(known) == len(costs) else None, "$", UNKNOWN)
    line = f"The judge cost {total} on top of the searches."
    if results.repeats is not None and results.repeats.n_trials > 1:
        everything = money(results.metadata["cost_usd"], "$", UNKNOWN)
        return f"{line} All repeats together, judge included, cost {everything}."
    return line


def describe_price(model: str) -> str:
    """Return what a model costs as one line."""
    if is_offline(model):
        return f"  {model}: free, runs here"
    price = model_price(model)
    if price is None:
        return f"  {model}: price not known"
    return (
        f"  {model}: ${price.prompt_usd * 1e6:g} a million prompt tokens, "
        f"${price.output_usd * 1e6:g} a million output tokens"
    )


def describe_failures(results: "EvaluationResults") -> list[str]:
    """Return one line for each method with failed searches or unscored verdicts, with a cause."""
    lines: list[str] = []
    for summary in results.summaries():
        of_method = [r for r in results.results if r.method == summary.method]
        causes = [r.failure.message for r in of_method if r.failure is not None]
        if causes:
            lines.append(
                f"{summary.method}: {len(causes)} of {len(of_method)} searches failed and count 0, "
                f"e.g. {causes[0]}"
            )
        for metric in METRICS:
            missing = [r.scores.get(metric) for r in of_method if r.scores.get(metric).failure]
            if missing:
                lines.append(
                    f"{summary.method}: {len(missing)} of {len(of_method)} {metric} verdicts are "
                    f"unscored and left out, e.g. {missing[0].reason}"
                )
    return lines


def describe_abstentions(results: "EvaluationResults") -> list[str]:
    """Return a line for each method that abstained in more than half of its searches."""
    lines: list[str] = []
    for method in results.metadata["methods"]:
        of_method = [r for r in results.results if r.method == method]
        found = [r for r in of_method if r.failure is None and r.abstained]
        if 2 * len(found) <= len(of_method):
            continue
        line = f"{method}: {len(found)} of {counted(len(of_method), 'answer')} abstained"
        n_bare = sum(
            r.retrieved is not None
            and r.retrieved.text_unit_ids is not None
            and not r.retrieved.n_sources
            for r in found
        )
        lines.append(f"{line}, {n_bare} of them without a text in the context" if n_bare else line)
    return lines


def describe_oddities(results: "EvaluationResults") -> list[str]:
    """Return a line for each method with replies that were cut off, or impossible latencies."""
    lines: list[str] = []
    for method in results.metadata["methods"]:
        of_method = [r for r in results.results if r.method == method]
        cut = [r for r in of_method if r.usage is not None and r.usage.cut_replies]
        if cut:
            answered = [r for r in cut if r.failure is None]
            judged = f"; {len(answered)} of these answered and are judged as they are"
            lines.append(
                f"{method}: in {len(cut)} of {len(of_method)} searches a reply was cut off, e.g. "
                f"at {_question(cut[0])}{judged if answered else ''}; "
                "max_output_tokens and tog_search's own bounds say how long a reply may be"
            )
        odd = [r for r in of_method if has_impossible_latency(r)]
        if odd:
            lines.append(
                f"{method}: the stored latency of {len(odd)} of {len(of_method)} searches can't be "
                f"one and is left out, e.g. {odd[0].efficiency.latency:g} s at "
                f"{_question(odd[0])}"
            )
    return lines


def _question(result: "QueryResult") -> str:
    return name_question(result.sample_id, result.imdb_key, result.question)


def _outcomes_table(
    title: str, metrics: Sequence[str], rows: Iterable[tuple[str, Mapping[str, "Outcomes"]]]
) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("method", no_wrap=True)
    for metric in metrics:
        table.add_column(metric, justify="right")
    for name, outcomes in rows:
        table.add_row(name, *(_mean_cell(outcomes[metric]) for metric in metrics))
    return table


def _mean_cell(outcomes: "Outcomes") -> str:
    estimate = outcomes.end_to_end or outcomes.given_answer
    is_judged = outcomes.coverage is not None or not outcomes.n_not_judged
    return percent(estimate, UNSCORED if is_judged else NOT_JUDGED)


def _repeats_table(repeats: "RepeatAnalysis", note: str) -> Table:
    table = Table(
        title=(
            f"Means of questions in % over {counted(repeats.n_trials, 'search', 'searches')} and "
            f"{counted(repeats.n_verdicts, 'verdict')} each{note}"
        ),
        title_justify="left",
        caption=(
            "Flips: chance that a repeat changes a score. Variance: shares of question, search and "
            "judge in the variance of one score; + joins what these repeats can't tell apart, "
            "clipped is an estimate below 0, taken as 0. Better repeat: what lowers the variance "
            "of the mean more for what it costs, where that is sure at a level of 5 %. "
            f"{EACH_ALONE}"
        ),
        caption_justify="left",
    )
    for name in ("method", "metric"):
        table.add_column(name, no_wrap=True)
    for name in ("mean", "search flips", "judge flips", "variance q/s/j", "better repeat"):
        table.add_column(name, justify="right")
    for figures in repeats.figures:
        table.add_row(
            figures.method,
            figures.metric,
            percent(figures.mean, UNSCORED),
            share(figures.search_flip_rate, "%"),
            share(figures.judge_flip_rate, "%"),
            _variance_cell(figures.variance),
            figures.variance.best_repeat or MISSING,
        )
    return table


def _variance_cell(variance: "VarianceComponents") -> str:
    """Return the share of each source, by the letters of what it joins where there are several."""
    known = {name: part for name, part in variance.shares.items() if part is not None}
    if not known:
        return MISSING
    cells = [
        "clipped" if name in variance.clipped else format(part, ".0%")
        for name, part in known.items()
    ]
    if "search" in known:
        return "/".join(cells)
    letters = ["+".join(factor[0] for factor in name.split(" + ")) for name in known]
    # As the sources lie in each other: what joins the search comes first or last.
    named = sorted(zip(letters, cells, strict=True), key=lambda pair: "qsj".index(pair[0][0]))
    return ", ".join(f"{letter} {cell}" for letter, cell in named)


def _efficiency_table(results: "EvaluationResults", analysis: "Analysis", note: str) -> Table:
    table = Table(
        title=f"Efficiency of the searches{note}",
        title_justify="left",
        caption=(
            "LLM calls and tokens are means a question, cost is the sum. Pareto: no other method "
            "is as good in the point estimates of score, tokens and median, and better in one; "
            f"chance is not weighed.{_unfinished_note(analysis)}"
        ),
        caption_justify="left",
    )
    table.add_column("method", no_wrap=True)
    for name in ("median s", "p95 s", "LLM calls", "tokens", "cost $", "$ a correct", "Pareto"):
        table.add_column(name, justify="right")
    for method, figures in results.efficiency.items():
        further = analysis.efficiency[method]
        table.add_row(
            method,
            seconds(further.latency_median) + unfinished(further.latency_median),
            seconds(further.latency_p95) + unfinished(further.latency_p95),
            number(figures["avg_llm_calls"]),
            number(_total(figures["avg_prompt_tokens"], figures["avg_output_tokens"]), ",.0f"),
            money(figures["cost_usd"]),
            money(further.cost_per_correct.value),
            MISSING if further.is_pareto is None else "yes" if further.is_pareto else "no",
        )
    return table


def _unfinished_note(analysis: "Analysis") -> str:
    if not any(found.latency_median.censored_share for found in analysis.efficiency.values()):
        return ""
    return " Unfinished: searches that failed; they count as slower than all others."


def _total(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
