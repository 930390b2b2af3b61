"""``graphrag query``: the added method, and the released ones as they were."""

import json
import shutil
import subprocess
import sys

import pytest
from support.clock_evaluation import in_process
from support.lighthouse import QUESTION
from support.projects import OFFLINE_SETTINGS
from typer.testing import CliRunner, Result

ANSWER = "Marta Quill repaired the great lamp with Jonas Feld."


pytestmark = pytest.mark.usefixtures("as_before")


def query(*arguments: str) -> Result:
    from graphrag.cli.main import app

    return CliRunner().invoke(app, ["query", *arguments])


@pytest.mark.parametrize(
    ("method", "lines"),
    [
        (
            "tog",
            [
                "Way\n",
                "call 1 read Sources (",
                "  reasoning: 1 call,",
                "embeddings: 0 calls",
                "cost:",
            ],
        ),
        ("ppr", ["completions: 1 call,", "  reasoning: 1 call,"]),
        ("bm25", ["completions: 1 call,", "embeddings: 0 calls"]),
        ("hybrid", ["completions: 1 call,", "embeddings: 0 calls"]),
    ],
)
def test_our_methods_answer_whole_and_streamed_and_say_what_it_cost(method, lines, project):
    here = (QUESTION, "-r", str(project), "-m", method)
    result, streamed = query(*here, "--verbose"), query(*here, "--streaming")

    assert result.exit_code == 0, result.output
    assert streamed.stdout == result.stdout
    assert ANSWER in result.stdout
    assert not [line for line in lines if line not in result.stderr]
    assert not [line for line in lines if line in result.stdout + streamed.output]
    assert "offline" in streamed.stderr, "an answer of the embedded models must say so"
    assert query(*here, "--connect").exit_code == (0 if method == "tog" else 2)


def test_agentic_search_says_what_it_searched_for(project):
    question = "Who taught the glassmaker that repaired the lamp?"
    result = query(question, "-r", str(project), "-m", "agentic", "--verbose")

    assert result.exit_code == 0, result.output
    assert f"search 1: {question}; missing: Not in the texts: " in result.stderr
    assert "search 2: Marta Quill Jonas Feld" in result.stderr
    assert "  exploration: " in result.stderr
    quiet = query(question, "-r", str(project), "-m", "agentic", "--streaming")
    assert quiet.stdout == result.stdout
    assert "search 1" not in quiet.output


def test_settings_of_1_0_0_are_passed_over_and_the_answer_says_so(project, tmp_path):
    settings = (project / "settings.yaml").read_text(encoding="utf-8")
    old = f"{settings}\ntog_search: {{mode: connect, max_scored_edges: 5}}\n"
    (tmp_path / "settings.yaml").write_text(old, encoding="utf-8")
    shutil.copytree(project / "output", tmp_path / "output")
    result = query(QUESTION, "-r", str(tmp_path), "-m", "tog")
    assert result.exit_code == 0, result.output
    notes = [line for line in result.stderr.splitlines() if line.startswith("Note: ")]
    [note] = [note for note in notes if "tog_search" in note]
    assert note.startswith("Note: tog_search.mode is no longer used: a question how two things")
    assert "; tog_search.max_scored_edges is no longer used: edges are not scored" in note


@pytest.mark.parametrize("settings", [None, OFFLINE_SETTINGS, "tog_search: {widht: 3}\n"])
def test_a_folder_that_cannot_be_searched_is_wrong_usage(settings, tmp_path, project):
    if settings is not None:
        (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")
    result = query(QUESTION, "-r", str(tmp_path), "-m", "tog")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert query(QUESTION, "-r", str(project), "-m", "tok").exit_code == 2


@pytest.mark.parametrize(
    ("models", "says"),
    [
        ("llms", "it is empty; see what graphrag init writes"),
        ("completion_models", "it has answering."),
    ],
)
def test_settings_without_the_model_that_a_search_names_are_wrong_usage(
    models, says, tmp_path, project
):
    model = "{type: offline, model_provider: offline, model: rules}"
    (tmp_path / "settings.yaml").write_text(f"{models}:\n  answering: {model}\n")
    shutil.copytree(project / "output", tmp_path / "output")
    names = "completion_models has no default_completion_model, which other settings name: "
    for method in ("tog", "bm25"):
        result = query(QUESTION, "-r", str(tmp_path), "-m", method)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"Error: {names}")
        assert says in result.stderr
    (tmp_path / "q.json").write_text('[{"question": "Who?", "answer": "Marta"}]')
    (tmp_path / "eval_config.yaml").write_text(
        "dataset: {path: q.json}\nindexes: {isle: .}\nmethods: [bm25]\n"
    )
    for line in ([], ["--methods", "closed_book"], ["draft"]):
        result = in_process(*line, "--root", str(tmp_path), "--dry-run")
        assert result.exit_code == 2, result.output
        assert names in result.stderr


def test_connect_of_1_0_0_is_passed_over_with_a_note(project):
    asked = ("How are Silas Crane and Jonas Feld related?", "-r", str(project), "-m")
    connected, plain = query(*asked, "tog", "--connect"), query(*asked, "tog")

    assert connected.exit_code == plain.exit_code == 0, connected.output
    assert connected.stdout == plain.stdout
    assert connected.stderr.startswith("Note: --connect is no longer used: ")
    assert "--connect" not in plain.stderr
    refused = query(*asked, "local", "--connect")
    assert refused.exit_code == 2
    assert "--method tog" in refused.output


@pytest.mark.parametrize(
    ("method", "how"), [("bm25", ["--streaming"]), ("basic", []), ("basic", ["--streaming"])]
)
def test_an_answer_steers_no_terminal(method, how, make_project, server):
    """Also where a sequence of it arrives in two pieces."""
    server.reset(lambda _: "The lamp \x1b]0;owned\x07 is \x1b[2J lit \x9b31m by \u202e night.")
    result = query(QUESTION, "-r", str(make_project()), "-m", method, *how)
    assert "]0;owned is" in " ".join(result.stdout.split())
    assert not {*"\x1b\x07\x9b\u202e"} & {*result.output}


_LOADED = """
import json, sys
from graphrag.cli.main import app
root, *methods = sys.argv[1:]
large = {"lancedb", "litellm", "networkx", "nltk", "openai", "scipy", "sklearn", "spacy"}
large.add("lance_namespace_urllib3_client.api")
for method in methods:
    sys.argv[1:] = ["query", "%s", "-r", root, "-m", method]
    try:
        app()
    except SystemExit as ended:
        print(json.dumps([ended.code, sorted(large & set(sys.modules))]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "allowed",
    [
        {"bm25": {"scipy"}, "tog": {"lancedb", "scipy"}},  # in one process, as tog may load more
        {"local": {"lancedb", "networkx", "openai"}},
    ],
    ids=["bm25-tog", "local"],
)
def test_a_question_loads_what_its_search_needs(allowed, make_project, server):
    words = [sys.executable, "-c", _LOADED % QUESTION, make_project(), *allowed]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    for (code, loaded), of_method in zip(ends, allowed.values(), strict=True):
        assert code == 0, done.stderr
        assert set(loaded) <= of_method
    assert len(server.of("chat")) >= len(allowed)


@pytest.mark.parametrize("method", ["tog", "ppr", "bm25", "hybrid", "agentic"])
def test_an_empty_question_is_a_usage_error(method, project):
    result = query(" ", "-r", str(project), "-m", method)
    assert result.exit_code == 2, result.output
    assert "it is empty; write a question" in " ".join(result.output.split())
