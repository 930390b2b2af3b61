"""Faithfulness claim by claim: one false claim does not hide behind a right whole."""

import json

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat
from support.openai_server import Behaviour, Fault, Json, LocalServer, Record, offline_reply

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.scheduler import Work
from graphrag.eval.store.session import unkept_session
from graphrag.eval.testing import ScriptedJudge

DONE, INCOMPLETE = 0, 3
ANSWER = (
    "Vane built the clock [Data: Sources (0)]. Petra Holm paid for it, and\nTobias Reed did too "
    "[Data: Sources (0)]. It stopped in the flood. Crowe is a smuggler. [Data: Sources (0, 1)]"
)
CLAIMS = {
    "1": ["Vane built the clock."],
    "2": ["Petra Holm paid for the clock.", "Tobias Reed paid for the clock."],
    "3": ["The clock stopped in the flood.", "The flood came at night."],
    "4": ["Crowe is a smuggler."],
}
RULED: dict[str, tuple[str, list[str]]] = {
    "1": ("supported", ["Sources (0)"]),
    "2": ("supported", ["Sources (0)"]),
    "3": ("contradicted", ["Sources (0)"]),
    "4": ("supported", ["Sources (0)"]),
    "5": ("supported", ["Sources (0)", "Sources (77)"]),
    "6": ("supported", ["Sources (0)"]),
}


def material(request: Json) -> Json:
    shown = "".join(str(each["content"]) for each in request.get("messages", ())[:1])
    _, found, text = shown.rpartition("Material:\n")
    return json.loads(text) if found else {}


def kind(request: Json) -> str:
    shown = material(request)
    return "split" if "sentences" in shown else "rule" if "claims" in shown else ""


def replies(*skipped: str):
    """Answer all searches alike and rule on six claims; the first reply skips some."""
    offline = offline_reply()

    def reply(request: Json) -> str:
        shown, left = material(request), set(skipped)
        if kind(request) == "split":
            entries = [{"number": int(n), "claims": CLAIMS[n]} for n in shown["sentences"]]
            return json.dumps({"sentences": entries})
        if kind(request) == "rule":
            numbers = [n for n in shown["claims"] if len(shown["claims"]) < 6 or n not in left]
            ruled = [
                {"number": int(n), "texts": RULED[n][1], "ruling": RULED[n][0]} for n in numbers
            ]
            return json.dumps({"claims": ruled})
        return offline(request) if "response_format" in request else ANSWER

    return reply


def asked(records: list[Record], what: str) -> list[Json]:
    return [
        material({"messages": r.messages})
        for r in records
        if kind({"messages": r.messages}) == what
    ]


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    server.behaviour = Behaviour(replies())
    by_claim = {"faithfulness": {"by": "claim"}}
    made = make_evaluation(server.base_url, methods=["basic"], judge=by_claim)
    made.write_rows(ROWS[:1])
    return made


def test_one_false_claim_of_six_is_named(evaluation, server):
    server.behaviour = Behaviour(replies("4", "6"))
    dry = evaluation.run("--dry-run", COLUMNS="200")
    assert "Judge calls: 5, retries aside" in flat(dry.output)
    before = len(server.records)
    result = evaluation.done(COLUMNS="200")
    records = server.records[before:]
    assert evaluation.count_calls() == len(records)
    (split,), (whole, left) = asked(records, "split"), asked(records, "rule")
    assert list(split["sentences"]) == ["1", "2", "3", "4"]
    assert "Data:" not in str(split["sentences"])
    assert (list(whole["claims"]), list(left["claims"])) == (
        ["1", "2", "3", "4", "5", "6"],
        ["4", "6"],
    )

    (found,) = evaluation.read_results()["results"]
    basic = found["methods"]["basic"]
    assert basic["scores"]["faithfulness"] == 0
    assert basic["reasons"]["faithfulness"] == (
        'Not supported: 1 of 6 claims (contradicted: "Tobias Reed paid for the clock.").'
    )
    summary = evaluation.read_results("summary")
    assert summary["claims"]["basic"] == {
        "supported": {**summary["claims"]["basic"]["supported"], "mean": 5 / 6, "n": 1},
        **{"n_without": 0, "n_unscored": 0, "n_claims": 6, "n_contradicted": 1, "n_not_found": 0},
        **{"n_citations": 4, "n_misplaced": 1},
    }
    assert "83.3" in result.output
    assert "4           1" in result.output
    shown = evaluation.run("show", "--question", "q1", COLUMNS="200").output
    assert "contradicted: Tobias Reed paid for the clock. [Sources (0)]" in flat(shown)
    assert "misplaced citation: Sources (1) in: Crowe is a smuggler." in flat(shown)


@pytest.mark.parametrize(
    ("at", "fault"),
    [
        ("split", Fault(content="What claims?")),
        ("rule", Fault(content='{"claims": [{"number": 1, "ruling": "true"}]}')),
        ("rule", Fault(content='{"claims": [{"number": 1', ramble=True)),
    ],
)
def test_what_the_judge_does_not_rule_on_has_no_score_and_is_asked_again_alone(
    evaluation, server, at, fault
):
    faults = lambda _, request: fault if kind(request) == at else None  # noqa: E731
    server.behaviour, first = Behaviour(replies(), faults), len(server.records)
    evaluation.done(code=INCOMPLETE)
    (found,) = evaluation.read_results()["results"]
    assert found["methods"]["basic"]["scores"]["faithfulness"] is None
    assert found["methods"]["basic"]["states"]["faithfulness"] == "judge_unparseable"
    claims = evaluation.read_results("summary")["claims"]["basic"]
    assert (claims["supported"]["mean"], claims["n_unscored"], claims["n_claims"]) == (None, 1, 0)
    server.behaviour, before = Behaviour(replies()), len(server.records)
    evaluation.done("--resume", "--retry-errors")
    assert [kind({"messages": r.messages}) for r in server.records[before:]] == ["split", "rule"]
    (found,) = evaluation.read_results()["results"]
    assert found["methods"]["basic"]["scores"]["faithfulness"] == 0
    assert evaluation.count_calls() == len(server.records) - first


def test_a_run_that_is_stopped_between_the_two_calls_pays_nothing_twice(evaluation, server):
    refuse = lambda _, request: Fault(status=401) if kind(request) == "rule" else None  # noqa: E731
    server.behaviour = Behaviour(replies(), refuse)
    before = len(server.records)
    assert evaluation.run().exit_code not in (DONE, INCOMPLETE)
    server.behaviour = Behaviour(replies())
    evaluation.done("--resume")
    records = [r for r in server.records[before:] if r.status == 200]
    assert len({r.request_sha256 for r in records}) == len(records)
    assert len(asked(records, "split")) == len(asked(records, "rule")) == 1


def test_an_answer_without_claims_has_no_share_and_no_verdict(evaluation, server):
    empty = lambda _, request: (  # noqa: E731
        Fault(content=json.dumps({"sentences": [{"number": n, "claims": []} for n in range(1, 5)]}))
        if kind(request) == "split"
        else None
    )
    server.behaviour = Behaviour(replies(), empty)
    before = len(server.records)
    evaluation.done()
    assert not asked(server.records[before:], "rule")
    (found,) = evaluation.read_results()["results"]
    assert found["methods"]["basic"]["scores"]["faithfulness"] is None
    assert found["methods"]["basic"]["reasons"]["faithfulness"] == "Nothing to judge: no claims"
    claims = evaluation.read_results("summary")["claims"]["basic"]
    assert (claims["supported"]["mean"], claims["supported"]["n"]) == (None, 0)
    assert claims["n_without"] == 1


def test_runs_by_response_and_by_claim_are_other_runs(evaluation):
    evaluation.run()
    evaluation.configure(judge={})
    refused = evaluation.run("--resume")
    assert "metrics.faithfulness.by" in refused.output
    evaluation.run()
    compared = evaluation.run("compare", *[r.run_id for r in evaluation.runs()], COLUMNS="300")
    assert "faithfulness: by claim -> by response" in flat(compared.output)


async def test_a_judge_of_ones_own_is_refused_before_anything_is_asked(tmp_path):
    given = {"root": tmp_path, "judge": {"faithfulness": {"by": "claim"}}}
    config = EvaluationConfig(**given)
    runner = EvaluationRunner(config, ScriptedJudge(), {})
    refused = pytest.raises(ConfigError, match="ScriptedJudge, can't judge claim by claim")
    with unkept_session() as session, refused:
        await runner.run(Work(config, [], session))
