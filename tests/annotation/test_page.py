"""The page of an audit in a real browser: labelled by keys, left, reloaded, downloaded."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support.chromium import watched

from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.annotation.sheet import read_sheet
from graphrag.eval.cli.judge import import_labels
from graphrag.eval.cli.view import draw_labels
from graphrag.eval.web.labels import render_labels

DONE = 0
NASTY = "</script><img src=x onerror=alert(1)> \u2028 é \"quoted\", 'single'\n=1+1"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab without a network; whatever goes wrong on its page fails the test."""
    with watched(browser, ("file:", "blob:"), offline=True) as tab:
        yield tab


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def progress(page: Page) -> tuple[int, ...]:
    """Return which response is shown, of how many, and those labelled, skipped and open."""
    return tuple(int(n) for n in re.findall(r"\d+", page.inner_text("#progress")))


def download(page: Page, path: Path) -> Path:
    with page.expect_download() as started:
        page.click("#download")
    assert started.value.suggested_filename.startswith("audit_correctness")
    started.value.save_as(path)
    return path


def open_items(page: Page, folder: Path, items: list[AuditItem]) -> None:
    path = folder / "page.html"
    path.write_text(render_labels(items), encoding="utf-8")
    page.goto(path.as_uri())


def items_of(*texts: str, metric: str = "correctness") -> list[AuditItem]:
    return [
        AuditItem(f"r{n}", "run", metric, "g1", f"Question {n}", "Truth", text, "Context")
        for n, text in enumerate(texts)
    ]


def test_what_is_labelled_by_keys_is_kept_and_comes_out_in_the_import(make_run, page, tmp_path):
    ends = {f"q{i}": (int(i % 3 > 0), int(i % 4 > 0)) for i in range(70)}
    run = make_run(ends)
    assert draw_labels(run.place, "latest") == DONE
    page.goto((run.folder / "audit_correctness.html").as_uri())
    items = read_sheet(run.folder / "audit_correctness.csv")
    # A person who finds tog right on every fifth question only, and can't tell of one response.
    keys: list[str] = []
    for item in items:
        _, _, question, _, number = item.response.split()
        says_one = int(question[1:]) % 5 == 0 if number == "0" else ends[question][1] == 1
        keys.append("s" if (question, number) == ("q1", "1") else str(int(says_one)))

    assert page.inner_text(".response .text") == items[0].response
    press(page, *keys[:60])
    assert progress(page)[:2] == (61, 140)
    page.reload()
    assert progress(page)[:2] == (61, 140)
    assert sum(progress(page)[2:4]) == 60
    press(page, *keys[60:])
    assert progress(page)[2:] == (139, 1, 0)
    assert "Done" in page.inner_text("#progress")

    labels = download(page, tmp_path / "labels.csv")
    filled = read_sheet(labels)
    assert ["s" if item.label is None else str(item.label) for item in filled] == keys
    assert [item.response for item in filled] == [item.response for item in items]
    assert import_labels(run.place, labels) == DONE
    audit = json.loads((run.folder / "audit_correctness.json").read_text("utf-8"))
    assert (audit["n_items"], audit["n_labels"]) == (140, 139)
    assert audit["means"]["tog"]["estimate"]["mean"] == pytest.approx(14 / 70)
    assert audit["means"]["basic"]["n_labels"] == 69


def test_every_text_is_shown_and_downloaded_as_it_is(page, tmp_path):
    items = items_of(NASTY, "=HYPERLINK(1)", "'=already", "@x", "plain")
    open_items(page, tmp_path, items)
    for item in items:
        assert page.locator(".response .text").evaluate("e => e.textContent") == item.response
        page.keyboard.press("ArrowRight")
    path = download(page, tmp_path / "labels.csv")
    assert read_sheet(path) == items
    cells = path.read_text("utf-8-sig")
    assert '"\'=HYPERLINK(1)"' in cells
    assert '"=' not in cells
    assert '"@' not in cells


def test_a_label_can_be_changed_and_taken_back(page, tmp_path):
    open_items(page, tmp_path, items_of("a", "b", "c"))
    press(page, "1", "ArrowLeft")
    assert page.get_attribute("#label-1", "aria-pressed") == "true"
    press(page, "0", "ArrowLeft")
    assert page.get_attribute("#label-1", "aria-pressed") == "false"
    assert page.get_attribute("#label-0", "aria-pressed") == "true"
    press(page, "ArrowLeft", "s")
    assert progress(page) == (2, 3, 0, 1, 2)
    page.click("#next")
    page.click("#label-1")  # the last one: the first that is open comes next
    assert progress(page) == (2, 3, 1, 1, 1)
    page.click("#skip")
    assert progress(page)[2:] == (1, 2, 0)


def test_keys_label_nothing_in_a_comment_or_a_shortcut_or_held_down(page, tmp_path):
    open_items(page, tmp_path, items_of("a", "b", "c"))
    page.click("#comment")
    page.keyboard.type("=10 s, so so")
    assert progress(page)[2:] == (0, 0, 3)
    press(page, "Escape", "Control+1", "Alt+0")
    assert progress(page)[2:] == (0, 0, 3)
    page.keyboard.down("1")
    page.keyboard.down("1")  # again without having been released: the key repeats
    page.keyboard.up("1")
    assert progress(page)[2:] == (1, 0, 2)
    page.wait_for_timeout(500)  # another process of the browser takes what a page keeps
    page.reload()
    page.click("#back")
    assert page.input_value("#comment") == "=10 s, so so"
    first, *_ = read_sheet(download(page, tmp_path / "labels.csv"))
    assert (first.label, first.comment) == (1, "=10 s, so so")


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.tagName")


COVERED = """() => {
  const [at, foot] = [document.activeElement, document.querySelector("footer")];
  const [box, bar] = [at, foot].map((each) => each.getBoundingClientRect());
  return at !== document.body && !foot.contains(at) && box.top >= bar.top;
}"""


def test_no_key_labels_behind_the_list_of_keys(page, tmp_path):
    open_items(page, tmp_path, items_of("a", "b", "c"))
    press(page, "?", "1", "s", "ArrowRight", "Escape")
    assert progress(page) == (1, 3, 0, 0, 3)


def test_every_control_is_reached_by_tab_and_none_hides_under_the_buttons(page, tmp_path):
    page.set_viewport_size({"width": 320, "height": 480})
    open_items(page, tmp_path, items_of("a", "b " * 900))
    stops: list[str] = []
    for _ in range(14):
        press(page, "Tab")
        stops.append(focused(page))
        assert not page.evaluate(COVERED), stops
    buttons = ["label-1", "label-0", "skip", "next", "open", "download"]
    assert stops[stops.index("comment") + 1 :][: len(buttons)] == buttons
    assert page.get_attribute("#label-1", "aria-describedby") == "means-1"
    assert page.inner_text("#means-1")
    page.focus("#next")
    press(page, "Enter")
    assert progress(page)[0] == 2
    assert focused(page) == "back", "next leads nowhere any more"


def test_a_person_sees_what_the_judge_saw(page, tmp_path):
    fields = {"question", "ground_truth", "response", "context"}
    for metric, shown in {
        "correctness": {"question", "ground_truth", "response"},
        "faithfulness": {"response", "context"},
        "relevance": {"question", "context"},
        "completeness": {"question", "response"},
    }.items():
        open_items(page, tmp_path, items_of("a", metric=metric))
        assert {name for name in fields if page.is_visible(f".{name} .text")} == shown
        page.click("summary")
        assert all(page.is_visible(f".{name} .text") for name in fields)
