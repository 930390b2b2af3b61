"""A real Chromium for the tests of pages; a machine without one skips them, CI refuses to."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
