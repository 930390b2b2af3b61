"""Builds the lines and tables of a run's report, in brief and in full."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING

from graphrag.eval.dataset.dataset_reader import name_question
from graphrag.eval.report import run_tables
from graphrag.eval.report.formatting import (
    EACH_ALONE,
    UNKNOWN,
    mean_with_n,
    money,
    number,
    p_value,
    points,
    span,
)
from graphrag.eval.report.recommendation import answer_run, list_lines
from graphrag.eval.report.run_tables import label_results
from graphrag.eval.report.table import Kind, Line, Part, Table, Value
from graphrag.eval.results.handicaps import explain_handicaps
from graphrag.eval.results.usage import refused_parameters
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.query.client.model_prices import is_offline
from graphrag.query.client.refused_parameters import describe_refused
from graphrag.text.cli_hints import eval_line_here
from graphrag.text.message_phrases import counted, join_names

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.run_figures import Figures
    from graphrag.eval.store.index_costs import IndexCost
    from graphrag.eval.types.query_results import QueryResult

_MOST_DOCUMENTS = 20  # beyond it a table of them leaves nothing else on the terminal
_MOST_INDEXES = 3  # indexes whose workflows are listed; the summary file has those of all
_MOST_DOUBTS = 5  # rows that are named; the files have all
_BRIEF = (
    "doubts answer score left_out scores taken gold costs room failed abstentions oddities notes"
)
_FULL = (
    "doubts answer score left_out how gold metrics spent documents kinds together "
    "comparisons by_document uncorrected repeats efficiency room costs failed abstentions oddities "
    "firsts measures scores loss criteria index_cost index_notes notes"
)
"""The sections that the terminal shows of a run, in this order."""
_INDEX_NOTE = (
    "Replies that were in the project's cache count as well: an earlier build paid for them. "
    "Requests without a reply do not. Methods that read the graph share its cost; bm25 needs the "
    "texts alone, and basic, hybrid and agentic their vectors as well."
)
_OF_FIRSTS = (
    "Measures without a judge, where answers were lost, and the further judges look only at the "
    "first search of each question."
)


def list_run(
    results: "EvaluationResults",
    figures: "Figures | None" = None,
    notes: Sequence[str] = (),
    full: bool = False,
) -> list[Part]:
    """Return the lines and tables of a run in brief, or with ``full`` all of them.

    ``figures``, ``notes``: see :func:`make_sections`.
    """
    brief, complete = list_both(results, figures, notes)
    return complete if full else brief


def list_both(
    results: "EvaluationResults", figures: "Figures | None" = None, notes: Sequence[str] = ()
) -> tuple[list[Part], list[Part]]:
    """Return the lines and tables that the terminal shows of a run: in brief, and in full."""
    sections = make_sections(results, figures, notes)
    n = len(analysis_of(results).outcomes_by_document)
    if n > _MOST_DOCUMENTS:
        line = Line(f"The summary file has the means on each of the {n:,} indexes.")
        sections["documents"] = [line]
    brief, full = ([p for name in n.split() for p in sections[name]] for n in (_BRIEF, _FULL))
    return brief, full


def make_sections(
    results: "EvaluationResults", figures: "Figures | None" = None, notes: Sequence[str] = ()
) -> defaultdict[str, list[Part]]:
    """Return section -> lines and tables of a run, from which each surface takes its own.

    ``figures``: figures beyond the verdicts, if there are any. ``notes``: lines on other
    failures. Raises ValueError if the results have no analysis.
    """
    analysis, answer = analysis_of(results), answer_run(results)
    label = label_results(results) if answer is None else None
    spent, repeats = run_tables.spent_table(results), results.repeats
    own: dict[str, list[Part]] = {
        "doubts": _lines(describe_doubts(results)),
        "answer": [
            *([Line(f"All that follows: {label}.", "bold")] if label else []),
            *_lines(explain_handicaps(results.conditions.handicaps)),
        ],
        "score": [run_tables.score_table(results, analysis)],
        "left_out": _lines(describe_left_out(results)),
        "gold": [Line(line, is_command=True) for line in describe_gold(results, figures)],
        "metrics": [run_tables.metrics_table(results.metrics, analysis)],
        "spent": [spent],
        "taken": _lines(_describe_spent(spent, results)),
        "documents": [run_tables.documents_table(analysis)] if results.metrics else [],
        "kinds": [kinds_table(results)],
        "pairs": [run_tables.pairs_table(analysis)],
        "by_document": _lines(describe_documents(analysis)),
        "uncorrected": [Line(line, is_command=True) for line in describe_uncorrected(analysis)],
        "efficiency": [run_tables.efficiency_table(results, analysis)],
        "room": _lines(f"{line[0].upper()}{line[1:]}." for line in results.roomy),
        "costs": _lines(describe_costs(results)),
        "failed": _lines(describe_failures(results)),
        "failures": [run_tables.failures_table(results)],
        "abstentions": _lines(describe_abstentions(results)),
        "oddities": _lines(describe_oddities(results)),
        "firsts": [Line(_OF_FIRSTS)] if repeats is not None and repeats.n_trials > 1 else [],
        "notes": _lines(notes),
    }
    sections = defaultdict[str, list[Part]](list, own)
    if answer is not None:
        sections.update(answer=[*list_lines(answer)], how=_lines(answer.how))
    if analysis.comparisons:
        together = f"Comparisons on {analysis.primary} in percentage points"
        sections["together"] = [Line(together, "italic")]
        sections["comparisons"] = _lines(describe_comparisons(analysis))
    if results.repeats is not None:
        sections["repeats"] = [run_tables.repeats_table(results.repeats)]
    if figures is not None:
        totals, by_document = run_tables.split_loss(figures)
        sections.update(
            measures=[*run_tables.measures_tables(figures.measures)],
            scores=[*_list_scores(figures)],
            loss=[run_tables.loss_table(figures)],
            totals=[totals],
            lost_by_document=[by_document],
            criteria=[run_tables.criteria_table(figures)],
            index_cost=[index_cost_table(figures.index_costs)],
            index_notes=_lines(describe_index_costs(figures.index_costs)),
        )
    return sections


def _lines(texts: Iterable[str]) -> list[Part]:
    return [*map(Line, texts)]


def _describe_spent(spent: Table, results: "EvaluationResults") -> Iterator[str]:
    if spent.rows:
        (_, calls, tokens, *usd) = spent.texts[-1]
        paid = f"${usd[0]}" if usd else "no dollars"
        if usd and spent.rows[-1][-1] is None:
            paid = "an unknown number of dollars"
        usages = (usage for r in results.results for usage in (r.usage, r.judge_usage))
        n_here = sum(usage.tokens_counted_here for usage in usages if usage is not None)
        here = f" The services didn't report the tokens of {n_here:,}: they are counted here."
        yield f"The run took {calls} calls, {tokens} tokens and {paid}.{here if n_here else ''}"


def _list_scores(figures: "Figures") -> Iterator[Part]:
    for table in run_tables.score_tables(figures):
        n_parts = sum(kind == "percent" for _, kind in table.columns)
        yield replace(table, most=3 if n_parts > 2 else 6 if len(table.columns) == 7 else 5)


def analysis_of(results: "EvaluationResults") -> "Analysis":
    """Return the analysis of results; raises ValueError if they have none."""
    if results.analysis is None:
        raise ValueError("these results have no analysis; make them with aggregate_results")
    return results.analysis


def kinds_table(results: "EvaluationResults") -> Table:
    """Return means on the primary metric by group of questions and method; empty without groups."""
    groups = [group for grouping in results.kinds for group in grouping.groups]
    if not groups:
        return Table()
    methods, primary = list(groups[0].means), results.metrics[0]
    by = "" if results.analysis is None else run_tables.by_judge(results.analysis)
    columns: list[tuple[str, Kind]] = [("questions", "text"), *((m, "percent") for m in methods)]
    rows: list[list[Value]] = [
        [group.name, *map(mean_with_n, group.means.values()), group.winner] for group in groups
    ]
    return Table(
        title=f"By kind of question: {primary} in %{by} (95 % interval each), n questions",
        columns=[*columns, ("shown best", "text")],
        rows=rows,
        note="Groups of 20 questions or more. Shown best: better than every other method, with p "
        "corrected by Holm over all pairs in the groups of one column; by the judge alone. "
        f"{EACH_ALONE}",
        most=3,
    )


def index_cost_table(costs: "Mapping[str, IndexCost | None]") -> Table:
    """Return the cost of building a few indexes, by workflow and model; empty if it is unknown."""
    rows: list[list[Value]] = []
    for key, cost in costs.items():
        timed: set[str] = set()
        for step in () if cost is None else cost.steps or ():
            counts = (step.prompt_tokens, step.output_tokens)
            tokens = " + ".join(UNKNOWN if n is None else f"{n:,}" for n in counts)
            # A workflow that asks two models took its time once.
            seconds = "" if cost is None or step.workflow in timed else cost.seconds[step.workflow]
            timed.add(step.workflow)
            name = f"{key}: {step.workflow}\n{step.model}"
            rows.append([name, step.replies, tokens, step.cost_usd, seconds])
    columns: list[tuple[str, Kind]] = [
        *(("index, workflow, model", "text"), ("replies", "count"), ("tokens in + out", "tokens")),
        *(("$", "money"), ("seconds", "seconds")),
    ]
    if not rows or len(costs) > _MOST_INDEXES:
        return Table()
    return Table(
        title="What building the indexes took", columns=columns, rows=rows, note=_INDEX_NOTE
    )


def describe_index_costs(costs: "Mapping[str, IndexCost | None]") -> Iterator[str]:
    """Yield a line on the cost of building each index, and one on indexes of unknown cost."""
    if unknown := [key for key, cost in costs.items() if cost is None]:
        names = f"{'index' if len(unknown) == 1 else 'indexes'} {join_names(unknown, most=8)}"
        yield f"What {names} took to build is not known; graphrag eval --index counts it."
    for key, cost in costs.items():
        if cost is None:
            continue
        seconds = fsum(cost.seconds.values())
        if cost.steps is None:
            yield (
                f"Index {key} took {seconds:,.1f} s to build under graphrag index's own profiler; "
                "tokens and dollars are not known."
            )
        else:
            tokens = number(cost.count_tokens(), ",", UNKNOWN)
            n_cached = sum(step.n_cached for step in cost.steps)
            line = counted(sum(step.replies for step in cost.steps), "reply", "replies")
            line += f" ({n_cached:,} from the project's cache)" if n_cached else ""
            usd = money(cost.cost_usd(), "$", f"dollars {UNKNOWN}")
            line = f"Index {key} took {line}, {tokens} tokens, {usd} and {seconds:,.1f} s to build"
            offline = sorted({step.model for step in cost.steps if is_offline(step.model)})
            yield f"{line}{f' (embedded models: {join_names(offline)})' if offline else ''}."


def describe_comparisons(analysis: "Analysis") -> Iterator[str]:
    """Yield a line per pair of methods: difference, simultaneous interval, test, verdict."""
    for pair in analysis.comparisons:
        (decided, family), dropped = pair.decided, pair.result.n_dropped_pairs
        if family is None:
            continue
        n = counted(decided.n_pairs, "question")
        end = f" ({counted(dropped, 'pair')} of searches without both verdicts)" if dropped else ""
        if pair.is_corrected:
            end = f"; by the judge alone {points(pair.result.difference)}"
        yield (
            f"{pair.a} - {pair.b}: {points(decided.difference, UNKNOWN)} "
            f"({span(family.low_simultaneous, family.high_simultaneous, missing=UNKNOWN)}) over "
            f"{n}, {p_value(decided.p_holm)}: {pair.verdict}{end}"
        )


def describe_uncorrected(analysis: "Analysis") -> list[str]:
    """Return why labels corrected nothing, a line per reason."""
    refused: dict[str, list[str]] = {}
    for pair in analysis.comparisons:
        if pair.in_family and pair.corrected is not None and pair.corrected.refused is not None:
            refused.setdefault(pair.corrected.refused, []).append(f"{pair.a} - {pair.b}")
    return [
        f"Not corrected by labels ({', '.join(pairs)}): {why}." for why, pairs in refused.items()
    ]


def describe_documents(analysis: "Analysis") -> Iterator[str]:
    """Yield a line per comparison on the primary metric on whether other documents would agree."""
    for pair in analysis.comparisons:
        documents = pair.result.by_document
        if not pair.in_family or documents is None or len(documents.documents) < 2:
            continue
        agree = "no direction" if documents.n_agreeing is None else f"{documents.n_agreeing} agree"
        mean = documents.estimate
        limits = f"({span(mean.low, mean.high)})"
        if None in (mean.low, mean.high):
            limits = "without an interval"
        by = ", by the judge alone" if pair.is_corrected else ""
        yield (
            f"{pair.a} - {pair.b}: of {len(documents.documents)} documents {agree}; mean over "
            f"documents {points(mean.mean, UNKNOWN)} {limits} ({documents.label}{by})"
        )


def describe_doubts(results: "EvaluationResults") -> list[str]:
    """Return how many questions have a ground truth that the judge doubts, and the first few."""
    doubts: dict[str, str] = {}
    for result in results.results:
        if result.doubt:
            doubts.setdefault(result.sample_id, f"{result.doubt} ({result.method})")
    if not doubts:
        return []
    total = counted(results.metadata["asked"]["questions"], "question")
    head = (
        f"The judge doubts the ground truth of {len(doubts):,} of {total}; no score hangs on that:"
    )
    lines = [f"  {name}: {doubt}" for name, doubt in doubts.items()]
    left = [f"  ... and {len(lines) - _MOST_DOUBTS:,} more"] * (len(lines) > _MOST_DOUBTS)
    return [head, *lines[:_MOST_DOUBTS], *left]


def describe_gold(results: "EvaluationResults", figures: "Figures | None" = None) -> list[str]:
    """Return a line on how many questions a person has vetted, if the dataset has that.

    ``figures``: for the dataset's file, as the configuration names it.
    """
    n_gold = results.metadata.get("n_gold")
    if n_gold is None:
        return []
    n = results.metadata["asked"]["questions"]
    if n_gold:
        total = counted(n, "question")
        return [f"{n_gold:,} of {total} are gold: a person accepted or mended them."]
    kept = next(iter(figures.evaluations.values()), None) if figures is not None else None
    dataset = "DATASET" if kept is None else str(kept["metadata"]["ground_truth_file"])
    review = eval_line_here("view", "--review", dataset)
    return [f"No person has vetted any of the {counted(n, 'question')}; review them with: {review}"]


def describe_costs(results: "EvaluationResults") -> Iterator[str]:
    """Yield the amounts that the tables leave out: cached tokens, and calls without a result."""
    cached: list[str] = []
    for method, usage in results.efficiency.items():
        tokens, n = usage.get("cached_prompt_tokens"), usage.get("calls_reporting_cached_tokens")
        if tokens is not None:
            calls = f"{n or 0:,} of {sum(usage['llm_calls_by_phase'].values()):,} calls report"
            report = "by how many calls is not known" if n is None else calls
            n_read = sum(usage["prompt_tokens_by_phase"].values())
            cached.append(f"{method} {tokens:,} of {n_read:,} ({report})")
    judged = [usage.get("judge_cached_prompt_tokens") for usage in results.efficiency.values()]
    if any(tokens is not None for tokens in judged):
        cached.append(f"the judge {sum(tokens or 0 for tokens in judged):,}")
    if cached:
        yield f"Prompt tokens from the providers' caches: {'; '.join(cached)}."
    for method, searches in _by_method(results):
        tokens = [result.efficiency.tokens for result in searches]
        known = [count for count in tokens if count is not None]
        if known and len(known) < len(tokens):
            yield (
                f"{method}: {len(tokens) - len(known):,} of {len(tokens):,} searches do not report "
                "what they took, as one that failed may not, so tokens and dollars are unknown; "
                f"the other {len(known):,} took {fmean(known):,.0f} tokens on average."
            )
    for name, (calls, tokens, usd) in run_tables.spent_without_result(results).items():
        amounts = "an unknown part is"
        if calls is not None:
            dollars = money(usd, "$", f"dollars {UNKNOWN}")
            amounts = f"{counted(calls, 'call')}, {tokens:,} tokens and {dollars} are"
        yield f"Of what the run took, {amounts} of {name}."


def describe_failures(results: "EvaluationResults") -> Iterator[str]:
    """Yield a line on each method's failed searches and one on its unscored verdicts."""
    for method, searches in _by_method(results):
        causes = [r.failure.message for r in searches if r.failure is not None]
        if causes:
            yield (
                f"{method}: {len(causes)} of {len(searches)} searches failed and count 0, "
                f"e.g. {causes[0]}"
            )
        unscored = [r.scores.failures for r in searches if r.scores.failures]
        failures = [(m, by_metric[m]) for m in METRICS for by_metric in unscored if m in by_metric]
        if failures:
            n, cause = len(unscored), failures[0][1]
            n_answered = len(searches) - len(causes)
            missing = Counter(metric for metric, _ in failures)
            counts = ", ".join(f"{metric} {times}" for metric, times in missing.items())
            yield (
                f"{method}: verdicts on {n:,} of {counted(n_answered, 'response')} are "
                f"unscored and left out, {counts}, e.g. {cause.message}"
            )


def find_hopeless(results: "EvaluationResults") -> dict[str, str]:
    """Return method -> why its first search failed, for methods all of whose searches failed."""
    failures = {method: [r.failure for r in searches] for method, searches in _by_method(results)}
    return {
        method: first.message
        for method, causes in failures.items()
        if causes and None not in causes and (first := causes[0]) is not None
    }


def describe_left_out(results: "EvaluationResults") -> Iterator[str]:
    """Yield lines on the parameters that the models of methods and of the judge refused."""
    refused = refused_parameters(results.results)
    alike: dict[tuple[str, ...], list[str]] = {}
    for who, name in {"judge": "the judge", **{m: m for m in results.metadata["methods"]}}.items():
        if who in refused:
            alike.setdefault(tuple(refused[who]), []).append(name)
    for names, askers in alike.items():
        yield f"{describe_refused(f'The model of {join_names(askers)}', names)}."


def describe_abstentions(results: "EvaluationResults") -> Iterator[str]:
    """Yield a line for each method that abstained in more than half of its searches."""
    for method, searches in _by_method(results):
        declined = [r for r in searches if r.failure is None and r.abstained]
        if 2 * len(declined) <= len(searches):
            continue
        sources = [r.retrieved for r in declined if r.retrieved is not None]
        n_bare = sum(r.text_unit_ids is not None and not r.n_sources for r in sources)
        bare = f", {n_bare} of them without a text in the context" if n_bare else ""
        n = counted(len(searches), "answer")
        yield f"{method}: {len(declined)} of {n} abstained{bare}"


def describe_oddities(results: "EvaluationResults") -> Iterator[str]:
    """Yield a line for each method with replies that were cut off."""
    for method, searches in _by_method(results):
        cut = [r for r in searches if r.usage is not None and r.usage.cut_replies]
        if cut:
            n_answered = sum(r.failure is None for r in cut)
            judged = f"; {n_answered} of these answered and are judged as they are"
            question = name_question(cut[0].sample_id, cut[0].imdb_key, cut[0].question)
            yield (
                f"{method}: in {len(cut)} of {len(searches)} searches a reply was cut off, e.g. "
                f"at {question}{judged if n_answered else ''}; "
                "max_output_tokens and tog_search's own bounds limit the length of a reply"
            )


def _by_method(results: "EvaluationResults") -> "Iterator[tuple[str, list[QueryResult]]]":
    for method in results.metadata["methods"]:
        yield method, [result for result in results.results if result.method == method]
