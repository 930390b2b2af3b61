"""The pinned baseline: a run's rows beside the store, and those of rebuilds of its indexes."""

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from graphrag.eval.analysis.index_changes import fingerprints_of
from graphrag.eval.analysis.pairing import check_questions, join_rows
from graphrag.eval.analysis.runs import (
    PinnedBaseline,
    PinnedRun,
    RunMetadata,
    RunRows,
    read_rows,
)
from graphrag.eval.analysis.setup_changes import list_setup_changes
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.store import PINNED, RunSetup, StorePlace, baseline_path, replace_files


def pin_baseline(run: RunRows, store_path: StorePlace) -> Path:
    """Copy a run's rows beside the store as the pinned baseline and return the file.

    Raises
    ------
    UsageError
        If the run holds no row.
    StoreError
        If the file can't be written.
    """
    if not run.rows:
        msg = f"{run.metadata.name} holds no response to compare with; pin another run."
        raise UsageError(msg)
    return _write(run, store_path)


def add_rebuild(run: RunRows, store_path: StorePlace) -> tuple[RunRows, Path]:
    """Add a run of the unchanged system on rebuilt indexes to the pinned baseline.

    Returns
    -------
    RunRows, Path
        The baseline with all its rebuilds, and its file.

    Raises
    ------
    UsageError
        If no baseline is pinned, or the run is no such run: other questions, methods or settings,
        an index that is not known, or one that the baseline or another rebuild has already.
    StoreError
        If the file can't be written.
    """
    pinned = read_rows(PINNED, store_path)
    _check_rebuild(run, pinned)
    added = pinned._replace(rebuilds=(*pinned.rebuilds, run))
    return added, _write(added, store_path)


def count_rebuilds(store_path: StorePlace) -> int:
    """Return how many rebuilds the pinned baseline has; 0 without a baseline."""
    return len(read_rows(PINNED, store_path).rebuilds) if baseline_path(store_path).exists() else 0


def _write(run: RunRows, store_path: StorePlace) -> Path:
    path = baseline_path(store_path)
    pinned = PinnedBaseline(
        format=1,
        pinned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        metadata=run.metadata,
        rows=run.rows,
        rebuilds=[PinnedRun(metadata=each.metadata, rows=each.rows) for each in run.rebuilds],
    )
    # Earlier releases read a file that names nothing they don't know.
    without = None if run.rebuilds else {"rebuilds"}
    try:
        replace_files({path: pinned.model_dump_json(indent=1, exclude=without) + "\n"})
    except OSError as error:
        msg = f"{path} can't be written ({error.strerror}); choose another --output."
        raise StoreError(msg) from error
    return path


def _check_rebuild(run: RunRows, pinned: RunRows) -> None:
    """Refuse what is not the pinned run once more on other indexes."""
    name = run.metadata.name
    earlier = (pinned, *pinned.rebuilds)
    if run.metadata.run_id is not None and run.metadata.run_id in {
        each.metadata.run_id for each in earlier
    }:
        msg = f"{name} is in the baseline already; add a run on newly built indexes."
        raise UsageError(msg)
    methods = list(dict.fromkeys(row.method for row in pinned.rows))
    if set(methods) != {row.method for row in run.rows}:
        msg = (
            f"{name} has other methods than the baseline's ({', '.join(methods)}); add a run that "
            "differs in nothing but its indexes."
        )
        raise UsageError(msg)
    joined = {method: join_rows(run.rows, pinned.rows, method) for method in methods}
    lone = sum(len(each.new) + len(each.baseline) for each in joined.values())
    if lone:
        msg = (
            f"{name} and the baseline differ in {lone:,} questions; add a run that asked the same."
        )
        raise UsageError(msg)
    check_questions(joined)
    if differences := list_setup_changes(
        _without_indexes(run.metadata), _without_indexes(pinned.metadata), methods
    ):
        msg = (
            f"{name} is not the baseline's system unchanged: {'; '.join(differences)}. Add a run "
            "that differs in nothing but its indexes."
        )
        raise UsageError(msg)
    documents = {row.document for row in pinned.rows}
    for method in methods:
        own = fingerprints_of(run.metadata, method)
        for document in documents:
            taken = [fingerprints_of(each.metadata, method).get(document) for each in earlier]
            if own.get(document) is None or None in taken:
                msg = (
                    f"The index that {method} searched for {document or 'the questions'} is not "
                    f"known of {name} or of the baseline; add a run of eval.db that names its "
                    "indexes."
                )
                raise UsageError(msg)
            if own[document] in taken:
                msg = (
                    f"{name} searched an index of {document} that is in the baseline already; "
                    "rebuild it first: the same index again says nothing of what a rebuild shifts."
                )
                raise UsageError(msg)


def _without_indexes(told: RunMetadata) -> RunSetup:
    sections = dict(told.setup.root)
    if "indexes" in sections:
        indexes = cast("dict[str, dict[str, dict[str, object]]]", sections["indexes"])
        sections["indexes"] = {
            key: {
                method: {name: value for name, value in described.items() if name != "index"}
                for method, described in by_method.items()
            }
            for key, by_method in indexes.items()
        }
    return RunSetup(sections)
