"""``graphrag eval show --html``: the page of a run that is in the store."""

from click.testing import Result
from support.clock_evaluation import in_process
from support.viewed_store import keep_run

DONE, USAGE = 0, 2


def test_it_writes_the_page_of_the_newest_run_or_of_two_and_nothing_else(tmp_path):
    older, newest = keep_run(tmp_path, n=2), keep_run(tmp_path, n=2)
    page = tmp_path / "new" / "a.html"

    def show(*flags: str) -> Result:
        place = ("--output", str(tmp_path), "--root", str(tmp_path))
        return in_process("show", *flags, "--html", str(page), *place, COLUMNS="300")

    shown = show()
    assert shown.exit_code == DONE, shown.output
    assert f"Report: {page}" in shown.output
    assert f"graphrag eval show {newest}" in page.read_text("utf-8")
    shown = show("--changed", older)
    assert shown.exit_code == DONE, shown.output
    assert f"against <bdi>{older}</bdi>" in page.read_text("utf-8")
    assert "0 newly wrong, 0 newly right" in page.read_text("utf-8")
    refused = show("--failed")
    assert refused.exit_code == USAGE
    assert "writes a page alone" in refused.output
