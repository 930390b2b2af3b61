"""``graphrag eval monitor``: rounds of questions, and an alarm when a metric fell."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from graphrag.eval.cli.command import MaxCost, Quiet, Verbose, option
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import starting


@dataclass(frozen=True, slots=True)
class MonitorFlags:
    """The flags of ``graphrag eval monitor``; ``baseline_runs`` counts the pinned one."""

    every: Annotated[
        str | None, option("Go on with a round every 30m, 6h, 1d; default: one round.")
    ] = None
    rounds: Annotated[int | None, option("With --every: end after this many.", min=1)] = None
    suite: Annotated[str | None, option("A round runs this suite; a name, a file, or all.")] = None
    sample: Annotated[
        int | None, option("A round asks this many questions, drawn anew.", min=1)
    ] = None
    seed: Annotated[int, option("Another number draws others.")] = 0
    baseline: Annotated[str, option("Run id, file, latest or pinned, the default.")] = "pinned"
    baseline_runs: Annotated[
        int,
        option(
            "Runs of the baseline: those beside the pinned one are made as a watch begins.", min=1
        ),
    ] = 3
    alarm: Annotated[Path | None, option("Write an alarm to this file, as JSON.")] = None
    webhook: Annotated[str | None, option("Send an alarm to this address, as JSON.")] = None
    methods: Annotated[str | None, option("Default: the configuration's.", "--methods", "-m")] = (
        None
    )
    max_cost: MaxCost = None
    verbose: Verbose = False
    quiet: Quiet = False


def monitor(place: Place, flags: MonitorFlags) -> int:
    """Ask again and again; raise an alarm when a metric fell.

    Each round is a run in the list, with --max-cost of its own. A watch goes on where it was after
    any interruption. Exit codes: 100 an alarm; 0 none; 1 error; 2 wrong usage; 3 the round is
    incomplete; 130 interrupted.
    """
    is_suite = flags.suite is not None
    source = place.find_run(flags.baseline, suites=is_suite, quiet=flags.quiet)
    with starting(flags.quiet):
        from graphrag.eval.cli.monitor_run import watch

    return watch(place, replace(flags, baseline=source))
