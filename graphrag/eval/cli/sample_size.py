"""Shows how many questions it takes to see a given difference (``compare --plan``)."""

from itertools import combinations
from math import comb
from pathlib import Path

from graphrag.eval.cli.command import split_names
from graphrag.eval.cli.load_run import read_questions
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, working
from graphrag.eval.errors import UsageError
from graphrag.eval.report.formatting import share
from graphrag.eval.report.table import Kind, Table, show
from graphrag.eval.results.runs import RunRows, read_rows
from graphrag.eval.results.scored_rows import Row, paired_score
from graphrag.eval.stats.intervals import mean_binary
from graphrag.eval.stats.power import ALPHA, detectable_difference, questions_needed
from graphrag.eval.store.database import LATEST, open_store
from graphrag.text.console import open_console

_TYPICAL = (0.05, 0.1, 0.2, 0.3, 0.4)
_POWER = 0.8


def show_plan(paths: Paths, detect: float, run: str | None, methods: str | None) -> int:
    """Print how many questions a true difference needs to be seen; return the exit code 0.

    - ``detect``: the difference, between 0 and 1.
    - ``run``: the run whose discordance is taken, which is the share of questions that only one of
      two methods has right. None: the latest run.
    - ``methods``: a number of methods, or their names, comma-separated.
    """
    if not 0 < detect < 1:
        raise UsageError(f"--plan must lie between 0 and 1, not {detect:g}; 0.05 means 5 points.")
    n_now = _count_questions(paths)
    with working(open_console(stderr=True), "Reading the run", at_once=False):
        rows = _read_run(paths, run)
    n_tests = comb(_count_methods(paths, methods, rows), 2)
    alpha, level = ALPHA / n_tests, "5 %"
    if n_tests > 1:
        level += (
            f"/{n_tests}, as it is one of the {n_tests} pairs of methods that Holm corrects for"
        )
    label = None if rows is None else rows.metadata.embedded_models
    note = (
        f"Exact McNemar test, two-sided at {level}, both methods on the same questions, taken as "
        "independent: if those of a document move together, you need more. Discordance: share "
        "of the questions on which only one of the two is right; an observed one up to the end "
        "of its 95 % interval." + (f" Of the observed run: {label}." if label else "")
    )
    headings = ["%", "questions needed"]
    headings += [] if n_now is None else [f"seen with {n_now:,} questions"]
    cells: list[list[str]] = []
    observed = [] if rows is None else _observed(rows.rows)
    for source, shares in (*observed, *(("assumed", [s]) for s in _TYPICAL if s >= detect)):
        needed = [questions_needed(detect, max(s, detect), _POWER, alpha) for s in shares]
        counts = ("over 100 million" if n is None else f"{n:,}" for n in needed)
        line = [source, " to ".join(map(share, shares)), " to ".join(counts)]
        if n_now is not None:
            seen = [detectable_difference(n_now, s, _POWER, alpha) for s in shares]
            points = [share(d, missing="nothing") for d in seen]
            line.append(" to ".join(points) + (" points" if points[-1] != "nothing" else ""))
        cells.append(line)
    title = (
        f"Questions needed to see a true difference of {100 * detect:g} points with "
        f"{100 * _POWER:g} % power"
    )
    columns: list[tuple[str, Kind]] = [("discordance", "text"), *((h, "count") for h in headings)]
    show(open_console(), [Table(title=title, columns=columns, rows=cells, note=note)])
    return DONE


def _observed(rows: list[Row]) -> list[tuple[str, list[float]]]:
    """Return each pair of methods with its discordance, and the upper end of its 95 % interval."""
    scores: dict[str, dict[tuple[str, str], float | None]] = {}
    for row in rows:
        of_method = scores.setdefault(row.method, {})
        of_method[row.document, row.question_id] = paired_score(row, "correctness")
    observed: list[tuple[str, list[float]]] = []
    for first, second in combinations(scores, 2):
        pairs = [(score, scores[second].get(key)) for key, score in scores[first].items()]
        discordant = mean_binary([int(x != y) for x, y in pairs if None not in (x, y)])
        if discordant.mean is not None:
            high = [] if discordant.high is None else [discordant.high]
            observed.append((f"{first}, {second} (observed)", [discordant.mean, *high]))
    return observed


def _count_methods(paths: Paths, methods: str | None, run: RunRows | None) -> int:
    if methods is not None:
        n = int(methods) if methods.strip().isdecimal() else len(split_names(methods))
        if n < 2:
            msg = f"--methods {methods}: it takes two methods or more to see a difference."
            raise UsageError(msg)
        return n
    if paths.has_config():
        return max(len(paths.read_config().methods), 2)
    return 2 if run is None else max(len({row.method for row in run.rows}), 2)


def _read_run(paths: Paths, name: str | None) -> RunRows | None:
    if name is None:
        is_named = paths.folder is not None or paths.has_config()
        if not is_named or not paths.store_path().is_file():
            return None
        with open_store(paths.store_path()) as store:
            if not store.runs():
                return None
    return read_rows(paths.find_run(name or LATEST), paths.store_path())


def _count_questions(paths: Paths) -> int | None:
    if not paths.has_config():
        return None
    config = paths.read_config()
    if not Path(config.dataset_path).is_file():
        return None
    return sum(not sample.lacks_answer for sample in read_questions(config)[0])
