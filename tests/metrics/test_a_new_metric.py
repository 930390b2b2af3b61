"""A metric is added as docs/design.md says: by one entry, without another line."""

import json
import re
import shutil
from dataclasses import replace
from typing import Any

import pytest
import yaml
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig
from support.clock_evaluation import ROWS, flat
from support.openai_server import Behaviour, offline_reply

from graphrag.embedded import OfflineModelError
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.metrics.judge import JudgeReply
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.testing import ScriptedJudge, ScriptedRunner
from graphrag.eval.types.metric_definitions import JUDGED_METRICS, JudgedMetric

DONE, USAGE, INCOMPLETE = 0, 2, 3
NAME = "conciseness"
N_LONG = 2
METRIC = JudgedMetric(
    name=NAME,
    instructions="You grade whether an answer is short.\n\nScore 1 when it {is}, else 0.\n",
    fields=("question", "answer"),
    one="the response wastes no word",
    zero="it repeats itself or strays",
    zero_if_failed=False,
)


def test_one_entry_is_enough(make_evaluation, server, monkeypatch):
    others, prompts = offline_reply(), list[str]()

    def reply(request: dict[str, object]) -> str:
        prompt = str(request["messages"])
        if "whether an answer is short" not in prompt:
            return others(request)
        prompts.append(prompt)
        is_long = any(row["question"] in prompt for row in ROWS[:N_LONG])
        return json.dumps({"reason": "counted", "score": int(not is_long)})

    server.behaviour = Behaviour(reply)
    evaluation = make_evaluation(server.base_url, methods=["basic"])

    def run(*line: str, code: int = DONE) -> str:
        result = evaluation.run(*line, COLUMNS="200")
        assert result.exit_code == code, result.output
        return flat(result.output)

    run("-q")
    run("compare", "latest", "--pin")
    older = str(shutil.copy(evaluation.output / "baseline.json", evaluation.root / "older.json"))
    plain = yaml.safe_dump({"dataset": {"path": "questions.json"}, "indexes": {"clock": "clock"}})
    (evaluation.root / "plain.yaml").write_text(plain, encoding="utf-8")
    evaluation.configure(metrics=["faithfulness", NAME], thresholds={NAME: 0.5})

    monkeypatch.setitem(JUDGED_METRICS, NAME, METRIC)
    assert NAME not in run("--config", "plain.yaml", "--methods", "basic", "--full")
    evaluated = run("--full")
    assert f"method faithfulness {NAME} " in evaluated
    run("compare", "latest", "--pin")
    run("-q")
    judged = run("judge", "latest", "--metrics", NAME, "--full")
    for output in (evaluated, judged, run("show", "latest", "--full")):
        assert re.search(rf"{NAME}.*? basic .*?66\.7 ", output)
    assert len(prompts) == 3 * len(ROWS)  # of two runs and a judging, not of the default run
    assert all("when it {is}, else 0" in prompt for prompt in prompts)
    keys = {name for prompt in prompts for name in re.findall(r'"(\w+)": "', prompt)}
    assert keys == {"metric", "question", "answer", "reason"}

    summary = evaluation.read_results("summary")
    assert summary["by_method"]["basic"][NAME] == pytest.approx(1 - N_LONG / len(ROWS))
    entries = [entry["methods"]["basic"] for entry in evaluation.read_results()["results"]]
    assert [entry["scores"][NAME] for entry in entries].count(0) == N_LONG
    assert {entry["reasons"][NAME] for entry in entries} == {"counted"}

    compared = run("compare", "latest", "pinned", "--metric", NAME, code=INCOMPLETE)
    assert "6 questions compared, 0 newly wrong, 0 newly right." in compared
    assert f"basic {NAME} 6 +0.0 " in compared
    unjudged = run("compare", "latest", older, "--metric", NAME, code=INCOMPLETE)
    assert "The judge gave 0.0% of the verdicts asked of it in the baseline" in unjudged
    run("view", "--labels", "latest", "--metric", NAME)
    page = (evaluation.output / f"audit_{NAME}.html").read_text(encoding="utf-8")
    assert "the response wastes no word" in page
    assert '"shown": ["question", "response"]' in page
    mistyped = run("judge", "latest", "--metrics", "concisenes", code=USAGE)
    assert f"unknown name 'concisenes'; did you mean '{NAME}'?" in mistyped


class Unable:
    async def evaluate_all(self, question: str, ground_truth: str, predicted: str, context: str):
        raise AssertionError


class Able(Unable):
    def judge_conciseness(self, question: str, answer: str):
        return {"score": 1, "reason": f"{answer} to {question}"}


async def test_a_judge_without_a_way_to_grade_it_is_refused_before_anything_is_asked(
    make_evaluation, monkeypatch
):
    monkeypatch.setitem(JUDGED_METRICS, NAME, METRIC)

    async def ask(judge: Any) -> tuple[str, int]:
        runner = ScriptedRunner(EvaluationConfig(metrics=(NAME,)), lambda *_: "Ann.", judge)
        try:
            found = await runner.evaluate_single("film", "Who was it?", "Ann Lee", "tog")
            said = found.scores.get(NAME).reason
        except ConfigError as error:
            said = str(error)
        return said, len(runner.asked)

    assert await ask(Able()) == ("Ann. to Who was it?", 1)
    assert await ask(ScriptedJudge()) == ("scripted", 1)
    assert await ask(Unable()) == (
        "The judge, of class Unable, does not grade conciseness; give it "
        "judge_conciseness(question, answer), or leave conciseness out of metrics.",
        0,
    )


def test_the_embedded_judge_refuses_what_it_has_no_rule_for(make_evaluation, monkeypatch):
    monkeypatch.setitem(JUDGED_METRICS, NAME, METRIC)
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness", NAME])
    for line, code in (
        ((), USAGE), (("--dry-run",), USAGE), (("--skip-judge",), DONE),
        (("judge", "latest"), USAGE),
    ):  # fmt: skip
        result = evaluation.run(*line)
        assert result.exit_code == code, result.output
        if code == USAGE:
            said = f"metrics: the embedded judge has no rule for {NAME}; name a language"
            assert said in flat(result.output)
    with EvaluationStore(evaluation.store_path) as store:
        (only,) = store.runs()  # of the searches that no one was to judge
        assert not store.verdicts(only.run_id)


def test_the_embedded_judge_takes_no_metric_for_another_with_its_fields():
    known = JUDGED_METRICS["completeness"]
    model = create_completion(ModelConfig(type="offline", model_provider="offline", model="rules"))

    def ask(metric: JudgedMetric):
        prompt = metric.prompt.format(question='"Who was it?"', answer='"Ann."')
        return model.completion(
            messages=[{"role": "user", "content": prompt}], response_format=JudgeReply
        )

    assert ask(known).formatted_response.score == 1
    with pytest.raises(OfflineModelError, match="one JSON object"):
        ask(replace(METRIC, fields=known.fields))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "how short"}, "identifier"),
        ({"fields": ("anwser",)}, "anwser"),
        ({"fields": ()}, "none"),
    ],
)
def test_a_declaration_that_can_not_be_asked_is_refused(values, said):
    with pytest.raises(ValueError, match=said):
        replace(METRIC, **values)
