"""Keys and passwords stay where they are configured, whatever fails and however loudly."""

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, Fault, LocalServer, offline_reply
from typer.testing import CliRunner

FROM_ENVIRONMENT = "sk-planted-in-the-environment-0123456789"
FROM_DOTENV = "planted.in.dotenv.8d0Qz"
FROM_SETTINGS = "9f86d081884c7d659a2feaa0c55ad015"  # as Azure's: nothing but hexadecimal digits
PASSWORD = "pl@nted/Password-1"
QUOTED_PASSWORD = "pl%40nted%2FPassword-1"
UNCONFIGURED = "sk-proj-an0therOnesKey4tTheSameService"
PLANTED = (FROM_ENVIRONMENT, FROM_DOTENV, FROM_SETTINGS, PASSWORD, QUOTED_PASSWORD, UNCONFIGURED)

REPEATED = " ".join(PLANTED[:-1])
SAID = (
    f"Incorrect API key provided: {FROM_ENVIRONMENT}, then {FROM_DOTENV} and {FROM_SETTINGS}; "
    f"as {PASSWORD} or {QUOTED_PASSWORD}; not Bearer {UNCONFIGURED}."
)


def settings(server: LocalServer) -> str:
    """Return a settings.yaml with a key from everywhere; ``guarded`` can't even be asked."""
    guarded = f"http://planted:{QUOTED_PASSWORD}@127.0.0.1:{server.port}/v1"
    model = {
        "model_provider": "openai",
        "model": "gpt-4o",
        "api_base": server.base_url,
        "api_key": "${PLANTED_KEY}",
        "retry": {"type": "immediate", "max_retries": 2},
    }
    judge = {**model, "model": "gpt-4o-mini", "api_key": "${DOTENV_KEY}"}
    embedding = {**model, "model": "text-embedding-3-small", "api_key": FROM_SETTINGS}
    completion = {
        "default_completion_model": model,
        "judge": judge,
        "guarded": {**judge, "api_base": guarded},
    }
    return yaml.safe_dump(
        {
            "completion_models": completion,
            "embedding_models": {"default_embedding_model": embedding},
            "vector_store": {"vector_size": 384},
        }
    )


@pytest.fixture
def planted(
    make_evaluation: MakeEvaluation, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> Evaluation:
    monkeypatch.setenv("PLANTED_KEY", FROM_ENVIRONMENT)
    evaluation = make_evaluation(server.base_url, judge={"model": "judge"}, concurrency=2)
    evaluation.write_settings(settings(server))
    (evaluation.project / ".env").write_text(f"DOTENV_KEY={FROM_DOTENV}\n", encoding="utf-8")
    return evaluation


def find_leaks(*texts: str, below: Path | None = None) -> list[str]:
    """Return where which of the planted values stand."""
    found = [f"{value} in what was printed" for value in PLANTED for t in texts if value in t]
    for file in below.rglob("*") if below is not None else ():
        if file.is_file() and file.name not in ("settings.yaml", ".env"):
            content = file.read_bytes()
            found += [f"{value} in {file.name}" for value in PLANTED if value.encode() in content]
    return found


FAULTS: dict[str, Callable[[int, dict[str, object]], Fault | None]] = {
    "401": lambda n, request: Fault(status=401, message=SAID),
    "429": lambda n, request: Fault(status=429, message=SAID),
    "500": lambda n, request: Fault(status=500, message=SAID),
    "garbage": lambda n, request: (
        Fault(content=f"{REPEATED} Idris Vane") if "messages" in request else None
    ),
    "judge": lambda n, request: (
        Fault(status=400, message=SAID) if request.get("model") == "gpt-4o-mini" else None
    ),
    "guarded": lambda n, request: None,
}


@pytest.mark.parametrize("kind", FAULTS)
def test_no_key_leaves_a_run(planted, server, kind, capfd):
    server.behaviour = Behaviour(offline_reply(), FAULTS[kind])
    if kind == "guarded":
        planted.configure(judge={"model": "guarded"})
    result = planted.run("--verbose", "--limit", "2", "--methods", "tog,basic")
    captured = capfd.readouterr()
    log = planted.output / "eval.log"
    if kind not in ("garbage", "guarded"):  # of these no request fails
        assert " failed: " in log.read_text(encoding="utf-8"), (result.output, result.exception)
    printed = result.output, str(result.exception), captured.out, captured.err
    assert not find_leaks(*printed, below=planted.root)
    if planted.runs() and planted.responses():
        told = planted.done("show", "--question", "q1", "--calls", "--full").output
        assert "Calls of the search" in told
        assert not find_leaks(told)


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("401", ["--method", "local", "--verbose"]),
        ("401", ["--method", "tog", "--verbose"]),
        ("garbage", ["--method", "tog", "--streaming"]),
    ],
)
def test_no_key_leaves_a_query(planted, server, kind, flags, capfd):
    from graphrag.cli.main import app

    server.behaviour = Behaviour(offline_reply(), FAULTS[kind])
    asked = ["query", ROWS[0]["question"], "--root", str(planted.project), *flags]
    result = CliRunner().invoke(app, asked)
    captured = capfd.readouterr()
    error = result.exception
    is_shown = error is not None and not isinstance(error, SystemExit)
    trace = "".join(traceback.format_exception(error)) if is_shown else ""
    assert result.exit_code == 1, result.output
    assert not find_leaks(result.output, trace, captured.out, captured.err, below=planted.root)


def test_settings_that_are_no_yaml_are_not_quoted_with_their_key(planted):
    path = planted.project / "settings.yaml"
    path.write_text(f"models:\n  api_key: '{FROM_SETTINGS}\n a: b: c", encoding="utf-8")
    result = planted.run()
    assert "is not valid YAML" in result.output
    assert not find_leaks(result.output)
