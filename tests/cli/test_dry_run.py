"""What a dry run expects, held against what the run then takes."""

import re

import pytest
from support.clock_evaluation import Evaluation, flat
from support.projects import server_settings

from graphrag.eval.store.database import EvaluationStore

METHODS = ["tog", "ppr", "bm25", "local", "basic"]
WITHIN = 1.3


def reckoned(evaluation: Evaluation, *flags: str) -> tuple[int, int, str]:
    """Return the prompt tokens that are expected, the most, and the whole text."""
    said = flat(evaluation.done("--dry-run", *flags, COLUMNS="200").stdout)
    numbers = re.findall(r"(?:Expected|Prompt tokens): about ([\d,]+)", said)
    expected, most = (int(number.replace(",", "")) for number in numbers)
    return expected, most, said


def taken(evaluation: Evaluation) -> int:
    """Return the prompt tokens of the newest run, of searches and judge."""
    evaluation.done("--quiet")
    run_id = evaluation.runs()[0].run_id
    with EvaluationStore(evaluation.store_path) as store:
        judged = [usage for of in store.judge_usage(run_id).values() for usage in of]
    searched = [each.usage for each in evaluation.responses()]
    return sum(usage.prompt_tokens for usage in (*searched, *judged))


@pytest.mark.parametrize("budget", [200, 2_000])
def test_what_is_expected_is_what_a_run_takes(make_evaluation, budget):
    evaluation = make_evaluation(
        methods=METHODS, equal_terms={"max_context_tokens": budget}, metrics=["faithfulness"]
    )
    expected, most, said = reckoned(evaluation)
    assert "answers have 100 tokens. Most:" in said
    n = taken(evaluation)
    assert n / WITHIN < expected < WITHIN * n
    assert n <= most
    assert reckoned(evaluation) == (expected, most, said), "an earlier run changes nothing"


def test_contexts_of_an_index_that_is_not_built_are_expected_to_be_full(make_evaluation):
    evaluation = make_evaluation(methods=METHODS)
    built, most, _ = reckoned(evaluation)
    (evaluation.project / "output").rename(evaluation.project / "aside")
    expected, same, said = reckoned(evaluation, "--index")
    assert "Contexts of it are expected to be full." in said
    assert built < expected < most == same


def test_the_judges_replies_are_paid_for(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"])

    def dollars(*flags: str) -> float:
        found = re.search(r"Dollars: at most about ([\d.]+)", reckoned(evaluation, *flags)[2])
        assert found is not None
        return float(found[1])

    asked = dollars()
    evaluation.configure(judge={"max_output_tokens": 5_000})
    assert dollars() - asked == pytest.approx(6 * 4 * 4_000 * 10 / 1e6, abs=0.02)


def test_a_judge_whose_name_may_be_a_misspelled_key_is_told(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    evaluation.configure(judge={"model": "default_completion_modle"})
    told = evaluation.done("--dry-run", COLUMNS="400").output
    assert "completion_models has no default_completion_modle, so" in flat(told)
    evaluation.configure(judge={"model": "gpt-5.1"})
    assert "completion_models has no" not in flat(evaluation.done("--dry-run").output)


def test_a_limit_is_proposed_only_where_each_price_is_known(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic", "drift"])
    bounds = "--max-cost bounds what calls to the models below cost."
    assert bounds in flat(evaluation.done("--dry-run").stdout)
    evaluation.configure(judge={"model": "somebodys-model"})
    said = flat(evaluation.done("--dry-run").stdout)
    assert "openai/somebodys-model: price not known" in said
    assert bounds not in said
    assert "--max-cost needs the price of each model, and --limit bounds the cost without." in said


def test_what_long_calls_cost_is_told_and_reckoned(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"])

    def dollars(model: str) -> tuple[float, str]:
        settings = server_settings(server.base_url, model)
        evaluation.write_settings(f"{settings}basic_search: {{max_context_tokens: 300000}}\n")
        said = reckoned(evaluation)[2]
        found = re.search(r"Dollars: at most about ([\d.]+)", said)
        assert found is not None
        return float(found[1]), said

    usd, said = dollars("gpt-5.4")
    assert (
        "gpt-5.4: $2.5 a million prompt tokens, $15 a million output tokens; $5 a million prompt "
        "tokens, $22.5 a million output tokens of calls with more than 272,000 prompt tokens"
    ) in said
    # As long as the settings allow, a search and two of its verdicts read so much.
    assert usd > 6 * 3 * 300_000 * 5e-6
    assert "of calls with more" not in dollars("gpt-4o")[1]
