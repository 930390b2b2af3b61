"""Prints one question of a run: answers, verdicts, evidence, cost, and the way of ToG searches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.citations import cited_sources
from graphrag.eval.metrics.scorer_registry import SCORERS
from graphrag.eval.report.formatting import UNKNOWN, money, number, share
from graphrag.eval.report.table import Line, show
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.store.records import CLAIMS
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import KeptCalls, KeptExchange, QueryResult, Retrieved
from graphrag.text.message_phrases import counted, shorten
from graphrag.text.redaction import redact
from graphrag.text.search_trace import way_tree

if TYPE_CHECKING:
    from rich.tree import Tree

_MOST_QUESTION = 60  # characters of one in a list
_LONG, _FIRST, _LAST = 1_500, 900, 400  # characters of a text of a call
_UNSEEN = "none were seen: what it asked, if anything, went past graphrag's models"

ShownAnswer: TypeAlias = tuple[
    str, QueryResult, Mapping[str, float | None], Sequence[KeptCalls] | None
]
"""The answer's name, its result, its measures as in retrieval_results.json, and the calls to
print."""


def show_question(
    console: Console, sample: Sample, answers: Iterable[ShownAnswer], full: bool = False
) -> None:
    """Print a question with each method's answer, verdicts and reasons, evidence, cost and way.

    The way is the calls of a Think-on-Graph search. ``full``: also print the context that the model
    was shown, and long texts of calls in full.
    """
    where = f" of {sample.imdb_key}" if sample.imdb_key else ""
    lines = [Line(f"{sample.id}{where}: {sample.question}", "bold")]
    if sample.ground_truth:
        lines.append(Line(f"Expected: {sample.ground_truth}"))
    show(console, [*lines, *(Line(f"Evidence: {quote}") for quote in sample.evidence)])
    for name, result, measures, calls in answers:
        console.print()
        lines = [f"{name}: {result.response if result.failure is None else 'no answer'}"]
        further = [name for name in result.grades if name != CLAIMS]  # they follow their verdict
        details = (*_verdicts(result), *_grades(result, further), *_evidence(sample, measures))
        lines += (f"  {line}" for line in (*details, _cost(result)))
        show(console, map(Line, lines))
        retrieved = result.retrieved
        tree = None if retrieved is None else _make_tree(result, retrieved)
        if tree is not None:
            console.print(tree)
        if full and result.context_text is None:
            show(console, [Line("Context: unknown, as the method does not report it", "dim")])
        elif full and result.context_text:
            show(console, [Line(f"Context:\n{result.context_text}", "dim")])
        if calls is not None:
            show(console, _list_calls(calls, full))
    console.print()


def find_wrong(
    results: Sequence[QueryResult], method: str, metric: str | None
) -> tuple[list[str], list[str]]:
    """Return the ids of the questions that a method has wrong by a metric, failed or unscored.

    The second list has the questions that only other methods have wrong. In both, questions whose
    row the judge doubts come first.
    """
    wrong: dict[str, set[str]] = {}
    for result in results:
        methods = wrong.setdefault(result.sample_id, set())
        verdict = result.scores.get(metric) if metric else None
        is_wrong = verdict is not None and (verdict.score == 0 or verdict.failure is not None)
        if is_wrong or result.failure is not None:
            methods.add(result.method)
    doubted = {result.sample_id for result in results if result.doubt}
    wrong = dict(sorted(wrong.items(), key=lambda item: item[0] not in doubted))
    own = [sample_id for sample_id, methods in wrong.items() if method in methods]
    return own, [k for k, methods in wrong.items() if methods and k not in own]


def list_wrong(
    samples: Sequence[Sample],
    results: Iterable[QueryResult],
    ids: Iterable[str],
    metric: str | None,
) -> Iterator[str]:
    """Yield a line per question, in the order of ``ids``, on what is wrong with its answers.

    ``metric``: the metric of the score.
    """
    by_id = {sample.id: sample for sample in samples}
    answers = grouped((result.sample_id, result) for result in results)
    for sample_id in ids:
        by_method = {r.method: name_wrong(r, metric) for r in answers.get(sample_id, ())}
        reasons = "; ".join(f"{method} {fault}" for method, fault in by_method.items() if fault)
        yield f"{sample_id}  {shorten(by_id[sample_id].question, _MOST_QUESTION)}  {reasons}"


def name_wrong(result: QueryResult, metric: str | None) -> str:
    """Return the fault of an answer: its failure, or verdicts that are 0 or missing.

    ``metric``: the metric by which the answer is right or wrong. "" if nothing is wrong.
    """
    if result.failure is not None:
        return f"failed ({result.failure.kind})"
    scores = {metric: result.scores.get(metric) for metric in METRICS}
    failed = [name for name, verdict in scores.items() if verdict.score == 0]
    unscored = [name for name, verdict in scores.items() if verdict.failure]
    others = ", ".join(name for name in failed if name != metric)
    if metric in failed:
        fault = f"wrong (also failed: {others})" if others else "wrong"
    else:
        fault = f"failed only: {others}" if others else ""
    return ", ".join(filter(None, (fault, f"unscored: {', '.join(unscored)}" if unscored else "")))


def _verdicts(result: QueryResult) -> list[str]:
    if result.failure is not None:
        return [f"search failed ({result.failure.kind}): {result.failure.message}"]
    lines = [f"doubts the ground truth: {result.doubt}"] if result.doubt else []
    if result.abstained:
        lines.append("declined to answer")
    for metric in METRICS:
        verdict = result.scores.get(metric)
        if verdict.failure is not None:
            cause = f"({verdict.failure.kind}): {verdict.failure.message}"
            lines.append(f"{metric}: unscored {cause}")
        elif verdict.score is not None:
            votes = f" ({sum(v == verdict.score for v in verdict.repeats)} of "
            votes += f"{len(verdict.repeats)} verdicts)"
            word = "right" if verdict.score else "wrong"
            lines.append(
                f"{metric}: {word}{votes if verdict.repeats else ''}: {verdict.reason or '-'}"
            )
        if metric == "faithfulness" and CLAIMS in result.grades:
            lines += _grades(result, [CLAIMS])
    return lines or ["not judged"]


def _grades(result: QueryResult, names: Iterable[str]) -> Iterator[str]:
    """Yield the verdicts of further judges on an answer, in the words of each."""
    for scorer in filter(None, map(SCORERS.find, names)):
        yield from scorer.lines(result.grades[scorer.name])


def _evidence(sample: Sample, measures: Mapping[str, float | None]) -> list[str]:
    """Return a line on whether the evidence was retrieved; no line if there is none to look for."""
    if not sample.evidence and not sample.expected_sources:
        return []
    recall, rank = measures.get("recall"), measures.get("mrr")
    if recall is None:
        return ["evidence: not measured"]
    if not recall:
        return ["evidence: not found"]
    first = f", first at rank {1 / rank:.0f}" if rank else ""
    return [f"evidence: {'found' if recall == 1 else f'{share(recall)} % of it found'}{first}"]


def _cost(result: QueryResult) -> str:
    spent = result.efficiency
    seconds = number(spent.latency, ".2f", UNKNOWN)
    calls = f"{UNKNOWN} calls" if spent.llm_calls is None else counted(spent.llm_calls, "call")
    failed = 0 if result.usage is None else result.usage.failed_calls
    calls += f" and {failed} that failed" if failed else ""
    dollars = None if result.usage is None else result.usage.cost_usd
    paid = "" if dollars == 0 else f", {money(dollars, '$', 'price not known')}"
    return f"{calls}, {number(spent.tokens, ',', UNKNOWN)} tokens, {seconds} s{paid}"


def _make_tree(result: QueryResult, retrieved: Retrieved) -> "Tree | None":
    if not retrieved.walk:
        return None
    steps = [
        replace(
            step,
            followed=tuple(map(redact, step.followed)),
            looked_up=tuple(map(redact, step.looked_up)),
            missing=redact(step.missing),
        )
        for step in retrieved.walk.steps
    ]
    return way_tree(steps, cited_sources(result.response))


def _list_calls(calls: Sequence[KeptCalls], full: bool = False) -> Iterator[Line]:
    """Yield the calls of a search and of its judges, in order; long texts only at both ends.

    ``full``: all texts in full.
    """
    if not calls:
        yield Line("  Calls: not kept; output.keep_calls keeps them", "dim")
    for record in calls:
        who = {"search": "the search", "judge": "the judge"}.get(
            record["work"], f"the judge ({record['work']})"
        )
        yield Line(f"  Calls of {who}: {len(record['exchanges']) or _UNSEEN}", "bold")
        for position, exchange in enumerate(record["exchanges"], 1):
            yield Line(f"  {position}. {_describe_call(exchange)}", "bold")
            for role, text in _texts(exchange):
                yield Line(f"  {role}:", "italic")
                yield Line(text if full else _fold_long(text))


def _describe_call(exchange: KeptExchange) -> str:
    """Return the purpose of a call, its model, tokens and time."""
    if not exchange["attempt"]:
        return "the reply of another run: nothing was sent"
    values: Mapping[str, object] = {"error": "", **exchange["attempt"]}
    head = f"{values['phase']} by {values['model']}"
    counts = f"{values['prompt_tokens']:,} tokens in, {values['output_tokens']:,} out"
    failed = f", failed: {values['error']}" if values["error"] else ""
    return f"{head}: {counts}, {values['latency_s']:.2f} s{failed}"


def _texts(exchange: KeptExchange) -> Iterator[tuple[str, str]]:
    for role, pieces in exchange["sent"]:
        yield role, "".join(pieces)
    if exchange["settings"]:
        yield "settings", "".join(exchange["settings"])
    yield "reply", "none came" if exchange["reply"] is None else "".join(exchange["reply"])


def _fold_long(text: str) -> str:
    if len(text) <= _LONG:
        return text
    left = f"\n[... {len(text) - _FIRST - _LAST:,} more characters, which --full prints ...]\n"
    return f"{text[:_FIRST]}{left}{text[-_LAST:]}"
