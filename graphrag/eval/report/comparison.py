"""Renders the comparison of two runs, and the list of runs, as lines, tables and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import NormalDist

from graphrag.eval.compare.compare import (
    BASELINE,
    NEW,
    MethodComparison,
    QuestionChange,
    RunComparison,
)
from graphrag.eval.report.cost_comparison import format_budget
from graphrag.eval.report.formatting import EACH_ALONE, money, share
from graphrag.eval.report.recommendation import Answer, Chip, describe_more, list_lines
from graphrag.eval.report.table import Line, Part, Table, Value
from graphrag.eval.results.handicaps import Handicaps, format_handicaps
from graphrag.eval.results.method_conditions import read_conditions
from graphrag.eval.results.runs import StoredRun
from graphrag.eval.stats.family import describe_tests
from graphrag.eval.stats.gates import GateDecision, GateOutcome, Reason
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.power import ALPHA, POWER
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.query.client.usage import Usage
from graphrag.text.cli_hints import eval_line_here
from graphrag.text.json_records import whole_json
from graphrag.text.message_phrases import counted, join_names, shorten

_FEW = 5  # ids that are named
_FLIP = ("method", "metric", "document", "question_id", "question", "newly")
_MOST_OF_A_NOTE = 60  # characters, in the list of runs


def answer_comparison(
    comparison: RunComparison, usages: Mapping[str, Usage] | None = None
) -> Answer:
    """Return the gate's answer, such as PASS or FAIL, with the reasons and the next step.

    ``usages``: run id -> all that the run took, where it is known.
    """
    outcome, flips = comparison.outcome, comparison.flips
    decisive = [item for item in comparison.items if item.decision.outcome is outcome]
    has_one = len({item.metric for item in comparison.items}) == 1
    reasons = {
        item.method if has_one else f"{item.method}'s {item.metric}": item.decision.reason
        for item in decisive
    }
    who = join_names(list(dict.fromkeys(item.method for item in decisive)))
    n_wrong, n_right = (sum(flip.newly == word for flip in flips) for word in ("wrong", "right"))
    dropped = _dropped(*comparison.items)
    counts = [item.decision.n_pairs for item in comparison.items]
    n_pairs, more = max(counts, default=0), max((_more(i.decision) for i in decisive), default=0)
    chip: Chip = "PASS"
    headline = f"{who}: no loss beyond the accepted one."
    run_id = comparison.new.run_id
    next_ = "pin it as the next baseline"
    command = "" if run_id is None else eval_line_here("compare", run_id, "--pin")
    if outcome is GateOutcome.FAIL:
        chip, headline = "FAIL", f"{who} got worse."
    elif outcome is GateOutcome.INCONCLUSIVE:
        chip = "INCONCLUSIVE"
        if decisive and all(item.decision.is_complete for item in decisive):
            chip = "TOO FEW"
        else:
            more = 0  # verdicts are missing, or an index changed: questions don't help
        headline = f"Undecided{f' for {who}' if who else ''}."
        next_, command = describe_more(more, n_pairs) if more else "", ""
    if n_wrong and outcome is not GateOutcome.PASS and not more:
        next_ = f"look at {counted(n_wrong, 'newly wrong answer')}"
        command = look_line(comparison)
    return Answer(
        chip=chip,
        headline=f"{_changed_budgets(comparison)}{headline.removesuffix('.')}"
        f"{_describe_handicaps(comparison)}.",
        score=f"{counted(n_pairs, 'question')} compared{_answers(comparison, counts)}, "
        f"{n_wrong:,} newly wrong, {n_right:,} newly right"
        f"{f'; left out: {dropped}' if dropped else ''}.",
        lead=join_reasons(reasons),
        by_kind="",
        cost=_costs(comparison, usages) if usages else "",
        next=next_,
        command=command,
        how=tuple(map(describe_decision, comparison.items)),
        label=label_of(comparison),
    )


def _describe_handicaps(comparison: RunComparison) -> str:
    """Return the handicaps of methods in either run, as the end of a sentence."""
    compared = dict.fromkeys(item.method for item in comparison.items)
    now, then = (
        {method: side.conditions[method] for method in compared if method in side.conditions}
        for side in (comparison.new, comparison.baseline)
    )
    parts = [f"{where} {text}" for where, text in _by_run(now, then) if text]
    return f", with {'; '.join(parts)}" if parts else ""


def _by_run(now: Handicaps, then: Handicaps) -> list[tuple[str, str]]:
    texts = format_handicaps(now), format_handicaps(then)
    if texts[0] == texts[1]:
        return [("in both runs", texts[0])]
    return [("in the new run", texts[0]), ("in the baseline", texts[1])]


def _changed_budgets(comparison: RunComparison) -> str:
    """Return a sentence on the methods whose context budget changed; "" if none did.

    An index that only one of the runs asked is left out.
    """
    sides = comparison.baseline, comparison.new
    then, now = (read_conditions(side.setup, side.search_methods).budgets for side in sides)
    compared = dict.fromkeys(item.method for item in comparison.items)
    changes: list[str] = []
    for method in compared:
        keys = then.get(method, {}).keys() & now.get(method, {}).keys()
        earlier, later = ({key: budgets[method][key] for key in keys} for budgets in (then, now))
        if earlier != later:
            changes.append(f"{method} {format_budget(earlier)} -> {format_budget(later)}")
    return f"Budgets of context changed: {'; '.join(changes)} tokens. " if changes else ""


def _answers(comparison: RunComparison, counts: Sequence[int]) -> str:
    """Return the number of answers or verdicts among which flips are counted; "" if it is plain."""
    if len(comparison.items) < 2:
        return ""
    noun = "answers" if len({item.metric for item in comparison.items}) == 1 else "verdicts"
    return f"; of {sum(counts):,} {noun}"


def join_reasons(reasons: Mapping[str, Reason]) -> str:
    """Return the reasons as one text; reasons that differ in one figure alone share a sentence.

    ``reasons``: method, or method and metric, -> why the gate decided so.
    """
    lines: list[str] = []
    kinds = grouped((reason.kind, (name, reason)) for name, reason in reasons.items())
    for kind, group in kinds.items():
        figures = [*zip(*(reason.figures for _, reason in group), strict=True)]
        differing = [n for n, column in enumerate(figures) if len({*column}) > 1]
        if len(differing) > 1:  # too much for one sentence
            lines += (f"{name}: {reason}" for name, reason in group)
        elif differing:
            by_figure = grouped((reason.figures[differing[0]], name) for name, reason in group)
            phrases = [f"{figure} ({join_names(names)})" for figure, names in by_figure.items()]
            texts = [column[0] for column in figures]
            texts[differing[0]] = join_names(phrases)
            lines.append(str(Reason(kind, tuple(texts))))
        else:
            who = join_names([name for name, _ in group])
            lines.append(f"{who}: {group[0][1]}" if len(kinds) > 1 else str(group[0][1]))
    return f"{lines[0][:1].upper()}{lines[0][1:]}." if len(lines) == 1 else "; ".join(lines)


def _more(decision: GateDecision) -> float:
    """Return the number of further questions with which a method passes with 80 % power.

    It is assumed that nothing else changes. The limit approaches the difference with the square
    root of the number of questions. 0 if more questions would not help.
    """
    lower, difference = decision.lower_bound, decision.difference
    if not decision.is_complete or lower is None or difference is None:
        return 0
    room = decision.margin + difference
    if decision.outcome is not GateOutcome.INCONCLUSIVE or room <= 0:
        return 0
    normal = NormalDist()
    power = 1 + normal.inv_cdf(POWER) / normal.inv_cdf(1 - ALPHA)
    return max(0, decision.n_pairs * ((power * (difference - lower) / room) ** 2 - 1))


def list_comparison(
    comparison: RunComparison, full: bool = False, usages: Mapping[str, Usage] | None = None
) -> list[Part]:
    """Return the lines and tables of a comparison: the answer, the differences, the flips.

    ``full`` adds every reason, the verdicts, the tests, and every flip.
    """
    table, answer = differences_table(comparison), answer_comparison(comparison, usages)
    parts: list[Part] = [*list_lines(answer)]
    parts.append(replace(table, columns=table.columns[:-1], rows=[r[:-1] for r in table.rows]))
    if full:
        parts += map(Line, answer.how)
        parts += (Line(f"{i.method}, {i.metric}: {i.verdict}") for i in comparison.items)
        parts += map(Line, describe_tests([item.difference for item in comparison.items]))
    parts += map(Line, list_weaknesses(comparison))
    parts += map(Line, list_flips(comparison, full))
    look = look_line(comparison)
    if look and look != answer.command:
        parts.append(Line(f"Look at them with: {look}", is_command=True))
    return parts


def label_of(comparison: RunComparison) -> str:
    """Return the label of the embedded models that had a part in the runs; "" if none had."""
    new, old = comparison.new.embedded_models, comparison.baseline.embedded_models
    if new == old:
        return new or ""
    return "; ".join(f"{side}: {text}" for side, text in ((NEW, new), (BASELINE, old)) if text)


def differences_table(comparison: RunComparison) -> Table:
    """Return a table with the difference on each method and metric, and the gate's decision."""
    return Table(
        title=f"{comparison.new.name} - {comparison.baseline.name}, in percentage points",
        columns=[
            *(("method", "text"), ("metric", "text"), ("pairs", "count")),
            *(("difference", "interval"), ("95 % interval", "interval")),
            *(("gate", "text"), ("verdict", "text")),
        ],
        rows=[
            [
                *(item.method, item.metric, item.difference.n_pairs, item.difference.difference),
                (item.difference.low, item.difference.high),
                *(item.decision.outcome.value.upper(), item.verdict),
            ]
            for item in comparison.items
        ],
        note=EACH_ALONE,
    )


def list_weaknesses(comparison: RunComparison) -> list[str]:
    """Return a line on each weakness of a comparison: missing answers, unmatched questions."""
    unanswered = [
        f"{item.method}, {item.metric}: {item.n_unanswered[0]:,} failed searches or abstentions of "
        f"the new run and {item.n_unanswered[1]:,} of the baseline count as not done well (an "
        "abstention that was judged correct counts as done well)"
        for item in comparison.items
        if any(item.n_unanswered)
    ]
    return [*unanswered, *list_unjoined(comparison)]


def list_unjoined(comparison: RunComparison) -> list[str]:
    """Return the questions that only one run has, a line for each run and set of methods."""
    alone: dict[tuple[str, str], dict[str, None]] = {}
    for item in comparison.items:
        for side, ids in ((NEW, item.only_new), (BASELINE, item.only_baseline)):
            alone.setdefault((side, item.method), {}).update(dict.fromkeys(ids))
    groups = grouped(((side, tuple(ids)), m) for (side, m), ids in alone.items() if ids)
    return [
        f"Only in the {side} ({', '.join(methods)}), {len(ids):,} not compared"
        f"{': ' if len(ids) <= _FEW else ', e.g. '}{', '.join(ids[:_FEW])}"
        for (side, ids), methods in groups.items()
    ]


def describe_decision(item: MethodComparison) -> str:
    """Return a line with the gate's decision on a method and a metric, and the reason."""
    gate = item.decision
    pairs = f"{gate.newly_wrong} newly wrong, {gate.newly_right} newly right, "
    pairs += _dropped(item) or "0 without both verdicts"
    why = f"{gate.outcome.value.upper()}: {gate.reason} ({pairs})"
    return f"{item.method}, {item.metric}: {why}"


def _dropped(*items: MethodComparison) -> str:
    """Return how many answers make no pair, and why; "" if all do."""
    why = {
        "without both verdicts": sum(item.n_without_verdict for item in items),
        "only in the baseline": sum(len(item.only_baseline) for item in items),
        "only in the new run": sum(len(item.only_new) for item in items),
        "with another accepted answer now": sum(item.n_other_reference for item in items),
    }
    parts = [f"{n:,} {reason}" for reason, n in why.items() if n]
    return ", ".join(parts)


def list_flips(comparison: RunComparison, full: bool = False) -> list[str]:
    """Return a line for each question that flipped: a few newly wrong ones, or all if ``full``."""
    flips = [flip for flip in comparison.flips if full or flip.newly == "wrong"]
    lines = [f"Newly {describe_flip(flip)}" for flip in (flips if full else flips[:_FEW])]
    if len(flips) > len(lines):
        lines.append(f"... and {len(flips) - len(lines):,} more newly wrong; --full names all.")
    return lines


def describe_flip(flip: QuestionChange, n_chars: int = 90) -> str:
    """Return which answer flipped, and how; the question is cut to ``n_chars`` characters."""
    return f"{flip.newly}: {flip.method}, {flip.metric}: {name_asked(flip, n_chars)}"


def name_asked(change: QuestionChange, n_chars: int) -> str:
    """Return a question's id, its document, and the first ``n_chars`` characters of its text."""
    where = f" of {change.document}" if change.document else ""
    words = "" if change.question is None else f": {shorten(change.question, n_chars)}"
    return f"{change.question_id}{where}{words}"


def look_line(comparison: RunComparison) -> str:
    """Return the command that shows the questions that flipped.

    "" if none flipped, or if a run has no id by which it could be in a store.
    """
    new, old = comparison.new.run_id, comparison.baseline.run_id
    if new is None or old is None or not comparison.flips:
        return ""
    if comparison.baseline.name == old and _are_of_default(comparison):
        return eval_line_here("show", new, "--changed", old)
    return eval_line_here("show", new, "--question", comparison.flips[0].question_id)


def _costs(comparison: RunComparison, usages: Mapping[str, Usage]) -> str:
    costs: list[str] = []
    for side, run in ((NEW, comparison.new), (BASELINE, comparison.baseline)):
        usage = usages.get(run.run_id or "")
        if usage is None:
            costs.append(f"{side} not known here")
            continue
        tokens = f"{usage.tokens:,} tokens" if usage.is_counted else "tokens not counted"
        if usage.is_counted and usage.cached_prompt_tokens is not None:
            tokens += f", {usage.cached_prompt_tokens:,} of them cached"
        # The searches of responses that were judged again were paid for by another run.
        alone = ", judge alone" if run.setup.responses_of is not None else ""
        costs.append(f"{side} {money(usage.cost_usd, '$', 'price not known')} ({tokens}{alone})")
    return f"Cost, searches and judge: {'; '.join(costs)}."


def _are_of_default(comparison: RunComparison) -> bool:
    """Return whether the comparison is on the default metric, and on no other."""
    compared = {item.metric for item in comparison.items}
    if "correctness" in compared:
        return len(compared) == 1
    theirs = comparison.baseline.setup.metrics or ()
    shared = [m for m in comparison.new.setup.metrics or () if m in theirs and m in METRICS]
    return "correctness" not in shared and compared == set(shared[:1])


def render_json(comparison: RunComparison) -> str:
    """Return the comparison as JSON, with every number behind the gate's answer."""
    new, old = comparison.new, comparison.baseline
    values = {
        "outcome": comparison.outcome.value,
        "answer": answer_comparison(comparison).to_dict(),
        "new": new.name,
        "baseline": old.name,
        "embedded_models": {"new": new.embedded_models, "baseline": old.embedded_models},
        "items": [_list_values(item) for item in comparison.items],
        "warnings": list(comparison.warnings),
    }
    return whole_json(values)


def _list_values(item: MethodComparison) -> dict[str, object]:
    values = asdict(item)
    del values["questions"], values["difference"]["is_graded"]
    values["decision"]["reason"] = str(item.decision.reason)
    return {**values, "flips": [{name: getattr(f, name) for name in _FLIP} for f in item.flips]}


def runs_table(runs: Sequence[StoredRun]) -> Table:
    """Return a table of a store's runs, a row for each."""
    paid = any(run.cost_usd != 0 for run in runs)
    rows: list[list[Value]] = []
    for run in runs:
        started = f"{run.started_at[:16].replace('T', ' ')}{', pinned' if run.is_pinned else ''}"
        lines = (run.label, run.run_id, started, f"by {run.origin}", run.embedded_models, run.note)
        means: list[str] = []
        for method, mean in run.correctness.items():
            n = run.n.get(method, {}).get("correctness", 0)
            means.append(f"{method} {share(mean)}{f' (n {n:,})' if n else ''}")
        rows.append(
            [
                "\n".join(shorten(line, _MOST_OF_A_NOTE) for line in lines if line),
                *(run.status, run.n_questions, "\n".join(means)),
                *([run.cost_usd] if paid else []),
            ]
        )
    return Table(
        title="Runs, the newest first",
        columns=[
            *(("run, started", "text"), ("status", "text"), ("questions", "count")),
            ("correctness %", "text"),
            *([("cost $", "money")] if paid else []),
        ],
        rows=rows,
    )
