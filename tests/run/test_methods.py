"""Variants, methods of one's own, controls and equal terms, from eval_config.yaml to results."""

import re
from typing import Any

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.custom_methods import (
    MethodAnswer,
    MethodSet,
    describe_method,
    load_method,
)
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.indexes import read_model_settings
from graphrag.eval.testing import ScriptedJudge
from graphrag.query.graph_index import GraphIndex
from graphrag.query.structured_search.base import SearchResult

WIDE = {"name": "wide", "method": "tog", "width": 5}
MODULE = """
import time
from graphrag.eval.runner.custom_methods import MethodAnswer

async def counted(question, index):
    return MethodAnswer(f"Idris Vane of {index}", ("The clock.",), 2, 30, 4, 0.5)

async def uncounted(question):
    return MethodAnswer("Idris Vane", ("The clock.",))

async def text(question):
    return "Idris Vane"

async def abstaining(question):
    return MethodAnswer("No idea.", ("The clock.",), abstained=True)

async def refused(question):
    from graphrag.query.client.models import open_completion
    from graphrag_llm.config import ModelConfig
    model = open_completion(ModelConfig(type="offline", model_provider="offline", model="rules"))
    system = {"role": "system", "content": "-----Sources-----\\nid|text\\n"}
    reply = await model.completion_async(messages=[system, {"role": "user", "content": question}])
    return MethodAnswer(str(reply.content), ())

async def quoting(question):
    return MethodAnswer("I could not find this in the provided context.", ("The clock.",))

async def failing(question):
    raise ConnectionError("the service is down")

async def partly(question):
    if "bank" in question:
        raise ConnectionError("the service is down")
    return "Idris Vane"

async def quitting(question):
    raise SystemExit(0)

class PanicException(BaseException):
    pass

async def panicking(question):
    raise PanicException("index out of bounds")

def blocking(question):
    if "bank" in question:
        time.sleep(60)
    return "Idris Vane"

async def nonsense(question):
    return 42

number = 3
"""


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    return make_evaluation()


@pytest.fixture
def own(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module of methods into the evaluation's folder and return its name."""
    name = f"own_{evaluation.root.parent.name}".replace("-", "_")
    (evaluation.root / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(evaluation.root))
    return name


def efficiency(evaluation: Evaluation, method: str) -> dict[str, Any]:
    return evaluation.read_results("summary")["efficiency"][method]


def test_a_variant_is_compared_like_a_method(evaluation):
    evaluation.configure(methods=["tog", WIDE])
    evaluation.done("-q")
    (run,) = evaluation.runs()
    described = run.setup.indexes["clock"]
    assert described["wide"]["settings"]["width"] == 5
    assert described["tog"]["settings"]["width"] == 3
    assert efficiency(evaluation, "wide")["avg_llm_calls"] <= 6
    summary = evaluation.read_results("summary")
    assert next((c["a"], c["b"]) for c in summary["comparisons"]) == ("tog", "wide")
    evaluation.done("--methods", "wide", "-q")
    assert evaluation.read_results("summary")["metadata"]["methods"] == ["wide"]


def test_a_variant_of_1_0_0_runs_and_the_settings_that_have_gone_are_named(evaluation):
    """Its results name them, too."""
    connecting = {"name": "connecting", "method": "tog", "mode": "connect", "graph_share": 0.4}
    evaluation.configure(methods=["basic", connecting])
    evaluation.done("-q")
    said = evaluation.read_results("summary")["metadata"]["warnings"]
    gone = [line for line in said if line.startswith("connecting: ")]
    assert [line.partition(" is no longer used: ")[0] for line in gone] == [
        "connecting: graph_share",
        "connecting: mode",
    ]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({**WIDE, "widht": 5}, "tog has no setting 'widht'"),
        ({**WIDE, "width": 0}, "variants.wide.width"),
        ({"name": "h", "method": "hybird"}, "unknown name 'hybird'; did you mean 'hybrid'"),
        ({"method": "tog", "width": 5}, "a variant needs a name"),
        ({"name": "wide"}, "give either method"),
        ({"name": "local", "method": "tog"}, "is the name of a method"),
        ({"name": "mine", "function": "no_such_module:f"}, "no_such_module can't be imported"),
        ({"name": "mine", "function": "json"}, "write it as module:object"),
        ({"name": "mine", "function": "json:nothing"}, "json has no nothing; it has dump"),
        ({"name": "mine", "function": "json:loads", "width": 2}, "a function takes no settings"),
    ],
)
def test_a_wrong_variant_is_one_sentence(evaluation, entry, sentence):
    evaluation.configure(methods=["basic", entry])
    (header,) = read_model_settings({"clock": evaluation.project}).values()

    def read() -> None:
        config = EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")
        methods = MethodSet(config)
        for name in config.methods:
            methods.header(name, header)

    with pytest.raises(ConfigError, match=re.escape(sentence)):
        read()


def test_functions_are_asked_and_only_what_they_count_is_printed(evaluation, own):
    evaluation.configure(
        methods=[
            {"name": name, "function": f"{own}:{name}"} for name in ("counted", "uncounted", "text")
        ]
    )
    result = evaluation.done("--full", COLUMNS="200")
    counted, uncounted = efficiency(evaluation, "counted"), efficiency(evaluation, "uncounted")
    assert (counted["avg_llm_calls"], counted["avg_prompt_tokens"]) == (2, 30)
    assert counted["cost_usd"] == 0.5 * len(ROWS)
    assert (uncounted["avg_llm_calls"], uncounted["cost_usd"]) == (None, None)
    rows = [line for line in result.output.splitlines() if line.startswith("uncounted ")]
    spent = rows[-1].split()[3:]
    assert set(spent) == {"-"}
    first = evaluation.read_results()["results"][0]
    assert first["methods"]["counted"]["response"] == "Idris Vane of clock"
    contexts = {(each.method, each.context_text) for each in evaluation.responses()}
    assert contexts == {("counted", "The clock."), ("uncounted", "The clock."), ("text", None)}


def test_a_function_says_that_it_abstains_and_its_words_do_not(evaluation, own):
    names = ("abstaining", "refused", "quoting")
    evaluation.configure(
        methods=[{"name": name, "function": f"{own}:{name}"} for name in names],
        metrics=["correctness", "faithfulness", "relevance"],
    )
    evaluation.write_rows(ROWS[:1])
    evaluation.done("-q")
    for _ in range(2):  # as the run ended, and as it is read from the store
        methods = evaluation.read_results()["results"][0]["methods"]
        states = {name: methods[name]["states"] for name in names}
        for metric in ("correctness", "relevance"):
            assert {each[metric] for each in states.values()} == {"scored"}
        assert [states[name]["faithfulness"] for name in names] == [
            *("abstained", "abstained", "scored")
        ]
        evaluation.done("show", "latest", "-q")


def test_what_a_function_raises_is_a_failed_search(evaluation, own):
    evaluation.configure(
        methods=[
            "basic",
            *(
                {"name": name, "function": f"{own}:{name}"}
                for name in ("failing", "nonsense", "quitting", "panicking", "blocking")
            ),
        ],
        timeout_s=10,
    )
    evaluation.write_rows(ROWS[:2])
    evaluation.done(code=3)  # of some, every search failed
    methods, late = (row["methods"] for row in evaluation.read_results()["results"])
    assert "the service is down" in methods["failing"]["failure"]["message"]
    assert "not with int" in methods["nonsense"]["failure"]["message"]
    assert methods["blocking"]["failure"] is None  # no coroutine: it got a thread
    assert late["blocking"]["failure"]["kind"] == "timeout"  # and it held nothing up
    assert late["basic"]["failure"] is None
    assert "sys.exit(0)" in methods["quitting"]["failure"]["message"]
    assert "PanicException: index out of" in methods["panicking"]["failure"]["message"]
    assert evaluation.read_results("summary")["by_method"]["failing"]["correctness"] == 0


def test_a_changed_function_is_not_resumed(evaluation, own):
    before = describe_method(load_method(f"{own}:text", evaluation.root))
    path = evaluation.root / f"{own}.py"
    path.write_text(MODULE.replace('return "Idris Vane"', 'return "Somebody"'), encoding="utf-8")
    import linecache

    linecache.checkcache()
    after = describe_method(load_method(f"{own}:text", evaluation.root))
    assert before["function"] == after["function"] == f"{own}:text"
    assert before["source"] != after["source"]


@pytest.mark.parametrize("contexts", ["The clock.", (object(),), (None, "The clock.")])
def test_contexts_that_are_no_texts_are_refused_and_never_judged(contexts):
    with pytest.raises(TypeError, match=r"a tuple of texts, such as \(text,\)"):
        MethodAnswer("Idris Vane", contexts)
    assert MethodAnswer("Idris Vane", ["The clock."]).contexts == ["The clock."]


async def test_a_function_may_answer_with_a_search_result_and_its_counts(make_evaluation, server):
    evaluation = make_evaluation(server.base_url)
    index = await GraphIndex.open(evaluation.project)

    async def wrapped(question: str) -> SearchResult:
        return await index.search("basic", question)

    runner = EvaluationRunner(
        EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml"),
        ScriptedJudge(),
        methods={"wrapped": wrapped},
    )
    by_search = await runner.evaluate_single("clock", ROWS[0]["question"], "x", "basic")
    by_function = await runner.evaluate_single("clock", ROWS[0]["question"], "x", "wrapped")
    assert by_function.efficiency.llm_calls == by_search.efficiency.llm_calls == 1
    assert by_function.efficiency.tokens == by_search.efficiency.tokens


def test_controls_are_shown_the_same_but_for_the_context(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["closed_book", "oracle"])
    evaluation.write_rows([{**ROWS[0], "evidence": ["Idris {Vane} | built it."]}, ROWS[1]])
    seen: list[list[dict[str, str]]] = []
    reply = server.behaviour.reply

    def watch(request: dict[str, object]) -> str:
        seen.append(request["messages"])
        return "Idris Vane" if "Idris {" in str(request) else reply(request)

    server.behaviour = type(server.behaviour)(watch)
    result = evaluation.done("--skip-judge", COLUMNS="200")
    assert "oracle is not asked 1 of the 2 questions" in " ".join(result.output.split())
    counts = evaluation.read_results("summary")["counts"]
    assert (counts["oracle"]["n"], counts["closed_book"]["n"]) == (1, 2)
    methods = evaluation.read_results()["results"][0]["methods"]
    assert methods["oracle"]["response"] == "Idris Vane"
    assert methods["closed_book"]["efficiency"]["llm_calls"] == 1
    asked = [messages for messages in seen if messages[1]["content"] == ROWS[0]["question"]]
    closed, oracle = sorted(asked, key=lambda messages: len(messages[0]["content"]))
    assert closed[1] == oracle[1] == {"role": "user", "content": ROWS[0]["question"]}
    assert "Idris {Vane} | built it." in oracle[0]["content"]
    assert "Idris" not in closed[0]["content"]


def test_equal_terms_hold_for_every_method(evaluation):
    terms = {"response_type": "Single sentence", "max_context_tokens": 700}
    evaluation.configure(methods=["tog", "local", "basic", WIDE], equal_terms=terms)
    evaluation.done("--limit", "1", "-q", "--skip-judge")
    (run,) = evaluation.runs()
    for described in run.setup.indexes["clock"].values():
        assert described["options"]["response_type"] == "Single sentence"
        assert described["settings"]["max_context_tokens"] == 700
    assert evaluation.read_results("summary")["metadata"]["equal_terms"] == terms
    drifting = {"name": "drifting", "method": "drift"}
    for terms, is_named in ((True, True), (None, False)):
        evaluation.configure(methods=["basic", drifting], equal_terms=terms)
        shown = " ".join(evaluation.run("--dry-run", COLUMNS="200").output.split())
        assert ("equal terms give drifting the form of the answer alone" in shown) is is_named
        assert "give basic" not in shown


def test_a_dry_run_bounds_the_calls_that_have_a_bound(evaluation, own):
    n = len(ROWS)
    function = {"name": "own", "function": f"{own}:text"}
    no_bound = "Search calls: not bounded by the settings"
    for methods, bound in (
        *((["basic", each], no_bound) for each in ("drift", "global", function)),
        (["basic"], f"at most {n} completions and {n} embeddings"),
        (["agentic"], f"at most {3 * n} completions and {3 * n} embeddings"),
    ):
        evaluation.configure(methods=methods)
        assert bound in " ".join(evaluation.run("--dry-run").output.split()), methods
