"""Keeps the log lines of libraries apart from the output of a command."""

import logging
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from graphrag.text.redaction import clean_log_records

LIBRARIES = ("graphrag_llm", "LiteLLM", "asyncio")


def stay_silent() -> None:
    """Hide log lines of libraries in programs and notebooks that set up no logging."""
    for name in ("graphrag", *LIBRARIES):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", "IProgress not found")  # tqdm's, about a bar never drawn


@contextmanager
def lines_to(
    handler: logging.Handler, level: int, names: Sequence[str] = LIBRARIES
) -> Generator[None]:
    """Send the log lines of these loggers to one handler alone inside the ``with`` block.

    ``level`` is the lowest level; the handler is closed at the end. A warning by Python is left out
    as well: litellm drops the coroutine of a request that is canceled while it is being made, and
    Python reports that although nothing was sent.
    """
    clean_log_records()
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    # For the rest of the process, because Python may find the coroutine at its very end.
    warnings.filterwarnings(
        "ignore", r"coroutine '.*\.a(completion|embedding)' was never awaited", RuntimeWarning
    )
    try:
        yield
    finally:
        for logger, (handlers, propagate, old) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(old)
        handler.close()
