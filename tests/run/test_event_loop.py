"""The loop of an evaluation, beside what graphrag_llm makes of every other."""

import json
import subprocess
import sys

_RUN = """
import asyncio, json
from graphrag.eval.runner.event_loop import run_coroutine

async def kinds():
    task = asyncio.current_task()
    future = asyncio.get_running_loop().create_future()
    return [type(task).__module__, type(future).__module__]

def nested():
    loop = asyncio.new_event_loop()  # as a synchronous call of a cached model begins one
    try:
        return loop.run_until_complete(asyncio.sleep(0, "answered"))
    finally:
        loop.close()

async def main():
    before = await kinds()
    import graphrag_llm  # replaces asyncio's tasks, futures and steps
    return [
        before,
        await asyncio.gather(kinds(), asyncio.wait_for(kinds(), 5)),
        nested(),
        await asyncio.to_thread(nested),
    ]

print(json.dumps(run_coroutine(main())))
print(json.dumps(asyncio.run(kinds())))
"""
_OWN = ["_asyncio", "_asyncio"]


def test_the_loop_keeps_the_interpreter_s_own_tasks():
    done = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    ours, others = map(json.loads, done.stdout.splitlines())
    assert ours == [_OWN, [_OWN, _OWN], "answered", "answered"]
    if sys.version_info < (3, 14):  # what it is there for: if it fails, it can go
        assert others != _OWN
