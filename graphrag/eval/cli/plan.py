"""What ``graphrag eval plan`` does: how many questions a wanted difference needs."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path

from rich.table import Table

from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.dataset.samples import read_dataset
from graphrag.eval.errors import UsageError
from graphrag.eval.report.cells import share
from graphrag.eval.results.rows import Row, paired_score
from graphrag.eval.results.runs import RunRows, read_rows
from graphrag.eval.stats.intervals import mean_binary
from graphrag.eval.stats.power import ALPHA, detectable_difference, questions_needed
from graphrag.eval.store.lookup import LATEST

_TYPICAL = (0.05, 0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The flags of ``graphrag eval plan``; ``run`` as in ``graphrag eval compare``.

    ``methods`` is a number of methods, or their names, comma-separated.
    """

    detect: float
    discordance: float | None = None
    power: float = 0.8
    run: str | None = None
    methods: str | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a discordance comes from, its value in [0, 1], and how large it may well be."""

    source: str
    discordance: float
    high: float | None = None


def run_plan(place: Place, options: PlanOptions) -> int:
    """Show how many questions a true difference needs to be seen, and return the exit code."""
    return explained(lambda: _plan(place, options))


def _plan(place: Place, options: PlanOptions) -> int:
    for name, value in (("--detect", options.detect), ("--power", options.power)):
        if not 0 < value < 1:
            msg = f"{name} must lie between 0 and 1, not {value:g}; 0.05 means 5 points."
            raise UsageError(msg)
    n_now = _count_questions(place)
    with working(open_console(stderr=True), "Reading the run", at_once=False):
        run = None if options.discordance is not None else _read_run(place, options.run)
    n_tests = comb(_count_methods(place, options.methods, run), 2)
    lines = _lines(options, run)
    label = None if run is None else run.metadata.embedded_models
    console = open_console()
    table = Table(
        title=(
            f"Questions needed to see a true difference of {100 * options.detect:g} points with "
            f"{100 * options.power:g} % power"
        ),
        title_justify="left",
        caption=(
            f"Exact McNemar test, two-sided at {_describe_level(n_tests)}, both methods on the "
            "same questions, these taken as independent: where those of a document move together, "
            "it takes more. "
            "Discordance: share of the questions on which just one of the two is right; an "
            "observed one up to the end of its 95 % interval."
            + (f" Of the observed run: {label}." if label else "")
        ),
        caption_justify="left",
    )
    table.add_column("discordance", no_wrap=True)
    for heading in ("%", "questions needed"):
        table.add_column(heading, justify="right")
    if n_now is not None:
        table.add_column(f"seen with {n_now:,} questions", justify="right")
    for line in lines:
        table.add_row(*_cells(line, options, n_now, ALPHA / n_tests))
    console.print(table)
    return DONE


def _describe_level(n_tests: int) -> str:
    if n_tests == 1:
        return "5 %"
    return f"5 %/{n_tests}, as it is one of the {n_tests} pairs of methods that Holm corrects for"


def _cells(line: _Line, options: PlanOptions, n_now: int | None, alpha: float) -> list[str]:
    shares = [line.discordance, *([] if line.high is None else [line.high])]
    needed = [
        questions_needed(options.detect, max(each, options.detect), options.power, alpha)
        for each in shares
    ]
    cells = [
        line.source,
        " to ".join(map(share, shares)),
        " to ".join("over 100 million" if n is None else f"{n:,}" for n in needed),
    ]
    if n_now is not None:
        seen = [detectable_difference(n_now, each, options.power, alpha) for each in shares]
        points = [share(each, missing="nothing") for each in seen]
        cells.append(" to ".join(points) + (" points" if points[-1] != "nothing" else ""))
    return cells


def _lines(options: PlanOptions, run: RunRows | None) -> list[_Line]:
    if options.discordance is not None:
        if not options.detect <= options.discordance <= 1:
            msg = (
                f"--discordance must lie between --detect ({options.detect:g}) and 1, not "
                f"{options.discordance:g}: a difference can't be larger than the discordance."
            )
            raise UsageError(msg)
        return [_Line("given", options.discordance)]
    observed = [] if run is None else _observed(run.rows)
    assumed = [_Line("assumed", each) for each in _TYPICAL if each >= options.detect]
    return [*observed, *assumed]


def _observed(rows: list[Row]) -> list[_Line]:
    methods = list(dict.fromkeys(row.method for row in rows))
    scores = {
        (row.method, row.document, row.question_id): paired_score(row, "correctness")
        for row in rows
    }
    found: list[_Line] = []
    for a, b in combinations(methods, 2):
        pairs = [
            (score, scores.get((b, document, question)))
            for (method, document, question), score in scores.items()
            if method == a
        ]
        discordant = mean_binary([int(x != y) for x, y in pairs if x is not None and y is not None])
        if discordant.mean is not None:
            found.append(_Line(f"{a}, {b} (observed)", discordant.mean, discordant.high))
    return found


def _count_methods(place: Place, given: str | None, run: RunRows | None) -> int:
    """Return how many methods are compared: given, configured, in the run, or two."""
    if given is not None:
        names = [name for name in given.split(",") if name.strip()]
        n = int(given) if given.strip().isdecimal() else len(names)
        if n < 2:
            msg = f"--methods {given}: it takes two methods or more to see a difference."
            raise UsageError(msg)
        return n
    n = 0
    if place.has_config():
        n = len(place.read_config().methods)
    elif run is not None:
        n = len({row.method for row in run.rows})
    return max(n, 2)


def _read_run(place: Place, name: str | None) -> RunRows | None:
    """Return the run that is named, else the latest one when there is any."""
    if name is not None:
        return read_rows(place.take_run(name), place.store_path())
    known = place.folder is not None or place.has_config()
    if not known or not place.store_path().is_file():
        return None
    latest = place.take_run(LATEST)
    return None if latest == LATEST else read_rows(latest, place.store_path())


def _count_questions(place: Place) -> int | None:
    """Return how many questions the dataset holds, None without one."""
    if not place.has_config():
        return None
    config = place.read_config()
    if not Path(config.dataset_path).is_file():
        return None
    keys = list(config.indexes)
    only_key = keys[0] if len(keys) == 1 else None
    return len(read_dataset(config.dataset_path, only_key, config.dataset.columns).samples)
