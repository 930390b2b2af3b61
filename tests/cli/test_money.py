"""What a run spends under ``--max-cost``, held against the bill of a server that counts."""

import re
import shutil

import pytest
from support.clock_evaluation import ROWS, flat
from support.openai_server import Behaviour, Fault, Record, offline_reply
from support.projects import server_settings

from graphrag.query.client.model_prices import model_price
from graphrag.query.client.rate_limit import Spending

USAGE, INCOMPLETE = 2, 3


def bill(records: list[Record]) -> float:
    """Return the dollars of requests, by the price of the model that each names."""
    total = 0.0
    for record in records:
        price = model_price(f"openai/{record.model}")
        assert price is not None
        total += record.prompt_tokens * price.prompt_usd
        total += record.completion_tokens * price.output_usd
    return total


def spent_of(output: str) -> float:
    found = re.search(r"\$(\d+\.\d+) of the allowed", flat(output))
    assert found is not None, output
    return float(found[1])


@pytest.mark.parametrize("concurrency", [1, 16])
def test_what_is_spent_is_said_and_no_more_than_allowed(make_evaluation, server, concurrency):
    server.behaviour = Behaviour(offline_reply(), latency_s=0.02)
    evaluation = make_evaluation(
        server.base_url, methods=["tog", "basic"], concurrency=concurrency, judge={"rubric": True}
    )
    before, cap = len(server.records), 0.01
    result = evaluation.done("--max-cost", f"{cap}", code=INCOMPLETE)
    sent = server.records[before:]
    dearest = max(bill([record]) for record in sent)
    assert bill(sent) > 0
    assert bill(sent) <= cap + dearest  # what is in flight is waited for where it may be too much
    assert spent_of(result.output) == pytest.approx(bill(sent), abs=5e-5)
    # The line that it prints goes on, and asks nothing again that was answered.
    more = re.search(r"Continue with: .*--max-cost (\S+)", flat(result.output))
    assert more is not None
    before = len(server.records)
    again = evaluation.run("--resume", "--max-cost", more[1])
    assert len(server.records) > before
    assert bill(server.records[before:]) + bill(sent) <= float(more[1]) + concurrency * dearest
    assert spent_of(again.output) > spent_of(result.output)


@pytest.mark.parametrize(("tier", "times"), [("priority", 1.7), ("flex", 1), ("auto", 1)])
def test_a_service_tier_costs_what_its_provider_takes(make_evaluation, server, tier, times):
    """The prices are those of gpt-4o; litellm's map knows none of its flex tier."""
    evaluation = make_evaluation(server.base_url, methods=["closed_book"])
    more = f"    call_args: {{service_tier: {tier}}}"
    evaluation.write_settings(server_settings(server.base_url, model_extra=more))
    dry = flat(evaluation.done("--dry-run", COLUMNS="200").stdout)
    assert f"openai/gpt-4o ({tier}): ${2.5 * times:g} a million prompt tokens" in dry
    before = len(server.records)
    evaluation.done()
    bill_usd = times * bill(server.records[before:])
    about = evaluation.read_results("summary")
    assert about["metadata"]["cost_usd"] == pytest.approx(bill_usd, rel=1e-9)
    (response, *_) = evaluation.responses()
    assert response.usage.cost_usd == pytest.approx(
        times * (response.usage.prompt_tokens * 2.5e-6 + response.usage.output_tokens * 1e-5)
    )
    spending, call = Spending(1.0), ("completion", "openai/gpt-4o", 1_000)
    assert spending.estimate_usd(*call, tier) == times * spending.estimate_usd(*call)


def test_a_stopped_runs_figures_add_up_to_the_bill(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["tog", "basic"], concurrency=3)
    before = len(server.records)
    evaluation.run()
    before, whole = len(server.records), bill(server.records[before:])
    result = evaluation.done("--max-cost", f"{0.6 * whole}", code=INCOMPLETE)
    about = evaluation.read_results("summary")["metadata"]
    assert 0 < about["n_done"] < about["n_planned"]
    paid = about["cost_usd"] + about["unfinished_answers"]["cost_usd"]
    assert paid == pytest.approx(bill(server.records[before:]), abs=5e-5)
    said = flat(result.output)
    assert "are of answers that are not finished" in said
    assert re.search(r"The run took .* tokens and \$(\d+\.\d+)\.", said)[1] == f"{paid:.4f}"
    assert f"${paid:.4f} of the allowed" in said
    # What is named next goes on, now and when the run is shown later: by the same limit none would.
    for shown in (result, evaluation.run("show", evaluation.runs()[0].run_id)):
        more = re.search(r"Next: get what is missing: .*--max-cost (\S+)", flat(shown.output))
        assert more is not None
        assert float(more[1]) > whole


def test_an_allowance_below_one_call_asks_nothing_and_says_what_one_takes(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["closed_book"])
    before = len(server.records)
    result = evaluation.done("--max-cost", "0.0001", code=INCOMPLETE)
    said = flat(result.output)
    assert "$0.0000 of the allowed $0.0001 is spent in all, and the next call takes about" in said
    assert len(server.records) == before
    more = re.search(r"--max-cost (\S+)", said.partition("Continue with: ")[2])
    assert more is not None
    evaluation.run("--resume", "--max-cost", more[1])
    assert len(server.records) > before


def test_calls_that_get_no_reply_count_as_they_may_be_billed(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["closed_book"], concurrency=1)
    brief = server_settings(server.base_url, model_extra="    call_args: {timeout: 0.2}")
    evaluation.write_settings(brief)
    server.behaviour = Behaviour(offline_reply(), lambda *_: Fault(hang_s=5))
    before = len(server.records)
    result = evaluation.run("--max-cost", "0.01", "--skip-judge")
    said = flat(result.output)
    assert "$0.0000 of the allowed $0.01 is spent in all, calls without a reply may" in said
    assert len(server.records) - before <= 5


def test_a_dry_run_says_of_an_index_that_is_not_built_what_is_known(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic", "tog"])
    before = len(server.records)
    shutil.rmtree(evaluation.project / "output")
    evaluation.done("--dry-run", code=USAGE)
    result = evaluation.done("--dry-run", "--index", COLUMNS="200")
    said = flat(result.output)
    assert "Searches: 12" in said
    assert "Index clock is not built, and building it is not in these figures. " in said
    assert len(server.records) == before
    assert not (evaluation.project / "output").exists()
    assert not evaluation.output.exists()


def test_a_dry_run_of_two_indexes_says_once_what_it_says_of_both(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic", "closed_book"])
    shutil.copytree(evaluation.project, evaluation.root / "town")
    evaluation.configure(indexes={"clock": "./clock", "town": "./town"})
    evaluation.write_rows([{**ROWS[0], "id": key, "imdb_key": key} for key in ("clock", "town")])
    for name in ("clock", "town"):
        (evaluation.root / name / "output" / "index_cost.json").unlink()
    said = evaluation.done("--dry-run", COLUMNS="80").stdout
    assert re.search("^closed_book ", said, re.MULTILINE), "the name is broken"
    assert "What indexes clock and town took to build is not known; " in flat(said)
    for name in ("clock", "town"):
        shutil.rmtree(evaluation.root / name / "output")
    said = flat(evaluation.done("--dry-run", "--index", COLUMNS="80").stdout)
    assert "Indexes clock and town are not built, and building them is not in these" in said
    assert said.count("--max-cost does not bound it.") == 1
