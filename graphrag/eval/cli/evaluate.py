"""``graphrag eval`` itself: what its flags ask for is built, reckoned or run."""

from graphrag.eval.cli.building import build_missing
from graphrag.eval.cli.dry_run import show_dry_run
from graphrag.eval.cli.flags import RunFlags
from graphrag.eval.cli.run_end import Supervisor
from graphrag.eval.cli.run_input import RunInput
from graphrag.eval.cli.terminal import DONE, log_to
from graphrag.eval.runner.checks import check_output
from graphrag.eval.runner.conduct import check_settings, conduct, prepare_run
from graphrag.eval.runner.criteria import check_success
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.runner.index_building import is_built
from graphrag.eval.runner.same_documents import check_inputs


def evaluate(flags: RunFlags, run_input: RunInput) -> int:
    """Run an evaluation and return its exit code."""
    return run_coroutine(_evaluate(flags, run_input))


async def _evaluate(flags: RunFlags, run_input: RunInput) -> int:
    config, samples, roots, warnings = run_input
    supervisor, options = Supervisor(flags.quiet, flags.full), flags.run_options()
    check_success(config, samples, flags.skip_judge)
    unbuilt: list[str] = []
    if flags.index:
        check_settings(config, samples, roots, options)
        await check_inputs(config, roots)
    if flags.dry_run:
        unbuilt = [key for key, root in roots.items() if flags.index and not is_built(root)]
    else:
        check_output(config.output_folder, len(samples) * len(config.methods) * config.trials)
        if flags.index:
            with log_to(config.output_folder / "eval.log", flags.verbose):
                await build_missing(roots, supervisor.notes, supervisor.warn)
    with supervisor.working("Reading the indexes"):
        plan = await prepare_run(config, samples, roots, options, supervisor, unbuilt, warnings)
    if flags.dry_run:
        await show_dry_run(supervisor.console, plan, unbuilt)
        return DONE
    with log_to(config.output_folder / "eval.log", flags.verbose):
        return await conduct(plan, options, supervisor)
