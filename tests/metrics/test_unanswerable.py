"""Questions that the documents don't answer, and how much of an answer a context holds."""

import json
import re

import pytest
from support.clock_evaluation import ROWS, flat
from support.openai_server import Behaviour, offline_reply

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.judge import LLMJudge, judgeable
from graphrag.eval.metrics.pairwise import PAIRWISE
from graphrag.eval.metrics.quality import QUALITY
from graphrag.eval.testing import ScriptedRunner
from graphrag.eval.types.metric_definitions import JUDGED_METRICS
from graphrag.eval.types.verdicts import JudgeResult

UNKNOWN = {
    "id": "u1",
    "question": "What is the blood group of Idris Vane?",
    "answer": "The documents do not say.",
    "answerable": False,
}
OUT = {"relevance", "completeness"}


@pytest.fixture(autouse=True)
def _forgets_what_was_asked_for():
    yield
    JUDGED_METRICS.pop("sufficiency", None)


@pytest.mark.parametrize("claims", [False, True])
def test_a_row_without_an_answer_has_its_own_instruction_and_is_left_out_elsewhere(
    make_evaluation, server, claims
):
    others, judged = offline_reply(), list[str]()

    def reply(request: dict[str, object]) -> str:
        prompt = str(request["messages"])
        if UNKNOWN["question"] in prompt and "Material:" in prompt:
            judged.append(prompt)
        return others(request)

    server.behaviour = Behaviour(reply)
    by = {"faithfulness": {"by": "claim"}} if claims else {"rubric": True, "quality": True}
    evaluation = make_evaluation(server.base_url, methods=["basic"], judge=by)
    evaluation.write_rows([*ROWS[:2], UNKNOWN])
    said = flat(evaluation.done("--full", COLUMNS="200").output)
    names = "faithfulness" if claims else "rubric and quality"
    assert (
        "1 of 3 questions can't be answered from the documents and is right if declined; relevance,"
        f" completeness{' and' if claims else ','} {names} leave them out, so that n is 2 there"
    ) in said
    assert sum('"metric": "refusal"' in prompt for prompt in judged) == 1
    of_others = "Compare|of use|on five dimensions|with four numbers"
    assert not any(re.search(of_others, prompt) for prompt in judged)
    unanswerable = Sample("u1", "film", "Who?", "", answerable=False)
    assert not PAIRWISE.asks(unanswerable)
    assert QUALITY.grading(unanswerable, False, {"accuracy": 0}) is None  # of an earlier release

    row = next(e for e in evaluation.read_results()["results"] if e["id"] == "u1")
    states = row["methods"]["basic"]["states"]
    left_out = OUT | ({"faithfulness"} if claims else set())
    assert {name for name, state in states.items() if state == "not_judged"} == left_out
    summary = evaluation.read_results("summary")["outcomes"]["basic"]
    assert {name: of["given_answer"]["n"] for name, of in summary.items()} == {
        name: 2 if name in left_out else 3 for name in summary
    }
    if not claims:
        assert evaluation.read_results("summary")["quality"]["basic"]["accuracy"]["n"] == 2


@pytest.mark.parametrize("by", ["response", "claim"])
async def test_a_search_that_failed_on_it_counts_0_on_correctness_alone(by):
    def fail(*_):
        raise ConnectionError("gone")

    class Silent:
        completion_async = fail

    config = EvaluationConfig(methods=("tog",), judge={"faithfulness": {"by": by}})
    runner = ScriptedRunner(config, fail, LLMJudge(Silent()))
    sample = Sample("u1", "film", "Who?", "The documents do not say.", answerable=False)
    (result,) = await runner.run_evaluation([sample], ["tog"])
    assert [(n, of.score) for n, of in result.scores.further.items()] == []
    zeros = {n for n, score in result.scores.to_dict().items() if score == 0}
    assert zeros == {"correctness"} | ({"faithfulness"} if by == "response" else set())
    assert judgeable(sample, ["sufficiency", "correctness"]) == ("correctness",)


def test_failed_searches_count_0_where_only_what_has_no_answer_was_answered(
    make_evaluation, server, monkeypatch
):
    evaluation = make_evaluation(
        server.base_url, methods=["basic", {"name": "poor", "function": "poor_search:answer"}]
    )
    (evaluation.root / "poor_search.py").write_text(
        "async def answer(question):\n"
        "    if 'blood' not in question:\n"
        "        raise ConnectionError('gone')\n"
        "    return 'The documents do not say.'\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(evaluation.root))
    evaluation.write_rows([*ROWS[:2], UNKNOWN])
    evaluation.done()
    summary = evaluation.read_results("summary")
    completeness = summary["outcomes"]["poor"]["completeness"]
    assert completeness["n_not_judged"] == 1
    assert (completeness["end_to_end"]["mean"], completeness["end_to_end"]["n"]) == (0, 2)
    assert summary["by_method"]["poor"]["completeness"] == 0
    assert summary["by_method"]["poor"]["faithfulness"] is None  # it shows no context
    evaluation.done("--skip-judge")
    unjudged = evaluation.read_results("summary")["outcomes"]["poor"]
    assert {of["end_to_end"]["n"] for of in unjudged.values()} == {0}


async def test_a_judge_of_ones_own_is_asked_as_it_was():
    class Own:
        async def evaluate_all(self, question, ground_truth, predicted, context):
            return {name: {"score": 1} for name in ("correctness", *OUT)}

    class Declining(Own):
        def judge_refusal(self, question, predicted):
            return JudgeResult(0, f"{predicted} is an answer")

    sample = Sample("u1", "film", "Who?", "The documents do not say.", answerable=False)
    for judge, score in ((Own(), 1), (Declining(), 0)):
        runner = ScriptedRunner(EvaluationConfig(), lambda *_: "Ann.", judge)
        (result,) = await runner.run_evaluation([sample], ["tog"])
        assert result.scores.correctness.score == score
        assert result.scores.completeness.score is None


def test_sufficiency_is_judged_where_it_is_asked_for(make_evaluation, server):
    others = offline_reply()

    def reply(request: dict[str, object]) -> str:
        prompt = str(request["messages"])
        if "enough to answer a question in full" not in prompt:
            return others(request)
        return json.dumps({"reason": "held", "score": int("Idris Vane built" in prompt)})

    server.behaviour = Behaviour(reply)
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    evaluation.done("-q")
    assert "sufficiency" not in json.dumps(evaluation.read_results())
    evaluation.done("judge", "latest", "--metrics", "correctness,sufficiency")
    shown = flat(evaluation.done("show", "latest", "--full", COLUMNS="200").output)
    assert re.search(r"sufficiency.*? basic .*?100\.0 ", shown)
    entries = evaluation.read_results(folder=evaluation.newest_folder)["results"]
    assert {e["methods"]["basic"]["scores"]["sufficiency"] for e in entries} == {1}
    mistyped = evaluation.done("judge", "latest", "--metrics", "suficiency", code=2)
    assert "did you mean 'sufficiency'" in flat(mistyped.output)
