"""``graphrag eval suite``: test cases over the indexes."""

from dataclasses import dataclass
from typing import Annotated

import typer

from graphrag.eval.cli.command import Quiet, Resume, Verbose, option
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import starting


@dataclass(frozen=True, slots=True)
class SuiteFlags:
    """The flags of ``graphrag eval suite``."""

    baseline: Annotated[str | None, option("Then compare with this run, latest or pinned.")] = None
    set_baseline: Annotated[bool, option("Pin this run as the baseline.", "--set-baseline")] = False
    resume: Resume = False
    margin: Annotated[float, option("The loss that is still accepted, 0 to 1.")] = 0.05
    verbose: Verbose = False
    quiet: Quiet = False


def suite(
    place: Place,
    flags: SuiteFlags,
    target: Annotated[
        str | None,
        typer.Argument(help="A suite file, its name in eval/suites, or all.", show_default="all"),
    ] = None,
    test_suite: Annotated[str | None, option("The target, given by name.")] = None,
) -> int:
    """Run suites of test cases over the indexes.

    They are kept as a run. Exit codes: 0 every method reaches its passing threshold; 1 error; 2
    wrong usage; 3 a case has no score, or the gate is inconclusive; 100 one is below, a part of
    the scores regressed, or the gate fails.
    """
    from graphrag.eval.suite.cases import EVALUATION_FILE, find_suite_files

    if target is not None and test_suite is not None and target != test_suite:
        raise typer.BadParameter(f"{test_suite} and {target} are two targets; give one.")
    named = target or test_suite or "all"
    place.store_path()
    if not (place.root / EVALUATION_FILE).is_file():
        find_suite_files(named, place.root)
    with starting(flags.quiet):
        from graphrag.eval.cli.suite_run import run_suite_command

    return run_suite_command(place, named, flags)
