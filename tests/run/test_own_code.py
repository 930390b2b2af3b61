"""Code of one's own, named as ``module:object``: methods, metrics and other judges, measures."""

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, LocalServer, offline_reply

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import JudgeSettings
from graphrag.eval.metrics.scorer_registry import SCORERS
from graphrag.eval.types import own_code
from graphrag.eval.types.metric_definitions import JUDGED_METRICS

# It imports as code for 1.0 does.
MODULE = """
from graphrag.eval.judged import JudgedMetric
from graphrag.eval.metrics import Scorer, graded
from graphrag.eval.runner import MethodAnswer
from graphrag.eval.scorers.measures import Measure

async def echo(question, index, project):
    return MethodAnswer(f"Idris Vane of {index} in {project.name}", ("The clock.",), 1, 9, 2, 0.5)

brevity = JudgedMetric(
    name="brevity", instructions="You grade brevity.", fields=("question", "answer"),
    one="short", zero="long", zero_if_failed=False,
)

politeness = graded(
    "politeness", "You grade manners.\\n5: kind\\n3: plain\\n1: rude\\n", ("question", "answer"),
)

async def _duel(judge, material):
    one, other = (m.response for m in (material, material.other))
    return {"score": (len(one) < len(other)) - (len(one) > len(other))}, []

async def _count_words(judge, material):
    if material.method == "echo":
        raise ValueError("no words") if material.sample.id == "q1" else SystemExit(4)
    return {"score": 7 if material.sample.id == "q1" else 0.5}, []

clumsy = Scorer(
    name="clumsy", title="Clumsy", parts=("score",), limits=(0.0, 1.0), prompt="clumsy",
    version=1, reads=("answer",), grade=_count_words, note="Half of them.",
    read=lambda value, parts: {"score": value["score"]},
)

async def _give_text(judge, material):
    return {"score": "0.5" if material.sample.id == "q1" else -0.0}, []

wordy = Scorer(
    name="wordy", title="Wordy", parts=("score",), limits=(0.0, 1.0), prompt="wordy",
    version=1, reads=("answer",), grade=_give_text,
)

duel = Scorer(
    name="duel", title="Shorter, -1 to 1", parts=("score",), limits=(-1.0, 1.0), prompt="duel",
    version=1, reads=("answer", "other"), of_pairs=True, grade=_duel,
)

def _words(given):
    return 1 / len(given.response.split())

shortness = Measure("shortness", "share", "words", "this package", _words)
wild = Measure("wild", "share", "words", "this package", lambda given: 7)
stray = Measure("stray", "share", "word", "this package", _words)

correct = graded("correctness", "You grade.", ("answer",))
"""
ENTRIES = """\
[gtog.methods]
echo = {module}:echo

[gtog.metrics]
politeness = {module}:politeness
brevity = {module}:brevity
lost = no_such_module_at_all:f

[gtog.measures]
shortness = {module}:shortness
"""


@pytest.fixture
def module(evaluation: Evaluation, tmp_path: Path) -> Iterator[str]:
    """Write a module beside eval_config.yaml and return its name."""
    name = f"own_{tmp_path.name}".replace("-", "_")
    (evaluation.root / f"{name}.py").write_text(MODULE, encoding="utf-8")
    path = [*sys.path]
    yield name
    sys.path[:] = path
    forget(name)


def forget(module: str) -> None:
    """Make the process one that has not seen the module."""
    for kind, name in [key for key, own in own_code._known.items() if module in own.spec]:
        del own_code._known[kind, name]
        JUDGED_METRICS.pop(name, None)
        SCORERS.pop(name, None)
    own_code.list_declared.cache_clear()


@pytest.fixture
def package(module: str, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Install a package that declares what earlier versions read, as pip would leave it."""
    folder = evaluation.root / "rag_pack-1.2.dist-info"
    folder.mkdir()
    about = "Metadata-Version: 2.1\nName: rag-pack\nVersion: 1.2\n"
    (folder / "METADATA").write_text(about, encoding="utf-8")
    (folder / "entry_points.txt").write_text(ENTRIES.format(module=module), encoding="utf-8")
    monkeypatch.syspath_prepend(str(evaluation.root))
    own_code.list_declared.cache_clear()
    yield module
    own_code.list_declared.cache_clear()


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    reply = offline_reply()

    def judge(request: dict[str, Any]) -> str:
        asked = str(request["messages"])
        if "You grade manners" in asked or "You grade how polite" in asked:
            return f'{{"reason": "so so", "score": {2 if "clock in clock" in asked else 4}}}'
        is_new = '"metric": "brevity"' in asked
        return '{"reason": "short", "score": 1}' if is_new else reply(request)

    server.behaviour = Behaviour(judge)
    made = make_evaluation(server.base_url)
    made.write_rows(ROWS[:2])
    return made


def use(evaluation: Evaluation, module: str, **changes: object) -> None:
    """Configure an evaluation in which the method of one's own is called echo."""
    echo = {"name": "echo", "function": f"{module}:echo"}
    evaluation.configure(**{"methods": ["basic", echo], **changes})


def test_parts_of_ones_own_are_used_like_those_here(evaluation, module):
    spec = f"{module}:echo"
    evaluation.configure(
        methods=["basic", spec],
        metrics=["correctness", f"{module}:brevity"],
        measures={"further": [f"{module}:shortness", f"{module}:wild"]},
    )
    result = evaluation.done("--full", COLUMNS="200")
    output = " ".join(result.output.split())
    assert f"4 answers unmeasured: {module}:wild can't be used: 7" in output
    summary = evaluation.read_results("summary")
    assert summary["by_method"][spec]["brevity"] == 1
    assert summary["efficiency"][spec]["cost_usd"] == 1
    estimates = summary["measures"][spec]["measures"]
    assert estimates["shortness"]["estimate"]["mean"] == pytest.approx(1 / 6)
    assert estimates["wild"]["estimate"]["mean"] is None
    response = evaluation.read_results()["results"][0]["methods"][spec]["response"]
    assert response == "Idris Vane of clock in clock"
    (run,) = evaluation.runs()
    assert run.setup.indexes["clock"][spec]["function"] == spec
    described = run.setup.root["metrics"]
    assert described["brevity"]["object"] == f"{module}:brevity"
    assert described["brevity"]["source"]
    assert "object" not in described["correctness"]
    # Flags take such names, too.
    flags = ("--methods", spec, "--metrics", f"{module}:brevity,{module}:politeness", "-q")
    evaluation.configure(methods=["basic"], metrics=["correctness"], measures={})
    evaluation.done(*flags)
    assert evaluation.runs()[0].setup.metrics == ("brevity",)
    # A changed module is another judge.
    forget(module)
    sys.modules.pop(module)
    with (evaluation.root / f"{module}.py").open("a") as file:
        file.write("# changed\n")
    assert "--resume" not in evaluation.done(*flags).output
    again = evaluation.run(*flags, "--resume", COLUMNS="300").output
    assert "nothing is left" in again or evaluation.runs()[0].status == "finished"


def test_a_judge_of_another_scale_is_seen_wherever_figures_are(evaluation, module):
    """One declaration: dry run, results, tables, page, comparison, threshold."""
    use(evaluation, module, metrics=["correctness"])
    plain = evaluation.done("--dry-run", COLUMNS="300").output
    terms = {"measures": {"criteria": [{"metric": "politeness.score", "minimum": 3}]}}
    evaluation.configure(
        metrics=["correctness", f"{module}:politeness"],
        thresholds={"politeness": 2.0000001},
        **terms,
    )
    assert evaluation.done("--dry-run", COLUMNS="300").output != plain
    result = evaluation.done("--full", COLUMNS="300", code=100)
    assert (
        "threshold missed: echo: politeness.score 2.000 (n 2) is below 2.0000001" in result.output
    )
    assert "Politeness, 1 to 5 (95 % interval)" in result.output
    assert "politeness.score above 3" in result.output
    given = evaluation.read_results("summary")["graded"]["politeness"]
    assert given["echo"]["score"]["distribution"] == {"2": 2}
    assert given["basic"]["score"]["estimate"]["mean"] == 4
    answer = evaluation.read_results()["results"][0]["methods"]["echo"]
    assert answer["politeness"] == {"reason": "so so", "score": 2}
    one = evaluation.done("show", "--question", ROWS[0]["id"], COLUMNS="300").output
    assert "politeness, score 2: so so" in one
    assert "Politeness, 1 to 5" in (evaluation.output / "report.html").read_text(encoding="utf-8")
    (run,) = evaluation.runs()
    assert run.setup.root["further"]["politeness"]["object"] == f"{module}:politeness"


def test_a_judge_of_pairs_is_seen_wherever_figures_of_pairs_are(evaluation, module):
    """One declaration: dry run, store, results, table, page."""
    use(evaluation, module, metrics=["correctness"])
    plain = evaluation.done("--dry-run", COLUMNS="300").output
    evaluation.configure(metrics=["correctness"], judge={"graded": [f"{module}:duel"]})
    assert evaluation.done("--dry-run", COLUMNS="300").output != plain
    output = evaluation.done("--full", COLUMNS="300").output
    assert "Shorter, -1 to 1 (95 % interval)" in output
    assert "basic vs echo" in output
    summary = evaluation.read_results("summary")["graded"]["duel"]["basic vs echo"]
    answers = [question["methods"] for question in evaluation.read_results()["results"]]
    lengths = [[len(by[name]["response"]) for name in ("basic", "echo")] for by in answers]
    wins = [(a < b) - (a > b) for a, b in lengths]
    assert summary["score"]["estimate"]["mean"] == sum(wins) / len(wins)
    assert summary["score"]["estimate"]["n"] == len(ROWS[:2])
    names = " ".join(answers[0]["basic"])
    assert "duel" not in names, "a figure of a pair is of neither answer alone"
    assert "Shorter, -1 to 1" in (evaluation.output / "report.html").read_text(encoding="utf-8")
    (run,) = evaluation.runs()
    assert run.setup.root["further"]["duel"]["pairs"] == [["basic", "echo"]]
    evaluation.configure(judge={"graded": [f"{module}:duel"]}, thresholds={"duel": 0.5})
    refused = evaluation.done(COLUMNS="300", code=2).output
    assert "thresholds: duel compares pairs of methods" in refused


def test_a_judge_that_fails_is_named_and_hides_nothing_that_was_paid_for(evaluation, module):
    use(evaluation, module, metrics=["correctness"], judge={"graded": [f"{module}:clumsy"]})
    ran = evaluation.done("--full", COLUMNS="300", code=3)
    output = " ".join(ran.output.split())
    assert "can't be used: ValueError: score 7 is not in [0.0, 1.0]" in output
    assert f"1 answer ungraded: {module}:clumsy can't be used: ValueErr" in output
    assert "no words. Mend it, or leave it out" in output
    assert "it called sys.exit(4). Mend it" in output
    graded = evaluation.read_results("summary")["graded"]["clumsy"]
    assert graded["basic"]["score"]["estimate"]["mean"] == 0.5
    assert graded["echo"]["score"]["estimate"]["mean"] is None
    assert len(evaluation.read_results()["results"]) == len(ROWS[:2])
    one = evaluation.done("show", "--question", "q2", COLUMNS="300").output
    assert "clumsy, score 0.5: -" in one
    assert f"clumsy: unscored: {module}:clumsy can't be used: RuntimeError:" in one
    assert "ungraded: " in evaluation.done("show", "--full", COLUMNS="300").output


def test_a_grade_that_is_no_number_is_said_to_be_none(evaluation, module):
    judge = {"graded": [f"{module}:wordy"]}
    evaluation.configure(metrics=["correctness"], judge=judge, methods=["basic"])
    output = " ".join(evaluation.done("--full", COLUMNS="300", code=3).output.split())
    assert f"1 answer ungraded: {module}:wordy can't be used: TypeError: " in output
    assert "score '0.5' is no number" in output
    graded = evaluation.read_results("summary")["graded"]["wordy"]["basic"]["score"]
    assert (graded["estimate"]["n"], graded["distribution"]) == (1, {"0": 1})


def test_a_judge_of_another_scale_is_told_from_the_metrics_however_sections_are_given(
    evaluation, module
):
    given = (JudgeSettings(rubric=True), {"rubric": True})
    metrics = ["correctness", f"{module}:politeness"]
    made, written = (
        EvaluationConfig(metrics=metrics, judge=judge, root=evaluation.root) for judge in given
    )

    assert made == written
    assert (made.metrics, made.judge.graded) == (("correctness",), ("politeness",))


def test_a_run_is_shown_where_its_judges_are_not_named(evaluation, module):
    use(
        evaluation,
        module,
        metrics=["correctness", f"{module}:brevity", f"{module}:politeness"],
        measures={"further": [f"{module}:shortness"]},
        thresholds={"brevity": 0.1, "politeness": 1},
    )
    evaluation.done("-q")
    evaluation.done("-q")
    evaluation.configure(metrics=["correctness"], measures={}, methods=["basic"], thresholds={})
    shown = evaluation.done("show", "latest", "--full", COLUMNS="300").output
    assert "Politeness, 1 to 5" in shown
    forget(module)
    sys.modules.pop(module)
    output = " ".join(evaluation.done("show", "latest", "--full", COLUMNS="300").output.split())
    assert "Politeness, 1 to 5" not in output
    for name in ("brevity", "politeness"):
        assert f"What {name} ({module}:{name}) says is left out" in output
    assert "What shortness says is left out" in output
    evaluation.done("compare", *(run.run_id for run in evaluation.runs()), code=3)
    assert module not in sys.modules, "no code runs because a store names it"


def test_a_name_of_an_entry_point_is_told_how_to_be_written(evaluation, package):
    for changes, write in (
        ({"methods": ["echo"]}, f"{{name: echo, function: '{package}:echo'}}"),
        ({"metrics": ["correctness", "politeness"]}, f"'{package}:politeness'"),
        ({"metrics": ["brevity"]}, f"'{package}:brevity'"),
        ({"judge": {"graded": ["politeness"]}}, f"'{package}:politeness'"),
        ({"measures": {"further": ["shortness"]}}, f"'{package}:shortness'"),
    ):
        evaluation.configure(**{"metrics": ["correctness"], "judge": {}, "measures": {}, **changes})
        output = " ".join(evaluation.done(COLUMNS="300", code=2).output.split())
        assert "of rag-pack 1.2 is named by its path since version 2.0.0" in output
        assert f"write {write}." in output
        assert "named by its path" not in evaluation.run("show", COLUMNS="300").output
        forget(package)  # another process has not read it
        evaluation.configure(methods=["basic"])


def test_a_kept_run_is_shown_by_what_an_installed_package_declares(evaluation, package):
    metrics = ["correctness", f"{package}:politeness"]
    use(evaluation, package, metrics=metrics, measures={"further": [f"{package}:shortness"]})
    evaluation.done("-q")
    before = evaluation.done("--full", COLUMNS="300").output
    forget(package)
    evaluation.configure(metrics=["correctness"], measures={}, methods=["basic"])
    after = evaluation.done("show", "latest", "--full", COLUMNS="300").output
    assert before.count("Politeness, 1 to 5") == after.count("Politeness, 1 to 5") == 1
    assert "is left out" not in after
    evaluation.done("compare", *(run.run_id for run in evaluation.runs()), code=3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"methods": ["{}:no_such"]}, "{} has no no_such; it has echo"),
        ({"methods": ["no_such:f"]}, "no_such:f: no_such can't be imported (ModuleNotFoundErr"),
        ({"methods": ["ecko"]}, "unknown name 'ecko'. Known: tog, ppr"),
        ({"metrics": ["corectness"]}, "did you mean 'correctness'? Known: correctness, faith"),
        ({"metrics": ["{}:politness"]}, "{} has no politness; it has brevity, politeness, clumsy"),
        ({"metrics": ["{}:echo"]}, "{}:echo is no judge (a Scorer, such as graded makes"),
        ({"metrics": ["{}:correct"]}, "correctness is built in, so give it another name"),
        ({"judge": {"graded": ["kindness"]}}, "'kindness' is no judge of your own; write it as"),
        ({"measures": {"further": ["mrr"]}}, "mrr is built in, and measured anyway"),
        ({"measures": {"further": ["shortnes"]}}, "is no measure of your own; write it as"),
        ({"measures": {"further": ["{}:shortnes"]}}, "no shortnes; it has shortness, wild, stray"),
        ({"measures": {"further": ["{}:stray"]}}, "can't be used: there is no group 'word', but"),
    ],
)
def test_a_wrong_name_is_one_sentence_that_lists_what_there_is(
    evaluation, module, changes, sentence
):
    evaluation.configure(**json.loads(json.dumps(changes).replace("{}", module)))
    output = evaluation.done(COLUMNS="400", code=2).output
    assert sentence.replace("{}", module) in output


def test_a_module_that_can_not_be_imported_is_one_sentence(evaluation):
    panics = "class PanicException(BaseException):\n    pass\nraise PanicException('no GPU')"
    (evaluation.root / "own_that_panics.py").write_text(panics, encoding="utf-8")
    evaluation.configure(metrics=["own_that_panics:judge"])
    output = evaluation.done(COLUMNS="400", code=2).output
    assert "own_that_panics can't be imported (PanicException: no GPU)" in output


def test_the_examples_of_the_manual_run(evaluation, project_root):
    text = (project_root / "docs" / "methods.md").read_text(encoding="utf-8")
    own = text[text.index("## Code of your own") :]
    blocks = re.findall(r"Save\s+(?:this|it)\s+as\s+`(\w+)\.py`.*?```python\n(.*?)```", own, re.S)
    assert [name for name, _ in blocks] == ["my_judges", "my_scorers", "my_measures"]
    function = (
        "async def answer(question: str) -> str:\n    return 'Idris Vane [Data: Sources (1)]'\n"
    )
    for name, code in [*blocks, ("my_rag", function)]:
        (evaluation.root / f"{name}.py").write_text(code, encoding="utf-8")
    settings: dict[str, Any] = {"methods": ["basic", "my_rag:answer"]}
    for block in re.findall(r"```yaml\n(.*?)```", own, re.S):
        settings |= yaml.safe_load(block)
    evaluation.configure(**settings)
    try:
        evaluation.done("--full", COLUMNS="300")
        summary = evaluation.read_results("summary")
        assert summary["graded"]["politeness"]["my_rag:answer"]["score"]["estimate"]["mean"] == 4
        assert summary["graded"]["sources"]["my_rag:answer"]["cited"]["estimate"]["mean"] == 1
        assert summary["graded"]["shorter"]["basic vs my_rag:answer"]["score"]["estimate"]["n"] == 2
        shortness = summary["measures"]["my_rag:answer"]["measures"]["shortness"]
        assert shortness["estimate"]["mean"] == pytest.approx(1 / 5)
    finally:
        for name, _ in blocks:
            forget(name)
        for name in ("my_rag", *(name for name, _ in blocks)):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("before", "now", "name"),
    [
        ("eval.judged", "eval.types.metric_definitions", "JudgedMetric"),
        ("eval.scorers.measures", "eval.metrics.measures", "Measure"),
        ("eval.scorers.evaluable", "eval.metrics.judge_input", "read_entity_types"),
        ("eval.records.judged", "eval.types.metric_definitions", "JudgedMetric"),
        ("eval.records", "eval.types", "JudgeResult"),
        ("eval.dataset.samples", "eval.dataset.dataset_reader", "read_samples"),
        ("query.models", "query.client.models", "open_completion"),
        ("query.tokens", "query.client.tokens", "default_encoding"),
    ],
)
def test_own_code_may_import_from_where_earlier_documentation_says(before, now, name):
    earlier, module = (import_module(f"graphrag.{path}") for path in (before, now))

    assert getattr(earlier, name) is getattr(module, name)
    assert module.__spec__.name == f"graphrag.{now}"
