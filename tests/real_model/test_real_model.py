"""A real language model, small and rude: whatever it writes, the run is whole and honest."""

import json
import subprocess
import sys
from pathlib import Path

from support.clock_evaluation import Evaluation
from support.llama_server import SETTINGS, RealModel
from support.openai_server import Json
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.eval.store.database import EvaluationStore
from graphrag.query.client.usage import Usage, sum_usages


def read(evaluation: Evaluation, name: str) -> Json:
    path = evaluation.output / f"eval_results_{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def kept_usage(evaluation: Evaluation) -> tuple[Usage, Usage]:
    """Return what the store says that searches and verdicts cost, over all runs."""
    with EvaluationStore(evaluation.store_path) as store:
        runs = [run.run_id for run in store.runs()]
        searches = [r.usage for run in runs for r in store.responses(run).values()]
        verdicts = [u for run in runs for each in store.judge_usage(run).values() for u in each]
    return sum_usages(searches), sum_usages(verdicts)


def check_honest(evaluation: Evaluation, model: RealModel) -> None:
    """Check a run's files against what the server answered."""
    searches, verdicts = kept_usage(evaluation)
    asked = sum_usages([searches, verdicts])
    assert asked.llm_calls - asked.failed_calls == len(model.answered())
    assert asked.prompt_tokens == sum(call.prompt_tokens for call in model.calls)
    assert asked.output_tokens == sum(call.completion_tokens for call in model.calls)
    cut = sum(call.finish_reason == "length" for call in model.answered())
    assert asked.cut_replies == cut
    assert all(call.request.get("max_tokens") for call in model.calls)
    for call in model.answered():
        assert call.completion_tokens <= call.request["max_tokens"]

    summary = read(evaluation, "summary")
    assert summary["metadata"]["is_complete"]
    for method, counts in summary["counts"].items():
        assert counts["n"] == 1
        assert summary["efficiency"][method]["avg_latency"] is None or (
            summary["efficiency"][method]["avg_latency"] > 0
        )
    (question,) = read(evaluation, "detailed")["results"]
    for found in question["methods"].values():
        for metric in ("correctness", "completeness"):
            state, score = found["states"][metric], found["scores"][metric]
            assert state in ("scored", "search_failed", "judge_unparseable")
            assert (score is None) == (state == "judge_unparseable")
            if state == "search_failed":
                assert (score, bool(found["failure"])) == (0, True)


def test_a_run_is_complete_counted_and_honest_and_can_be_judged_again(evaluation, model):
    result = evaluation.run("--full")
    assert result.exit_code in (0, 3), result.output
    assert "Efficiency of the searches" in result.output
    check_honest(evaluation, model)

    run = read(evaluation, "detailed")["metadata"]["run_id"]
    n_calls, (searches, _) = len(model.calls), kept_usage(evaluation)
    judged = CliRunner().invoke(
        app, ["eval", "judge", run, "--root", str(evaluation.root), "--metrics", "correctness"]
    )
    assert judged.exit_code in (0, 3), judged.output
    _, verdicts = kept_usage(evaluation)
    assert verdicts.llm_calls + searches.llm_calls >= n_calls
    assert verdicts.output_tokens + searches.output_tokens == sum(
        call.completion_tokens for call in model.calls
    )


def test_a_tog_query_answers_or_says_in_one_sentence_why_not(evaluation, model):
    result = CliRunner().invoke(
        app, ["query", "Who built the clock?", "--method", "tog", "--root", str(evaluation.project)]
    )
    assert "Traceback" not in result.output
    assert {call.request["max_tokens"] > 0 for call in model.calls} == {True}
    if result.exit_code:
        assert "cut off" in result.output or "could not be read" in result.output


def test_an_index_is_built_or_refused_by_name(model, tmp_path):
    """A model of this size finds few entities, if any: without one the release builds no index."""
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "tale.txt").write_text("Idris Vane lives in Ashcombe.", encoding="utf-8")
    settings = SETTINGS.replace("BASE", model.base_url)
    bounded = settings.replace("    retry:", "    call_args: {max_tokens: 60}\n    retry:")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "short.txt").write_text(
        "List the {entity_types} of the text, one a line, as "
        '("entity"<|>NAME<|>TYPE<|>DESCRIPTION)##\nText: {input_text}\n("entity"<|>',
        encoding="utf-8",
    )
    bounded = bounded.replace("extract_graph: {", "extract_graph: {prompt: prompts/short.txt, ")
    (tmp_path / "settings.yaml").write_text(bounded, encoding="utf-8")

    # A process of its own: the release leaves its event loop open.
    command = [Path(sys.executable).with_name("graphrag"), "index", "--root", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)

    assert model.answered()
    assert all(call.completion_tokens <= 60 for call in model.answered())
    built = (tmp_path / "output" / "entities.parquet").exists()
    said = result.stdout + result.stderr
    assert built == (result.returncode == 0), said
    assert built or "No entities detected" in said
