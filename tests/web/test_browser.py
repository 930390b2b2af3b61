"""The served pages in a real browser: keys, refreshing, labels that outlive the server."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support.viewed_store import keep_run, serving

from graphrag.eval.annotation.sheet import read_sheet
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.view import draw_labels
from graphrag.eval.compare.compare import pin_baseline
from graphrag.eval.results.runs import read_rows
from graphrag.eval.store.database import EvaluationStore


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A narrow tab; whatever goes wrong on its page fails the test, unless it is expected."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    wrong: list[str] = []
    opened = context.new_page()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda line: wrong.append(line.text))
    yield opened
    context.close()
    assert [line for line in wrong if "Failed to load resource" not in line] == []


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def test_pages_are_walked_by_keys_and_drawn_without_errors(page: Page, tmp_path: Path):
    ids = [keep_run(tmp_path, 0), keep_run(tmp_path, 9)]
    pin_baseline(read_rows(ids[0], tmp_path / "eval.db"), tmp_path / "eval.db")
    with serving(tmp_path) as served:
        page.goto(served.listener.address)
        assert page.url == f"{served.origin}/"  # the token is gone from the address
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Go to the content"
        assert page.locator("svg.drawing").first.is_visible()
        page.focus("#runs a")
        page.keyboard.press("Enter")
        page.wait_for_selector("#list a")
        for path in ("/", "/audit", f"/runs/{ids[1]}"):
            page.goto(f"{served.origin}{path}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.goto(f"{served.origin}/")
        page.focus("select[name=old]")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert "The gate says" in page.inner_text("#won")
        page.wait_for_selector("#list a")
        assert page.title().startswith("Evaluation")


def test_a_run_in_progress_refreshes_by_itself(page: Page, tmp_path: Path):
    run = keep_run(tmp_path, n_asked=4)
    with serving(tmp_path) as served:
        page.goto(served.listener.address)
        page.goto(f"{served.origin}/runs/{run}")
        assert "8 of 24 done" in page.inner_text("#state")
        page.evaluate("document.querySelector('#table-1 .scroll').focus()")
        with EvaluationStore(tmp_path / "eval.db") as store:
            found = next(iter(store.responses(run).values()))
            verdicts = store.verdicts(run)[found.unit]
            more = type(found)(
                "q4 tog", "q4", "tog", "Said", "", 99.0, found.usage, trial=0, abstained=False
            )
            store.append_response(run, more)
            store.append_verdicts(run, more.unit, verdicts, found.usage)
        page.wait_for_selector("text=9 of 24 done", timeout=6000)
        assert "99.00" in page.inner_text("#live")
        name = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert name.startswith("Table of Mean scores")
        page.click("#pause")
        with EvaluationStore(tmp_path / "eval.db") as store:
            store.finish_run(run)
        page.wait_for_timeout(2300)
        assert "Unfinished" in page.inner_text("#state")
        page.click("#pause")
        page.wait_for_selector("#answer", timeout=9000)  # the page of the whole run


def test_labels_by_keys_outlive_the_server_and_another_tab(page: Page, tmp_path: Path, port: int):
    run = keep_run(tmp_path, 0)
    assert draw_labels(Place(output=tmp_path), run, questions=6) == 0
    sheet = tmp_path / "audit_correctness.csv"

    def labels() -> list[int | None]:
        return [item.label for item in read_sheet(sheet)[:6]]

    def press(tab: Page, *keys: str) -> None:
        for key in keys:
            tab.keyboard.press(key)
        tab.wait_for_selector("#kept:has-text('All labels')")

    with serving(tmp_path, port) as served:
        page.goto(served.listener.address)
        page.click("text=Audit")
        page.click("text=Label correctness")
        other = page.context.new_page()
        other.goto(page.url)
        press(page, "1", "0", "s", "1")
        assert labels() == [1, 0, None, 1, None, None]
        # The other tab was opened before; what it has not seen it does not overwrite.
        other.keyboard.press("0")
        other.wait_for_selector("#warning:visible")
        assert "labelled elsewhere" in other.inner_text("#warning")
        assert labels() == [1, 0, None, 1, None, None]
        other.close()
    page.keyboard.press("0")
    page.wait_for_selector("#warning:visible")
    assert "Not kept yet" in page.inner_text("#warning")
    with serving(tmp_path, port) as served:
        again = page.context.new_page()
        again.goto(served.listener.address)  # the new server's cookie serves the old tab too
        page.wait_for_selector("#kept:has-text('All labels')")
        assert labels() == [1, 0, None, 1, 0, None]
        again.goto(f"{served.origin}/audit/correctness")
        assert "Response 6 of" in again.inner_text("#progress")
        assert "4 labelled, 1 skipped" in again.inner_text("#progress")
        again.fill("#comment", "odd, =1")
        press(again, "Escape", "1")
        item = read_sheet(sheet)[5]
        assert (item.label, item.comment) == (1, "odd, =1")
        again.close()
