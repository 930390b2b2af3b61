"""A run that is read from its store leaves its contexts there."""

from pathlib import Path
from typing import Any

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import JudgeResult, Retrieved
from graphrag.eval.runner.plan import describe_setup, read_run
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, RunDetails, StoredResponse
from graphrag.query.usage import Usage

FEW, MANY, CONTEXT = 100, 300, 50_000


def keep_run(store: EvaluationStore, folder: Path, n: int) -> Run:
    given: Any = {"root": folder, "metrics": ["correctness"], "output": {"dir": str(folder)}}
    config = EvaluationConfig(**given)
    samples = [Sample(f"s{i}", "a", f"What is {i}?", "x") for i in range(n)]
    setup = describe_setup(config, samples, {"a": {"local": {"models": {}}}}, {"model": "m"})
    details = RunDetails("command", n, {**config.to_dict(), "methods": ["local"]})
    run = store.add_run(setup, samples, details)
    for i, sample in enumerate(samples):
        context = f"{i} ".ljust(CONTEXT, "x")
        told = Retrieved("local", (f"t{i}",), 1, ("A", "B"))
        found = StoredResponse(
            *(sample.id, sample.id, "local", "y", context, 1.0, Usage()), retrieved=told
        )
        store.append_response(run.run_id, found)
        verdict = {"correctness": JudgeResult(1, "so")}
        store.append_verdicts(run.run_id, sample.id, verdict, Usage())
    store.finish_run(run.run_id)
    return run


def test_results_in_outline_say_how_much_was_retrieved_and_are_given_whole_in_any_order(
    tmp_path: Path,
):
    with EvaluationStore(tmp_path / "eval.db") as store:
        run = keep_run(store, tmp_path, 3)
        outcome = read_run(store, run, tmp_path).outcome
        outlines = outcome.results
        assert [r.context_text for r in outlines] == [""] * 3
        assert [r.retrieved for r in outlines] == [Retrieved("local", (), 1)] * 3
        whole = list(outcome.read_whole([outlines[2], outlines[0]]))
    assert [r.sample_id for r in whole] == ["s2", "s0"]
    assert [r.context_text[:2] for r in whole] == ["2 ", "0 "]
    assert [r.retrieved for r in whole] == [
        Retrieved("local", (f"t{i}",), 1, ("A", "B")) for i in (2, 0)
    ]
    assert [r.in_outline() for r in whole] == [outlines[2], outlines[0]]
