"""A real Chromium for the tests of pages; a machine without one skips them, CI refuses to."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import axe_playwright_python
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def open_browser() -> "Generator[Browser]":
    """Open Chromium; while it is open the thread can run no evaluation beside its event loop."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    found = found or shutil.which("google-chrome")
    if found is None:
        reason = "no Chromium is installed, e.g.: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def browser() -> "Generator[Browser]":
    with open_browser() as opened:
        yield opened


def findings(page: "Page", *rules: str) -> list[tuple[str, str]]:
    """Return what axe finds wrong on a page as it is shown now, by all rules or some."""
    page.evaluate(Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8"))
    violations: list[dict[str, Any]] = page.evaluate(
        "rules => axe.run(document, {resultTypes: ['violations'], ...rules}).then("
        "found => found.violations)",
        {"runOnly": rules} if rules else {},
    )
    return [(each["id"], node["html"][:200]) for each in violations for node in each["nodes"]]


def overflow(page: "Page") -> int:
    """Return by how many px a page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@contextmanager
def watched(
    browser: "Browser", own: str | tuple[str, ...] = "file:", expected: str = "\0", **options: Any
) -> "Generator[Page]":
    """Open a tab; what goes wrong there, or is asked of others than ``own``, is an error."""
    context = browser.new_context(**options)
    wrong: list[str] = []
    tab = context.new_page()
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda line: wrong.append(line.text))
    tab.on("request", lambda request: request.url.startswith(own) or wrong.append(request.url))
    yield tab
    context.close()
    assert [line for line in wrong if expected not in line] == []
