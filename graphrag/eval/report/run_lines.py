"""What is said of a run beside its tables, a line each: pairs of methods, costs, what failed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from graphrag.command_lines import eval_line_here
from graphrag.eval.dataset.samples import name_question
from graphrag.eval.judged import METRICS
from graphrag.eval.report.cells import (
    UNKNOWN,
    UNSCORED,
    money,
    p_value,
    plain,
    points,
    share,
    span,
)
from graphrag.eval.report.run_tables import name_figure
from graphrag.eval.store.records import SAYS_LITTLE
from graphrag.query.model_facts import is_offline, model_price
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.records import QueryResult
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.curves import BudgetCurves
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.figures import Figures
    from graphrag.eval.stats.intervals import Estimate


def label_results(results: "EvaluationResults") -> str | None:
    """Return what a table must be labelled with; None when there is nothing to say."""
    label = results.metadata["embedded_models"]
    parts = [label] if label else []
    if not results.metadata.get("is_complete", True):
        parts.append("incomplete: {n_done} of {n_planned}".format(**results.metadata))
    return "; ".join(parts) or None


def describe_comparisons(analysis: "Analysis") -> list[str]:
    """Return difference, simultaneous interval, corrected test and verdict, a line each pair."""
    lines: list[str] = []
    for each in analysis.comparisons:
        (decided, family), dropped = each.decided, each.result.n_dropped_pairs
        if family is None:
            continue
        end = f" ({counted(dropped, 'question')} without both verdicts left out)" if dropped else ""
        if each.is_corrected:
            end = f"; by the judge alone {points(each.result.difference)}"
        lines.append(
            f"{each.a} - {each.b}: {points(decided.difference, UNKNOWN)} "
            f"({span(family.low_simultaneous, family.high_simultaneous, missing=UNKNOWN)}), "
            f"{p_value(decided.p_holm)}: {each.verdict}{end}"
        )
    return lines


def describe_uncorrected(analysis: "Analysis") -> list[str]:
    """Return why labels corrected nothing, a line each reason."""
    refused: dict[str, list[str]] = {}
    for each in analysis.comparisons:
        if each.in_family and each.corrected is not None and each.corrected.refused is not None:
            refused.setdefault(each.corrected.refused, []).append(f"{each.a} - {each.b}")
    return [
        f"Not corrected by labels ({', '.join(pairs)}): {why}." for why, pairs in refused.items()
    ]


def describe_documents(analysis: "Analysis") -> list[str]:
    """Return what may be said of other documents, a line each comparison on the main metric."""
    lines: list[str] = []
    for each in analysis.comparisons:
        view = each.result.by_document
        if not each.in_family or view is None or len(view.documents) < 2:
            continue
        agree = "no direction" if view.n_agreeing is None else f"{view.n_agreeing} agree"
        mean = view.estimate
        limits = f"({span(mean.low, mean.high)})"
        lines.append(
            f"{each.a} - {each.b}: of {len(view.documents)} documents {agree}; mean over "
            f"documents {points(mean.mean, UNKNOWN)} "
            f"{'without an interval' if None in (mean.low, mean.high) else limits} ({view.label})"
        )
    return lines


def describe_lost_areas(curves: "BudgetCurves") -> list[str]:
    """Return how many questions no area counts, a line each method that lacks some."""
    lines: list[str] = []
    for curve in curves.curves:
        lacking = {f: n for f in curves.figures if (n := curve.n_left_out.get(f, 0))}
        if lacking:
            left = (f"{counted(n, 'question')} on {name_figure(f)}" for f, n in lacking.items())
            lines.append(f"{curve.method}: the area leaves out {', '.join(left)}")
    return lines


def describe_grades(figures: "Figures") -> Iterator[str]:
    """Yield what further judges say: rubric, quality, responses held against each other."""
    rubric = {
        method: {name: summary.scale.estimate for name, summary in of.items()}
        for method, of in figures.rubric.items()
    }
    for title, grades in (("Rubric, 1 to 5", rubric), ("Quality, 0 to 1", figures.quality)):
        cells = [f"{method} {_grade(of)}" for method, of in grades.items()]
        if cells:
            yield (
                f"{title} (95 % interval, not corrected): {'; '.join(cells)}. The summary file has "
                "every dimension."
            )
    if figures.pairwise:
        yield "Responses held against each other, in both orders:"
    for (a, b), of in figures.pairwise.items():
        yield (
            f"{a} against {b}: {of.n_a} better, {of.n_b} worse, {of.n_ties} ties, "
            f"{of.n_missing} missing; sign test {p_value(of.p)} (not corrected); the order decided "
            f"{share(of.flip_rate.mean, '%', UNKNOWN)}"
        )


def _grade(dimensions: "Mapping[str, Estimate]") -> str:
    """Return the overall grade, else the lowest and the highest dimension."""
    if "overall_score" in dimensions:
        return plain(dimensions["overall_score"], missing=UNSCORED)
    means = {name: each.mean for name, each in dimensions.items() if each.mean is not None}
    if not means:
        return UNSCORED
    ends = (min(means, key=means.__getitem__), max(means, key=means.__getitem__))
    return " to ".join(f"{plain(dimensions[name])} {name}" for name in dict.fromkeys(ends))


def describe_firsts(results: "EvaluationResults") -> list[str]:
    """Return which figures are of the first search alone, where questions were searched again."""
    if results.repeats is None or results.repeats.n_trials == 1:
        return []
    return [
        "Measures without a judge, where answers were lost, and the further judges look only at "
        "the first search of each question."
    ]


def describe_room(results: "EvaluationResults") -> list[str]:
    """Return what was warned of contexts that hold most of a text, a line each warning."""
    lines = [line for line in results.metadata.get("warnings", ()) if line.endswith(SAYS_LITTLE)]
    return [f"{line[0].upper()}{line[1:]}." for line in lines]


def describe_gold(results: "EvaluationResults") -> list[str]:
    """Return how many questions a person has vetted, where the dataset says so."""
    n_gold = results.metadata.get("n_gold")
    if n_gold is None:
        return []
    n = results.metadata["asked"]["questions"]
    if n_gold:
        of = counted(n, "question")
        return [f"{n_gold:,} of {of} are gold: a person accepted or mended them."]
    review = eval_line_here("view", "--review", "DATASET")
    return [f"No person has vetted any of the {counted(n, 'question')}; review them with: {review}"]


_BESIDE = {
    "earlier_attempts": "Earlier attempts, failed or lost,",
    "unfinished_answers": "Answers that are not finished, and go on from there,",
}


def describe_costs(results: "EvaluationResults") -> list[str]:
    """Return what the tables leave out: what was cached, and what is part of no result."""
    cached: list[str] = []
    for method, of in results.efficiency.items():
        tokens, n = of.get("cached_prompt_tokens"), of.get("calls_reporting_cached_tokens")
        if tokens is not None:
            calls = f"{n or 0:,} of {sum(of['llm_calls_by_phase'].values()):,} calls report"
            known = "by how many calls is not known" if n is None else calls
            read = sum(of["prompt_tokens_by_phase"].values())
            cached.append(f"{method} {tokens:,} of {read:,} ({known})")
    judged = [of.get("judge_cached_prompt_tokens") for of in results.efficiency.values()]
    if any(tokens is not None for tokens in judged):
        cached.append(f"the judge {sum(tokens or 0 for tokens in judged):,}")
    lines = [f"Prompt tokens from the providers' caches: {'; '.join(cached)}."] if cached else []
    further: Mapping[str, int] = results.figures.get("further_judges") or {}
    n_reused = sum(of.get("judge_reused_replies", 0) for of in results.efficiency.values())
    n_reused += further.get("reused_replies", 0)
    if n_reused:
        lines.append(
            f"{counted(n_reused, 'reply', 'replies')} of the judge come from earlier runs "
            "(judge.cache) and cost nothing. Agreement with those runs says nothing of the judge."
        )
    for name, what in _BESIDE.items():
        taken = results.metadata.get(name)
        if taken is not None:
            tokens = sum(count for name, count in taken.items() if name.endswith("_tokens"))
            cost = money(taken["cost_usd"], "$", UNKNOWN)
            lines.append(
                f"{what} took {counted(taken['calls'], 'call')} and cost {tokens:,} counted "
                f"tokens, {cost} on top of that."
            )
    return lines


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
    """Return a line on each method's failed searches and one on its unscored verdicts."""
    lines: list[str] = []
    for method, of_method in _by_method(results):
        causes = [r.failure.message for r in of_method if r.failure is not None]
        if causes:
            lines.append(
                f"{method}: {len(causes)} of {len(of_method)} searches failed and count 0, "
                f"e.g. {causes[0]}"
            )
        failures = [(m, r.scores.get(m).failure) for m in METRICS for r in of_method]
        missing = Counter(metric for metric, failure in failures if failure)
        if missing:
            n = sum(any(r.scores.get(metric).failure for metric in METRICS) for r in of_method)
            cause = next(failure for _, failure in failures if failure)
            counts = ", ".join(f"{metric} {times}" for metric, times in missing.items())
            lines.append(
                f"{method}: verdicts on {n:,} of {counted(len(of_method), 'response')} are "
                f"unscored and left out, {counts}, e.g. {cause.message}"
            )
    return lines


def describe_abstentions(results: "EvaluationResults") -> list[str]:
    """Return a line for each method that abstained in more than half of its searches."""
    lines: list[str] = []
    for method, of_method in _by_method(results):
        declined = [r for r in of_method if r.failure is None and r.abstained]
        if 2 * len(declined) <= len(of_method):
            continue
        sources = [r.retrieved for r in declined if r.retrieved is not None]
        n_bare = sum(r.text_unit_ids is not None and not r.n_sources for r in sources)
        bare = f", {n_bare} of them without a text in the context" if n_bare else ""
        n = counted(len(of_method), "answer")
        lines.append(f"{method}: {len(declined)} of {n} abstained{bare}")
    return lines


def describe_oddities(results: "EvaluationResults") -> list[str]:
    """Return a line for each method with replies that were cut off."""
    lines: list[str] = []
    for method, of_method in _by_method(results):
        cut = [r for r in of_method if r.usage is not None and r.usage.cut_replies]
        if cut:
            n_answered = sum(r.failure is None for r in cut)
            judged = f"; {n_answered} of these answered and are judged as they are"
            lines.append(
                f"{method}: in {len(cut)} of {len(of_method)} searches a reply was cut off, e.g. "
                f"at {_question(cut[0])}{judged if n_answered else ''}; "
                "max_output_tokens and tog_search's own bounds say how long a reply may be"
            )
    return lines


def _by_method(results: "EvaluationResults") -> "Iterator[tuple[str, list[QueryResult]]]":
    for method in results.metadata["methods"]:
        yield method, [result for result in results.results if result.method == method]


def _question(result: "QueryResult") -> str:
    return name_question(result.sample_id, result.imdb_key, result.question)
