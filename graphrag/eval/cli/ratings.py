"""What ``graphrag eval ratings`` does."""

import json
from pathlib import Path

from graphrag.eval.annotation.ratings import (
    join_ratings,
    list_ratings,
    read_ratings,
    report_ratings,
)
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.errors import UsageError
from graphrag.eval.report.files import write_run
from graphrag.eval.report.table import show
from graphrag.eval.results.runs import read_rows
from graphrag.eval.store.lookup import LATEST
from graphrag.eval.store.whole_files import write_whole

RATINGS_FILE = "ratings.json"


def run_ratings(place: Place, csv: Path, run: str = LATEST) -> int:
    """Join a file of ratings with a run, show and write what they say, return the exit code.

    Parameters
    ----------
    place : Place
        The output folder, where ratings.json is written, and in the run's own folder.
    csv : Path
        A .csv or .jsonl file, see :func:`read_ratings`.
    run : str
        See :func:`read_rows`.
    """

    def report() -> int:
        ratings = read_ratings(csv)
        store_path = place.store_path()
        name = place.take_run(run)
        with working(open_console(stderr=True), "Reading the run"):
            found_run = read_rows(name, store_path)
        metadata = found_run.metadata
        joined = join_ratings(ratings, found_run.rows)
        if not joined.answers:
            first = joined.unjoined[0]
            msg = (
                f"{csv} holds no rating of an answer of {metadata.name}; "
                f"row {first.rating.place}: {first.reason}."
            )
            raise UsageError(msg)
        found = report_ratings(joined, metadata.name, metadata.embedded_models)
        console = open_console()
        show(console, list_ratings(found))
        text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if metadata.run_id is not None:
            write_run(store_path.parent, metadata.run_id, {RATINGS_FILE: text})
        (path,) = write_whole(store_path.parent, {RATINGS_FILE: text})
        console.print(f"Wrote {path}.", soft_wrap=True)
        return DONE

    return explained(report)
