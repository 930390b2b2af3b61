"""A run in a store, with a judge that is wrong where the test says so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pytest

from graphrag.eval.cli.paths import Paths
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunSetup, StoredResponse
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.usage import Usage

End: TypeAlias = int | str
"""A verdict, or "search" or "judge" for what failed."""


@dataclass(frozen=True)
class StoredRun:
    run_id: str
    folder: Path

    @property
    def place(self) -> Paths:
        return Paths(output=self.folder)

    def judge_again(self, question: str, method: str, metric: str, score: int) -> None:
        with EvaluationStore(self.folder / "eval.db") as store:
            verdicts = {metric: JudgeResult(score, "said")}
            store.append_verdicts(self.run_id, f"{question} {method}", verdicts, Usage())


MakeRun: TypeAlias = Callable[..., StoredRun]


def maker(results: Path) -> MakeRun:
    """Return a function that stores a run in a folder: question id -> the ends by method."""

    def make(
        ends: Mapping[str, Sequence[End]],
        methods: Sequence[str] = ("tog", "basic"),
        metric: str = "correctness",
        model: str = "openai/gpt-4o",
        abstaining: Sequence[str] = (),
    ) -> StoredRun:
        samples = [
            Sample(name, f"film{number % 2}", f"Question {name}?", f"Truth of {name}")
            for number, name in enumerate(ends)
        ]
        setup = {
            "methods": {"order": list(methods)},
            "dataset": {"questions": len(samples)},
            "judge": {"model": model},
        }
        with EvaluationStore(results / "eval.db") as store:
            run = store.add_run(RunSetup(setup), samples)
            for name, of_question in ends.items():
                for number, (method, end) in enumerate(zip(methods, of_question, strict=True)):
                    unit = f"{name} {method}"
                    lost = Failure("search", "error", "down") if end == "search" else None
                    said = f"Response to {name} number {number}", f"Context of {name} {number}"
                    response = StoredResponse(unit, name, method, *said, 1.0, Usage(), lost)
                    response = replace(response, abstained=unit in abstaining)
                    store.append_response(run.run_id, response)
                    if lost is None:
                        verdict = JudgeResult(end, "said") if isinstance(end, int) else None
                        failed = JudgeResult(None, "lost", Failure("judge", "error", "down"))
                        verdicts = {metric: verdict or failed}
                        store.append_verdicts(run.run_id, unit, verdicts, Usage())
            store.finish_run(run.run_id)
        return StoredRun(run.run_id, results)

    return make


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    return maker(tmp_path / "results")


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """Return a run of five questions, which the tests of a module only read."""
    ends = {f"q{i}": (int(i != 1), int(i > 1)) for i in range(5)}
    return maker(tmp_path_factory.mktemp("small"))(ends)
