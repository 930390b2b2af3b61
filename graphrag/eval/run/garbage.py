"""What is loaded before a run is not searched for garbage while it runs."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def set_aside() -> Generator[None]:
    """Keep the objects that are there by now out of garbage collection until the block ends.

    Modules and settings are millions of objects that stay; looking through them again and again
    is a quarter of what a run computes. Does nothing where the program has set objects aside
    itself.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
