"""The event loop of commands, beside a library that changes asyncio for the whole process."""

import asyncio
import sys
from _asyncio import Task

import graphrag_llm  # it makes asyncio reentrant
import pytest

from graphrag.eval.cli.interrupts import run_coroutine


@pytest.mark.skipif(sys.platform == "win32", reason="there commands run on asyncio's own loop")
def test_a_command_runs_on_the_tasks_that_the_interpreter_has():
    async def inner() -> bool:
        await asyncio.sleep(0)
        return isinstance(asyncio.current_task(), Task)

    async def main() -> tuple[bool, bool]:
        return isinstance(asyncio.current_task(), Task), await asyncio.create_task(inner())

    assert graphrag_llm.nest_asyncio2
    assert run_coroutine(main()) == (True, True)
