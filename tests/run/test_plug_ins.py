"""Packages bring methods, metrics, measures and exporters by their entry points."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, LocalServer, offline_reply

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import JudgeSettings
from graphrag.eval.metrics.further import SCORERS
from graphrag.eval.metrics.measures import list_forms
from graphrag.eval.records.judged import JUDGED_METRICS
from graphrag.eval.records.plug_ins import list_plug_ins

# It imports as packages for 1.0 do.
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

def tsv(rows):
    return rows.to_csv(sep="\\t", index=False)
"""
OTHERS = {
    "panics": "class PanicException(BaseException):\n    pass\nraise PanicException('no GPU')",
}
ENTRIES = """\
[gtog.methods]
echo = {module}:echo
tog = {module}:echo
broken = {module}:no_such_name
twice = {module}:echo
panics = {module}_panics:echo

[gtog.metrics]
brevity = {module}:brevity
renamed = {module}:brevity
politeness = {module}:politeness
duel = {module}:duel
clumsy = {module}:clumsy
wordy = {module}:wordy
clash = {module}:tsv

[gtog.measures]
shortness = {module}:shortness
wild = {module}:wild
stray = {module}:stray

[gtog.exporters]
tsv = {module}:tsv
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Install two packages as pip would leave them; return the module's name."""
    module = f"rag_pack_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{module}.py").write_text(MODULE, encoding="utf-8")
    for name, text in OTHERS.items():
        (tmp_path / f"{module}_{name}.py").write_text(text, encoding="utf-8")
    other = f"[gtog.methods]\ntwice = {module}:echo\nlost = no_such_module_at_all:f\n"
    texts = {"rag_pack": ENTRIES.format(module=module), "other_pack": other}
    for name, entries in texts.items():
        folder = tmp_path / f"{name}-1.2.dist-info"
        folder.mkdir()
        about = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.2\n"
        (folder / "METADATA").write_text(about, encoding="utf-8")
        (folder / "entry_points.txt").write_text(entries, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    list_plug_ins.cache_clear()
    yield module
    list_plug_ins.cache_clear()
    list_forms.cache_clear()
    JUDGED_METRICS.pop("brevity", None)
    for name in ("politeness", "duel", "clumsy", "wordy"):
        SCORERS.pop(name, None)
    for name in ("", *(f"_{name}" for name in OTHERS)):
        sys.modules.pop(f"{module}{name}", None)


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    reply = offline_reply()

    def judge(request: dict[str, Any]) -> str:
        asked = str(request["messages"])
        if "You grade manners" in asked:
            return f'{{"reason": "so so", "score": {2 if "clock in clock" in asked else 4}}}'
        is_new = '"metric": "brevity"' in asked
        return '{"reason": "short", "score": 1}' if is_new else reply(request)

    server.behaviour = Behaviour(judge)
    made = make_evaluation(server.base_url, methods=["basic", "echo"])
    made.write_rows(ROWS[:2])
    return made


def test_the_parts_of_a_package_are_used_like_those_here(evaluation, package, tmp_path):
    measures = {"further": ["shortness", "wild"]}
    evaluation.configure(metrics=["correctness", "brevity"], measures=measures)
    result = evaluation.done("--full", COLUMNS="200")
    output = " ".join(result.output.split())
    assert "4 answers unmeasured: wild of rag-pack 1.2 (measures) can't be used: 7" in output
    summary = evaluation.read_results("summary")
    assert summary["by_method"]["echo"]["brevity"] == 1
    assert summary["efficiency"]["echo"]["cost_usd"] == 1
    estimates = summary["measures"]["echo"]["measures"]
    assert estimates["shortness"]["estimate"]["mean"] == pytest.approx(1 / 6)
    assert estimates["wild"]["estimate"]["mean"] is None
    response = evaluation.read_results()["results"][0]["methods"]["echo"]["response"]
    assert response == "Idris Vane of clock in clock"
    (run,) = evaluation.runs()
    assert run.setup.indexes["clock"]["echo"]["package"] == "rag-pack 1.2"
    assert run.setup.root["metrics"]["brevity"]["package"] == "rag-pack 1.2"
    assert "package" not in run.setup.root["metrics"]["correctness"]
    path = tmp_path / "rows.tsv"
    evaluation.done("show", "latest", "--export", str(path))
    assert path.read_text(encoding="utf-8").startswith("run_id\tsample_id\t")
    refused = evaluation.run("show", "latest", "--export", "rows.xls").output
    assert "ends in .csv or .tsv" in refused


def test_a_judge_of_another_scale_is_seen_wherever_figures_are(evaluation, package):
    """One declaration in a package: dry run, results, tables, page, comparison, threshold."""
    evaluation.configure(metrics=["correctness"])
    plain = evaluation.done("--dry-run", COLUMNS="300").output
    terms = {"measures": {"criteria": [{"metric": "politeness.score", "minimum": 3}]}}
    evaluation.configure(
        metrics=["correctness", "politeness"], thresholds={"politeness": 2.0000001}, **terms
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
    assert run.setup.root["further"]["politeness"]["package"] == "rag-pack 1.2"


def test_a_judge_of_pairs_is_seen_wherever_figures_of_pairs_are(evaluation, package):
    """One declaration in a package: dry run, store, results, table, page."""
    evaluation.configure(metrics=["correctness"])
    plain = evaluation.done("--dry-run", COLUMNS="300").output
    evaluation.configure(metrics=["correctness"], judge={"graded": ["duel"]})
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
    evaluation.configure(judge={"graded": ["duel"]}, thresholds={"duel": 0.5})
    refused = evaluation.done(COLUMNS="300", code=2).output
    assert "thresholds: duel compares pairs of methods" in refused


def test_a_judge_that_fails_is_named_and_hides_nothing_that_was_paid_for(evaluation, package):
    evaluation.configure(metrics=["correctness"], judge={"graded": ["clumsy"]})
    ran = evaluation.done("--full", COLUMNS="300", code=3)
    output = " ".join(ran.output.split())
    assert "can't be used: ValueError: score 7 is not in [0.0, 1.0]" in output
    assert "1 answer ungraded: clumsy of rag-pack 1.2 (metrics) can't be used: ValueErr" in output
    assert "no words. Mend or remove that package" in output
    assert "it called sys.exit(4). Mend or remove that package" in output
    graded = evaluation.read_results("summary")["graded"]["clumsy"]
    assert graded["basic"]["score"]["estimate"]["mean"] == 0.5
    assert graded["echo"]["score"]["estimate"]["mean"] is None
    assert len(evaluation.read_results()["results"]) == len(ROWS[:2])
    one = evaluation.done("show", "--question", "q2", COLUMNS="300").output
    assert "clumsy, score 0.5: -" in one
    assert "clumsy: unscored: clumsy of rag-pack 1.2 (metrics) can't be used: RuntimeError:" in one
    assert "ungraded: clumsy" in evaluation.done("show", "--full", COLUMNS="300").output


@pytest.mark.usefixtures("package")
def test_a_grade_that_is_no_number_is_said_to_be_none(evaluation):
    evaluation.configure(metrics=["correctness"], judge={"graded": ["wordy"]}, methods=["basic"])
    output = " ".join(evaluation.done("--full", COLUMNS="300", code=3).output.split())
    assert "1 answer ungraded: wordy of rag-pack 1.2 (metrics) can't be used: TypeError: " in output
    assert "score '0.5' is no number" in output
    graded = evaluation.read_results("summary")["graded"]["wordy"]["basic"]["score"]
    assert (graded["estimate"]["n"], graded["distribution"]) == (1, {"0": 1})


@pytest.mark.usefixtures("package")
def test_a_judge_of_another_scale_is_told_from_the_metrics_however_sections_are_given():
    given = (JudgeSettings(rubric=True), {"rubric": True})
    made, written = (
        EvaluationConfig(metrics=["correctness", "politeness"], judge=judge) for judge in given
    )

    assert made == written
    assert (made.metrics, made.judge.graded) == (("correctness",), ("politeness",))


def test_a_run_is_shown_after_its_package_is_gone(evaluation, package):
    evaluation.configure(
        metrics=["correctness", "brevity"], measures={"further": ["shortness"]}, methods=["echo"]
    )
    evaluation.done("-q")
    folder = next(Path(path) for path in sys.path if (Path(path) / f"{package}.py").is_file())
    for each in folder.glob("*.dist-info/entry_points.txt"):
        each.unlink()
    list_plug_ins.cache_clear()
    JUDGED_METRICS.pop("brevity")
    evaluation.configure(metrics=["correctness"], measures={}, methods=["basic"])
    evaluation.done("show", "latest")
    again = evaluation.done("--methods", "echo", COLUMNS="300", code=2)
    assert "unknown name 'echo'" in again.output


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"methods": ["basic", "broken"]}, "broken of rag-pack 1.2 (methods) can't be used: Attr"),
        ({"methods": ["basic", "lost"]}, "lost of other-pack 1.2 (methods) can't be used: ModuleN"),
        (
            {"methods": ["panics"]},
            "panics of rag-pack 1.2 (methods) can't be used: PanicException: no",
        ),
        ({"methods": ["twice"]}, "rag-pack 1.2 brings one of the same name"),
        ({"methods": ["ecko"]}, "unknown name 'ecko'"),
        ({"metrics": ["renamed"]}, "renamed of rag-pack 1.2 (metrics) can't be used: it calls"),
        ({"metrics": ["clash"]}, "tsv is no JudgedMetric"),
        ({"judge": {"graded": ["kindness"]}}, "no installed package brings kindness"),
        ({"measures": {"further": ["mrr"]}}, "no installed package brings it"),
        ({"measures": {"further": ["stray"]}}, "can't be used: there is no group 'word'"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_broken_part_is_one_sentence_that_names_its_package(evaluation, changes, sentence):
    evaluation.configure(**changes)
    result = evaluation.done(COLUMNS="400", code=2)
    assert sentence in result.output


@pytest.mark.usefixtures("package")
def test_what_is_there_is_listed_with_where_it_is_from(evaluation):
    output = " ".join(evaluation.run("methods", COLUMNS="400").output.split())
    assert "Methods, built in: tog, ppr, local" in output
    assert "Methods, rag-pack 1.2: echo" in output
    assert "Metrics, rag-pack 1.2: brevity" in output
    assert "Exporters, rag-pack 1.2: tsv" in output
    for sentence in (
        "tog of rag-pack 1.2 (methods) can't be used: the name is built in",
        "lost of other-pack 1.2 (methods) can't be used: ModuleNotFoundError",
        "twice of other-pack 1.2 (methods) can't be used: rag-pack 1.2 brings one of the same",
    ):
        assert sentence in output
    assert "Extra ray: missing; pip install" in output or "Extra ray: installed" in output


@pytest.mark.parametrize(
    ("before", "now", "name"),
    [
        ("judged", "records.judged", "JudgedMetric"),
        ("scorers.measures", "metrics.measures", "Measure"),
        ("scorers.evaluable", "metrics.evaluable", "read_entity_types"),
    ],
)
def test_packages_may_import_from_where_things_lay_in_1_0(before, now, name):
    earlier, module = (import_module(f"graphrag.eval.{path}") for path in (before, now))

    assert getattr(earlier, name) is getattr(module, name)
    assert module.__spec__.name == f"graphrag.eval.{now}"
