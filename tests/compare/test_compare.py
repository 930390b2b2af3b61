"""Two runs compared: what joins, what the gate says, and that every surface says the same."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result
from support.clock_evaluation import flat, in_process

from graphrag.eval.compare.compare import (
    RunComparison,
    compare_runs,
    pin_baseline,
    shared_metrics,
)
from graphrag.eval.compare.setup_changes import list_setup_changes
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import UsageError
from graphrag.eval.report.comparison import list_unjoined
from graphrag.eval.report.pull_request import list_annotations, render_junit, render_markdown
from graphrag.eval.results.runs import list_runs, read_rows
from graphrag.eval.stats.gates import GateOutcome
from graphrag.eval.store.database import BASELINE_FILE, EvaluationStore
from graphrag.eval.store.records import RunSetup
from graphrag.eval.testing import ScriptedJudge, ScriptedRunner, grade_by_containment
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.graph_index import SearchError

PASS, ERROR, USAGE, INCONCLUSIVE, FAIL = 0, 1, 2, 3, 100
N = 100


class Runs:
    """An output folder and the runs in it: N questions, some of them answered wrongly."""

    def __init__(self, root: Path) -> None:
        self.config = EvaluationConfig(root=root, methods=("tog", "basic"))

    @property
    def output(self) -> Path:
        return self.config.output_folder

    @property
    def store_path(self) -> Path:
        return self.output / "eval.db"

    async def add(
        self,
        wrong: dict[str, int] | None = None,
        ids: range = range(N),
        unjudged: int = 0,
        failing: int = 0,
        methods: tuple[str, ...] = ("tog", "basic"),
    ) -> list[QueryResult]:
        """Add a run in which each method answers its first ``wrong`` questions wrongly.

        The judge fails on the last ``unjudged`` questions, the search on ``failing`` of them.
        """
        missed = wrong or {}

        def answer(method: str, question: str, key: str) -> str:
            number = int(question.split()[1])
            if number % 3 == 0 and number < 3 * failing:
                raise SearchError("503 from the service")
            return "wrong" if number < missed.get(method, 0) else f"answer {number}."

        def grade(metric: str, material: Any) -> JudgeResult:
            if int(material.get("question", "q 0").split()[1]) >= N - unjudged:
                return JudgeResult(None, "no", Failure("judge", "error", "503"))
            return grade_by_containment(metric, material)

        rows = [
            {"id": f"q{i}", "imdb_key": "tt1", "question": f"Question {i} ?", "answer": f"r {i}."}
            for i in ids
        ]
        runner = ScriptedRunner(self.config, answer, ScriptedJudge(grade))
        return await runner.run_evaluation(rows, methods)

    def run_ids(self) -> list[str]:
        """Return the runs, the newest first."""
        with EvaluationStore(self.store_path) as store:
            return [run.run_id for run in store.runs()]

    def compare(self, new: str = "", old: str = "", **options: Any) -> RunComparison:
        """Compare two runs, by default the newest with the first."""
        newest, *_, first = self.run_ids()
        sides = (new or newest, old or first)
        return compare_runs(*(read_rows(each, self.store_path) for each in sides), **options)

    def call(self, *arguments: str, code: int | None = None, **variables: str) -> Result:
        """Run ``graphrag eval`` in this process; it has to end with a code that is given."""
        env = {"GITHUB_ACTIONS": None, "GITHUB_STEP_SUMMARY": None, "COLUMNS": "200", **variables}
        result = in_process(*arguments, "--output", str(self.output), **env)
        assert code in (None, result.exit_code), result.output
        return result


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


RUNS: dict[str, dict[str, Any]] = {
    "right": {},
    "again": {},
    "wrong 5": {"wrong": {"tog": 5}},
    "wrong 50": {"wrong": {"tog": 50}},
    "failing": {"failing": 9},
    "unjudged": {"unjudged": 6},
    "few": {"ids": range(10)},
    "few again": {"ids": range(10)},
    "0 to 94": {"ids": range(95)},
    "3 to 96": {"ids": range(3, 97)},
    "tog alone": {"methods": ("tog",)},
}


class Kept:
    """Runs of RUNS that no test changes, by name."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

        async def add() -> None:
            for options in RUNS.values():
                await runs.add(**options)

        asyncio.run(add())
        self.ids = dict(zip(RUNS, reversed(runs.run_ids()), strict=True))

    def compare(self, new: str, old: str = "right", **options: Any) -> RunComparison:
        return self.runs.compare(self.ids[new], self.ids[old], **options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(Runs(tmp_path_factory.mktemp("kept")))


def outcomes(comparison: RunComparison) -> dict[str, GateOutcome]:
    return {item.method: item.decision.outcome for item in comparison.items}


@pytest.mark.parametrize(
    ("new", "old", "options", "code", "said"),
    [
        ("again", "right", [], PASS, "PASS: "),
        ("wrong 50", "right", [], FAIL, "FAIL: "),
        ("unjudged", "right", ["-m", "basic"], INCONCLUSIVE, "94.0% of the verdicts"),
        ("few again", "few", [], INCONCLUSIVE, "TOO FEW: "),
        ("few again", "few", ["--margin", "0.5"], PASS, "PASS: "),
        ("failing", "right", ["--metric", "relevance"], FAIL,
         "tog, relevance: 9 failed searches or abstentions of the new run"),
    ],
)  # fmt: skip
def test_the_command_says_what_the_gate_says(kept, new, old, options, code, said):
    result = kept.runs.call("compare", kept.ids[new], kept.ids[old], *options, code=code)
    assert said in flat(result.output)
    assert "::" not in result.output  # without a workflow nothing is annotated


def test_a_worse_method_fails_the_gate_even_if_missing_verdicts_were_right(kept):
    comparison = kept.compare("wrong 50", "unjudged")
    assert outcomes(comparison) == {"tog": GateOutcome.FAIL, "basic": GateOutcome.INCONCLUSIVE}
    assert comparison.outcome is GateOutcome.FAIL
    assert comparison.items[0].n_without_verdict == 6
    tog = kept.compare("wrong 50").items[0]
    assert (tog.decision.newly_wrong, tog.decision.newly_right) == (50, 0)
    assert tog.difference.difference == -0.5
    assert tog.verdict == "baseline better than new run"


def test_what_does_not_join_is_listed(kept):
    comparison = kept.compare("3 to 96", "0 to 94")
    assert comparison.items[0].difference.n_pairs == 92
    assert list_unjoined(comparison) == [
        "Only in the new run (tog, basic), 2 not compared: q95, q96",
        "Only in the baseline (tog, basic), 3 not compared: q0, q1, q2",
    ]
    assert any(line.startswith("the questions differ") for line in comparison.warnings)
    (line,) = list_unjoined(kept.compare("few"))
    assert line.endswith("90 not compared, e.g. q10, q11, q12, q13, q14")


def test_a_method_of_one_run_alone_is_named(kept):
    comparison = kept.compare("tog alone")
    assert list(outcomes(comparison)) == ["tog"]
    assert "only the baseline has basic" in comparison.warnings
    with pytest.raises(UsageError, match="Not both runs have method 'basic'"):
        kept.compare("tog alone", methods=["basic"])


def test_several_metrics_and_methods_are_one_family(kept):
    alone = kept.compare("wrong 5", methods=["tog"]).items[0].decision
    assert (alone.p, alone.p_holm) == (1 / 32, 1 / 32)
    assert alone.outcome is GateOutcome.FAIL
    comparison = kept.compare("wrong 5", metrics=["correctness", "completeness"])
    assert len(comparison.items) == 4
    assert comparison.items[0].decision.p_holm == 4 / 32
    assert comparison.items[0].decision.outcome is not GateOutcome.FAIL
    assert comparison.items[0].difference.p_holm == 4 / 16


def test_another_judge_and_another_index_are_warned_of(kept):
    new, old = (read_rows(kept.ids[each], kept.runs.store_path) for each in ("again", "right"))
    old.metadata.setup.root["indexes"]["tt1"]["tog"]["settings"] = {"width": 7}
    (told,) = compare_runs(new, old).warnings
    assert told == "the settings of tog differ (width: 7 -> not set)"
    old.metadata.setup.root["judge"]["model"] = "openai/another"
    old.metadata.setup.root["indexes"]["tt1"]["tog"]["index"] = "rebuilt"
    new.metadata.setup.root["indexes"]["tt1"]["tog"]["index"] = "built"
    warnings = compare_runs(new, old).warnings
    assert [line.split(" (")[0] for line in warnings] == [
        "the indexes differ; a rebuilt graph shifts whole documents",
        "the judges differ",
        "the settings of tog differ",
    ]
    assert "tt1: another index; what changed was not kept" in warnings[0]
    assert "rebuilt)" not in warnings[0]
    then, now = ({"chunk size": size, "entities": n} for size, n in ((300, 61), (600, 40)))
    facts = ({"tt1": now}, {"tt1": then})
    told = list_setup_changes(new.metadata.setup, old.metadata.setup, ["tog"], facts)
    assert "(tt1: chunk size 300 -> 600, entities 61 -> 40)" in told[0]


@pytest.mark.parametrize("model", ["offline/rules", "openai/gpt-4o"])
async def test_every_surface_names_the_embedded_models(runs, model):
    await runs.add()
    (run_id,) = runs.run_ids()
    with EvaluationStore(runs.store_path) as store:
        answered = list(store.responses(run_id).values())
        new = store.add_run(RunSetup({**store.runs()[0].setup.root, "judge": {"model": model}}))
        store.keep_samples(new.run_id, store.samples(run_id))
        for response in answered:
            store.append_response(new.run_id, response)
        store.finish_run(new.run_id)
    comparison = runs.compare()
    labelled = model.startswith("offline/")
    for text in (
        render_markdown(comparison),
        render_junit(comparison),
        *list_annotations(comparison),
        runs.call("compare", new.run_id, run_id).output,
        runs.call("history").output,
    ):
        if text.startswith("::warning") and "title=graphrag eval compare::tog" not in text:
            continue  # of the runs, not of an answer
        unwrapped = flat(text)
        assert ("offline baseline models" in unwrapped) == labelled, text


async def test_what_was_not_judged_is_inconclusive(runs):
    runs.config = runs.config.model_copy(update={"metrics": ("correctness",)})
    await runs.add()
    await runs.add()
    with EvaluationStore(runs.store_path) as store:
        store.reopen_run(store.runs()[0].run_id)
    comparison = runs.compare(metrics=["completeness"])
    assert comparison.warnings[0] == "the new run is unfinished"
    decision = comparison.items[0].decision
    assert decision.outcome is GateOutcome.INCONCLUSIVE
    assert (decision.n_pairs, decision.coverage) == (0, None)


async def test_what_both_runs_asked_is_compared(runs):
    for metrics in (
        ("completeness", "relevance"), ("faithfulness", "relevance", "completeness"),
        ("faithfulness",),
    ):  # fmt: skip
        runs.config = runs.config.model_copy(update={"metrics": metrics})
        await runs.add(ids=range(3))
    last, new, old = runs.run_ids()
    assert {item.metric for item in runs.compare(new, old).items} == {"relevance"}
    runs.call("compare", new, old, code=INCONCLUSIVE)
    assert shared_metrics(METRICS, ["correctness", "relevance"]) == ["correctness", "relevance"]
    result = runs.call("compare", last, old, code=USAGE)
    said = "the new run asks faithfulness, the baseline completeness, relevance"
    assert said in flat(result.output)


async def test_a_pin_names_the_run_whose_place_it_takes(runs):
    await runs.add(ids=range(3))
    await runs.add(ids=range(3))
    new, old = runs.run_ids()
    assert "in place" not in runs.call("compare", old, "--pin", code=PASS).output
    assert "in place" not in runs.call("compare", old, "--pin", code=PASS).output
    told = flat(runs.call("compare", new, "--pin", code=PASS).output)
    assert told.endswith(f"{BASELINE_FILE}, in place of run {old}.")
    (runs.output / BASELINE_FILE).write_text("{", encoding="utf-8")
    runs.call("compare", new, "--pin", code=PASS)


async def test_a_pinned_baseline_outlives_its_run(runs):
    await runs.add(wrong={"tog": 5})
    assert "No baseline is pinned" in runs.call("compare", "latest").output
    pinned = runs.run_ids()[0]
    assert pinned in runs.call("compare", pinned[:-1], "--pin").output
    await runs.add(wrong={"tog": 30})
    before = runs.compare()
    lines = runs.call("history").output.splitlines()
    (marked,) = [number for number, line in enumerate(lines) if ", pinned" in line]
    assert pinned in lines[marked - 1]
    assert "tog 95.0" in lines[marked - 1]
    for path in runs.output.glob("eval.db*"):
        path.unlink()
    await runs.add(wrong={"tog": 30})
    new = read_rows("latest", runs.store_path)
    after = compare_runs(new, read_rows("pinned", runs.store_path))
    assert after.baseline.run_id == pinned
    assert [i.decision for i in after.items] == [i.decision for i in before.items]
    assert [i.difference for i in after.items] == [i.difference for i in before.items]
    copied = shutil.copy(runs.output / BASELINE_FILE, runs.output.parent / "kept.json")
    runs.call("compare", "latest", str(copied), code=FAIL)


async def test_every_surface_says_the_same(runs, tmp_path):
    await runs.add(wrong={"tog": 3}, unjudged=6, methods=("tog",))
    await runs.add()
    await runs.add(wrong={"tog": 50})
    _, whole, unjudged = runs.run_ids()
    junit, summary = tmp_path / "reports" / "gate.xml", tmp_path / "summary.md"
    summary.write_text("Before\n", encoding="utf-8")
    flags = [whole, "--junit", str(junit)]
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    result = runs.call("compare", "latest", *flags, code=FAIL, **variables)
    suite = ElementTree.parse(junit).getroot()[0]
    assert [suite.get(k) for k in ("tests", "failures", "skipped")] == ["2", "1", "0"]
    assert [(c.get("classname"), c.get("name"), [x.tag for x in c]) for c in suite] == [
        ("graphrag.eval.correctness", "tog", ["failure"]),
        ("graphrag.eval.correctness", "basic", []),
    ]
    reason = suite[0][0].get("message")
    assert reason.startswith("tog, correctness: FAIL: more newly wrong than newly right")
    assert reason in result.output
    assert f"::error title=graphrag eval compare::{reason}" in result.output
    written = summary.read_text(encoding="utf-8")
    assert written.startswith("Before\n### Evaluation gate: FAIL\n")
    assert f"- {reason}" in written
    assert "| tog | correctness | 100 | -50.0 | " in written

    result = runs.call("compare", unjudged, *flags, code=INCONCLUSIVE, GITHUB_ACTIONS="true")
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("skipped"), suite[0][0].tag) == ("1", "skipped")
    assert "::warning title=graphrag eval compare::tog, correctness: INCONCLUSIVE" in result.output
    assert "gave 94.0%25 of the verdicts" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "latest", "nothing"], "has no run 'nothing'"),
        (["compare", "right", "right"], "Both sides are run"),
        (["compare", "latest", "2"], "11 runs begin with '2'"),
        (["compare", "latest", "no/such.json"], "no/such.json does not exist"),
        (["compare", "again", "right", "--metric", "corectness"], "did you mean 'correctness'?"),
        (["compare", "again", "right", "--metric", ","], "No metric is named"),
        (["compare", "again", "right", "--margin", "0"], "margin must lie between 0 and 1"),
        (["compare", "again", "right", "--methods", "bsic"], "did you mean 'basic'?"),
    ],
)
def test_wrong_usage_is_one_sentence(kept, arguments, said):
    names = [kept.ids.get(each, each) for each in arguments]
    result = kept.runs.call(*names, code=USAGE)
    assert said in flat(result.output)
    assert "?." not in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("content", ["{", "[]", '{"results": []}', '{"pinned_at": "now"}'])
def test_a_file_of_something_else_is_refused(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"file\.json is not a baseline\.json"):
        read_rows(str(path), tmp_path / "eval.db")


async def test_a_baseline_that_an_earlier_version_pinned_is_read_past_what_it_kept_more(runs):
    await runs.add(ids=range(2))
    (run_id,) = runs.run_ids()
    pinned = pin_baseline(read_rows(run_id, runs.store_path), runs.store_path)
    before = read_rows(str(pinned), runs.store_path)
    values = json.loads(pinned.read_text(encoding="utf-8"))
    for record in (values, values["metadata"], *values["rows"]):
        record["index_costs"] = {"clock": None}
    pinned.write_text(json.dumps(values), encoding="utf-8")
    assert read_rows(str(pinned), runs.store_path) == before


async def test_failed_searches_are_no_correctness_of_a_run_that_did_not_ask_for_it(runs):
    await runs.add(ids=range(1), failing=1)
    runs.config = runs.config.model_copy(update={"metrics": ("relevance",)})
    await runs.add(ids=range(1), failing=1)
    new, old = list_runs(runs.store_path)
    assert new.correctness == {"tog": None, "basic": None}
    assert old.correctness == {"tog": 0, "basic": 0}


async def test_each_metric_may_have_a_margin_of_its_own(runs, tmp_path):
    await runs.add(methods=("tog",))
    await runs.add(methods=("tog",))
    told, old = tmp_path / "gate.json", runs.run_ids()[1]
    named = ("compare", "latest", old, "--metric", "correctness=0.06,completeness")
    runs.call(*named, "--json", str(told), code=PASS)
    items = json.loads(told.read_text(encoding="utf-8"))["items"]
    margins = {each["metric"]: each["decision"]["margin"] for each in items}
    assert margins == {"correctness": 0.06, "completeness": 0.05}
    for name, said in (
        ("mrr", "There is no metric 'mrr'"),
        ("tokens=5%", "does not decide on tokens since version 2.0.0: the line Cost shows"),
        ("correctness,latency_s", "does not decide on latency_s since version 2.0.0"),
        ("correctness=5%", "must be a number of points between 0 and 1, such as 0.03, not '5%'"),
        ("correctness=x", "must be a number of points"),
        ("=0.03", "names no metric; write NAME=MARGIN"),
        ("correctness,correctness", "is named twice"),
    ):
        refused = runs.call("compare", "latest", old, "--metric", name, code=USAGE)
        assert said in flat(refused.output)
