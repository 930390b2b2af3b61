"""The served pages in a real browser: what a person does there, by mouse and by keys."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support.chromium import findings, overflow, watched
from support.clock_evaluation import wait_until
from support.viewed_store import NASTY, Served, keep_run, keep_three, serving

from graphrag.eval.annotation.sheet import read_sheet
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.view import draw_labels
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.notes import Note, keep_note, read_notes


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder of three runs and their ids, the oldest first: pinned, worse, and in progress."""
    folder = tmp_path_factory.mktemp("runs")
    return folder, keep_three(folder, questions=12)


@pytest.fixture(scope="module")
def served(runs: tuple[Path, list[str]]) -> Iterator[Served]:
    with serving(runs[0]) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab; whatever goes wrong on its page fails the test, unless it is expected."""
    expected = "Failed to load resource"
    with watched(
        browser, "http://127.0.0.1", expected, viewport={"width": 390, "height": 844}
    ) as tab:
        yield tab


def test_compare_two_runs_and_read_what_got_worse(page, served, runs):
    _, (first, worse, _) = runs
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(served.listener.address)
    assert page.url == f"{served.origin}/"  # the token is gone from the address
    page.get_by_label(f"Before: {first}").check()
    page.get_by_label(f"Now: {worse}").check()
    page.get_by_role("button", name="Compare the two chosen").click()
    assert page.inner_text("#gate .chip") == "FAIL"
    assert "40 newly wrong, 0 newly right" in page.inner_text("#gate")
    assert "ore newly wrong than newly right" in page.inner_text("#gate")
    assert "Nothing: the same questions" in page.inner_text("#settings")
    flipped = page.locator("#newly-wrong article").first
    assert flipped.locator("h4").all_inner_texts() == ["Before right", "Now wrong"]
    assert flipped.locator(".text").all_text_contents() == [f"Said {NASTY}"] * 2
    assert "Accepted answer: Truth" in flipped.inner_text()
    places = [
        page.locator(f"#{part}").bounding_box() for part in ("gate", "settings", "newly-wrong")
    ]
    tops = [place["y"] for place in places if place]
    assert tops == sorted(tops)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#question .side")
    assert page.url.startswith(f"{served.origin}/runs/{worse}#id=")
    page.keyboard.press("u")
    page.wait_for_selector("#list a")
    page.keyboard.press("u")
    page.wait_for_selector("#runs")
    page.locator(f'a.chip[href*="{worse}"]').click()  # as the gate says it in the list
    assert page.inner_text("#gate .chip") == "FAIL"


def test_a_run_is_noted_and_found_again_by_that(page, served, runs):
    folder, (first, worse, _) = runs
    page.goto(served.listener.address)
    page.get_by_label(f"Label and note of {worse}").click()
    assert findings(page) == []
    page.get_by_label("Label", exact=True).fill("bigger chunks")
    page.get_by_label("Note", exact=True).fill(f"asked by Ann {NASTY}")
    page.get_by_role("button", name="Save").click()
    page.locator("#noting").wait_for(state="hidden")
    name = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert name == f"Label and note of {worse}"
    seen = read_notes(folder / "eval.db")[worse]
    keep_note(folder / "eval.db", worse, Note("elsewhere"), seen)
    page.keyboard.press("Enter")
    page.get_by_label("Label", exact=True).fill("here")
    page.get_by_role("button", name="Save").click()
    page.wait_for_selector("#kept:has-text('Changed elsewhere meanwhile to: elsewhere.')")
    page.get_by_role("button", name="Save").click()
    page.locator("#noting").wait_for(state="hidden")
    page.reload()
    page.keyboard.press("/")
    page.keyboard.type("HERE ann")
    assert page.inner_text("#count") == "1 of 3 runs"
    assert page.locator("#runs > tbody > tr:visible th a").all_inner_texts() == [worse]
    page.get_by_label("Filter", exact=True).fill("pinned")
    assert page.locator("#runs > tbody > tr:visible th a").all_inner_texts() == [first]


def test_a_page_that_takes_its_time_says_so_and_comes_by_itself(page, runs):
    folder, (first, _, _) = runs
    with serving(folder, patience_s=0) as served:
        page.goto(served.listener.address)
        page.goto(f"{served.origin}/runs/{first}")
        assert page.inner_text("h1") == "Reading ..."
        page.wait_for_selector("#answer", timeout=20_000)


def test_a_comment_is_kept_of_a_page_that_is_left_at_once(page, tmp_path):
    assert draw_labels(Paths(output=tmp_path), keep_run(tmp_path, 0), questions=3) == 0
    page.on("dialog", lambda dialog: dialog.accept())
    with serving(tmp_path) as served:
        page.goto(served.listener.address)
        page.goto(f"{served.origin}/audit/correctness")
        page.focus("#comment")
        page.keyboard.type("half right")
        page.goto("about:blank")
        (sheet,) = tmp_path.rglob("*.csv")
        assert wait_until(lambda: "half right" in sheet.read_text(encoding="utf-8"))
        page.goto(f"{served.origin}/audit/correctness")
        expect(page.locator("#comment")).to_have_value("half right")


def test_enter_goes_from_the_search_of_runs_to_what_it_found(page, served, runs):
    page.goto(served.listener.address)
    page.keyboard.press("/")
    page.keyboard.type(runs[1][-1])
    page.keyboard.press("Enter")
    expect(page.locator("#runs a:focus")).to_have_text(runs[1][-1])
    assert page.input_value("#search") == runs[1][-1]


def test_each_page_can_be_read_left_and_walked_by_keys(page, served, runs):
    _, (first, worse, unfinished) = runs
    page.goto(served.listener.address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Go to the content"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == worse
    page.keyboard.press("Enter")
    page.wait_for_selector("#list a")
    for width, scheme in ((390, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for path in (
            *("/", "/audit", "/audit/correctness", f"/compare?new={worse}&old=pinned"),
            *(f"/runs/{first}", f"/runs/{unfinished}", "/runs/none"),
        ):
            page.goto(f"{served.origin}{path}")
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            rules = () if width == 390 else ("color-contrast",)
            assert (findings(page, *rules), overflow(page) <= 0) == ([], True), (path, width)
            assert page.get_by_role("link", name="Runs", exact=True).is_visible()
            assert page.locator("img").count() == 0
            page.keyboard.press("?")
            assert page.locator("#keys").is_visible()
            page.keyboard.press("Escape")


def test_a_run_in_progress_refreshes_by_itself(page, tmp_path):
    run = keep_run(tmp_path, n_asked=4)
    with serving(tmp_path) as served:
        page.goto(served.listener.address)
        page.goto(f"{served.origin}/runs/{run}")
        assert "8 of 24 done, about" in page.inner_text("#state")
        assert page.locator("progress").get_attribute("value") == "8"
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


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def test_ten_labels_by_keys_outlive_the_server_and_another_tab(page, tmp_path, port):
    run = keep_run(tmp_path, 0)
    assert draw_labels(Paths(output=tmp_path), run, questions=6) == 0
    sheet = tmp_path / "audit_correctness.csv"

    def labels() -> list[int | None]:
        return [item.label for item in read_sheet(sheet)[:6]]

    def press(tab: Page, *keys: str) -> None:
        for key in keys:
            tab.keyboard.press(key)
        tab.wait_for_selector("#kept:has-text('All labels')")

    with serving(tmp_path, port) as served:
        page.goto(served.listener.address)
        page.click("text=Labels")
        page.click("text=Label correctness")
        other = page.context.new_page()
        other.goto(page.url)
        press(page, "1", "0", "s", "1")
        assert labels() == [1, 0, None, 1, None, None]
        # The other tab was opened before; what it has not seen it does not overwrite.
        other.keyboard.press("0")
        other.wait_for_selector("#warning:visible")
        assert "labeled elsewhere" in other.inner_text("#warning")
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
        assert "4 labeled, 1 skipped" in again.inner_text("#progress")
        again.keyboard.press("k")
        assert "Response 5 of" in again.inner_text("#progress")
        again.keyboard.press("j")
        again.fill("#comment", "odd, =1")
        press(again, "Escape", "1", "1", "0", "1", "0", "1")
        marked = read_sheet(sheet)
        assert (marked[5].label, marked[5].comment) == (1, "odd, =1")
        assert [item.label for item in marked[:11]].count(None) == 1
        again.keyboard.press("u")
        again.wait_for_selector("text=11 of")
        again.close()
