"""``graphrag eval`` from its flags to its exit code and its one sentence."""

import contextlib
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, Fault, LocalServer, Record, offline_reply
from support.projects import OFFLINE_SETTINGS, server_settings

from graphrag.eval.runner.index_building import is_built
from graphrag.eval.store.database import EvaluationStore

DONE, ERROR, USAGE, INCOMPLETE, BELOW_THRESHOLD = 0, 1, 2, 3, 100


class Watched:
    """The requests that a server got from now on."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._before = len(server.records)

    @property
    def records(self) -> list[Record]:
        return self._server.records[self._before :]

    @property
    def searched(self) -> list[Record]:
        """One embedding a search; searches alone embed."""
        return [record for record in self.records if record.endpoint == "embeddings"]

    def behave(self, **changes: object) -> None:
        self._server.behaviour = Behaviour(offline_reply(), **changes)


@pytest.fixture
def watched(server: LocalServer) -> Watched:
    return Watched(server)


def sentence(result: Result) -> str:
    """Return the output as one line, after checking that no traceback is in it."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def responses(evaluation: Evaluation) -> dict[tuple[str, str], str]:
    with EvaluationStore(evaluation.store_path) as store:
        found = store.responses(store.runs()[0].run_id)
    return {(each.sample_id, each.method): each.response for each in found.values()}


def test_equal_runs_write_equal_files(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(concurrency=5)
    for name in ("one", "two"):
        result = evaluation.run("--output", str(evaluation.root / name))
        assert result.exit_code == DONE, result.output
        assert "offline baseline models" in result.output
    for kind in ("detailed", "summary"):
        one, two = (
            evaluation.read_results(kind, evaluation.root / name) for name in ("one", "two")
        )
        assert one == two
    assert one["metadata"]["is_complete"]
    assert one["counts"]["tog"]["n_scored"] == dict.fromkeys(one["by_method"]["tog"], 6)
    detailed = evaluation.read_results("detailed", evaluation.root / "one")
    assert [entry["id"] for entry in detailed["results"]] == [row["id"] for row in ROWS]
    assert all(set(entry["methods"]) == {"tog", "basic"} for entry in detailed["results"])


def test_environment_variables_stand_for_flags_and_flags_win(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation()
    result = evaluation.run(
        "--limit",
        "2",
        GRAPHRAG_EVAL_METHODS="basic, local",
        GRAPHRAG_EVAL_LIMIT="5",
        GRAPHRAG_EVAL_SKIP_JUDGE="1",
        GRAPHRAG_EVAL_QUIET="1",
        GRAPHRAG_EVAL_OUTPUT=str(evaluation.root / "elsewhere"),
    )
    assert result.exit_code == DONE
    assert result.output == ""
    detailed = evaluation.read_results(folder=evaluation.root / "elsewhere")
    assert detailed["metadata"]["methods"] == ["basic", "local"]
    assert len(detailed["results"]) == 2
    assert detailed["results"][0]["methods"]["basic"]["scores"]["correctness"] is None
    for variable, value, said in (
        ("IMDB_KEY", "nowhere", "--imdb-key nowhere: no question is asked of it"),
        ("RETRY_ERRORS", "1", "no unfinished run"),
    ):
        refused = evaluation.run(**{f"GRAPHRAG_EVAL_{variable}": value})
        assert refused.exit_code == USAGE
        assert said in sentence(refused)
    # Commands have variables of their own, and share those of the place.
    elsewhere = {"GRAPHRAG_EVAL_COMPARE_ROOT": "/nowhere", "GRAPHRAG_EVAL_COMPARE_OUTPUT": "none"}
    result = evaluation.run("compare", GRAPHRAG_EVAL_COMPARE_PLAN="5", **elsewhere)
    assert result.exit_code == USAGE
    assert "0.05 means 5 points" in sentence(result)


def test_quiet_says_the_answer_alone_and_verbose_shows_where(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation()
    ran = evaluation.run("-q", "--limit", "1")
    (answer,) = ran.output.splitlines()
    assert answer.startswith("TOO FEW (offline baseline models): Undecided")
    assert evaluation.run("show", "latest", "-q").stdout == ran.stdout
    refused = evaluation.run("--methods", "tgo", "--verbose")
    assert refused.exit_code == USAGE
    assert "Traceback" in refused.output
    both = evaluation.run("-q", "-v")
    assert both.exit_code == USAGE
    assert "exclude each other" in both.output


def without(row: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in row.items() if key != name}


BAD_ROWS: list[tuple[list[object], str]] = [
    ([ROWS[0], without(ROWS[1], "answer")], "row 2: answer is missing"),
    ([ROWS[0], "Who?"], "row 2 is not an object"),
    ([{"Frage": "Wer?", "answer": "Ann"}], "has no column for the question (columns found: 'Fr"),
    (
        [ROWS[0], {**ROWS[0], "id": "other", "answer": "Clara Reed"}],
        "rows 1 (id 'q1') and 2 (id 'other') ask the same question of clock, but have "
        "different answers, 'Idris Vane' and 'Clara Reed'",
    ),
    ([ROWS[0], {**ROWS[1], "id": "q1"}], "rows 1 and 2 have the same id 'q1'"),
    ([{**ROWS[0], "imdb_key": "clok"}], "index 'clok', which eval_config.yaml does not"),
    ([], "holds no rows"),
]


def test_a_bad_dataset_is_refused_before_any_call(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url)
    shutil.rmtree(evaluation.project / "output")
    for rows, said in BAD_ROWS:
        evaluation.write_rows(rows)
        result = evaluation.run("--index")  # nor is an index built and paid for
        assert result.exit_code == USAGE
        assert said in sentence(result)
    assert watched.records == []
    assert not evaluation.output.exists()


def half_an_index(evaluation: Evaluation) -> None:
    (evaluation.project / "output" / "relationships.parquet").unlink()


def other_embedding_size(evaluation: Evaluation) -> None:
    path = evaluation.project / "settings.yaml"
    path.write_text(path.read_text("utf-8").replace("vector_size: 384", "vector_size: 1536"))


def no_vectors(evaluation: Evaluation) -> None:
    shutil.rmtree(evaluation.project / "output" / "lancedb")


BAD_INPUT: list[tuple[Callable[[Evaluation], object], str]] = [
    (lambda e: shutil.rmtree(e.project), "does not exist"),
    (lambda e: shutil.rmtree(e.project / "output"), "is not indexed"),
    (half_an_index, "relationships missing"),
    (other_embedding_size, "vectors of length 384, but vector_store.vector_size"),
    (no_vectors, "no vector store"),
    (lambda e: e.configure(methds=["tog"]), "did you mean 'methods'?"),
    (lambda e: e.configure(dataset={"path": "no.json"}), "no.json does not exist"),
    (lambda e: e.configure(indexes={}), "configures no index"),
]


def test_bad_input_is_refused_before_any_call(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    for number, (spoil, said) in enumerate(BAD_INPUT):
        evaluation = make_evaluation(server.base_url, name=str(number))
        spoil(evaluation)
        result = evaluation.run()
        assert result.exit_code == USAGE, result.output
        assert said in sentence(result)
    assert watched.records == []


def test_what_looks_wrong_is_warned_of(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(methods=["basic"])
    evaluation.write_settings(OFFLINE_SETTINGS + "local_serch: {top_k_entities: 3}\n")
    fitting = sentence(evaluation.run("--dry-run", "--limit", "1"))
    assert "documents swapped" not in fitting
    assert "local_serch is not used; did you mean 'local_search'?" in fitting
    assert "at most 1 completion and 1 embedding, retries aside" in fitting
    evaluation.write_rows(
        [
            {"question": "Where does Harry Potter meet Ron Weasley?", "answer": "In London"},
            {"question": "Who taught Hermione Granger at Hogwarts?", "answer": "Minerva"},
        ]
    )
    assert "are the documents swapped?" in sentence(evaluation.run("--dry-run"))
    evaluation.write_rows([{**ROWS[0], "evidence": ["The moon is a lamp of brass"], "id": None}])
    said = sentence(evaluation.run("--dry-run"))
    assert "e.g. 'Who built the tower clock of Ashcombe?': 'The moon is" in said
    said = sentence(evaluation.run("--methods", "basc"))
    assert "did you mean" in said
    assert "?." not in said


def test_a_dry_run_bounds_what_a_run_then_asks(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(
        server.base_url,
        methods=["tog", "local", "basic"],
        judge={"rubric": True, "quality": True, "pairwise": True},
    )
    alone = sentence(evaluation.run("--dry-run", "--methods", "tog"))
    assert "at most 24 completions and 0 embeddings" in alone  # 3 scorings and an answer each
    shown = sentence(evaluation.run("--dry-run"))
    words = shown.replace(",", "").split()
    completions = int(words[words.index("completions") - 1])
    judged = int(words[words.index("calls:", words.index("Judge")) + 1])
    # 18 responses with 4 verdicts, a rubric and a quality; 3 pairs on 6 questions in 2 orders.
    assert judged == 18 * (4 + 2) + 3 * 6 * 2
    assert evaluation.run("-q").exit_code == DONE
    assert len([r for r in watched.records if r.endpoint == "chat"]) <= completions + judged


def test_the_tokens_of_a_dry_run_are_enough_for_a_run(make_evaluation: MakeEvaluation):
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
    assert evaluation.run("-q").exit_code == DONE
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


def test_responses_first_verdicts_later(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url)
    first = evaluation.run("--skip-judge")
    assert first.exit_code == DONE
    (said,) = [line for line in first.output.splitlines() if line.startswith("Judge them with: ")]
    assert said.endswith("--resume")
    rows = [line for line in first.output.splitlines() if "basic" in line and "judged" in line]
    assert sum(row.count("not judged") for row in rows) == 1
    assert "unscored" not in " ".join(rows)
    assert "--skip-judge" not in said
    assert len(watched.searched) == 6
    n_search_calls = len(watched.records)
    assert evaluation.read_results("summary")["by_method"]["tog"]["correctness"] is None
    resumed = evaluation.run("--resume")
    assert resumed.exit_code == DONE
    assert "12 of 12 responses are there, 0 of them judged; 0 calls were" in sentence(resumed)
    assert "Judge them with" not in resumed.output
    assert len(watched.searched) == 6
    assert len(watched.records) == n_search_calls + 12 * 4
    assert evaluation.read_results("summary")["counts"]["tog"]["n_scored"]["correctness"] == 6


def test_what_failed_searches_cost_is_told_after_they_were_asked_again(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic"])

    def empty(_: int, request: dict[str, object]) -> Fault | None:
        is_search = "messages" in request and "response_format" not in request
        return Fault(content="") if is_search and "Which bank does" in str(request) else None

    watched.behave(faults=empty)
    first = evaluation.run()
    assert "1 of 6 searches failed" in sentence(first)
    assert "Earlier attempts" not in sentence(first)
    assert "earlier_attempts" not in evaluation.read_results("summary")["metadata"]
    with EvaluationStore(evaluation.store_path) as store:
        run_id = store.runs()[0].run_id
        (paid,) = [r.usage for r in store.responses(run_id).values() if r.failure is not None]
    tokens = paid.prompt_tokens + paid.output_tokens + paid.embedding_tokens
    assert tokens > 0
    assert paid.cost_usd is not None
    calls = paid.llm_calls + paid.embedding_calls

    watched.behave()
    told = (
        f"Earlier attempts, failed or lost, took {calls} calls and cost {tokens:,} counted "
        f"tokens, ${paid.cost_usd:.4f}"
    )
    for again in (("--retry-errors",), ("show", run_id), ("show", "latest")):
        assert told in sentence(evaluation.run(*again))
        kept = evaluation.read_results("summary")["metadata"]["earlier_attempts"]
        assert kept == {
            "searches": 1,
            "calls": calls,
            "prompt_tokens": paid.prompt_tokens,
            "output_tokens": paid.output_tokens,
            "embedding_tokens": paid.embedding_tokens,
            "cost_usd": paid.cost_usd,
        }


def test_unreadable_verdicts_alone_are_asked_again(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic"])

    def unreadable(_: int, request: dict[str, object]) -> Fault | None:
        is_judge = "response_format" in request and "Petra" in str(request["messages"])
        return Fault(content="no grade") if is_judge else None

    watched.behave(faults=unreadable)
    first = evaluation.run()
    assert first.exit_code == INCOMPLETE, first.output
    assert re.search(r"verdicts on \d+ of \d+ responses are unscored", first.output)
    unscored = sum(evaluation.read_results("summary")["counts"]["basic"]["n_unscored"].values())
    assert unscored > 0
    watched.behave()
    before = len(watched.records)
    assert evaluation.run("--retry-errors", "-q").exit_code == DONE
    assert len(watched.records) == before + unscored


def test_a_cost_limit_needs_known_prices(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation()
    evaluation.write_settings(server_settings(server.base_url, "somebodys-model"))
    result = evaluation.run("--max-cost", "1")
    assert result.exit_code == USAGE
    assert "needs the price of openai/somebodys-model" in sentence(result)
    assert watched.records == []


def test_a_mean_below_its_threshold(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(methods=["basic"], thresholds={"correctness": 1.0})
    evaluation.write_rows([*ROWS[:2], {"question": "Who is Tobias Reed?", "answer": "A whale"}])
    missed = evaluation.run()
    assert missed.exit_code == BELOW_THRESHOLD, missed.output
    assert "basic: correctness 0.667 (n 3) is below 1" in sentence(missed)
    evaluation.configure(thresholds={"correctness": 0.6})
    assert evaluation.run("-q").exit_code == DONE


def test_a_refused_key_stops_the_run_and_leaves_earlier_results_alone(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=2)
    assert evaluation.run("-q", "--limit", "1").exit_code == DONE
    before, n = evaluation.read_results(), len(watched.records)
    watched.behave(faults=lambda *_: Fault(status=401))
    result = evaluation.run()
    assert result.exit_code == ERROR, result.output
    assert "refuses the requests" in sentence(result)
    assert len(watched.records) <= n + 2
    assert responses(evaluation) == {}
    assert evaluation.read_results() == before
    settings = evaluation.project / "settings.yaml"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace("api_key: ", "api_key: another-"), encoding="utf-8")
    watched.behave()
    assert evaluation.run("--resume", "-q").exit_code == DONE


def test_a_judge_that_is_refused_stops_the_run_and_keeps_the_responses(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=1)
    watched.behave(faults=lambda _, r: Fault(status=401) if "response_format" in r else None)
    result = evaluation.run()
    assert result.exit_code == ERROR, result.output
    assert "The judge's service refuses the requests" in sentence(result)
    assert len(responses(evaluation)) == 1
    watched.behave()
    assert evaluation.run("--resume", "-q").exit_code == DONE
    assert len(watched.searched) == 6


def test_a_run_of_failures_only_is_an_error(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    watched.behave(faults=lambda _, request: Fault(status=400) if "input" in request else None)
    result = evaluation.run()
    assert result.exit_code == ERROR
    assert "6 of 6 searches failed" in sentence(result)


CHANGES: list[tuple[Callable[[Evaluation], object], str]] = [
    (lambda e: e.configure(methods=["basic", "local"]), "methods.order"),
    (lambda e: e.configure(metrics=["correctness"]), "metrics."),
    (lambda e: e.configure(judge={"temperature": 0.5}), "judge.temperature: 0.0 -> 0.5"),
    (lambda e: e.write_rows([*ROWS[:5], {**ROWS[5], "answer": "?"}]), "dataset.fingerprint"),
    (
        lambda e: e.write_settings(OFFLINE_SETTINGS + "basic_search: {k: 3}\n"),
        "indexes.clock.basic.settings.k: 10 -> 3",
    ),
    (
        lambda e: shutil.copy(
            e.project / "output" / "communities.parquet",
            e.project / "output" / "community_reports.parquet",
        ),
        "indexes.clock.basic.index",
    ),
]


def test_a_changed_run_is_not_resumed_and_the_difference_is_named(
    make_evaluation: MakeEvaluation, tmp_path: Path
):
    evaluation = make_evaluation(methods=["basic"])
    assert evaluation.run("--skip-judge", "-q").exit_code == DONE
    for number, (change, named) in enumerate(CHANGES):
        changed = Evaluation(tmp_path / str(number))
        shutil.copytree(evaluation.root, changed.root)
        change(changed)
        result = changed.run("--resume")
        assert result.exit_code == USAGE
        assert "was set up differently" in sentence(result)
        assert named in sentence(result)
    missing = Evaluation(tmp_path / "none")
    shutil.copytree(evaluation.root, missing.root, ignore=shutil.ignore_patterns("results"))
    assert "to resume; leave --retry-errors out" in sentence(missing.run("--retry-errors"))
    both = changed.run("--resume", "--retry-errors")
    assert "leave --resume and --retry-errors out to begin a new run" in sentence(both)
    # How a run goes may change, and an unfinished one is pointed out.
    assert "--resume continues it" in sentence(evaluation.run("--skip-judge"))
    evaluation.configure(timeout_s=7, thresholds={"correctness": 0.01}, concurrency=2)
    result = evaluation.run("--resume")
    assert result.exit_code == DONE
    assert "6 of 6 responses are there, 0 of them judged; 0 calls were" in sentence(result)
    assert missing.run("-q").exit_code == DONE
    run_id = missing.newest_folder.name
    missing.configure(metrics=["correctness"])
    said = sentence(missing.run("--resume"))
    assert f"The last run ({run_id}) is finished, and was set up differently: metrics." in said
    assert "leave --resume out to begin a new run, which asks everything again." in said


def test_a_resumed_run_begins_to_count_at_what_is_there(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(methods=["basic"], concurrency=1)
    assert evaluation.run("-q").exit_code == DONE
    with sqlite3.connect(evaluation.store_path) as db:
        db.execute("DELETE FROM verdicts WHERE unit = (SELECT max(unit) FROM verdicts)")
        db.execute("DELETE FROM calls")
        db.execute("UPDATE runs SET status = 'unfinished'")
    db.close()
    output = evaluation.run("--resume").output
    assert "6 of 6 responses are there, 5 of them judged;" in " ".join(output.split())
    counted = re.findall(r"^(\d)/6", output, re.MULTILINE)
    assert counted == ["5", "6"]


def test_a_method_that_mostly_abstains_is_named(make_evaluation: MakeEvaluation):
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
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=1)
    with files_of_at_most(150_000):
        result = evaluation.run()
    assert result.exit_code == ERROR, result.output
    assert "what it holds is kept" in sentence(result)
    n_kept = len(responses(evaluation))
    assert 0 < n_kept < 6
    assert evaluation.run("--resume", "-q").exit_code == DONE
    assert len(watched.searched) <= 6 + 1


def test_only_missing_indexes_are_built(make_evaluation: MakeEvaluation, built_project: Path):
    evaluation = make_evaluation(methods=["basic"], indexes={"clock": "clock", "new": "new"})
    shutil.copytree(built_project / "input", evaluation.root / "new" / "input")
    (evaluation.root / "new" / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    evaluation.write_rows([{**ROWS[0], "imdb_key": "clock"}, {**ROWS[1], "imdb_key": "new"}])
    stamp = (evaluation.project / "output" / "entities.parquet").stat().st_mtime_ns
    result = evaluation.run("--index")
    assert result.exit_code == DONE, result.output
    assert "Built index new" in result.output
    assert "Built index clock" not in result.output
    assert (evaluation.project / "output" / "entities.parquet").stat().st_mtime_ns == stamp
    assert is_built(evaluation.root / "new")


def test_a_build_that_fails_names_the_step_and_leaves_no_half_index(
    make_evaluation: MakeEvaluation, watched: Watched, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    shutil.rmtree(evaluation.project / "output")
    watched.behave(faults=lambda _, request: Fault(status=400) if "input" in request else None)
    result = evaluation.run("--index")
    assert result.exit_code in (ERROR, USAGE)
    assert "failed in generate_text_embeddings" in sentence(result)
    assert not is_built(evaluation.project)
    assert not (evaluation.project / "output").exists()


def test_a_reader_that_goes_away_costs_no_file(make_evaluation: MakeEvaluation):
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
