"""The log file of a run."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from graphrag.log_lines import LIBRARIES, lines_to


@contextmanager
def log_to(path: Path, verbose: bool) -> Generator[None]:
    """Send the libraries' log lines to a file, so that the terminal stays readable."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = logging.DEBUG if verbose else logging.WARNING
    with lines_to(handler, level, ("graphrag", *LIBRARIES)):
        yield
