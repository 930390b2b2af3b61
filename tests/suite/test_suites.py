"""Suites of test cases: read, evaluated over a real index, kept, compared, recommended from."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from math import inf, nan
from pathlib import Path
from statistics import fmean

import pytest
import yaml
from support.clock_evaluation import Evaluation, MakeEvaluation
from support.commands import code_of
from support.openai_server import Behaviour, Fault, offline_reply

from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.suite import SuiteFlags, suite
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError, RunStoppedError, UsageError
from graphrag.eval.report.table import Line, Table
from graphrag.eval.results.runs import read_rows
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.suite.cases import Suite, Thresholds, find_suite_files, parse_suite, read_suite
from graphrag.eval.suite.evaluators import make_evaluator
from graphrag.eval.suite.framework import recommend
from graphrag.eval.suite.run_suites import run_suites
from graphrag.eval.suite.summary import (
    CaseResult,
    SuiteOutcome,
    SuiteReport,
    list_suite_answers,
    list_suites,
    status_of,
    summarize_suite,
)
from graphrag.eval.suite.types import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationResult,
    TestCase,
)
from graphrag.eval.testing import ScriptedJudge
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.usage import Usage

DONE, ERROR, USAGE, INCOMPLETE = 0, 1, 2, 3
PASSAGE = "Idris Vane is married to Clara Reed."
EXTRACTION: dict[str, object] = {
    "name": "names",
    "evaluator": "entity_extraction",
    "cases": [
        {
            "id": "couple",
            "input_data": {"index": "clock", "text": PASSAGE},
            "expected_output": {
                "entities": ["Idris Vane", "Clara Reed"],
                "relationships": [["Clara Reed", "Idris Vane"]],
            },
        },
        {
            "id": "nobody",
            "input_data": {"index": "clock", "text": PASSAGE},
            "expected_output": {"entities": ["Otto Frank", "Idris Vane"]},
        },
    ],
}
QUESTIONS: dict[str, object] = {
    "name": "questions",
    "evaluator": "query_response",
    "methods": ["tog", "basic"],
    "cases": [
        {
            "id": "builder",
            "name": "Кто построил часы?",
            "input_data": {"question": "Who built the tower clock of Ashcombe?"},
            "expected_output": {
                "answer": "Idris Vane",
                "keywords": ["Idris Vane"],
                "aspects": ["Idris Vane built the tower clock"],
                "time_limit_s": 60,
            },
            "metadata": {"language": "ru"},
        },
        {
            "id": "banker",
            "input_data": {"question": "Which bank does Petra Holm own?"},
            "expected_output": {"answer": "The Ashcombe Bank", "keywords": ["zeppelin"]},
        },
    ],
}
OWN = """
from datetime import datetime
from math import inf, nan

from graphrag.eval.suite import BaseEvaluator, EvaluationMetric, EvaluationResult


class Own(BaseEvaluator):
    needs = ("index",)

    def __init__(self, limit=4):
        self.limit = limit

    async def evaluate(self, test_case, system_output):
        if test_case.id == "odd":
            return 1.0
        n = len(system_output.get("extracted_entities", ()))
        details = {
            "n_entities": n,
            "n_graph": len(system_output["graph"]["entities"]),
            "is_timed": "processing_time" in system_output,
            "asked": getattr(test_case.input_data, "get", dict().get)("query"),
            "type": float,
        }
        if "query_result" in system_output:
            asked = test_case.input_data["query"], "Idris Vane"
            n = await system_output["judge"](*asked, system_output["query_result"]["answer"])
            details = {**details, "parts": {"judged": n}, "reason": "judged"}
        metric = EvaluationMetric.USER_SATISFACTION
        return EvaluationResult(metric, n, float(self.limit), details, datetime.now())
"""


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    return make_evaluation()


def config_of(evaluation: Evaluation) -> EvaluationConfig:
    return EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")


async def run_one(
    evaluation: Evaluation, values: dict[str, object], *given: object, **more: object
) -> SuiteReport:
    outcome = await run_suites([parse_suite(values)], config_of(evaluation), *given, **more)
    return outcome.reports[0]


def add_suite(evaluation: Evaluation, values: dict[str, object]) -> Path:
    return evaluation.write_suite(f"{values['name']}.yaml", values)


def run(evaluation: Evaluation, target: str, **options: object) -> int:
    return code_of(suite, Paths(evaluation.root), SuiteFlags(**options), target)


def own_module(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_{evaluation.root.parent.name}".replace("-", "_")
    (evaluation.root / f"{name}.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(evaluation.root))
    return name


def with_case(**changes: object) -> dict[str, object]:
    return {"name": "one", "evaluator": "entity_extraction", "cases": [changes]}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"evaluater": "x"}, "unknown key 'evaluater'; did you mean 'evaluator'?"),
        ({"cases": [{"id": "a", "input": {}}]}, "case 'a': unknown key 'input'"),
        ({"cases": [{"name": "a"}]}, "case number 1.id: is missing"),
        ({"cases": [{"id": "a"}, {"id": "a"}]}, "two cases have the id 'a'"),
        ({"cases": []}, "cases"),
        ({"name": "a/b"}, "name"),
        ({"thresholds": {"passing": 1.9, "warning": 0.5}}, "less than or equal to 1"),
        ({"thresholds": {"pass": 0.9}}, "unknown key 'pass'; did you mean 'passing'?"),
    ],
)
def test_a_malformed_suite_names_the_case_and_the_key(changes, sentence):
    values = {"name": "one", "evaluator": "e", "cases": [{"id": "a"}], **changes}
    with pytest.raises(ConfigError, match=f"^one.yaml: .*{re.escape(sentence)}"):
        parse_suite(values, "one.yaml")


def test_json_and_yaml_say_the_same_and_what_is_no_suite_is_one_sentence(tmp_path):
    values = {**QUESTIONS, "cases": [{**QUESTIONS["cases"][0], "id": 7}]}
    (tmp_path / "q.json").write_text(json.dumps(values), encoding="utf-8")
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    suite = read_suite(tmp_path / "q.json")
    assert suite == read_suite(tmp_path / "q.yaml")
    (case,) = suite.cases
    assert (case.id, case.title, case.metadata) == ("7", "Кто построил часы?", {"language": "ru"})
    for name, text, sentence in (
        (
            "q.yaml",
            "a:\n\tb: 1",
            r"q\.yaml is not valid YAML: line 2, column 1: found [^\n<]*token\.$",
        ),
        ("q.json", "{", "is not valid JSON"),
        ("q.yaml", "just text", "must have keys and values"),
        ("q.csv", "", "use .yaml or .json"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=sentence):
            read_suite(tmp_path / name)
    with pytest.raises(ConfigError, match="does not exist"):
        read_suite(tmp_path / "missing.yaml")


def test_suites_are_found_by_file_name_and_all(evaluation):
    with pytest.raises(ConfigError, match="There is no suite in"):
        find_suite_files("all", evaluation.root)
    first, second = add_suite(evaluation, EXTRACTION), add_suite(evaluation, QUESTIONS)
    assert find_suite_files("all", evaluation.root) == [first, second]
    assert find_suite_files("questions", evaluation.root) == [second]
    assert find_suite_files(str(first), evaluation.root) == [first]
    assert find_suite_files("eval/suites/names.yaml", evaluation.root) == [first]
    with pytest.raises(ConfigError, match="did you mean 'questions'"):
        find_suite_files("question", evaluation.root)


AS_A = {"expected_output": {"entities": ["A"]}}
CANNOT_RUN: dict[str, dict[str, object]] = {
    "did you mean 'entity_extraction'?": {**EXTRACTION, "evaluator": "entity_extracton"},
    "did you mean 'source'?": {**EXTRACTION, "settings": {"sourse": "text"}},
    "json:nothing: json has no nothing": {**EXTRACTION, "evaluator": "json:nothing"},
    "has no method evaluate": {**EXTRACTION, "evaluator": "yaml:SafeLoader"},
    "unknown name 'tok'; did you mean 'tog'?": {**QUESTIONS, "methods": ["tok"]},
    "one above it": {**QUESTIONS, "settings": {"weights": {"answer": 0}}},
    "one above it, not {'answer': nan}": {**QUESTIONS, "settings": {"weights": {"answer": nan}}},
    "one above it, not {'answer': inf}": {**QUESTIONS, "settings": {"weights": {"answer": inf}}},
    "case 'a': no index is configured for 'clack'; did you mean 'clock'?": with_case(
        id="a", input_data={"index": "clack", "text": "A"}, **AS_A
    ),
    "case 'a': expected_output: expects": with_case(id="a", input_data={"index": "clock"}),
    "input_data.text is missing": with_case(id="a", input_data={}, **AS_A),
    "unknown key 'entites'; did you mean 'entities'?": with_case(
        id="a", input_data={"text": "A"}, expected_output={"entites": ["A"]}
    ),
    "expected_output names nothing that has a weight": {
        **QUESTIONS,
        "cases": [{"id": "q", "input_data": {"question": "Who?"}}],
    },
}


async def test_what_cannot_be_run_is_said_before_the_first_call(evaluation):
    judge = ScriptedJudge()
    with EvaluationStore(evaluation.store_path) as store:
        for sentence, values in CANNOT_RUN.items():
            with pytest.raises(ConfigError) as caught:
                await run_one(evaluation, values, store, judge)
            assert sentence in str(caught.value)
        with pytest.raises(ConfigError, match="Two suites are called 'names'"):
            await run_suites([parse_suite(EXTRACTION)] * 2, config_of(evaluation))
        assert store.runs() == []
    assert judge.asked == []


async def test_a_number_that_is_expected_stands_for_its_text(tmp_path):
    expected = {"keywords": [1912, "Utah"], "aspects": [1912]}
    case = {"id": "a", "input_data": {"question": "When?"}, "expected_output": expected}
    for name, parts in (
        ("query_response", {"keywords": 0.5, "aspects": 1.0}),
        ("response_relevance", {"response_relevance": 0.5}),
        ("response_completeness", {"response_completeness": 1.0}),
    ):
        suite = parse_suite({"name": "numbers", "evaluator": name, "cases": [case]})
        evaluator = make_evaluator(suite, tmp_path)
        result = await evaluator.evaluate(suite.cases[0], {"answer": "In 1912."})
        assert result.parts == parts


async def test_a_passage_is_extracted_as_the_project_would(evaluation):
    report = await run_one(evaluation, EXTRACTION)
    couple, nobody = report.results
    assert (couple.score, couple.status, couple.method) == (1.0, "passed", "entity_extraction")
    assert (couple.usage.llm_calls, couple.usage.models) == (1, ("offline/rules",))
    assert "CLARA REED" in couple.output
    assert nobody.parts == {"entities": 0.5}  # 1 of 2 expected, 1 of 2 found
    assert nobody.details["missed_entities"] == ["otto frank"]
    assert nobody.details["unexpected_entities"] == ["clara reed"]
    assert (report.n_passed, report.n_total, report.status) == (1, 2, "warning")
    assert report.score.mean == 0.75
    # Nothing found is right only where nothing is expected.
    rain = {"index": "clock", "text": "the rain fell on the old road all night."}
    cases = [
        {"id": str(len(names)), "input_data": rain, "expected_output": {"entities": names}}
        for names in ([], ["Otto Frank"])
    ]
    values = {**EXTRACTION, "settings": {"entities": "precision"}, "cases": cases}
    report = await run_one(evaluation, values)
    assert [result.score for result in report.results] == [1, 0]


async def test_the_built_index_is_read_for_a_passage_and_a_document(evaluation):
    expected = {
        "entities": ["Idris Vane", "Clara Reed"],
        "relationships": [["Idris Vane", "Clara Reed"]],
    }
    inputs = [
        {"text": PASSAGE},
        {"document": "CLOCK.txt"},
        {},
        {"text": "Nobody wrote this sentence anywhere."},
        {"document": "other.txt"},
    ]
    values = {
        **EXTRACTION,
        "settings": {"source": "index", "entities": "recall"},
        "cases": [
            {"id": str(number), "input_data": given, "expected_output": expected}
            for number, given in enumerate(inputs)
        ],
    }
    results = (await run_one(evaluation, values)).results
    assert [result.score for result in results] == [1, 1, 1, None, None]
    assert "no text unit of the index contains the passage" in results[3].reason
    assert "no document 'other.txt'" in results[4].reason
    outputs = [r.output for r in results[:3]]
    assert "WREN" not in outputs[0]  # of another text unit
    assert "WREN" in outputs[1]
    assert outputs[1] == outputs[2]  # the index has one document
    assert sum(result.usage.llm_calls for result in results) == 0


async def test_every_method_answers_and_each_part_has_its_weight(evaluation):
    judge = ScriptedJudge()
    report = await run_one(evaluation, QUESTIONS, judge=judge)
    asked = [(case, method) for case in ("builder", "banker") for method in ("tog", "basic")]
    assert [(r.case_id, r.method) for r in report.results] == asked
    builder, banker = report.results[1], report.results[3]
    assert builder.parts == {"answer": 1, "keywords": 1, "aspects": 1, "time": 1}
    assert builder.score == 1
    assert banker.parts == {"answer": 1, "keywords": 0}
    assert banker.score == pytest.approx(0.5 / 0.7)
    assert banker.status == "warning"
    assert banker.details["missed_keywords"] == ["zeppelin"]
    truths = [material["ground_truth"] for _, material in judge.asked]
    assert sorted(truths) == ["Idris Vane"] * 2 + ["The Ashcombe Bank"] * 2
    tog = report.methods[0]
    assert (tog.method, tog.n_passed, tog.n_warning, tog.n_total) == ("tog", 2, 1, 2)
    assert [r.usage.llm_calls for r in report.results if r.method == "basic"] == [1, 1]
    calls = sum(r.usage.llm_calls for r in report.results if r.method == "tog")
    assert tog.performance.llm_calls == calls > 0
    assert tog.performance.latency_median.n == 2


async def test_a_program_holds_a_run_against_an_earlier_one(evaluation):
    with EvaluationStore(evaluation.store_path) as store:
        first = await run_suites([parse_suite(EXTRACTION)], config_of(evaluation), store)
        again, lone = [
            await run_suites(
                [parse_suite(EXTRACTION)], config_of(evaluation), store, baseline=run_id
            )
            for run_id in (first.run_id, "a run of another store")
        ]
        kept = [run.details.report for run in store.runs()]
    held = [(each.suite, each.metric, each.n_pairs, each.regressed) for each in again.regressions]
    assert held == [("names", "entities", 2, False), ("names", "relationships", 1, False)]
    assert (first.regressions, lone.regressions) == (None, None)
    told = [any("are not compared" in note for note in each.notes) for each in (again, lone)]
    assert told == [False, True]
    assert [report["regressions"] is not None for report in kept] == [False, True, False]


async def test_a_run_that_nothing_keeps_is_neither_resumed_nor_compared(evaluation):
    for wanted in ({"resume": True}, {"baseline": "a run"}):
        with pytest.raises(UsageError, match="Give run_suites the store"):
            await run_one(evaluation, EXTRACTION, **wanted)


async def test_a_run_of_another_bound_of_replies_is_another_run(evaluation):
    evaluation.configure(judge={"rubric": True}, trials=2)  # which suites leave out
    with EvaluationStore(evaluation.store_path) as store:
        for most in (2000, 500):
            evaluation.configure(max_output_tokens=most)
            await run_suites([parse_suite(EXTRACTION)], config_of(evaluation), store)
        setups = [run.setup.root for run in store.runs()]
    assert [setup.get("max_output_tokens") for setup in setups] == [500, None]
    assert all(setup.keys().isdisjoint({"trials", "further"}) for setup in setups)


async def test_a_suite_is_of_its_index_whichever_case_looks_into_it(evaluation):
    cases = [
        {"id": "text", "input_data": {"text": PASSAGE}},
        {"id": "document", "input_data": {"document": "CLOCK.txt"}},
    ]
    with EvaluationStore(evaluation.store_path) as store:
        for some in (cases[:1], cases):
            own = {"name": "own", "evaluator": f"{__name__}:Failing", "cases": some}
            await run_suites([parse_suite(own)], config_of(evaluation), store)
        both, text = (run.setup.root["indexes"]["clock"]["own"] for run in store.runs())
    assert both.keys() - text.keys() == {"index"}


async def test_what_is_judged_beside_correctness_in_a_run_is_left_out(evaluation):
    pairs, by_claim = [["tog", "local"]], {"by": "claim"}  # which the embedded judge is refused
    evaluation.configure(
        methods=["tog", "local", "basic"], judge={"pairwise": pairs, "faithfulness": by_claim}
    )
    report = await run_one(evaluation, {**QUESTIONS, "methods": ["basic"]})
    assert [result.failure for result in report.results] == [None, None]


async def test_one_s_own_evaluator_is_a_class_and_a_line(evaluation, monkeypatch):
    """It is shown what the project made of the case, as a framework's component would."""
    module = own_module(evaluation, monkeypatch)
    values = {
        "name": "own",
        "evaluator": f"{module}:Own",
        "cases": [
            {"id": "text", "input_data": {"text": PASSAGE}},
            {"id": "graph", "input_data": "free"},
            {"id": "odd"},
        ],
    }
    with EvaluationStore(evaluation.store_path) as store:
        report = await run_one(evaluation, values, store=store)
        (kept,) = store.runs()
    assert kept.setup.root["suites"]["own"]["source"] is not None  # a change is another setup
    text, graph, odd = report.results
    assert (text.score, text.usage.llm_calls) == (0.5, 1)
    assert text.parts == {"user_satisfaction": 0.5}
    assert text.details["n_entities"] == 2
    assert text.details["type"] == "<class 'float'>"  # what JSON can't hold is kept as text
    assert "is_timed True" in text.reason
    assert (graph.score, graph.usage.llm_calls) == (0, 0)
    assert "is_timed False" in graph.reason
    assert "n_graph 0" not in graph.reason
    assert "float, not an EvaluationResult" in odd.reason
    assert odd.output == ""  # the system gave nothing; why there is no score is no output
    asking = {**values, "methods": ["basic"], "settings": {"limit": 1}}
    asking["cases"] = [QUESTIONS["cases"][0]]
    (asked,) = (await run_one(evaluation, asking, judge=ScriptedJudge())).results
    assert (asked.score, asked.parts, asked.reason) == (1, {"judged": 1}, "judged")
    assert asked.details["asked"] == "Who built the tower clock of Ashcombe?"
    assert "Idris Vane" in asked.output
    with pytest.raises(ConfigError, match="refuses its settings"):
        await run_one(evaluation, {**values, "settings": {"limits": 4}})


class Failing(BaseEvaluator):
    """Fails on one case."""

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, object]
    ) -> EvaluationResult:
        if test_case.id == "judge":
            raise KeyError("the evaluator is broken")
        return EvaluationResult(EvaluationMetric.USER_SATISFACTION, 1.0, 1.0, {}, datetime.now())


async def test_a_failing_case_is_a_recorded_failure_and_no_score(evaluation):
    suite = parse_suite(
        {
            "name": "mixed",
            "evaluator": f"{__name__}:Failing",
            "methods": ["basic"],
            "cases": [
                {"id": "good", "input_data": QUESTIONS["cases"][0]["input_data"]},
                {"id": "judge", "input_data": QUESTIONS["cases"][0]["input_data"]},
                {"id": "search", "input_data": {"document": "other.txt"}},
            ],
        }
    )
    with EvaluationStore(evaluation.store_path) as store:
        outcome = await run_suites([suite], config_of(evaluation), store)
        responses = {r.sample_id: r for r in store.responses(outcome.run_id or "").values()}
        verdicts = store.verdicts(outcome.run_id or "")
    (report,) = outcome.reports
    assert [(r.case_id, r.score, r.status) for r in report.results] == [
        ("good", 1.0, "passed"),
        ("judge", None, "unscored"),
        ("search", None, "unscored"),
    ]
    assert report.status == "incomplete"
    times = report.evaluation_report(datetime.now()).performance_metrics
    timed = [r.latency_s for r in report.results[:2]]  # the system ran both, whatever their scores
    assert times == {
        "n_timed": 2,
        "avg_processing_time": pytest.approx(fmean(timed)),
        "max_processing_time": max(timed),
    }
    (method,) = report.methods
    assert (method.score.mean, method.bounds) == (1.0, (1 / 3, 1.0))
    assert method.passed.mean == pytest.approx(1 / 3)
    assert "Idris Vane" in responses["mixed/judge"].response  # paid for, so kept
    failure = responses["mixed/search"].failure
    assert failure is not None
    assert (failure.stage, failure.kind) == ("search", "error")
    assert "no document 'other.txt'" in failure.message
    scores = {unit.split()[0]: found["correctness"].score for unit, found in verdicts.items()}
    assert scores == {"mixed/good": 1, "mixed/judge": None}
    (advice,) = [each for each in report.recommendations if "Mend" in each]
    assert advice.startswith("Mend what failed in 2 of 3 cases; the first, judge: basic: ")
    # A judge without a verdict leaves the case unscored.
    failure = Failure("judge", "unreadable", "no JSON")
    judge = ScriptedJudge(lambda metric, material: JudgeResult(None, "Unscored", failure))
    report = await run_one(evaluation, QUESTIONS, judge=judge)
    assert {result.failure for result in report.results} == {failure}
    assert report.status == "incomplete"


class Stopping(BaseEvaluator):
    """Ends the run as often as it is told, and counts what was extracted from then on."""

    n_stops = 1

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, object]
    ) -> EvaluationResult:
        if Stopping.n_stops:
            Stopping.n_stops -= 1
            raise RunStoppedError("the service refuses")
        n = float(len(system_output["extracted_entities"]))
        return EvaluationResult(EvaluationMetric.USER_SATISFACTION, n, 4.0, {}, datetime.now())


async def test_a_text_that_was_read_and_not_scored_is_read_again(evaluation):
    case = {"id": "text", "input_data": {"text": PASSAGE}}
    suite = parse_suite({"name": "s", "evaluator": f"{__name__}:Stopping", "cases": [case]})
    with EvaluationStore(evaluation.store_path) as store:
        with pytest.raises(RunStoppedError, match="refuses"):
            await run_suites([suite], config_of(evaluation), store)
        (run,) = store.runs()
        before = store.responses(run.run_id)
        outcome = await run_suites([suite], config_of(evaluation), store, resume=True)
        assert store.responses(run.run_id) == before != {}
    (read,) = outcome.reports[0].results
    assert (read.score, read.usage.llm_calls, read.judge_usage.llm_calls) == (0.5, 1, 1)


async def test_a_failed_or_late_extraction_is_not_an_empty_one(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, timeout_s=30)
    server.behaviour = Behaviour(offline_reply(), lambda n, _: Fault(status=400) if n else None)
    report = await run_one(evaluation, EXTRACTION)
    assert [result.status for result in report.results] == ["unscored", "unscored"]
    assert all(r.failure is not None and r.failure.stage == "search" for r in report.results)
    assert report.methods[0].performance.llm_calls == 2
    server.behaviour = Behaviour(offline_reply(), lambda n, _: Fault(status=401))
    with (
        EvaluationStore(evaluation.store_path) as store,
        pytest.raises(RunStoppedError, match="refuses the extraction"),
    ):
        await run_one(evaluation, EXTRACTION, store=store)
    evaluation.configure(timeout_s=0.3)
    server.behaviour = Behaviour(offline_reply(), lambda n, _: Fault(hang_s=5))
    report = await run_one(evaluation, EXTRACTION)
    assert {r.failure.kind for r in report.results if r.failure is not None} == {"timeout"}
    latency = report.methods[0].performance.latency_median
    assert (latency.n_censored, latency.value) == (2, None)


def test_a_run_whose_searches_all_fail_stops_and_goes_on(make_evaluation, server, capsys):
    evaluation = make_evaluation(server.base_url, concurrency=1)
    cases = [{**EXTRACTION["cases"][0], "id": f"c{n}"} for n in range(12)]
    add_suite(evaluation, {**EXTRACTION, "cases": cases})
    server.behaviour = Behaviour(offline_reply(), lambda n, _: Fault(status=400))
    assert run(evaluation, "names") == ERROR
    assert "refused the last 10 requests of names in the same way" in capsys.readouterr().err
    server.behaviour = Behaviour(offline_reply())
    asked = server.totals()["chat"].calls
    assert run(evaluation, "names", resume=True) == INCOMPLETE  # what failed stays so
    assert "10 of 12 responses are there" in capsys.readouterr().out
    assert server.totals()["chat"].calls == asked + 4  # each with its gleaning
    statuses = [
        case["status"] for case in evaluation.read_json("suite_results.json")["suites"][0]["cases"]
    ]
    assert statuses == ["unscored"] * 10 + ["passed"] * 2


def test_an_answer_that_was_not_judged_is_not_asked_for_again(make_evaluation, server):
    def refused(n: int, request: dict[str, object]) -> Fault | None:
        return Fault(status=401) if "ground_truth" in json.dumps(request) else None

    evaluation = make_evaluation(server.base_url, concurrency=1)
    add_suite(evaluation, {**QUESTIONS, "methods": ["basic"]})
    server.behaviour = Behaviour(offline_reply(), refused)
    assert run(evaluation, "questions") == ERROR
    with EvaluationStore(evaluation.store_path) as store:
        (kept,) = store.runs()
        before = store.responses(kept.run_id)
    server.behaviour = Behaviour(offline_reply())
    asked = server.totals()["chat"].calls
    assert run(evaluation, "questions", resume=True) == DONE
    assert server.totals()["chat"].calls == asked + 1 + 2  # the other question, two verdicts
    with EvaluationStore(evaluation.store_path) as store:
        assert before.items() <= store.responses(kept.run_id).items()


def test_the_command_shows_keeps_and_labels_a_run(evaluation, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    add_suite(evaluation, EXTRACTION)
    add_suite(evaluation, QUESTIONS)
    assert run(evaluation, "all") == DONE
    shown = capsys.readouterr().out
    first, second, *_ = shown.splitlines()
    assert first.startswith("Suite names: warning (offline baseline models): overall score 0.750 ")
    assert second.startswith("Suite questions: ")
    assert "failed 0.50 nobody (entity_extraction): entities f1 0.50" in shown
    written = evaluation.read_json("suite_results.json")
    assert written["embedded_models"] == "offline baseline models"
    assert [suite["name"] for suite in written["suites"]] == ["names", "questions"]
    case = written["suites"][0]["cases"][1]
    assert case["details"]["missed_entities"] == ["otto frank"]
    rows = read_rows("latest", evaluation.store_path)
    assert rows.metadata.status == "finished"
    assert {(row.question_id, row.method): row.scores["correctness"] for row in rows.rows} == {
        ("names/couple", "names"): 1,
        ("names/nobody", "names"): 0,
        **{
            (f"questions/{case}", f"questions/{method}"): 1
            for case in ("builder", "banker")
            for method in ("tog", "basic")
        },
    }
    history = evaluation.run("show", COLUMNS="160")
    assert history.exit_code == DONE
    assert "questions/tog 100" in history.output
    assert "names 50.0" in history.output
    assert "offline baseline models" in history.output
    # The judge is not held to what an evaluator expects.
    result = evaluation.run("judge", "latest", COLUMNS="300")
    assert result.exit_code == USAGE, result.output
    assert "run them again with: graphrag eval suite" in result.output


def test_a_case_without_a_score_leaves_the_command_incomplete(evaluation):
    missing = {**EXTRACTION["cases"][0], "input_data": {"document": "other.txt"}}
    values = {**EXTRACTION, "settings": {"source": "index"}, "name": "lost"}
    add_suite(evaluation, {**values, "cases": [EXTRACTION["cases"][0], missing | {"id": "no"}]})
    assert run(evaluation, "lost", quiet=True) == INCOMPLETE
    add_suite(evaluation, {**values, "cases": [missing], "thresholds": {"passing": 0.0}})
    assert run(evaluation, "lost", quiet=True, baseline="latest") == INCOMPLETE
    assert run(evaluation, "lots", quiet=True) == USAGE


def test_a_baseline_is_compared_through_the_gate(evaluation, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    add_suite(evaluation, EXTRACTION)
    assert run(evaluation, "names", baseline="latest") == USAGE  # there is no run yet
    assert evaluation.run("--skip-judge", "--limit", "1", "-q").exit_code == DONE
    assert run(evaluation, "names", quiet=True, baseline="latest") == USAGE  # none of suites
    with EvaluationStore(evaluation.store_path) as store:
        assert len(store.runs()) == 1
    assert run(evaluation, "names", set_baseline=True) == DONE
    capsys.readouterr()
    assert run(evaluation, "names", baseline="pinned", margin=0.99, quiet=True) == DONE
    answer, gate = capsys.readouterr().out.splitlines()
    assert answer.startswith("Suite names: ")
    assert gate.startswith("PASS")
    add_suite(evaluation, {**EXTRACTION, "thresholds": {"passing": 0.4, "warning": 1.0}})
    assert run(evaluation, "names", baseline="pinned", margin=0.99) == DONE
    assert "0 newly wrong, 1 newly right" in capsys.readouterr().out
    worse = json.loads(json.dumps(EXTRACTION))
    worse["cases"][0]["expected_output"] = {"entities": ["Otto Frank", "Anna Frank"]}
    worse["thresholds"] = {"passing": 0.2, "warning": 1.0}
    worse["cases"][1]["expected_output"] = {"entities": ["Idris Vane", "Clara Reed"]}
    add_suite(evaluation, worse)
    assert run(evaluation, "names", baseline="pinned") == INCOMPLETE  # two cases prove nothing
    captured = capsys.readouterr()
    assert "Undecided for " in captured.out
    for part in ("the questions differ", "the judges differ"):
        assert part in captured.err


def result(case: str, score: float | None = 1.0) -> CaseResult:
    failure = Failure("search", "error", "down") if score is None else None
    status = "unscored" if score is None else status_of(score, Thresholds())
    return CaseResult(case, case, "m", status, score, "because", "", failure, 1.0, Usage())


@pytest.mark.parametrize(
    ("scores", "status", "passed"),
    [
        ([1.0, 0.9], "passed", 2),
        ([0.4, 1.0, 1.0], "passed", 2),  # 0.8, of which a float is a digit short
        ([0.6, 0.9], "warning", 2),
        ([0.59, 0.6], "failed", 1),
        ([0.9, None], "incomplete", 1),
        ([0.0, 0.0, None], "failed", 0),  # below even if the missing one were 1
        ([2 / 3 - 1 / 15 - 1e-16], "warning", 1),  # 0.5999999999999999, which is 0.6
    ],
)
def test_a_suite_is_worth_its_mean_and_never_hides_what_is_missing(scores, status, passed):
    suite = Suite(name="s", evaluator="e", cases=(TestCase(id="a"),))
    results = [result(str(number), score) for number, score in enumerate(scores)]
    report = summarize_suite(suite, results)
    assert (report.status, report.n_passed) == (status, passed)
    low, high = report.methods[0].bounds
    assert 0 <= low <= high <= 1
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_mean_that_adds_up_to_a_mark_is_not_below_it():
    assert recommend([("f1", sum([0.4, 1.0, 1.0]) / 3)], {}, 3) == [
        "No metric is below 0.8 on average."
    ]


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (Usage(1, 1, 0), "1 model call, 1 token, "),
        (Usage(2, 999, 1), "2 model calls, 1,000 tokens, "),
        (Usage(is_counted=False), "unknown model calls, unknown tokens, "),
    ],
)
def test_what_a_suite_took_is_told_in_whole_words(usage, told):
    suite = Suite(name="s", evaluator="e", cases=(TestCase(id="a"),))
    report = summarize_suite(suite, [replace(result("a"), usage=usage)])
    lines = list_suites(SuiteOutcome((report,), None, None, ""))
    assert any(isinstance(each, Line) and told in each.text for each in lines)


def test_a_score_just_below_the_thresholds_is_not_shown_at_them():
    suite = Suite(name="s", evaluator="e", cases=(TestCase(id="a"),))
    scored = replace(result("a", 0.5996), parts={"names": 0.5996})
    outcome = SuiteOutcome((summarize_suite(suite, [scored]),), None, None, "")
    (answer,), (table, *lines) = list_suite_answers(outcome), list_suites(outcome)
    assert "failed: overall score 0.5996 (passing 0.6" in answer.text
    assert isinstance(table, Table)
    assert table.rows[0][2] == "0.5996"
    told = [each.text for each in lines if isinstance(each, Line)]
    assert any("failed 0.5996 a (m)" in text for text in told)
    assert "Improve names of m: its mean is 0.5996, below 0.6." in told


def test_the_shipped_suites_can_be_read_and_ask_for_what_the_films_say(project_root):
    files = find_suite_files("all", project_root)
    assert [path.stem for path in files] == ["entity_extraction", "query_response"]
    extraction, questions = (read_suite(path) for path in files)
    assert (len(extraction.cases), len(questions.cases)) == (18, 15)
    texts = {
        key: " ".join((project_root / "eval" / f"{key}.txt").read_text(encoding="utf-8").split())
        for key in {case.index for case in (*extraction.cases, *questions.cases)}
        if key is not None
    }
    for case in extraction.cases:
        passage, film = case.input_data["text"], texts[case.index or ""]
        for sentence in passage.replace("Madame D. l", "Madame D l").split(". "):
            assert sentence.removesuffix(".").replace("Madame D l", "Madame D. l") in film
        for name in case.expected_output["entities"]:
            assert name in passage
    for case in questions.cases:
        for keyword in case.expected_output["keywords"]:
            assert keyword.casefold() in texts[case.index or ""].casefold()
