"""What came from elsewhere steers neither a terminal nor GitHub's runner, whatever prints it."""

import json
import logging
import re
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from support.clock_evaluation import in_process

from graphrag.eval.cli.terminal import explained, log_to, working
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import StoreError
from graphrag.eval.runner.run_setup import describe_setup
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunDetails, StoredResponse
from graphrag.eval.types.query_results import Retrieved, Walk
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.usage import Usage
from graphrag.text.console import open_console
from graphrag.text.search_trace import Step
from graphrag.text.terminal_escape import ShownText

STEERS = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\r\x85\x7f\u202e\u2066\u200f\u061c"
TEXT = f"{STEERS} said\n::error::owned\n ::add-mask::e\n##[group]owned"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
WORKFLOW = re.compile(r"(?m)^\s*::|##\[")
STYLES = re.compile("\x1b\\[[\\d;]*m")
METHODS = ("tog", "basic")
SOURCES = Path(__file__).parents[2] / "graphrag"


def hostile(name: str) -> str:
    return f"{name}{TEXT}"


def keep_hostile(folder: Path, wrong: int, n: int = 8) -> str:
    """Keep a run of which every text that may come from elsewhere tries to steer."""
    key, model = hostile("film"), hostile("openai/model")
    samples = [
        Sample(hostile(f"q{i}"), key, hostile(f"Question {i}"), hostile("Truth"), evidence=("e",))
        for i in range(n)
    ]
    config = EvaluationConfig(
        root=folder,
        methods=list(METHODS),
        metrics=("correctness",),
        output={"dir": str(folder)},
        indexes={key: str(folder)},
    )
    setup = describe_setup(
        config, samples, {key: {m: {"models": {}} for m in METHODS}}, {"model": model}
    )
    warnings = (hostile("a warning"),)
    details = RunDetails("command", n * 2, config.to_dict(), (model,), warnings=warnings)
    usage = Usage(llm_calls=1, prompt_tokens=9, output_tokens=9, cost_usd=None, models=(model,))
    said = [hostile(text) for text in ("ADA -> BEN", "Ben", "who Ben is", "a note")]
    walk = Walk((Step(1, ("1",), 1, ("1",), (said[0],), (said[1],), *said[2:]),))
    with EvaluationStore(folder / "eval.db") as store:
        run = store.add_run(setup, samples, details)
        for i, sample in enumerate(samples):
            for method in METHODS:
                unit = f"{sample.id} {method}"
                late = Failure("search", "timeout", hostile("late")) if i == 5 else None
                store.append_response(
                    run.run_id,
                    StoredResponse(
                        *(unit, sample.id, method, hostile("An answer"), hostile("context"), 1.0),
                        usage,
                        late,
                        retrieved=Retrieved(method, walk=walk) if method == "tog" else None,
                    ),
                )
                if late is None:
                    unread = Failure("judge", "unreadable", hostile("no JSON"))
                    verdict = JudgeResult(int(i >= wrong), hostile("a reason"))
                    if i == n - 1:
                        verdict = JudgeResult(None, hostile("Unscored"), unread)
                    store.append_verdicts(run.run_id, unit, {"correctness": verdict}, usage)
        store.finish_run(run.run_id)
    return run.run_id


def run_eval(folder: Path, *arguments: str) -> Result:
    return in_process(*arguments, "--output", str(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    first, second = keep_hostile(folder, 2), keep_hostile(folder, 5)
    (folder / "ids").write_text(f"{first} {second}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "latest"),
        ("show", "--failed", "--full"),
        ("show", "--question", hostile("q1"), "--full"),
        ("show", "--changed", "FIRST", "--full"),
        ("show", hostile("no-run")),
        ("show",),
        ("history", "--json"),
        ("compare", "SECOND", "FIRST", "--full"),
        ("compare", "SECOND", hostile("none.json")),
        ("show", "--html", "page.html"),
        ("compare", "--plan", "0.1"),
        ("dashboard",),
        ("compare", "FIRST", "--pin"),
        ("view", "--labels", "FIRST"),
        ("judge", "--labels", "audit_correctness.csv"),
        ("suite", hostile("none")),
        ("--methods", hostile("tog")),
        ("validate", "--root", hostile("nowhere")),
    ],
)
def test_no_command_passes_on_what_steers(arguments, folder, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.chdir(folder)
    first, second = (folder / "ids").read_text(encoding="utf-8").split()
    names = {"FIRST": first, "SECOND": second}
    result = run_eval(folder, *(names.get(each, each) for each in arguments))
    output = STYLES.sub("", result.output)  # typer's own, of wrong usage
    assert output.strip()
    assert not OBEYED.search(output)
    assert "Unexpected error" not in output
    commands = [line for line in output.splitlines() if WORKFLOW.search(line)]
    own = [line for line in commands if line.startswith("::") and "title=graphrag eval" in line]
    assert commands == own


def test_a_terminal_gets_its_colors_alone(folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = run_eval(folder, "show", "--failed", "--full").output
    assert "\x1b[" in shown
    assert not OBEYED.search(re.sub("\x1b\\[[\\d;?]*[mhlAGK]|\r", "", shown))


def test_what_is_kept_stays_as_it_came(folder):
    assert run_eval(folder, "show", "latest").exit_code in (0, 3)
    detailed = (folder / "eval_results_detailed.json").read_text(encoding="utf-8")
    (first, *_) = json.loads(detailed)["results"]
    assert first["methods"]["tog"]["response"] == hostile("An answer")
    listed = json.loads(run_eval(folder, "history", "--json").stdout)
    assert len(listed) == 2
    with EvaluationStore(folder / "eval.db") as store:
        responses = store.responses(store.runs()[0].run_id).values()
    assert {found.response for found in responses} == {hostile("An answer")}


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_step_and_an_error_are_texts_too(stream, capsys):
    console = open_console(stderr=stream == "stderr")
    with working(console, hostile("Reading")) as tell:
        tell(hostile("more"))
        console.print(hostile("beside it"))
        console.log(hostile("logged"))

    def fail() -> int:
        raise StoreError(hostile("no store"))

    explained(fail, verbose=True)
    captured = capsys.readouterr()
    assert "beside it" in (captured.out if stream == "stdout" else captured.err)
    assert not OBEYED.search(captured.out + captured.err)


def test_a_log_line_and_its_traceback(tmp_path):
    with log_to(tmp_path / "eval.log", verbose=True):
        try:
            raise ValueError(hostile("raised"))
        except ValueError:
            logging.getLogger("graphrag.somewhere").exception("failed on %s", hostile("q1"))
    logged = (tmp_path / "eval.log").read_text(encoding="utf-8")
    assert "raised" in logged
    assert "q1" in logged
    assert not OBEYED.search(logged)


@given(st.text(alphabet=[*":#[ \t\nx", *STEERS]), st.data())
def test_what_comes_in_pieces_is_shown_as_the_whole(text, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_ACTIONS", "true")
        whole = ShownText().feed(text)
        shown, pieces = ShownText(), ""
        while text:
            n = data.draw(st.integers(1, len(text)))
            pieces, text = pieces + shown.feed(text[:n]), text[n:]
    assert pieces == whole
    assert not OBEYED.search(whole)
    assert not WORKFLOW.search(whole)


def test_nothing_is_printed_past_the_console():
    """Whoever prints elsewhere has to be added here, and to clean what is printed."""
    allowed = {
        "cli/fitness.py",  # without rich, which may be what is missing
        "text/console.py",
        "cli/query_command.py",  # to a ShownStream
        "eval/cli/terminal.py",
        "eval/cli/show.py",  # JSON, escaped
        "eval/cli/interrupts.py",  # cleaned where it is written
    }
    prints = re.compile(r"(?<![\w.])(?:print|Console)\(|sys\.std(?:out|err)\.write|os\.write\(")
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if any(
            prints.search(line) and "class _" not in line
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    }
    assert found == allowed
