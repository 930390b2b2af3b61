"""The pinned baseline: a run's rows beside the store."""

from datetime import UTC, datetime
from pathlib import Path

from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.results.runs import PinnedBaseline, RunRows
from graphrag.eval.store.lookup import baseline_path
from graphrag.eval.store.whole_files import replace_files


def pin_baseline(run: RunRows, store_path: Path) -> Path:
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
    path = baseline_path(store_path)
    pinned = PinnedBaseline(
        format=1,
        pinned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        metadata=run.metadata,
        rows=run.rows,
    )
    try:
        replace_files({path: pinned.model_dump_json(indent=1) + "\n"})
    except OSError as error:
        msg = f"{path} can't be written ({error.strerror}); choose another --output."
        raise StoreError(msg) from error
    return path
