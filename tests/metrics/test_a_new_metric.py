"""A metric is added as docs/adding.md says: by one entry, without another line."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, LocalServer, offline_reply

from graphrag.eval.judged import JUDGED_METRICS, JudgedMetric
from graphrag.eval.scorers.judge import JudgeReply
from graphrag.eval.store.database import EvaluationStore
from graphrag.offline import OfflineModelError

DONE, USAGE, INCOMPLETE = 0, 2, 3
NAME = "conciseness"
N_LONG = 2

ADD = """
import json, sys
from pathlib import Path

folder, given = sys.argv[1], json.loads(sys.argv[2])
from graphrag.eval import judged

added = judged.JudgedMetric(
    name="conciseness",
    instructions="You grade whether an answer is short.\\n\\nScore 1 when it {is}, else 0.\\n",
    fields=("question", "answer"),
    one="the response wastes no word",
    zero="it repeats itself or strays",
    zero_if_failed=False,
)
judged.JUDGED_METRICS[added.name] = added
"""

RUN_COMMANDS = """
from typer.testing import CliRunner
from graphrag.cli.main import app

ended = [CliRunner().invoke(app, command, env={"COLUMNS": "200"}) for command in given]
found = [(each.exit_code, " ".join(each.output.split())) for each in ended]
"""

ASK_JUDGES_OF_ONES_OWN = """
import asyncio
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.testing import ScriptedJudge, ScriptedRunner

class Unable:
    async def evaluate_all(self, question, ground_truth, predicted, context):
        raise AssertionError

class Able(Unable):
    def judge_conciseness(self, question, answer):
        return {"score": 1, "reason": f"{answer} to {question}"}

def ask(judge):
    runner = ScriptedRunner(EvaluationConfig(metrics=("conciseness",)), lambda *_: "Ann.", judge)
    try:
        asked = runner.evaluate_single("film", "Who was it?", "Ann Lee", "tog")
        said = asyncio.run(asked).scores.get("conciseness").reason
    except ConfigError as error:
        said = str(error)
    return said, len(runner.asked)

found = [found, [ask(judge) for judge in (Unable(), Able(), ScriptedJudge())]]
"""


def run(folder: Path, code: str, given: object = None):
    """Run code in a process that has the metric; return what it found."""
    write = "Path(folder, 'found.json').write_text(json.dumps(found), encoding='utf-8')"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([ADD, code, write]), str(folder), json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


def asked_for_it(server: LocalServer) -> list[str]:
    prompts = [str(each.messages[-1]["content"]) for each in server.records if each.messages]
    return [prompt for prompt in prompts if "whether an answer is short" in prompt]


@pytest.fixture
def judging(server: LocalServer) -> LocalServer:
    others = offline_reply()
    long = [row["question"] for row in ROWS[:N_LONG]]

    def reply(request: dict[str, object]) -> str:
        prompt = str(request["messages"])
        if "whether an answer is short" not in prompt:
            return others(request)
        score = int(not any(question in prompt for question in long))
        return json.dumps({"reason": "counted", "score": score})

    server.behaviour = Behaviour(reply)
    return server


@pytest.mark.slow
def test_one_entry_is_enough(tmp_path: Path, make_evaluation: MakeEvaluation, judging: LocalServer):
    evaluation: Evaluation = make_evaluation(judging.base_url, methods=["basic"])
    assert evaluation.run("-q").exit_code == DONE
    assert evaluation.run("compare", "latest", "--pin").exit_code == DONE
    older = shutil.copy(evaluation.output / "baseline.json", evaluation.root / "older.json")
    evaluation.configure(metrics=["faithfulness", NAME], thresholds={NAME: 0.5})
    plain = yaml.safe_dump({"dataset": {"path": "questions.json"}, "indexes": {"clock": "clock"}})
    (evaluation.root / "plain.yaml").write_text(plain, encoding="utf-8")
    at, junit = ("--root", str(evaluation.root)), evaluation.root / "junit.xml"
    before = len(asked_for_it(judging))
    by_default, evaluated, *done, compared, with_older, exported, shown, mistyped = run(
        tmp_path,
        RUN_COMMANDS,
        [
            ["eval", *at, "--config", "plain.yaml", "--methods", "basic", "--full"],
            ["eval", *at, "--full"],
            ["eval", "compare", "latest", "--pin", *at],
            ["eval", *at, "-q"],
            ["eval", "judge", "latest", *at, "--metrics", NAME, "--full"],
            ["eval", "compare", "latest", "pinned", *at, "--metric", NAME, "--junit", str(junit)],
            ["eval", "compare", "latest", str(older), *at, "--metric", NAME],
            ["eval", "view", "--labels", "latest", *at, "--metric", NAME],
            ["eval", "show", "latest", *at, "--full"],
            ["eval", "judge", "latest", *at, "--metrics", "concisenes"],
        ],
    )
    for code, output in (by_default, evaluated, *done, exported, shown):
        assert code == DONE, output
    prompts = asked_for_it(judging)[before:]
    assert len(prompts) == 3 * len(ROWS)  # of two runs and a judging, not of the default run
    assert all("when it {is}, else 0" in prompt for prompt in prompts)
    assert {name for prompt in prompts for name in re.findall(r'"(\w+)": "', prompt)} == {
        "metric",
        "question",
        "answer",
        "reason",
    }
    assert NAME not in by_default[1]
    assert f"method faithfulness {NAME} " in evaluated[1]
    for output in (evaluated[1], done[-1][1], shown[1]):
        assert re.search(rf"{NAME}.*? basic .*?66\.7 ", output)

    summary = evaluation.read_results("summary")
    assert summary["by_method"]["basic"][NAME] == pytest.approx(1 - N_LONG / len(ROWS))
    assert summary["counts"]["basic"]["n_scored"][NAME] == len(ROWS)
    entries = [entry["methods"]["basic"] for entry in evaluation.read_results()["results"]]
    assert [entry["scores"][NAME] for entry in entries].count(0) == N_LONG
    assert {entry["reasons"][NAME] for entry in entries} == {"counted"}

    assert compared[0] == with_older[0] == INCOMPLETE
    assert "6 questions in both runs, 0 newly wrong, 0 newly right." in compared[1]
    assert f"basic {NAME} 6 +0.0 " in compared[1]
    assert "The judge gave 0.0% of the verdicts asked of it in the baseline" in with_older[1]
    assert f'classname="graphrag.eval.{NAME}"' in junit.read_text(encoding="utf-8")
    page = (evaluation.output / f"audit_{NAME}.html").read_text(encoding="utf-8")
    assert "the response wastes no word" in page
    assert '"shown": ["question", "response"]' in page
    assert mistyped[0] == USAGE
    assert f"unknown name 'concisenes'; did you mean '{NAME}'?" in mistyped[1]


@pytest.mark.slow
def test_a_judge_without_a_way_to_grade_it_is_refused_before_anything_is_asked(
    tmp_path: Path, make_evaluation: MakeEvaluation
):
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness", NAME])
    at = ("--root", str(evaluation.root))
    (refused, dry, searched, again), (unable, able, scripted) = run(
        tmp_path,
        RUN_COMMANDS + ASK_JUDGES_OF_ONES_OWN,
        [
            ["eval", *at],
            ["eval", *at, "--dry-run"],
            ["eval", *at, "--skip-judge"],
            ["eval", "judge", "latest", *at],
        ],
    )
    assert searched[0] == DONE, searched[1]
    for code, output in (refused, dry, again):
        assert code == USAGE
        assert f"metrics: the embedded judge has no rule for {NAME}; name a language" in output
    with EvaluationStore(evaluation.store_path) as store:
        (only,) = store.runs()  # of the searches that no one was to judge
        assert not store.verdicts(only.run_id)
    assert unable == [
        "The judge, of class Unable, does not grade conciseness; give it "
        "judge_conciseness(question, answer), or leave conciseness out of metrics.",
        0,
    ]
    assert able == ["Ann. to Who was it?", 1]
    assert scripted == ["scripted", 1]


def test_the_embedded_judge_takes_no_metric_for_another_with_its_fields():
    known = JUDGED_METRICS["completeness"]
    other = JudgedMetric(
        name=NAME, instructions="", fields=known.fields, one="", zero="", zero_if_failed=True
    )
    model = create_completion(ModelConfig(type="offline", model_provider="offline", model="rules"))

    def ask(metric: JudgedMetric):
        prompt = metric.prompt.format(question='"Who was it?"', answer='"Ann."')
        return model.completion(
            messages=[{"role": "user", "content": prompt}], response_format=JudgeReply
        )

    assert ask(known).formatted_response.score == 1
    with pytest.raises(OfflineModelError, match="one JSON object"):
        ask(other)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "how short"}, "identifier"),
        ({"fields": ("anwser",)}, "anwser"),
        ({"fields": ()}, "none"),
    ],
)
def test_a_declaration_that_can_not_be_asked_is_refused(values: dict[str, object], said: str):
    with pytest.raises(ValueError, match=said):
        replace(JUDGED_METRICS["completeness"], **values)
