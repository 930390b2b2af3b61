"""Runs ``graphrag eval``: builds missing indexes, then does the run or its dry run.

``evaluate`` in app.py defines the flags, and imports this module when it has read them.
"""

import asyncio
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from graphrag.eval.cli.command import RunFlags
from graphrag.eval.cli.dry_run import show_dry_run
from graphrag.eval.cli.finish_run import Supervisor
from graphrag.eval.cli.interrupts import is_interrupted, run_coroutine, stop_by
from graphrag.eval.cli.load_run import RunInput
from graphrag.eval.cli.terminal import DONE, log_to, working
from graphrag.eval.errors import BuildInterruptedError
from graphrag.eval.runner.evaluate_run import check_projects, check_success, conduct, prepare_run
from graphrag.eval.runner.index_building import (
    build_index,
    check_form,
    check_language,
    held_for_building,
    is_built,
    remove_unfinished,
    unfinished_folder,
)
from graphrag.eval.runner.preflight import check_output, list_input_warnings
from graphrag.eval.runner.run_setup import RunOptions
from graphrag.text.cli_hints import again


def evaluate(flags: RunFlags, run_input: RunInput) -> int:
    """Do the run, or the dry run, that the flags ask for, and return its exit code."""
    return run_coroutine(_evaluate(flags, run_input))


async def _evaluate(flags: RunFlags, run_input: RunInput) -> int:
    config, samples, roots, noticed = run_input
    supervisor, telemetry = Supervisor(flags.quiet, flags.full), None
    if flags.otel and not flags.dry_run:
        from graphrag.eval.runner.telemetry import Telemetry

        telemetry = Telemetry()
    options = RunOptions(
        resume=flags.resume,
        retry_errors=flags.retry_errors,
        skip_judge=flags.skip_judge,
        max_cost_usd=flags.max_cost,
        address=flags.address,
        telemetry=telemetry,
    )
    check_success(config, samples, flags.skip_judge)
    unbuilt: list[str] = []
    if flags.index:
        await check_projects(config, samples, roots, options)
    if flags.dry_run:
        unbuilt = [key for key, root in roots.items() if flags.index and not is_built(root)]
    else:
        check_output(config.output_folder, len(samples) * len(config.methods) * config.trials)
        if flags.index:
            with log_to(config.output_folder / "eval.log", flags.verbose):
                await build_missing(roots, supervisor.notes, supervisor.warn)
    with supervisor.working("Reading the indexes"):
        plan = await prepare_run(config, samples, roots, options, supervisor, unbuilt, noticed)
    if flags.dry_run:
        await show_dry_run(supervisor.console, plan, unbuilt)
        return DONE
    with log_to(config.output_folder / "eval.log", flags.verbose):
        await conduct(plan, options, supervisor)
    return supervisor.exit_code


async def build_missing(
    roots: Mapping[str, Path], notes: Console, warn: Callable[[str], None]
) -> None:
    """Build the index of each project that has none.

    Raises ConfigError if the settings of a project can't be used, IndexBuildError if a workflow
    failed, and BuildInterruptedError after Ctrl-C or SIGTERM, as soon as the workflow waits.
    """
    missing = {root: key for key, root in roots.items() if not is_built(root)}
    for root, key in missing.items():
        check_form(key, root)
        check_language(root)
    for root, key in missing.items():  # once, though several keys name it
        for line in await list_input_warnings(key, root):
            warn(line)
        seconds = await _build(key, root, notes, warn)
        notes.print(f"Built index {key} in {seconds:.1f} s.")


async def _build(key: str, root: Path, notes: Console, warn: Callable[[str], None]) -> float:
    step = ""

    def begin(workflow: str) -> None:
        nonlocal step
        step = workflow
        update(f"Building index {key}: {step}")

    def advance(done: int, total: int) -> None:
        update(f"Building index {key}: {step}, {done:,} of {total:,}")

    def stop() -> None:
        update(f"Stopping to build index {key}; Ctrl-C again to stop at once")

    with (
        held_for_building(root),
        working(notes, f"Building index {key}") as update,
        _interruptible(key, unfinished_folder(root), stop),
    ):
        return await build_index(root, begin, advance, warn)


@contextmanager
def _interruptible(key: str, unfinished: Path, stop: Callable[[], None]) -> Generator[None]:
    """Cancel this task at Ctrl-C, and report in one sentence how to begin again.

    An interrupt that is raised wherever the work happens to be ends the loop with thousands of
    tasks in it, each of which complains that it is lost, or leaves the loop waiting forever.
    """
    task = asyncio.current_task()
    assert task is not None
    loop = task.get_loop()
    why = f"Interrupted: index {key} is not built. Begin again with: {again('--index')}"

    def cancel() -> None:
        # The work that is left consists of calls that had not begun; no warning is due.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        stop()
        task.cancel()

    def clean_up() -> str:
        remove_unfinished(unfinished)
        return why

    try:
        with stop_by(lambda: loop.call_soon_threadsafe(cancel), clean_up):
            yield
    except BaseException as error:  # a library may make another error of an interrupt
        if not is_interrupted():
            raise
        raise BuildInterruptedError(why) from error
    if is_interrupted():  # by then it waited for nothing any more
        msg = f"Interrupted; index {key} is built. Go on with: {again('--index')}"
        raise BuildInterruptedError(msg)
