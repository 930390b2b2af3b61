"""``graphrag eval`` from its flags to its exit code and its one sentence."""

import contextlib
import json
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing

import pytest
from click.testing import Result
from support.clock_evaluation import ROWS, Evaluation, flat
from support.lighthouse import SpiedServer
from support.openai_server import Fault, LocalServer
from support.projects import OFFLINE_SETTINGS, server_settings

from graphrag.eval.runner.index_building import is_built
from graphrag.eval.store.database import EvaluationStore

DONE, ERROR, USAGE, INCOMPLETE = 0, 1, 2, 3


@pytest.fixture
def watched(server: LocalServer) -> SpiedServer:
    return SpiedServer(server)


def sentence(result: Result) -> str:
    """Return the output as one line, after checking that no traceback is in it."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert "Traceback" not in result.output
    return flat(result.output)


def test_the_tokens_of_a_dry_run_are_enough_for_a_run(make_evaluation):
    small = {"max_context_tokens": 300}
    evaluation = make_evaluation(
        methods=[
            {"name": "b", "method": "basic", **small},
            {"name": "l", "method": "local", **small},
            {"name": "t", "method": "ppr", **small},
            "closed_book",
            "oracle",
        ],
        max_output_tokens=200,
    )
    evaluation.write_rows([{**row, "evidence": ["The town of Ashcombe"]} for row in ROWS[:2]])
    evaluation.write_settings(OFFLINE_SETTINGS + "ppr_search: {max_answer_tokens: 200}\n")
    reckoned: dict[str, int] = {}  # what each kind of call adds to the number
    before = 0
    judge: dict[str, object] = {"repeats": 3}
    for kind in ("search", "verdict", "rubric", "quality", "pairwise"):
        if kind not in ("search", "verdict"):
            judge[kind] = True
        evaluation.configure(judge=judge)
        flags = ("--skip-judge",) if kind == "search" else ()
        shown = sentence(evaluation.run("--dry-run", *flags))
        (said,) = re.findall(r"Prompt tokens: about ([\d,]+) if every context and answer", shown)
        reckoned[kind] = int(said.replace(",", "")) - before
        before += reckoned[kind]
    evaluation.done("-q")
    used: Counter[str] = Counter()
    with EvaluationStore(evaluation.store_path) as store:
        run_id = store.runs()[0].run_id
        for found in store.responses(run_id).values():
            used["search"] += found.usage.prompt_tokens
        for usages in store.judge_usage(run_id).values():
            used["verdict"] += sum(usage.prompt_tokens for usage in usages)
        for judged in store.judgements(run_id):
            used[judged.kind.partition(":")[0]] += judged.usage.prompt_tokens
    assert set(used) == set(reckoned)
    for kind, tokens in used.items():
        assert 0.15 * reckoned[kind] < tokens <= reckoned[kind], kind


def judge_by_older_prompts(evaluation: Evaluation) -> None:
    """Make the stored run one that another release began, with other prompts of quality."""
    with closing(sqlite3.connect(evaluation.store_path)) as db, db:
        (setup,) = db.execute("SELECT setup FROM runs").fetchone()
        older = json.loads(setup)
        older["further"]["quality"]["version"] -= 1
        db.execute("UPDATE runs SET setup = ?", (json.dumps(older),))


CHANGES: list[tuple[Callable[[Evaluation], object], str]] = [
    (lambda e: e.configure(methods=["basic", "local"]), "methods.order"),
    (lambda e: e.configure(metrics=["correctness"]), "metrics."),
    (
        lambda e: e.configure(judge={"temperature": 0.5, "quality": True}),
        "judge.temperature: 0.0 -> 0.5",
    ),
    (
        judge_by_older_prompts,
        "Its judge had the prompts of an earlier version. Judge what it answered with: graphrag",
    ),
    (
        lambda e: e.write_rows([*ROWS[:5], {**ROWS[5], "answer": "?"}]),
        "differently, so it can't be resumed: dataset: 1 question is changed (q6). Undo",
    ),
    (
        lambda e: e.write_rows([*ROWS[:4], {"question": "Why?", "answer": "?"}]),
        "dataset: 2 questions are gone (q5 and q6) and 1 question is new ('Why?').",
    ),
    (lambda e: e.write_rows(ROWS[::-1]), "dataset: the questions are in another order."),
    (
        lambda e: e.write_settings(OFFLINE_SETTINGS + "basic_search: {k: 3}\n"),
        "indexes.clock.basic.settings.k: 10 -> 3",
    ),
    (
        lambda e: shutil.copy(
            e.project / "output" / "communities.parquet",
            e.project / "output" / "community_reports.parquet",
        ),
        "so it can't be resumed: index clock is another one than was searched. An index that was "
        "built again can't be had back. Judge what it answered with: graphrag eval judge",
    ),
]


def test_a_changed_run_is_not_resumed_and_the_difference_is_named(make_evaluation, tmp_path):
    evaluation = make_evaluation(methods=["basic"], judge={"quality": True})
    evaluation.done("--skip-judge", "-q")
    for number, (change, named) in enumerate(CHANGES):
        changed = Evaluation(tmp_path / str(number))
        shutil.copytree(evaluation.root, changed.root)
        change(changed)
        result = changed.done("--resume", code=USAGE)
        assert "was set up differently" in sentence(result)
        assert named in sentence(result)
    missing = Evaluation(tmp_path / "none")
    shutil.copytree(evaluation.root, missing.root, ignore=shutil.ignore_patterns("results"))
    assert "to resume; leave --retry-errors out" in sentence(missing.run("--retry-errors"))
    both = changed.run("--resume", "--retry-errors")
    assert "leave --resume and --retry-errors out to begin a new run" in sentence(both)
    run_id = changed.runs()[0].run_id
    with closing(sqlite3.connect(changed.store_path)) as db, db:
        db.execute("DELETE FROM responses")
        row = "'newer', '9', NULL, status, setup, json_set(details, '$.origin', 'suite')"
        db.execute(f"INSERT INTO runs SELECT {row} FROM runs")
    empty = sentence(changed.run("--resume"))
    assert f"The last run ({run_id}) was set up differently" in empty
    assert "It has no answer yet; leave --resume out to begin a new run" in empty
    assert f"{run_id} has no answers; run the" in sentence(changed.run("judge", run_id))
    # How a run goes may change, and an unfinished one is pointed out.
    assert "--resume continues it" in sentence(evaluation.run("--skip-judge"))
    evaluation.configure(timeout_s=7, thresholds={"correctness": 0.01}, concurrency=2)
    result = evaluation.done("--resume")
    assert "6 of 6 responses are there, 0 of them judged; 0 calls were" in sentence(result)
    missing.done("-q")
    run_id = missing.newest_folder.name
    missing.configure(metrics=["correctness"])
    said = sentence(missing.run("--resume"))
    assert f"The last run ({run_id}) is finished, and was set up differently: metrics." in said
    assert "leave --resume out to begin a new run, which asks everything again." in said


def test_a_method_that_mostly_abstains_is_named(make_evaluation):
    small = {"name": "small", "method": "basic", "max_context_tokens": 5}
    evaluation = make_evaluation(methods=[small, "basic"])
    said = sentence(evaluation.run(COLUMNS="200"))
    assert "small: 6 of 6 answers abstained, 6 of them without a text in the context" in said
    assert "basic: " not in said.partition("answers abstained")[0].rpartition("Efficiency")[2]


@contextlib.contextmanager
def files_of_at_most(n_bytes: int):
    """Let no write make a file longer, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_stops_the_run_which_can_then_be_resumed(
    make_evaluation, watched, server
):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=1)
    evaluation.done("--dry-run")  # what is unpacked once in a process is larger
    with files_of_at_most(175_000):
        result = evaluation.run()
    assert result.exit_code == ERROR, result.output
    assert "its content is kept" in sentence(result)
    n_kept = len(evaluation.responses())
    assert 0 < n_kept < 6
    evaluation.done("--resume", "-q")
    assert len(watched.of("embeddings")) <= 6 + 1


def test_a_disk_that_is_full_before_the_run_begins_is_no_run_to_resume(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    with files_of_at_most(20_000):
        result = evaluation.run("--limit", "1")
    assert result.exit_code == ERROR, result.output
    assert "run again with --resume if the run had begun, else without;" in sentence(result)
    assert evaluation.run("--limit", "1", "--resume").exit_code == 2
    evaluation.done("--limit", "1", "-q")


@pytest.mark.slow  # a process of its own
def test_a_reader_that_goes_away_costs_no_file(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    words = ["--root", str(evaluation.root), "--limit", "1"]
    command = [sys.executable, "-m", "graphrag.eval", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()  # as head does, once it has its lines
        said = running.stderr.read()
        assert running.wait(timeout=120) == DONE, said
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert len(evaluation.read_results()["results"]) == 1
    assert len(list((evaluation.output / "runs").iterdir())) == 1


BUDGETS = "Budgets of context differ: tog 8,000; basic 12,000 tokens."


def test_what_methods_with_one_budget_take_is_compared(make_evaluation):
    evaluation = make_evaluation(equal_terms={"max_context_tokens": 500}, methods=["bm25", "basic"])
    text = flat(evaluation.done("--limit", "2").output)
    assert "Budgets" not in text
    assert " tokens a question, " in text


def test_equal_runs_write_equal_files_and_quiet_says_the_answer_alone(make_evaluation):
    evaluation = make_evaluation(concurrency=5)
    for name in ("one", "two"):
        result = evaluation.run("-q", "--output", str(evaluation.root / name))
        (answer,) = result.output.splitlines()
        assert result.exit_code == DONE
        assert answer.startswith(f"TOO FEW (offline baseline models): {BUDGETS} Undecided")
    shown = evaluation.run("show", "latest", "-q", "--output", str(evaluation.root / "two"))
    assert shown.stdout == result.stdout
    for kind in ("detailed", "summary"):
        one, two = (
            evaluation.read_results(kind, evaluation.root / name) for name in ("one", "two")
        )
        assert one == two
    assert one["metadata"]["is_complete"]
    assert one["answer"]["headline"].startswith(BUDGETS)
    assert one["metadata"]["context_budgets"] == {"tog": {"clock": 8000}, "basic": {"clock": 12000}}
    assert BUDGETS in (evaluation.root / "one" / "report.html").read_text("utf-8")
    assert one["counts"]["tog"]["n_scored"] == dict.fromkeys(one["by_method"]["tog"], 6)
    detailed = evaluation.read_results("detailed", evaluation.root / "one")
    assert [entry["id"] for entry in detailed["results"]] == [row["id"] for row in ROWS]
    assert all(set(entry["methods"]) == {"tog", "basic"} for entry in detailed["results"])


def test_environment_variables_stand_for_flags_and_flags_win(make_evaluation):
    evaluation = make_evaluation()
    variables = {
        "METHODS": "basic, local",
        "LIMIT": "5",
        "SKIP_JUDGE": "1",
        "QUIET": "1",
        "OUTPUT": str(evaluation.root / "elsewhere"),
    }
    result = evaluation.run(
        "--limit", "2", **{f"GRAPHRAG_EVAL_{name}": value for name, value in variables.items()}
    )
    assert (result.exit_code, result.output) == (DONE, "")
    detailed = evaluation.read_results(folder=evaluation.root / "elsewhere")
    assert detailed["metadata"]["methods"] == ["basic", "local"]
    assert len(detailed["results"]) == 2
    assert detailed["results"][0]["methods"]["basic"]["scores"]["correctness"] is None
    # Commands have variables of their own, and share those of the place.
    elsewhere = {"COMPARE_PLAN": "5", "COMPARE_ROOT": "/nowhere", "COMPARE_OUTPUT": "none"}
    for command, variables, words in (
        ((), {"IMDB_KEY": "nowhere"}, "--imdb-key nowhere: no question is asked of it"),
        ((), {"RETRY_ERRORS": "1"}, "no unfinished run"),
        (("compare",), elsewhere, "0.05 means 5 points"),
    ):
        refused = evaluation.done(
            *command,
            **{f"GRAPHRAG_EVAL_{name}": value for name, value in variables.items()},
            code=USAGE,
        )
        assert words in sentence(refused)
    assert "Traceback" in evaluation.run("--methods", "tgo", "--verbose").output
    assert "exclude each other" in evaluation.run("-q", "-v").output


def two_assertions(evaluation: Evaluation) -> None:
    evaluation.write_rows([ROWS[0], {**ROWS[0], "id": "other", "assertions": ["Clara Reed"]}])
    shutil.rmtree(evaluation.project / "output")  # nor is an index built and paid for


def small_terms(evaluation: Evaluation) -> None:
    evaluation.configure(equal_terms={"max_context_tokens": 150})
    shutil.rmtree(evaluation.project / "output")  # nor is it built first


def no_price(evaluation: Evaluation) -> None:
    evaluation.write_settings(server_settings("http://127.0.0.1:9/v1", "somebodys-model"))
    shutil.rmtree(evaluation.project / "output")  # nor is it built first


BAD_INPUT: list[tuple[Callable[[Evaluation], object], str, str]] = [
    (small_terms, "--index", "equal_terms.max_context_tokens of tog: Input should be greater"),
    (two_assertions, "--index", "ask the same question of clock, but have different assertions"),
    (
        lambda e: (e.project / "output" / "relationships.parquet").unlink(),
        "-q",
        "has no table relationships",
    ),
    (lambda e: shutil.rmtree(e.project / "output" / "lancedb"), "-q", "no vector store"),
    (lambda e: e.configure(indexes={}), "-q", "configures no index"),
    (no_price, "--index --max-cost=1", "needs the price of openai/somebodys-model"),
]


def test_bad_input_is_refused_before_any_call(make_evaluation, watched, server):
    for number, (spoil, flags, words) in enumerate(BAD_INPUT):
        evaluation = make_evaluation(server.base_url, name=str(number))
        spoil(evaluation)
        result = evaluation.done(*flags.split(), code=USAGE)
        assert words in sentence(result)
        assert "--index" not in flags or not evaluation.output.exists()
    assert watched.records == []


def test_a_dry_run_bounds_what_a_run_asks_whose_verdicts_come_later(
    make_evaluation, watched, server
):
    evaluation = make_evaluation(
        server.base_url, judge={"rubric": True, "quality": True, "pairwise": True}
    )
    alone = sentence(evaluation.run("--dry-run", "--methods", "tog"))
    # 3 calls each, and the vectors of the question and of what 2 calls look up.
    assert "at most 18 completions and 42 embeddings" in alone
    words = sentence(evaluation.run("--dry-run")).replace(",", "").split()
    completions = int(words[words.index("completions") - 1])
    judged = int(words[words.index("calls:", words.index("Judge")) + 1])
    # 12 responses with 4 verdicts, a rubric and a quality; 1 pair on 6 questions in 2 orders.
    assert judged == 12 * (4 + 2) + 6 * 2
    assert watched.records == []

    first = evaluation.done("--skip-judge")
    (line,) = [line for line in first.output.splitlines() if line.startswith("Judge them with: ")]
    assert line.endswith("--resume")
    assert "--skip-judge" not in line
    rows = [row for row in first.output.splitlines() if "basic" in row and "judged" in row]
    assert sum(row.count("not judged") for row in rows) >= 1
    assert "unscored" not in " ".join(rows)
    assert len(watched.of("embeddings")) == 12
    n_search_calls = len(watched.records)
    assert n_search_calls <= completions + 12
    assert evaluation.read_results("summary")["by_method"]["tog"]["correctness"] is None
    resumed = evaluation.done("--resume")
    assert "12 of 12 responses are there, 0 of them judged; 0 calls were" in sentence(resumed)
    assert "Judge them with" not in resumed.output
    assert len(watched.of("embeddings")) == 12
    assert len(watched.records) == n_search_calls + judged
    assert evaluation.read_results("summary")["counts"]["tog"]["n_scored"]["correctness"] == 6


def test_what_failed_is_asked_again_alone_and_its_cost_is_told(make_evaluation, watched, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"])

    def fault(_: int, request: dict[str, object]) -> Fault | None:
        text = str(request.get("messages"))
        if "response_format" in request:
            return Fault(content="no grade") if "silver pendulum?" in text else None
        return Fault(content="") if "Which bank does" in text else None

    watched.behave(faults=fault)
    first = evaluation.done(code=INCOMPLETE)
    assert "1 of 6 searches failed" in sentence(first)
    assert "verdicts on 1 of 5 responses are unscored" in sentence(first)
    assert "earlier attempts" not in sentence(first)
    summary = evaluation.read_results("summary")
    assert "earlier_attempts" not in summary["metadata"]
    unscored = sum(summary["counts"]["basic"]["n_unscored"].values())
    assert unscored > 0
    run_id = evaluation.runs()[0].run_id
    (paid,) = [found.usage for found in evaluation.responses() if found.failure is not None]
    tokens = paid.prompt_tokens + paid.output_tokens + paid.embedding_tokens
    assert tokens > 0
    assert paid.cost_usd is not None
    calls = paid.llm_calls + paid.embedding_calls

    watched.behave()
    before = len(watched.records)
    told = (
        f"Of what the run took, {calls} calls, {tokens:,} tokens and ${paid.cost_usd:.4f} are of "
        "earlier attempts, failed or lost."
    )
    for again in (("--retry-errors",), ("show", run_id)):
        assert told in sentence(evaluation.run(*again))
        assert evaluation.read_results("summary")["metadata"]["earlier_attempts"] == {
            "searches": 1,
            "calls": calls,
            "prompt_tokens": paid.prompt_tokens,
            "output_tokens": paid.output_tokens,
            "embedding_tokens": paid.embedding_tokens,
            "cost_usd": paid.cost_usd,
        }
    assert len(watched.records) == before + unscored + 2 + 4  # a search, and its verdicts


@pytest.mark.parametrize("refused", ["input", "response_format"])
def test_a_refused_key_stops_the_run_and_keeps_what_is_there(
    make_evaluation, watched, server, refused
):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=1)
    evaluation.done("-q", "--limit", "1")
    before, n = evaluation.read_results(), len(watched.records)
    watched.behave(faults=lambda _, r: Fault(status=401) if refused in r else None)
    result = evaluation.done(code=ERROR)
    assert "refuses the requests" in sentence(result)
    assert ("The judge's service" in sentence(result)) is (refused == "response_format")
    assert len(watched.records) <= n + 2 + 4
    assert len(evaluation.responses()) == (refused == "response_format")
    assert evaluation.read_results() == before
    settings = evaluation.project / "settings.yaml"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace("api_key: ", "api_key: another-"), encoding="utf-8")
    watched.behave()
    evaluation.done("--resume", "-q")
    assert sum(record.outcome == "answered" for record in watched.of("embeddings")) == 1 + 6


def test_a_resumed_run_begins_to_count_at_what_is_there(finished_copy):
    with sqlite3.connect(finished_copy.store_path) as db:
        db.execute("DELETE FROM verdicts WHERE unit = (SELECT max(unit) FROM verdicts)")
        db.execute("DELETE FROM calls")
        db.execute("UPDATE runs SET status = 'unfinished'")
    db.close()
    output = finished_copy.run("--resume").output
    assert "12 of 12 responses are there, 11 of them judged;" in " ".join(output.split())
    assert re.findall(r"^(\d+)/12", output, re.MULTILINE) == ["11", "12"]


def test_only_missing_indexes_are_built_and_never_by_half(
    make_evaluation, watched, server, built_project
):
    # No judge, as one that the indexes name differently is refused before one is built.
    indexes = {"clock": "clock", "new": "new"}
    evaluation = make_evaluation(methods=["basic"], metrics=[], indexes=indexes)
    new, entities = evaluation.root / "new", evaluation.project / "output" / "entities.parquet"
    shutil.copytree(built_project / "input", new / "input")
    evaluation.write_rows([{**ROWS[0], "imdb_key": "clock"}, {**ROWS[1], "imdb_key": "new"}])
    (new / "settings.yaml").write_text(server_settings(server.base_url), encoding="utf-8")
    watched.behave(faults=lambda _, request: Fault(status=400) if "input" in request else None)
    failed = evaluation.run("--index")
    assert failed.exit_code in (ERROR, USAGE)
    assert "failed in generate_text_embeddings" in sentence(failed)
    assert not is_built(new)
    assert not (new / "output").exists()
    (new / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    stamp = entities.stat().st_mtime_ns
    result = evaluation.done("--index")
    assert "Built index new" in result.output
    assert "Built index clock" not in result.output
    assert entities.stat().st_mtime_ns == stamp
    assert is_built(new)


def test_only_a_method_that_reads_a_missing_table_is_refused(make_evaluation):
    evaluation = make_evaluation(methods=["tog", "ppr", "bm25", "basic", "hybrid"])
    output = evaluation.project / "output"
    for name in ("communities", "community_reports"):
        (output / f"{name}.parquet").unlink()
    evaluation.done("--limit", "1")
    evaluation.done("show")
    for method, missing in (("local", "tables communities and community_reports"), ("oracle", "")):
        evaluation.configure(methods=["bm25", method])
        result = evaluation.run("--limit", "1", "--dry-run")
        assert (f"has no {missing} in" in sentence(result)) == bool(missing)
    for name in ("entities", "relationships"):
        (output / f"{name}.parquet").unlink()
    evaluation.configure(methods=["bm25", "basic", "hybrid", "agentic"])
    evaluation.done("--limit", "1")
    evaluation.configure(methods=["bm25", "ppr"])
    refused = sentence(evaluation.done("--limit", "1", code=USAGE))
    assert "Index clock: " in refused
    assert "has no tables entities and relationships in" in refused
    (output / "text_units.parquet").unlink()
    evaluation.configure(methods=["bm25"])
    assert "text_units missing" in sentence(evaluation.done("--limit", "1", code=USAGE))
