"""The log file of a run."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_LOGGERS = ("graphrag", "graphrag_llm", "LiteLLM", "asyncio")


@contextmanager
def log_to(path: Path, verbose: bool) -> Generator[None]:
    """Send the libraries' log lines to a file, so that the terminal stays readable."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    before: list[tuple[logging.Logger, list[logging.Handler], bool, int]] = []
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        before.append((logger, logger.handlers, logger.propagate, logger.level))
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    try:
        yield
    finally:
        for logger, handlers, propagate, level in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        handler.close()
