"""Renders the page that compares two runs: gate, changed settings, flipped answers, figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from graphrag.eval.compare.compare import QuestionChange, compare_runs
from graphrag.eval.compare.setup_changes import list_setup_changes
from graphrag.eval.report.comparison import answer_comparison, differences_table, list_weaknesses
from graphrag.eval.report.formatting import figure
from graphrag.eval.report.table import Table, Value
from graphrag.eval.results.runs import RunRows, StoredRun
from graphrag.eval.store.database import EvaluationStore, open_store
from graphrag.eval.web.page import render
from graphrag.eval.web.trends import NOT_SHOWN, TOOK
from graphrag.text.message_phrases import counted

_MOST = 100
"""The most answers newly wrong, and newly right, that are shown."""


_Side: TypeAlias = tuple[str, str, str]
"""The answer of one run, its verdict as a word, and the judge's reason."""
_Changed: TypeAlias = tuple[QuestionChange, str, _Side | None, _Side | None]
"""A question that flipped, its accepted answer, and both answers, None for a run not in the
store."""


def render_two_runs(
    store_path: Path,
    sides: tuple[RunRows, RunRows],
    runs: Sequence[StoredRun | None] = (),
    store_name: str = "",
) -> str:
    """Return the page that compares a run with another; ``sides`` has the new one first.

    ``runs`` are their figures, if the store has them. ``store_name`` is given if the page is
    served.
    """
    new, old = sides
    comparison = compare_runs(new, old)
    names = new.metadata.run_id, old.metadata.run_id
    flips = {w: [f for f in comparison.flips if f.newly == w] for w in ("wrong", "right")}
    with open_store(store_path) as store:
        newly = {word: _pair_answers(store, names, group[:_MOST]) for word, group in flips.items()}
    methods = list(dict.fromkeys(item.method for item in comparison.items))
    facts = (new.metadata.indexes, old.metadata.indexes)
    settings = list_setup_changes(new.metadata.setup, old.metadata.setup, methods, facts)
    now, before = runs if len(runs) == 2 else (None, None)
    means = None if now is None or before is None else _means(now, before, methods)
    return render(
        "two_runs.html.j2",
        asks=bool(store_name),
        store_name=store_name,
        new=new.metadata,
        old=old.metadata,
        answer=answer_comparison(comparison),
        settings=settings,
        doubts=[
            *(line for line in comparison.warnings if line not in settings),
            *list_weaknesses(comparison),
        ],
        headings={word: _describe_flips(group, word) for word, group in flips.items()},
        newly=newly,
        left={word: len(group) - len(newly[word]) for word, group in flips.items()},
        tables=[differences_table(comparison), means],
    )


def _describe_flips(flips: Sequence[QuestionChange], word: str) -> str:
    """Return the numbers of answers that flipped, their questions and methods, as a heading."""
    text = f"{counted(len(flips), 'answer')} newly {word}"
    n_questions = len({(flip.document, flip.question_id) for flip in flips})
    n_methods = len({flip.method for flip in flips})
    if n_methods < 2:
        return text
    return f"{text}: by {n_methods} methods to {counted(n_questions, 'question')}"


def _pair_answers(
    store: EvaluationStore, names: tuple[str | None, str | None], flips: Sequence[QuestionChange]
) -> list[_Changed]:
    stored = {run.run_id for run in store.runs()}
    now, before = (_sides(store, name, flips) if name in stored else {} for name in names)
    truths: dict[str, str] = {}
    for name in names:
        if name in stored:
            truths = {**{s.id: s.ground_truth for s in store.samples(str(name))}, **truths}
    keys = [(flip.question_id, flip.method) for flip in flips]
    return [
        (flip, truths.get(key[0], ""), before.get(key), now.get(key))
        for flip, key in zip(flips, keys, strict=True)
    ]


def _sides(
    store: EvaluationStore, run_id: str | None, flips: Sequence[QuestionChange]
) -> dict[tuple[str, str], _Side]:
    metrics = {(flip.question_id, flip.method): flip.metric for flip in flips}
    run_id = str(run_id)
    outlines = store.outlines(run_id).values()
    units = [r.unit for r in outlines if not r.trial and (r.sample_id, r.method) in metrics]
    verdicts = store.verdicts(run_id, units)
    sides: dict[tuple[str, str], _Side] = {}
    for unit, response in store.responses(run_id, units).items():
        key = response.sample_id, response.method
        verdict = verdicts.get(unit, {}).get(metrics[key])
        if response.failure is not None:
            sides[key] = "", "search failed", response.failure.message
            continue
        word = "declined" if response.abstained else "no verdict"
        if verdict is not None and verdict.score is not None:
            word = "right" if verdict.score else "wrong"
        sides[key] = response.response, word, verdict.reason if verdict else ""
    return sides


def _means(now: StoredRun, before: StoredRun, methods: Sequence[str]) -> Table:
    """Return a table of every figure of each run, by method, before and now."""
    sides = [
        {m: {**run.means.get(m, {}), **run.measured.get(m, {})} for m in methods}
        for run in (before, now)
    ]
    names = dict.fromkeys(
        name
        for side in sides
        for figures in side.values()
        for name, value in figures.items()
        if value is not None
    )
    rows: list[list[Value]] = [
        [
            TOOK.get(name, (name,))[0],
            *(figure(name, side[m].get(name)) for m in methods for side in sides),
        ]
        for name in names
        if name != NOT_SHOWN
    ]
    return Table(
        title="Every figure of each run alone",
        columns=[
            ("mean of", "text"),
            *((f"{m} {side}", "percent") for m in methods for side in ("before", "now")),
        ],
        rows=rows,
        note="Shares in %, seconds the median of a question. Each over its run's own questions, "
        "and not tested; the difference above is over the questions of both.",
    )
