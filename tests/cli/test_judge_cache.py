"""Replies of a judge taken from earlier runs, counted by the server that would have been asked."""

from typing import Any

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat
from support.openai_server import Behaviour, Fault, LocalServer, Record, offline_reply

SEARCHES = "Role"  # of a search's own instructions, and of no judge's


def split(records: list[Record]) -> tuple[int, int]:
    """Return how many calls searched and how many judged."""
    searching = sum(f"---{SEARCHES}---" in str(r.messages) for r in records)
    return searching, len(records) - searching


def ask(evaluation: Evaluation, server: LocalServer, *flags: str) -> tuple[int, int]:
    before = len(server.records)
    result = evaluation.run(*flags)
    assert result.exit_code in (0, 3), result.output
    return split(server.records[before:])


@pytest.fixture
def cached(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    made = make_evaluation(server.base_url, methods=["bm25"], judge={"cache": True})
    made.write_rows(ROWS[:2])
    return made


def summary(evaluation: Evaluation) -> Any:
    return evaluation.read_results("summary")


def test_what_was_judged_before_is_not_asked_again_and_searches_are(cached, server):
    searches, judgings = ask(cached, server)
    assert judgings == 8
    first = summary(cached)
    assert ask(cached, server) == (searches, 0)
    again = summary(cached)
    assert again["by_method"] == first["by_method"]
    efficiency = again["efficiency"]["bm25"]
    assert (efficiency["judge_reused_replies"], efficiency["judge_calls"]) == (8, 0)
    assert efficiency["judge_cost_usd"] == 0
    assert again["metadata"]["embedded_models"] == first["metadata"]["embedded_models"]
    told = cached.run("show", "latest", "--full").output
    assert "8 replies of the judge come from earlier runs" in flat(told)
    compared = flat(cached.run("compare", *(run.run_id for run in cached.runs()[:2])).output)
    assert "8 replies of the judge from earlier runs" in compared
    # The further judges go the same way.
    cached.configure(judge={"cache": True, "quality": True})
    assert ask(cached, server)[1] == 2
    assert ask(cached, server)[1] == 0
    assert summary(cached)["further_judges"]["reused_replies"] == 2


@pytest.mark.parametrize(
    "change", [{"temperature": 0.5}, {"model": "openai/gpt-4.1"}, {"cache": False}]
)
def test_what_is_asked_otherwise_is_asked(cached, server, change):
    ask(cached, server)
    cached.configure(judge={"cache": True, **change})
    assert ask(cached, server)[1] == 8


def test_repeats_take_a_reply_each(cached, server):
    ask(cached, server)
    cached.configure(judge={"cache": True, "repeats": 3})
    assert ask(cached, server)[1] == 16  # one of three is there
    assert ask(cached, server)[1] == 0
    cached.configure(judge={"cache": True, "repeats": 5})
    assert ask(cached, server)[1] == 16


def test_a_reply_that_could_not_be_read_is_not_kept(cached, server):
    def garble(_: int, request: dict[str, Any]) -> Fault | None:
        is_search = f"---{SEARCHES}---" in str(request["messages"])
        return None if is_search else Fault(content="no verdict")

    server.behaviour = Behaviour(offline_reply(), garble)
    ask(cached, server)
    server.behaviour = Behaviour(offline_reply())
    assert ask(cached, server)[1] == 8


def test_an_interrupted_run_takes_what_it_took_and_no_more(cached, server):
    ask(cached, server)
    cached.write_rows(ROWS[:4])
    judged = ask(cached, server, "--max-cost", "0.012")[1]
    rest = ask(cached, server, "--resume")[1]
    assert judged + rest == 8
    assert rest > 0
    efficiency = summary(cached)["efficiency"]["bm25"]
    assert (efficiency["judge_reused_replies"], efficiency["judge_calls"]) == (8, 8)


def test_a_run_that_keeps_nothing_has_no_cache(make_evaluation):
    made = make_evaluation(judge={"cache": True}, output={"save_intermediate": False})
    result = made.done(code=2)
    assert "judge.cache needs" in flat(result.output)
