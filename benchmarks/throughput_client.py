"""One way to make calls, in a process of its own: ``throughput_client.py WAY URL C CALLS FOLDER``.

Prints one line of JSON: the run's wall and CPU seconds from the first to the last call, the CPU
seconds before it (imports and preparation), and the peak memory.
"""

import asyncio
import json
import os
import re
import resource
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["GRAPHRAG_API_KEY"] = "none"

N_METRICS = 4
_SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"enum": [0, 1]}},
    "required": ["reason", "score"],
    "additionalProperties": False,
}
_FORM = {
    "type": "json_schema",
    "json_schema": {"name": "JudgeReply", "schema": _SCHEMA, "strict": True},
}
QUESTION = "Who repaired the great lamp with Marta Quill?"
CONTEXT = "Marta Quill keeps the lighthouse on Gannet Isle. " * 40


def body() -> dict[str, object]:
    """Return a request as large as a judge's."""
    prompt = "You grade one response. " * 60 + CONTEXT
    messages = [{"role": "user", "content": prompt}]
    return {"model": "gpt-4o", "messages": messages, "temperature": 0.0, "response_format": _FORM}


async def bare(url: str, concurrency: int, calls: int, folder: Path) -> None:
    """Make the calls with aiohttp alone."""
    import aiohttp

    data, left = json.dumps(body()).encode(), iter(range(calls))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def work() -> None:
            for _ in left:
                async with session.post(f"{url}/chat/completions", data=data) as response:
                    reply = json.loads(await response.read())
                    json.loads(reply["choices"][0]["message"]["content"])["score"]

        begin()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        end()


async def litellm(url: str, concurrency: int, calls: int, folder: Path) -> None:
    """Make the calls with litellm alone."""
    import litellm

    left = iter(range(calls))
    given: dict[str, Any] = body()
    given["model"] = f"openai/{given['model']}"

    async def work() -> None:
        for _ in left:
            reply: Any = await litellm.acompletion(
                **given, api_base=url, api_key="none", max_retries=0
            )
            json.loads(reply.choices[0].message.content)["score"]

    begin()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    end()


def settings(kind: str, url: str, stock: str) -> str:
    """Return the settings of ``graphrag init`` for a service on this machine."""
    written = f"    api_base: {url}\n"
    if kind == "litellm":
        written += "    type: litellm\n"
    marked = stock.replace("    model_provider: openai\n", f"    model_provider: openai\n{written}")
    assert marked.count(url) == 2, stock
    return re.sub(r"(vector_store:\n)", r"\1  vector_size: 384\n", marked)


def configured(url: str, kind: str, concurrency: int, folder: Path, **more):
    """Return the configuration of an evaluation of the index in a folder."""
    from graphrag.eval.config.evaluation import EvaluationConfig

    stock = (folder / "stock.yaml").read_text()
    (folder / "settings.yaml").write_text(settings(kind, url, stock))
    return EvaluationConfig.model_validate(
        {
            "indexes": {"isle": str(folder)},
            "concurrency": concurrency,
            "output": {"dir": str(folder / "results")},
            **more,
        }
    )


def load(kind: str, *more: str) -> None:
    """Import what would be imported at the first question: that counts as preparation."""
    for name in ("query.client.models", *more):
        import_module(f"graphrag.{name}")
    if kind == "litellm":
        import_module("graphrag_llm.completion.lite_llm_completion")


async def judged(kind: str, url: str, concurrency: int, calls: int, folder: Path) -> None:
    """Have given answers judged by the evaluation, its store on."""
    from graphrag.eval.runner.custom_methods import MethodAnswer
    from graphrag.eval.runner.evaluation_runner import EvaluationRunner

    config = configured(url, kind, concurrency, folder)

    async def given(question: str):
        if not _TIMES:  # what was read and opened before counts towards the whole process
            begin()
        return MethodAnswer(response="Jonas Feld.", contexts=(CONTEXT,))

    load(kind)
    rows = make_rows(calls // N_METRICS)
    runner = EvaluationRunner(config, None, {"isle": folder}, {"given": given})
    results = await runner.run_evaluation(rows, ["given"], progress_callback=lambda *_: None)
    end()
    scores = [result.scores.get(metric).score for result in results for metric in config.metrics]
    assert scores == [1] * calls, scores[:8]


async def searched(kind: str, url: str, concurrency: int, calls: int, folder: Path) -> None:
    """Have questions asked by three methods, and the answers judged."""
    from graphrag.eval.runner.evaluation_runner import EvaluationRunner

    config = configured(url, kind, concurrency, folder, methods=["local", "basic", "tog"])
    load(kind, "query.engines", "query.graph.search")
    rows = make_rows(calls // (3 * N_METRICS))
    runner = EvaluationRunner(config, None, {"isle": folder})
    search = runner.search_unit

    async def timed(unit: Any, log: Any) -> Any:
        if not _TIMES:
            begin()
        return await search(unit, log)

    runner.search_unit = timed  # as above: from the first question on
    results = await runner.run_evaluation(rows, progress_callback=lambda *_: None)
    end()
    failed = {
        result.scores.get(m).reason
        for result in results
        for m in config.metrics
        if result.scores.get(m).score is None
    }
    assert not failed, failed


async def build(folder: Path) -> None:
    """Build the index with the embedded models; the questions are asked of models behind HTTP."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.lighthouse import TEXT
    from support.projects import OFFLINE_SETTINGS

    from graphrag.cli.initialize import initialize_project_at
    from graphrag.eval.runner.index_building import build_index

    initialize_project_at(folder, False, "gpt-4o", "text-embedding-3-small")
    (folder / "settings.yaml").rename(folder / "stock.yaml")
    (folder / "input" / "isle.txt").write_text(TEXT)
    (folder / "settings.yaml").write_text(OFFLINE_SETTINGS)
    await build_index(folder, lambda _: None)


def make_rows(number: int) -> list[dict[str, object]]:
    """Return so many questions."""
    return [
        {"imdb_key": "isle", "question": f"{QUESTION} ({n})", "ground_truth": "Jonas Feld"}
        for n in range(number)
    ]


_TIMES: dict[str, float] = {}


def begin() -> None:
    """Note that the calls begin."""
    _TIMES["cpu_before"], _TIMES["started"] = time.process_time(), time.perf_counter()


def end() -> None:
    """Note that the last call has ended."""
    _TIMES["wall"] = time.perf_counter() - _TIMES["started"]
    _TIMES["cpu"] = time.process_time() - _TIMES["cpu_before"]


def main() -> None:
    if sys.argv[1] == "build":
        asyncio.run(build(Path(sys.argv[2])))
        return
    way, url, concurrency, calls, folder = sys.argv[1:]
    given = (url, int(concurrency), int(calls), Path(folder))
    kind, _, client = way.partition("-")
    if client:
        from graphrag.eval.cli.interrupts import run_coroutine  # as the command does

        made = {"judged": judged, "searched": searched}[kind]
        run_coroutine(made(client, *given))
    else:
        asyncio.run({"bare": bare, "litellm": litellm}[way](*given))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({**_TIMES, "peak_mb": peak / 1024, "litellm": "litellm" in sys.modules}))


if __name__ == "__main__":
    main()
