"""Chooses the run to go on with: a new one, or an unfinished one with the same setup."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.eval.dataset.dataset_reader import Sample, fingerprint_samples
from graphrag.eval.errors import ResumeError
from graphrag.eval.runner.run_setup import RunOptions, RunPlan
from graphrag.eval.store.atomic_files import PAGE_FILE, run_folder
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, RunDetails, RunSetup, list_differences
from graphrag.eval.store.sqlite import check_pages
from graphrag.text.cli_hints import eval_line_here
from graphrag.text.message_phrases import counted, join_names


def choose_run(
    store: EvaluationStore,
    plan: RunPlan,
    options: RunOptions,
    note: Callable[[str], None],
    warn: Callable[[str], None],
) -> Run:
    """Begin a run or, to resume, take the newest one of the same setup with something left to do.

    If none has, take the newest finished one: nothing is asked, and its files are written again. A
    finished run of suites is never taken. A run that is taken becomes unfinished, unless it was
    taken as finished. ``note`` and ``warn`` receive lines about the choice. Raises ResumeError if
    there is no run to resume, or if it was set up differently. Raises StoreError if its store is
    damaged.
    """
    # Runs of the monitor of version 1.x can't go on: they asked a sample, against a baseline.
    runs = [run for run in store.runs() if run.origin != "monitor"]
    if not options.flags:
        if any(run.status == "unfinished" and run.setup == plan.setup for run in runs):
            warn("an unfinished run of this configuration exists; --resume continues it")
        return store.add_run(plan.setup, plan.samples, plan.details)
    check_pages(store.path)  # the rest of the run builds on what is stored
    alike = [run for run in runs if run.setup == plan.setup]
    left = [run for run in alike if options.retry_errors or run.status == "unfinished"]
    finished: list[Run] = []
    if not (options.retry_errors or plan.details.skip_judge or plan.details.origin == "suite"):
        finished = [r for r in alike if r.status == "finished" and r.origin == plan.details.origin]
    if not left and not finished:
        raise ResumeError(_explain_refusal(store, runs, plan, options))
    # A run that the user's own program began can go on, too, if there is no other.
    same = min(left or finished, key=lambda run: run.origin != plan.details.origin)
    folders = [(run, run_folder(store.path.parent, run.run_id)) for run in finished]
    # The page is the last file that is written.
    unwritten = [run for run, path in folders if not (path / PAGE_FILE).exists()]
    if unwritten and runs.index(unwritten[0]) < runs.index(same):
        same = unwritten[0]  # an unfinished run was given up for it
    is_left = same in left
    if is_left:
        in_flight = store.reopen_run(same.run_id)
        calls = f"{counted(in_flight, 'call')} {'was' if in_flight == 1 else 'were'}"
        note(
            f"Resuming run {same.run_id}: {_count_stored(store, same, plan.details, options)}; "
            f"{calls} in flight when it stopped and may be asked again."
        )
    else:
        note(
            f"Run {same.run_id} is finished: nothing is asked, its files are written from what "
            "is kept."
        )
        newer = [r for r in runs[: runs.index(same)] if r.origin == plan.details.origin]
        if open_ := [run.run_id for run in newer if run.status == "unfinished"]:
            warn(f"run {open_[0]} is unfinished; to continue it, repeat the flags it began with")
    # A recovered database may have lost some.
    if len(store.samples(same.run_id)) < len(plan.samples):
        store.keep_samples(same.run_id, plan.samples)
    store.keep_details(same.run_id, plan.details)
    status = "unfinished" if is_left else same.status
    return replace(same, status=status, details=plan.details)


def _count_stored(
    store: EvaluationStore, run: Run, details: RunDetails, options: RunOptions
) -> str:
    """Return a line: how many responses are stored, and how many are judged or asked again."""
    responses = store.outlines(run.run_id)
    text = f"{len(responses)} of {details.n_units} responses are there"
    failed = {unit for unit, response in responses.items() if response.failure is not None}
    if failed and options.retry_errors:
        text += f", {len(failed)} failed and asked again"
    if details.skip_judge or details.origin == "suite":  # a suite has its own scores
        return text
    verdicts = store.verdicts(run.run_id)
    metrics = cast("list[str]", details.config["metrics"])
    judged_units = [unit for unit in responses if all(m in verdicts.get(unit, {}) for m in metrics)]
    return f"{text}, {len(judged_units)} of them judged"


def _explain_refusal(
    store: EvaluationStore, runs: Sequence[Run], plan: RunPlan, options: RunOptions
) -> str:
    path = store.path
    own = [run for run in runs if run.origin == plan.details.origin]
    tried = [*own, *runs]
    if not options.retry_errors:
        tried = [run for run in tried if run.status == "unfinished"] or own
    last = next(iter(tried), None)
    if last is None:
        return f"There is no unfinished run in {path} to resume; leave {options.flags} out."
    lines = list_differences(last.setup, plan.setup)
    if of_dataset := [key for key in lines if key.startswith("dataset.")]:
        changed = _describe_questions(store.samples(last.run_id), plan.samples)
        lines = {key: line for key, line in lines.items() if key not in of_dataset}
        lines["dataset"] = f"dataset: {changed}"
    for name in (others := _list_other_indexes(last.setup, plan.setup)):
        digest = re.compile(rf"indexes\.{re.escape(name)}\..*\.(index|vectors)")
        lines = {key: line for key, line in lines.items() if not digest.fullmatch(key)}
        lines[f"index {name}"] = f"index {name} is another one than was searched"
    # A new method adds many lines about indexes, so these come late; digests of prompts, and how
    # words are split, explain the least, so they come last.
    late, last_of = ("indexes.", "releases."), (".prompt", ".refusal")
    ordered = sorted(
        lines,
        key=lambda key: (key.endswith(last_of) or ".words." in key, key.startswith(late)),
    )
    differences = [lines[key] for key in ordered]
    summary = "; ".join(differences[:8])
    more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
    refused = "its failures can't be asked again" if options.retry_errors else "it can't be resumed"
    anew = f"leave {options.flags} out to begin a new run, which asks everything again"
    if not options.retry_errors and last.status == "finished":
        but = f", and was set up differently: {summary}{more}" if differences else ""
        return (
            f"There is no unfinished run in {path} to resume. The last run ({last.run_id}) is "
            f"finished{but}. See it with: {eval_line_here('show', last.run_id)}; or {anew}."
        )
    has_answers = bool(store.outlines(last.run_id))
    remedy = _name_remedy(last, plan, others) if has_answers else "It has no answer yet"
    return (
        f"The last run ({last.run_id}) was set up differently, so {refused}: {summary}{more}. "
        f"{remedy}{', or' if has_answers else ';'} {anew}."
    )


def _list_other_indexes(before: RunSetup, now: RunSetup) -> list[str]:
    """Return the keys whose index is not the one that was searched, such as one rebuilt."""
    return [
        key
        for key, methods in before.indexes.items()
        if any(
            description.get("index") != now.indexes[key][method].get("index")
            for method, description in methods.items()
            if method in now.indexes.get(key, {})
        )
    ]


def _describe_questions(before: Sequence[Sample], now: Sequence[Sample]) -> str:
    """Return which questions of two datasets differ, in words."""
    old, new = ({sample.id: sample for sample in samples} for samples in (before, now))
    changed = {
        "changed": [
            new[key].name
            for key in old
            if key in new and fingerprint_samples([old[key]]) != fingerprint_samples([new[key]])
        ],
        "gone": [old[key].name for key in old if key not in new],
        "new": [new[key].name for key in new if key not in old],
    }
    parts = [
        f"{counted(len(names), 'question')} {'is' if len(names) == 1 else 'are'} {how} "
        f"({join_names(names, most=3)})"
        for how, names in changed.items()
        if names
    ]
    return join_names(parts) or "the questions are in another order"


def _name_remedy(last: Run, plan: RunPlan, other_indexes: Sequence[str]) -> str:
    """Return a sentence on how to use a run that was set up differently."""
    old, new = last.setup.flat(), plan.setup.flat()
    judged = ("metrics.", "further.")
    earlier = [key for key in old if key.startswith(judged) and key.endswith(".version")]
    if any(key.rpartition(".")[2] in ToGSearchConfig.replaced for key in old.keys() - new.keys()):
        why = "It has settings of 1.0.0 that are gone"
    elif any(old[key] != new.get(key, old[key]) for key in earlier):
        why = "Its judge had the prompts of an earlier version"
    elif other_indexes:
        why = "An index that was built again can't be had back"
    elif old.get("releases.gtog") != new.get("releases.gtog"):
        why = "Another version began it"
    else:
        return "Undo the change"
    use, done = ("show", "See") if last.setup.is_of_suites else ("judge", "Judge")
    line = eval_line_here(use, last.run_id)
    return f"{why}. {done} what it answered with: {line}"
