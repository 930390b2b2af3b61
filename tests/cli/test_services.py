"""Runs against services that are not OpenAI: they go on without what is refused, or stop early."""

from collections.abc import Callable

import pandas as pd
import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation, flat, in_process
from support.openai_server import Behaviour, Fault, Json, LocalServer, offline_reply
from support.projects import server_settings
from support.services import REFUSING, THOUGHT, Service

Refusal = Callable[[Json], Fault | None]


def serve(server: LocalServer, service: Service) -> int:
    """Have the server play a service; return how many requests it had before."""
    server.behaviour = Behaviour(service.reply(), faults=service.plan)
    return len(server.records)


@pytest.fixture
def both(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    return make_evaluation(server.base_url, methods=["tog", "basic"], concurrency=2)


def test_a_run_goes_on_without_what_is_refused_and_says_so_beside_its_verdicts(both, server):
    serve(server, REFUSING["everything at once"])
    told = flat(both.done().output)
    assert told.count("temperature is left out") == 1, "of the judge and all methods alike"
    assert "The model of the judge, tog and basic refuses parameters" in told
    assert "the form of a reply is asked for in words" in told
    metadata = both.read_results()["metadata"]
    assert metadata["is_complete"]
    assert "temperature" in metadata["refused_parameters"]["judge"]
    assert "json_schema" in metadata["refused_parameters"]["tog"]
    shown = flat(in_process("show", "latest", "--root", str(both.root)).output)
    assert "The model of the judge, tog and basic refuses parameters" in shown


def test_an_index_is_built_without_what_is_refused(tmp_path, server):
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "a.txt").write_text("Oswin Tarrant built the Swallow in Ashby.")
    (tmp_path / "settings.yaml").write_text(server_settings(server.base_url))
    assert in_process("init", "--root", str(tmp_path)).exit_code == 0
    dataset = tmp_path / "eval" / "questions.csv"
    dataset.write_text("question,answer\nWho built the Swallow?,Oswin Tarrant\n")
    refuse = REFUSING["everything at once"].refuse
    serve(server, Service(refuse, lambda answer: f"<think>{THOUGHT}</think>{answer}"))
    words = ("--index", "--methods", "tog", "--metrics", "none", "--root", str(tmp_path))
    done = in_process(*words)
    assert done.exit_code == 0, done.output
    reports = pd.read_parquet(tmp_path / "output" / "community_reports.parquet")
    entities = pd.read_parquet(tmp_path / "output" / "entities.parquet")
    assert len(reports)
    assert len(entities)
    assert "zzthought" not in f"{reports.to_dict()} {entities.to_dict()}"


def test_a_build_that_no_service_answers_says_what_to_check(tmp_path, server):
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "a.txt").write_text("Oswin Tarrant built the Swallow in Ashby.")
    (tmp_path / "settings.yaml").write_text(server_settings(server.base_url))
    assert in_process("init", "--root", str(tmp_path)).exit_code == 0
    dataset = tmp_path / "eval" / "questions.csv"
    dataset.write_text("question,answer\nWho built the Swallow?,Oswin Tarrant\n")
    serve(server, Service(lambda _: Fault(404, raw="<html><body>Not Found</body></html>")))
    done = in_process("--index", "--root", str(tmp_path))
    assert done.exit_code == 1, done.output
    assert "Check model, api_base and api_key in" in flat(done.output)


@pytest.mark.parametrize("who", ["tog", "the judge"])
def test_what_would_be_refused_every_time_stops_early(both, server, who):
    of_judge = who == "the judge"
    words = "Everything inside the JSON object" if of_judge else "look_up"
    no = Fault(400, message="This model is not for you.")
    begun = serve(server, Service(lambda r: no if words in str(r["messages"]) else None))
    both.configure(trials=5)
    said = flat(both.done(code=1).output)
    assert f"requests of {who} in the same way and answered none" in said
    assert "check call_args under completion_models in settings.yaml" in said
    assert "begin a new run with" in said
    refused = sum(record.status == 400 for record in server.records[begun:])
    assert 10 <= refused <= 60, "ten, what was in flight, and what was asked again without a form"


@pytest.mark.parametrize("flags", [(), ("--quiet",)])
def test_a_method_of_which_every_search_failed_leaves_the_run_incomplete(both, server, flags):
    fail = Fault(content="I would rather not.")
    serve(server, Service(lambda r: fail if '"missing"' in str(r["messages"]) else None))
    done = both.done(*flags, code=3)
    assert "tog" in done.stderr
    if flags:
        assert "Every search of tog failed, e.g. ToGSearchError" in flat(done.stderr)
    server.behaviour = Behaviour(offline_reply())
    both.done("--retry-errors")
