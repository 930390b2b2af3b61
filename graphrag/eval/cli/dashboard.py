"""What ``graphrag eval dashboard`` does: every figure of every run over time, as one page."""

from pathlib import Path

from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.errors import UsageError
from graphrag.eval.monitoring.collector import MetricsCollector
from graphrag.eval.web.runs import write_dashboard

DASHBOARD_FILE, COLLECTOR_FILE = "dashboard.html", "metrics.db"


def run_dashboard(place: Place, to: Path | None = None, collector: Path | None = None) -> int:
    """Write the page and return the exit code.

    Parameters
    ----------
    place : Place
    to : Path or None
        From the working directory; None: ``dashboard.html`` in the folder of the results.
    collector : Path or None
        From the working directory; None: ``metrics.db`` in that folder, if it is there.
    """

    def write() -> int:
        store_path = place.store_path()
        recorded = collector or store_path.with_name(COLLECTOR_FILE)
        if collector is not None and not collector.is_file():
            msg = f"--collector: {collector} does not exist; name a MetricsCollector's file."
            raise UsageError(msg)
        found = MetricsCollector(recorded) if recorded.is_file() else None
        # Without a run the store's own sentence says so, unless something was recorded.
        shown = None if found is not None and not store_path.is_file() else store_path
        with working(open_console(stderr=True), "Drawing the page"):
            path = write_dashboard(to or store_path.with_name(DASHBOARD_FILE), shown, found)
        open_console().print(f"Dashboard: {path}", soft_wrap=True)
        return DONE

    return explained(write)
