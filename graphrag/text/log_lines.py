"""The lines that libraries write beside the results of a command."""

import logging
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from graphrag.text.redaction import clean_log_records

LIBRARIES = ("graphrag_llm", "LiteLLM", "asyncio")


def stay_silent() -> None:
    """Keep what libraries only note out of programs and notebooks that set up no log."""
    for name in ("graphrag", *LIBRARIES):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", "IProgress not found")  # tqdm, of a bar that is never drawn


@contextmanager
def lines_to(
    handler: logging.Handler, level: int, names: Sequence[str] = LIBRARIES
) -> Generator[None]:
    """Send the lines of these loggers, from a level on, to a handler alone; close it at the end.

    litellm drops the coroutine of a request that is canceled while it is being made; what
    Python says of it is left out too, as nothing was sent.
    """
    clean_log_records()
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    # For the rest of the process: the coroutine may be found at its very end.
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
