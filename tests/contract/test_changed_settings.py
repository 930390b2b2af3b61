"""A comparison names what was set differently in the two runs."""

import pytest
import yaml
from support.clock_evaluation import Evaluation, MakeEvaluation

from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.results.runs import list_runs, read_rows


def said(evaluation: Evaluation) -> list[str]:
    new, old = (run.run_id for run in list_runs(evaluation.store_path)[:2])
    rows, base = (read_rows(run, evaluation.store_path) for run in (new, old))
    return list(compare_runs(rows, base).warnings)


def set_in_project(evaluation: Evaluation, **sections: object) -> None:
    path = evaluation.project / "settings.yaml"
    settings = yaml.safe_load(path.read_text("utf-8"))
    path.write_text(yaml.safe_dump({**settings, **sections}), encoding="utf-8")


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    made = make_evaluation(metrics=["correctness"])
    assert made.run("-q", "--limit", "2").exit_code == 0
    return made


def test_nothing_is_named_where_nothing_changed(evaluation: Evaluation):
    assert evaluation.run("-q", "--limit", "2").exit_code == 0
    assert said(evaluation) == []


def test_a_changed_k_is_named_with_its_method(evaluation: Evaluation):
    set_in_project(evaluation, basic_search={"k": 1})
    assert evaluation.run("-q", "--limit", "2").exit_code == 0
    assert said(evaluation) == ["the settings of basic differ (k: 10 -> 1)"]
    new, old = (run.run_id for run in list_runs(evaluation.store_path))
    shown = evaluation.run("compare", new, old, COLUMNS="200")
    assert "the settings of basic differ (k: 10 -> 1)" in shown.output


def test_questions_bounds_and_judges_are_named(evaluation: Evaluation):
    evaluation.configure(max_output_tokens=300, trials=2, judge={"temperature": 0.5})
    assert evaluation.run("-q", "--limit", "3").exit_code == 0
    questions, judge, own = said(evaluation)
    assert questions.startswith("the questions differ (")
    assert "questions: 2 -> 3" in questions
    assert judge == "the judges differ (temperature: 0.0 -> 0.5)"
    assert own == (
        "the runs' own settings differ (max_output_tokens: not set -> 300, trials: not set -> 2)"
    )
