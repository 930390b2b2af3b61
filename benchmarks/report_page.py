"""How a run's page stays usable: 10,000 questions against the same page with 100.

    python benchmarks/report_page.py [--questions 10000] [--stored 20000]
                                     [--browser /usr/bin/chromium]

Prints bytes, first paint, when the list can be used, and how long a filter takes, with the ratios;
exit code 1 when first paint takes 1 s or more, or a filter 100 ms or more. Then what a server needs
to make the page of a stored run of two methods, and the list of runs: medians of CPU seconds, and
how many times as long as only reading the rows and splitting contexts into lines they take.
"""

import argparse
import asyncio
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright  # pyright: ignore

from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.show_run import draw_page
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.eval.results.runs import list_runs
from graphrag.eval.runner.run_setup import describe_setup
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunDetails, StoredResponse
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import JudgeResult, MetricScores
from graphrag.eval.web.run_report import report_pieces
from graphrag.query.client.usage import Usage

METRICS = ("correctness", "faithfulness", "relevance", "completeness")
STORED_METHODS = ("tog", "basic")
MOST_PAINT_MS, MOST_FILTER_MS = 1000, 100
FILTER = """async ([name, value]) => {
  const field = document.querySelector(`#filters [name="${name}"]`);
  const began = performance.now();
  field.value = value;
  field.dispatchEvent(new Event(name === "text" ? "input" : "change", {bubbles: true}));
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  document.body.offsetHeight;
  return performance.now() - began; }"""
FILTERS = (("text", "answer 77"), ("text", ""), ("is:tog", "0"), ("order", "question"))


def result(n: int, method: str) -> QueryResult:
    verdict = JudgeResult(
        score=int((n * 7919 + len(method)) % 3 > 0), reason="The answer says the same."
    )
    usage = Usage(
        llm_calls=2,
        prompt_tokens=4000 + n * 31 % 997,
        output_tokens=300,
        cost_usd=0.002,
        models=("gpt",),
    )
    return QueryResult(
        imdb_key=f"film-{n % 5}",
        question=f"Question {n}: who sold the silver pendulum of the tower clock, and to whom?",
        method=method,
        response=f"Answer {n} of {method}. " + "It was sold to a smuggler. " * 12,
        scores=MetricScores.of(dict.fromkeys(METRICS, verdict)),
        efficiency=EfficiencyMetrics.of(1.0 + n % 9, usage),
        ground_truth=f"Truth {n}",
        context_text="\n".join(
            f"{(n + k) % 4000}|row {(n + k) % 4000} of a table" for k in range(60)
        ),
        sample_id=f"q{n}",
        usage=usage,
    )


def write_page(path: Path, n_questions: int) -> tuple[int, float]:
    found = [result(n, m) for n in range(n_questions) for m in ("tog", "local", "basic")]
    results = aggregate_results(found, METRICS)
    began = time.process_time()
    data = "".join(report_pieces(results)).encode()
    path.write_bytes(data)
    return len(data), time.process_time() - began


def measure(page: Page, path: Path) -> dict[str, float]:
    began = time.perf_counter()
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_selector("html[data-listed=yes]", state="attached")
    listed = 1000 * (time.perf_counter() - began)
    paints: list[dict[str, Any]] = page.evaluate(
        "performance.getEntriesByType('paint').map(e => ({name: e.name, at: e.startTime}))"
    )
    paint = next(each["at"] for each in paints if each["name"] == "first-contentful-paint")
    began = time.perf_counter()
    page.locator("#list a").first.click()
    page.wait_for_selector("#question .side")
    opened = 1000 * (time.perf_counter() - began)
    page.keyboard.press("u")
    page.wait_for_selector("#list a")
    taken = [max(page.evaluate(FILTER, list(each)) for each in FILTERS) for _ in range(5)]
    return {
        "first paint": paint,
        "list usable": listed,
        "question": opened,
        "slowest filter": statistics.median(taken),
    }


def store_run(folder: Path, n_questions: int) -> str:
    """Keep a finished run, and return its id."""
    found = [result(n, method) for n in range(n_questions) for method in STORED_METHODS]
    asked = {each.sample_id: each for each in found}
    samples = [
        Sample(id=i, imdb_key=r.imdb_key, question=r.question, ground_truth=r.ground_truth)
        for i, r in asked.items()
    ]
    config = EvaluationConfig.model_validate(
        {"methods": STORED_METHODS, "metrics": METRICS, "output": {"dir": str(folder)}}
    )
    about: dict[str, Mapping[str, object]] = {m: {"models": {}} for m in STORED_METHODS}
    indexes = {each.imdb_key: about for each in found}
    setup = describe_setup(config, samples, indexes, {"model": "openai/gpt"})
    with EvaluationStore(folder / "eval.db") as store:
        details = RunDetails(
            origin="command", n_units=len(found), config=config.to_dict(), command="graphrag eval"
        )
        run_id = store.add_run(setup, samples, details).run_id
        for each in found:
            unit = f"{each.sample_id} {each.method}"
            verdicts = {metric: each.scores.get(metric) for metric in METRICS}
            told = each.sample_id, each.method, each.response, each.context_text
            assert each.usage is not None
            answer = StoredResponse(unit, *told, each.efficiency.latency, each.usage)
            store.append_response(run_id, answer)
            store.append_verdicts(run_id, unit, verdicts, each.usage)
        store.finish_run(run_id)
    return run_id


def read_rows(path: Path) -> None:
    """Read what the page is made of, and make nothing of it."""
    db = sqlite3.connect(path)
    for (context,) in db.execute("SELECT context_text FROM responses"):
        context.split("\n")
    for table in ("samples", "verdicts", "judge_usage"):
        db.execute(f"SELECT * FROM {table}").fetchall()
    db.execute("SELECT unit, response, usage FROM responses").fetchall()
    db.close()


def cpu_s(make: Callable[[], object], times: int = 3) -> float:
    taken: list[float] = []
    for _ in range(times):
        began = time.process_time()
        make()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def measure_stored(folder: Path, n_questions: int) -> None:
    few, many = folder / "few", folder / "many"
    asyncio.run(draw_page(Paths(output=few), store_run(few, 20)))  # so that no import is measured
    run_id, path = store_run(many, n_questions), many / "eval.db"
    made = {
        "the page, the first time": lambda: asyncio.run(draw_page(Paths(output=many), run_id)),
        "the list of runs": lambda: list_runs(path),
    }
    rows = cpu_s(lambda: read_rows(path))
    taken = {name: cpu_s(make) for name, make in made.items()}
    told = ", ".join(f"{name} {cpu:.2f} s ({cpu / rows:.1f} x)" for name, cpu in taken.items())
    print(f"{n_questions:,} questions x 2 stored, CPU: {told}; only reading the rows {rows:.2f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--stored", type=int, default=20_000)
    parser.add_argument("--browser", default=shutil.which("chromium"))
    options = parser.parse_args()
    found: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.browser)
        for n in (100, options.questions):
            path = Path(folder) / f"{n}.html"
            size, seconds = write_page(path, n)
            tries: list[dict[str, float]] = []
            for _ in range(3):
                tab = browser.new_page(viewport={"width": 1280, "height": 900})
                tries.append(measure(tab, path))
                tab.close()
            found[n] = {name: statistics.median(t[name] for t in tries) for name in tries[0]}
            told = ", ".join(f"{name} {value:.0f} ms" for name, value in found[n].items())
            print(f"{n:,} questions: {size:,} bytes, written in {seconds:.1f} s of CPU; {told}")
        browser.close()
        measure_stored(Path(folder), options.stored)
    small, large = found[100], found[options.questions]
    print("ratios: " + ", ".join(f"{name} {large[name] / small[name]:.1f}" for name in small))
    fast = large["first paint"] < MOST_PAINT_MS and large["slowest filter"] < MOST_FILTER_MS
    return 0 if fast else 1


if __name__ == "__main__":
    sys.exit(main())
