"""Take the pictures in docs/pictures again.

    python benchmarks/pictures.py README START COMPARED [--to docs/pictures]

README is the report.html of the README's run, START that of the run in docs/start.md, and COMPARED
a page of two runs, from ``graphrag eval show RUN --changed OTHER --html COMPARED``.
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright  # pyright: ignore

QUESTION = "#id=two03"


def main(given: argparse.Namespace) -> None:
    """Open each page in a window of its picture's size, and keep what stands in it."""
    pictures = {
        "report": (given.readme, "", 1280, 1180),
        "start_run": (given.start, "", 1000, 890),
        "start_question": (given.start, QUESTION, 1000, 600),
        "compare": (given.compared, "", 1280, 900),
    }
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found)
        for name, (file, place, width, height) in pictures.items():
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme="light"
            )
            page.goto(f"{file.resolve().as_uri()}{place}")
            if place:
                page.wait_for_selector("#question .side")
            page.screenshot(path=given.to / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("readme", "start", "compared"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--to", type=Path, default=Path("docs/pictures"))
    main(parser.parse_args())
