"""What the released commands leave behind in the process that runs them, undone."""

import asyncio
import gc
import logging
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what the released commands leave behind: the working directory, log handlers."""
    monkeypatch.chdir(Path.cwd())
    with undone():
        yield


@contextmanager
def undone() -> Generator[None]:
    """Close the log files and event loops that are left open."""
    gc.freeze()  # or all that was imported is looked through again below: a second each time
    yield
    for logger in (logging.getLogger("graphrag"), logging.getLogger("graphrag_llm")):
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()
    with warnings.catch_warnings():
        # asyncio.run, which graphrag_llm patches, leaves its event loop open.
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.set_event_loop(None)
        gc.collect()
    gc.unfreeze()
