"""One question of a run on the terminal: answers, verdicts, evidence, cost, and ToG's paths."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.judged import METRICS
from graphrag.eval.records import QueryResult, Retrieved, Walk
from graphrag.eval.report.cells import UNKNOWN, money, number, share
from graphrag.eval.report.table import Line, show
from graphrag.eval.scorers.assertions import AssertionEvaluation
from graphrag.eval.scorers.claims import ClaimEvaluation, name_ruling
from graphrag.eval.scorers.traced import read_citations
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.store.records import CLAIMS
from graphrag.redaction import redact
from graphrag.text.path_tree import ShownEdge, name_edges, name_row, path_tree
from graphrag.text.phrases import counted, shorten

if TYPE_CHECKING:
    from rich.tree import Tree

_MOST_QUESTION = 60  # characters of one in a list


ShownAnswer: TypeAlias = tuple[str, QueryResult, Mapping[str, float | None]]
"""What it is called, a result, and its measures as in retrieval_results.json."""


def show_question(
    console: Console, sample: Sample, answers: Iterable[ShownAnswer], full: bool = False
) -> None:
    """Print a question: each method's answer, verdicts with reasons, evidence, cost and paths.

    ``full``: with every pruned edge and the context that the model was shown.
    """
    where = f" of {sample.imdb_key}" if sample.imdb_key else ""
    lines = [Line(f"{sample.id}{where}: {sample.question}", "bold")]
    if sample.ground_truth:
        lines.append(Line(f"Expected: {sample.ground_truth}"))
    show(console, [*lines, *(Line(f"Evidence: {quote}") for quote in sample.evidence)])
    for name, result, measures in answers:
        console.print()
        lines = [f"{name}: {result.response if result.failure is None else 'no answer'}"]
        told = (*_verdicts(result), *_assertions(result), *_evidence(sample, measures))
        lines += (f"  {line}" for line in (*told, _cost(result)))
        show(console, map(Line, lines))
        told = result.retrieved
        tree = None if told is None else _tree_of(result, told, full)
        if tree is not None:
            console.print(tree)
        elif told is not None and (line := describe_texts(told)):
            show(console, [Line(f"  {line}")])
        if full and result.context_text is None:
            show(console, [Line("Context: unknown, as the method does not tell it", "dim")])
        elif full and result.context_text:
            show(console, [Line(f"Context:\n{result.context_text}", "dim")])
    console.print()


@dataclass(frozen=True, slots=True)
class WrongAnswers:
    """The questions that a method has wrong, and others that it has right and another wrong."""

    method: str
    wrong: tuple[str, ...]
    differing: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """All of these, the ids of samples."""
        return (*self.wrong, *self.differing)


def find_wrong(results: Sequence[QueryResult], method: str, metric: str | None) -> WrongAnswers:
    """Find the questions that a method has wrong by a metric, failed or unscored."""
    wrong: dict[str, set[str]] = {}
    for result in results:
        of = wrong.setdefault(result.sample_id, set())
        verdict = result.scores.get(metric) if metric else None
        is_wrong = verdict is not None and (verdict.score == 0 or verdict.failure is not None)
        if is_wrong or result.failure is not None:
            of.add(result.method)
    own = tuple(each for each, of in wrong.items() if method in of)
    return WrongAnswers(method, own, tuple(e for e, of in wrong.items() if of and e not in own))


def list_wrong(
    samples: Sequence[Sample], results: Iterable[QueryResult], ids: Iterable[str]
) -> Iterator[str]:
    """Yield a line a question, in the order of ``ids``, of what is wrong with its answers."""
    known = {sample.id: sample for sample in samples}
    by_id = grouped((result.sample_id, result) for result in results)
    for each in ids:
        named = {r.method: name_wrong(r) for r in by_id.get(each, ())}
        said = "; ".join(f"{method} {what}" for method, what in named.items() if what)
        yield f"{each}  {shorten(known[each].question, _MOST_QUESTION)}  {said}"


def name_wrong(result: QueryResult) -> str:
    """Return what failed, and which verdicts are 0 or missing; "" of an answer without any."""
    if result.failure is not None:
        return f"failed ({result.failure.kind})"
    scores = {metric: result.scores.get(metric) for metric in METRICS}
    named = {
        "wrong": [metric for metric, verdict in scores.items() if verdict.score == 0],
        "unscored": [metric for metric, verdict in scores.items() if verdict.failure],
    }
    return ", ".join(f"{word}: {', '.join(metrics)}" for word, metrics in named.items() if metrics)


def _verdicts(result: QueryResult) -> list[str]:
    if result.failure is not None:
        return [f"search failed ({result.failure.kind}): {result.failure.message}"]
    lines = ["abstained"] if result.abstained else []
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
            lines += _claims(ClaimEvaluation.from_dict(result.grades[CLAIMS]))
    return lines or ["not judged"]


def _assertions(result: QueryResult) -> Iterator[str]:
    """Yield what each assertion of the question came to, in the judge's words."""
    given = result.grades.get("assertions")
    for each in () if given is None else AssertionEvaluation.from_dict(given).rulings:
        end = {True: "met", False: "not met", None: "unscored"}[each.is_met]
        what = f"{each.weight}{'' if each.must == 'say' else ', must not be said'}"
        why = f"{each.ruling or 'no ruling'}: {each.reason or '-'}"
        yield f"assertion {end} ({what}): {each.text} ({why})"


def _claims(found: ClaimEvaluation) -> Iterator[str]:
    """Yield a line a claim, or that there is none, and one a citation that is misplaced."""
    if not found.claims and found.failure is None:
        yield "faithfulness: no claims"
    for claim in found.claims:
        texts = f" [{', '.join(claim.texts)}]" if claim.texts else ""
        yield f"  {name_ruling(claim.ruling)}: {claim.text}{texts}"
    for each in found.misplaced:
        yield f"  misplaced citation: {each.citation} in: {each.sentence}"


def _evidence(sample: Sample, measures: Mapping[str, float | None]) -> list[str]:
    """Return whether the evidence was retrieved; no line where there is none to look for."""
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


def _tree_of(result: QueryResult, found: Retrieved, full: bool) -> "Tree | None":
    starts, edges = _walk_of(found)
    if not edges and not starts:
        return None
    shown = [
        replace(each, **{n: redact(getattr(each, n)) for n in ("source", "target", "relationship")})
        for each in name_edges(edges, _descriptions(result.context_text or ""))
    ]
    walk = drawn_walk(found)
    rests = walk is not None and walk.rests_on
    cited = cited_rows(result.response) if rests else ()
    return path_tree("Paths", [redact(name) for name in starts], shown, full, cited)


def _walk_of(found: Retrieved) -> tuple[list[str], list[ShownEdge]]:
    """Return where a search began and its edges: all it scored, or those of the paths it kept."""
    walk = drawn_walk(found)
    if walk is not None and walk.edges:
        return [walk.entities[place] for place in walk.starts], edges_of(walk)
    seen: dict[tuple[int, str, str], ShownEdge] = {}
    starts: dict[str, None] = {}
    for path in found.paths:
        for hop in path:
            ends = (hop.source, hop.target) if hop.forward else (hop.target, hop.source)
            edge = ShownEdge(hop.hop, *ends, hop.relationship_id, hop.forward, hop.score, "kept")
            seen.setdefault((hop.hop, *ends), edge)
            if hop.hop == 1:
                starts.setdefault(ends[0])
    return list(starts), list(seen.values())


def drawn_walk(found: Retrieved) -> Walk | None:
    """Return a walk whose edges a model was asked about; of any other only shown paths are drawn.

    ``ppr`` scores edges without a model, to find paths that its prompt may have no room for.
    """
    return None if found.method == "ppr" else found.walk


def describe_texts(found: Retrieved) -> str:
    """Return what a prompt held where it had no path of a walk that no model was asked about."""
    walk = found.walk
    if found.method != "ppr" or walk is None or found.paths or not found.n_sources:
        return ""
    near = ", ".join(redact(walk.entities[place]) for place in walk.starts)
    ranked = f"ranks 1 to {found.n_sources:,}" if found.n_sources > 1 else "rank 1"
    held = f"Its prompt held no path or relationship, only {counted(found.n_sources, 'text')}"
    nearest = f"; nearest entities: {near}" if near else ""
    return f"{held}: {ranked} by what reaches a text from the question's words and names{nearest}."


def edges_of(walk: Walk) -> list[ShownEdge]:
    """Return all edges of a walk, in order."""
    names, rests_on = walk.entities, walk.rests_on or ((),) * len(walk.edges)
    return [
        ShownEdge(depth, names[start], names[end], name, forward, score, fate, rows)
        for (depth, start, end, name, forward, score, fate), rows in zip(
            walk.edges, rests_on, strict=True
        )
    ]


def cited_rows(response: str) -> list[str]:
    """Return the rows of its context that an answer cites."""
    return [name_row(citation.table, citation.id) for citation in read_citations(response)]


def _descriptions(context: str) -> dict[tuple[str, str], str]:
    """Return (source, target) -> description of the relationships that the model was shown."""
    _, _, table = context.partition("-----Relationships-----\n")
    lines = table.partition("\n\n")[0].splitlines()
    rows = csv.DictReader(lines, delimiter="|")
    found: dict[tuple[str, str], str] = {}
    try:
        for row in rows:
            source, target, text = row.get("source"), row.get("target"), row.get("description")
            if source and target and text:
                found.setdefault((source, target), text)
    except csv.Error:  # a text that is no table of ours: the ids stand for the descriptions
        return found
    return found
