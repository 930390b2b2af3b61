"""What a command holds in memory does not grow with the contexts of a run."""

import tracemalloc

import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation

pytestmark = pytest.mark.slow

FEW, MANY, CONTEXT = 100, 300, 50_000
METHOD = f"""
from graphrag.eval.runner import MethodAnswer


async def answer(question):
    number = question.split()[-1]
    lines = [f"{{number}}.{{i}} ".ljust(1000, "x") for i in range({CONTEXT} // 1000)]
    return MethodAnswer("Idris Vane", ("\\n".join(lines),))
"""


@pytest.fixture
def given_answers(make_evaluation: MakeEvaluation) -> Evaluation:
    """Return an evaluation of a function that shows much and asks no model."""
    evaluation = make_evaluation(
        methods=[{"name": "given", "function": "showing_much:answer"}], metrics=[]
    )
    (evaluation.root / "showing_much.py").write_text(METHOD, encoding="utf-8")
    return evaluation


def ask(evaluation: Evaluation, n: int) -> None:
    evaluation.write_rows(
        [
            {
                "id": f"q{i}",
                "question": f"Who built clock {i}",
                "answer": "Idris Vane",
                "evidence": ["Idris Vane built the tower clock of Ashcombe."],
            }
            for i in range(n)
        ]
    )


def peak_of(evaluation: Evaluation, *flags: str) -> int:
    """Return the most bytes that Python held while a command ran."""
    tracemalloc.start()
    try:
        ended = evaluation.run(*flags)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ended.exit_code == 0, ended.output
    return peak


def test_contexts_are_not_held_together(given_answers):
    again = ("show", "latest")
    for command in ((), again):  # what is imported and kept for good is not counted
        ask(given_answers, 2)
        given_answers.done(*command)
    peaks: dict[int, tuple[int, ...]] = {}
    for n in (FEW, MANY):
        ask(given_answers, n)
        peaks[n] = (peak_of(given_answers), peak_of(given_answers, *again))
    more = [many - few for few, many in zip(peaks[FEW], peaks[MANY], strict=True)]
    assert max(more) < (MANY - FEW) * CONTEXT / 2, more
