"""What is said of a run beside its tables: its label, what was paid, and what failed."""

from collections import Counter
from typing import TYPE_CHECKING

from graphrag.eval.dataset.samples import name_question
from graphrag.eval.records import METRICS
from graphrag.eval.report.cells import UNKNOWN, money
from graphrag.eval.results.usage import has_impossible_latency
from graphrag.eval.store.records import SAYS_LITTLE
from graphrag.query.model_facts import is_offline, model_price
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.records import QueryResult
    from graphrag.eval.results.evaluation_results import EvaluationResults


def label_results(results: "EvaluationResults") -> str | None:
    """Return what a table must be labelled with; None when there is nothing to say."""
    label = results.metadata["embedded_models"]
    parts = [label] if label else []
    if not results.metadata.get("is_complete", True):
        parts.append("incomplete: {n_done} of {n_planned}".format(**results.metadata))
    return "; ".join(parts) or None


def describe_firsts(results: "EvaluationResults") -> list[str]:
    """Return which figures are of the first search alone, where questions were searched again."""
    if results.repeats is None or results.repeats.n_trials == 1:
        return []
    return [
        "What is measured without the judge, where answers were lost, and what further judges say "
        "is of the first search of each question."
    ]


def describe_room(results: "EvaluationResults") -> list[str]:
    """Return what was warned of contexts that hold most of a text, a line each warning."""
    found = [line for line in results.metadata.get("warnings", ()) if line.endswith(SAYS_LITTLE)]
    return [f"{line[0].upper()}{line[1:]}." for line in found]


def describe_costs(results: "EvaluationResults") -> list[str]:
    """Return what the tables leave out: what was cached, and what was forgotten."""
    earlier = results.metadata.get("earlier_attempts")
    lines = _describe_cached(results)
    if earlier is not None:
        tokens = sum(count for name, count in earlier.items() if name.endswith("_tokens"))
        cost = money(earlier["cost_usd"], "$", UNKNOWN)
        lines.append(
            f"Earlier attempts, failed or lost, took {counted(earlier['calls'], 'call')} and cost "
            f"{tokens:,} counted tokens, {cost} on top of that."
        )
    return lines


def _describe_cached(results: "EvaluationResults") -> list[str]:
    """Return what providers say they read from their own caches; nothing if none of them does."""
    told: list[str] = []
    for method, found in results.efficiency.items():
        cached = found.get("cached_prompt_tokens")
        if cached is not None:
            n, calls = (
                found["calls_reporting_cached_tokens"],
                sum(found["llm_calls_by_phase"].values()),
            )
            said = (
                "by how many calls is not known"
                if n is None
                else f"{n:,} of {calls:,} calls report"
            )
            read = sum(found["prompt_tokens_by_phase"].values())
            told.append(f"{method} {cached:,} of {read:,} ({said})")
    judged = [found.get("judge_cached_prompt_tokens") for found in results.efficiency.values()]
    known = [count for count in judged if count is not None]
    if known:
        told.append(f"the judge {sum(known):,}")
    return [f"Prompt tokens from the providers' caches: {'; '.join(told)}."] if told else []


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
    for summary in results.summaries():
        of_method = [r for r in results.results if r.method == summary.method]
        causes = [r.failure.message for r in of_method if r.failure is not None]
        if causes:
            lines.append(
                f"{summary.method}: {len(causes)} of {len(of_method)} searches failed and count 0, "
                f"e.g. {causes[0]}"
            )
        verdicts = [(metric, r.scores.get(metric)) for metric in METRICS for r in of_method]
        missing = Counter(metric for metric, verdict in verdicts if verdict.failure)
        n = sum(any(r.scores.get(metric).failure for metric in METRICS) for r in of_method)
        if missing:
            cause = next(verdict.failure for _, verdict in verdicts if verdict.failure)
            counts = ", ".join(f"{metric} {n}" for metric, n in missing.items())
            lines.append(
                f"{summary.method}: verdicts on {n:,} of {counted(len(of_method), 'response')} are "
                f"unscored and left out, {counts}, e.g. {cause.message}"
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
