import asyncio
import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings, strategies

from graphrag.text import cli_hints

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# graphrag_llm patches the current event loop when imported, and would leave one open behind it.
_loop = asyncio.new_event_loop()
asyncio.set_event_loop(_loop)

import graphrag_llm  # noqa: E402, F401

# It also replaces asyncio.run by one that never closes its loop; this is Python's own again.
asyncio.run = asyncio.runners.run

asyncio.set_event_loop(None)
_loop.close()

# Tests import lancedb themselves, too.
from graphrag.query.delayed_imports import leave_client  # noqa: E402

leave_client()

# It decides once, when it is imported, whether its help is in color; tests set what it looks at.
import typer.rich_utils  # noqa: E402, F401

# What an example may take says more of the machine and of first imports than of the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

pytest_plugins = ["support.chromium", "support.clock_fixtures", "support.released_commands"]

# Each goes to one worker as a whole; begun last, they would leave the others without work.
_LONG = (
    *("test_ray", "test_docs", "test_results_page", "test_packaging", "test_no_telemetry"),
    *("test_overlay", "test_examples", "test_interrupt", "test_kill_and_resume"),
    *("test_released_parity", "test_stock_project", "test_terminal_interrupt", "test_read_only"),
    *("test_browser", "test_monitor", "test_evaluate", "test_faults_kill", "test_kill_at_the_end"),
    *("test_flat_memory", "test_older_stores", "test_own_code"),
)


def pytest_xdist_auto_num_workers():
    """Run three workers on two cores: a third of the time goes to waiting for others."""
    return max(1, 3 * (os.cpu_count() or 1) // 2)


# As Python does it, after each 700 new objects, looking for garbage takes a tenth of the time.
gc.set_threshold(10_000)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Import what the tests need without looking for what could be freed."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest, in this order."""
    place = {stem: n for n, stem in enumerate(_LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.fixture(scope="session", autouse=True)
def _loaded_strategies():
    """Load the modules of strategies, which Hypothesis otherwise does at their first use.

    Deep in a test that is too deep for pytest's rewriting of assertions under Python 3.11.
    """
    strategies.randoms().validate()
    strategies.from_regex("a").validate()


@pytest.fixture(autouse=True)
def _no_command():
    """Forget the command line that another test gave in this process."""
    cli_hints._INVOCATION.set(cli_hints._PLAIN)


@pytest.fixture(scope="session")
def project_root():
    return Path(__file__).parent.parent
