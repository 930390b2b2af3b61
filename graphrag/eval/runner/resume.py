"""Which run of the store is worked on: a new one, or an earlier one of the same setup."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from graphrag.command_lines import eval_line_here
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import ResumeError
from graphrag.eval.runner.units import list_differences
from graphrag.eval.store.damage import check_pages
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, RunDetails
from graphrag.eval.store.setup import RunSetup
from graphrag.text.phrases import counted


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be run; ``setup`` as in :func:`describe_setup`."""

    setup: RunSetup
    samples: Sequence[Sample]
    details: RunDetails


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """Whether an earlier run is continued, and whether what failed in it is asked again.

    ``lacks_files`` says of a finished run whether its files have yet to be written; None: no
    finished run is taken, as its end is not shown again.
    """

    resume: bool = False
    retry_errors: bool = False
    lacks_files: Callable[[Run], bool] | None = None

    @property
    def flags(self) -> str:
        """The flags that ask for an earlier run, as they are typed; "" without one."""
        typed = {"--resume": self.resume, "--retry-errors": self.retry_errors}
        return " and ".join(flag for flag, is_typed in typed.items() if is_typed)


@dataclass(frozen=True, slots=True)
class ChosenRun:
    """The run that is worked on, and what a person is to be told of the choice."""

    run: Run
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def choose_run(store: EvaluationStore, plan: RunPlan, options: ResumeOptions) -> ChosenRun:
    """Begin a run or take the newest one of the same setup that has something left to do.

    Where none has, it is the newest finished one: of that nothing is asked, and its files are
    written. One that is taken stays finished, any other is unfinished.

    Raises
    ------
    ResumeError
        If a run is to be resumed and there is none, or it was set up differently.
    StoreError
        If the store that holds it is damaged.
    """
    # A round of a watch is never gone on with: the next one takes what it left.
    runs = [run for run in store.runs() if run.origin != "monitor"]
    if not options.flags:
        warnings: tuple[str, ...] = ()
        if any(run.status == "unfinished" and run.setup == plan.setup for run in runs):
            warnings = ("an unfinished run of this configuration exists; --resume continues it",)
        run = store.add_run(plan.setup, plan.samples, plan.details)
        return ChosenRun(run, warnings=warnings)
    check_pages(store.path)  # the rest of the run is built on what is there
    alike = [run for run in runs if run.setup == plan.setup]
    left = [run for run in alike if options.retry_errors or run.status == "unfinished"]
    ended = _list_ended(alike, plan, options)
    if not left and not ended:
        raise ResumeError(_why_not(runs, plan, store.path, options))
    # One that a program of the user's own began can go on too, if there is no other.
    same = min(left or ended, key=lambda run: run.origin not in (plan.details.origin, None))
    unwritten = [run for run in ended if options.lacks_files and options.lacks_files(run)]
    if unwritten and runs.index(unwritten[0]) < runs.index(same):
        same = unwritten[0]  # as one that is unfinished was given up for it
    is_left = same in left
    if is_left:
        store.reopen_run(same.run_id)
        in_flight = store.calls_in_flight(same.run_id)
        store.forget_calls_in_flight(same.run_id)  # told once, whatever is asked before the next
        calls = f"{counted(in_flight, 'call')} {'was' if in_flight == 1 else 'were'}"
        note = (
            f"Resuming run {same.run_id}: {_count_there(store, same, plan.details, options)}; "
            f"{calls} in flight when it stopped and may be asked again."
        )
    else:
        note = (
            f"Run {same.run_id} is finished: nothing is asked, its files are written from what "
            "is kept."
        )
    if len(store.samples(same.run_id)) < len(plan.samples):  # one that SQLite recovered lost some
        store.keep_samples(same.run_id, plan.samples)
    details = plan.details
    if same.details is not None and not details.validated:
        details = replace(details, validated=same.details.validated)
    store.keep_details(same.run_id, details)
    status = "unfinished" if is_left else same.status
    return ChosenRun(replace(same, status=status, details=details), notes=(note,))


def _list_ended(alike: Sequence[Run], plan: RunPlan, options: ResumeOptions) -> list[Run]:
    """Return the finished runs whose files can be written, the newest first."""
    if options.retry_errors or options.lacks_files is None or plan.details.skip_judge:
        return []
    origins = (plan.details.origin, None)
    return [run for run in alike if run.status == "finished" and run.origin in origins]


def _count_there(
    store: EvaluationStore, run: Run, details: RunDetails, options: ResumeOptions
) -> str:
    """Say how many responses are there, and how many of them the run begins to count with."""
    responses = store.responses(run.run_id, with_texts=False)
    said = f"{len(responses)} of {details.n_units} responses are there"
    failed = {unit for unit, found in responses.items() if found.failure is not None}
    if failed and options.retry_errors:
        said += f", {len(failed)} failed and asked again"
    if details.skip_judge or details.origin == "suite":  # which has its own scores
        return said
    verdicts = store.verdicts(run.run_id)
    metrics = cast("list[str]", details.config["metrics"])
    judged = [unit for unit in responses if all(m in verdicts.get(unit, {}) for m in metrics)]
    return f"{said}, {len(judged)} of them judged"


def _why_not(runs: Sequence[Run], plan: RunPlan, path: Path, options: ResumeOptions) -> str:
    unfinished = [run for run in runs if run.status == "unfinished"]
    finished = [run for run in runs if run.origin in (plan.details.origin, None)]
    last = next(iter(runs if options.retry_errors else unfinished or finished), None)
    if last is None:
        return f"There is no unfinished run in {path} to resume; leave {options.flags} out."
    # An added method alone gives many lines about the indexes, so these come last.
    differences = list_differences(last.setup, plan.setup)
    differences.sort(key=lambda line: line.startswith("indexes."))
    shown = "; ".join(differences[:8])
    more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
    refused = "its failures can't be asked again" if options.retry_errors else "it can't be resumed"
    anew = f"leave {options.flags} out to begin a new run, which asks everything again"
    if not options.retry_errors and last.status == "finished":
        but = f", and was set up differently: {shown}{more}" if differences else ""
        return (
            f"There is no unfinished run in {path} to resume. The last run ({last.run_id}) is "
            f"finished{but}. See it with: {eval_line_here('show', last.run_id)}; or {anew}."
        )
    return (
        f"The last run ({last.run_id}) was set up differently, so {refused}: {shown}{more}. "
        f"Undo the change, or {anew}."
    )
