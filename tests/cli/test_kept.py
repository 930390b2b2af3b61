"""A finished run is shown by what was printed of it, as long as nothing that it says changed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from support.clock_evaluation import MakeEvaluation
from support.viewed_store import keep_run
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.command_lines import (
    Invocation,
    eval_line_here,
    put_place,
    remember,
    without_place,
)
from graphrag.eval.cli import kept
from graphrag.eval.records import JudgeResult
from graphrag.eval.store.database import EvaluationStore
from graphrag.query.usage import Usage

_LOOK = """
import sys
sys.argv[0] = "graphrag"
from graphrag.cli.main import app
try:
    app()
except SystemExit as end:
    code = end.code
heavy = {"scipy", "pandas", "numpy", "litellm", "graphrag_llm", "statsmodels"} & {*sys.modules}
sys.exit(f"{code} {heavy}" if code or heavy else 0)
"""


def show(folder: Path, *flags: str) -> Result:
    result = CliRunner().invoke(app, ["eval", "show", "--output", str(folder), *flags])
    assert result.exit_code == 0, result.output
    return result


def kept_file(folder: Path) -> Path:
    (path,) = folder.glob(f"runs/*/{kept.KEPT_FILE}")
    return path


@pytest.mark.parametrize("width", ["60", "200"])
@pytest.mark.parametrize("colors", [False, True])
@pytest.mark.parametrize("flags", [(), ("--full",), ("--quiet",)])
def test_it_looks_as_if_it_were_computed(
    flags: tuple[str, ...],
    colors: bool,
    width: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("COLUMNS", width)
    if colors:
        monkeypatch.setenv("FORCE_COLOR", "1")
    keep_run(tmp_path)
    show(tmp_path)
    again = show(tmp_path, *flags)
    assert "Computing" not in again.stderr
    kept_file(tmp_path).unlink()
    assert again.stdout == show(tmp_path, *flags).stdout


def test_a_run_keeps_what_it_printed(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(judge={"rubric": True}, trials=2)
    ran = evaluation.run()
    assert ran.exit_code == 0, ran.output
    again = evaluation.run("show")
    assert "Computing" not in again.stderr
    assert again.stdout == ran.stdout
    full = evaluation.run("show", "--full").stdout
    kept_file(evaluation.output).unlink()
    computed = evaluation.run("show", "--full")
    assert "Computing" in computed.stderr
    assert full == computed.stdout


def test_a_command_is_told_as_it_can_be_given_now():
    with without_place():
        told = f"To measure it: {eval_line_here('audit', 'export', 'RUN')}; then look."
    remember(Invocation(("my gtog", "eval"), place=("--output", "/a b")))
    assert (
        put_place(told)
        == "To measure it: 'my gtog' eval audit export RUN --output '/a b'; then look."
    )
    remember(Invocation(("graphrag", "eval")))
    assert put_place(told) == "To measure it: graphrag eval audit export RUN; then look."


def test_nothing_heavy_is_loaded(tmp_path: Path):
    keep_run(tmp_path)
    show(tmp_path)
    words = [sys.executable, "-c", _LOOK, "eval", "show", "--output", str(tmp_path)]
    done = subprocess.run(words, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_what_is_another_now_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_id = keep_run(tmp_path)

    def is_computed() -> bool:
        computed = "Computing" in show(tmp_path).stderr
        assert "Computing" not in show(tmp_path).stderr
        return computed

    assert is_computed()
    path = tmp_path / "eval.db"
    with EvaluationStore(path) as store:
        before = show(tmp_path).stdout
        store.append_verdicts(run_id, "q7 basic", {"correctness": JudgeResult(0, "no")}, Usage())
    changed = show(tmp_path)
    assert "Computing" in changed.stderr
    assert changed.stdout != before
    with EvaluationStore(path) as store:
        store.append_forgotten(run_id, "q7 basic", Usage(llm_calls=1))
    assert is_computed()
    labels = tmp_path / "runs" / run_id / "audit_correctness.json"
    labels.write_text("{}", encoding="utf-8")
    assert is_computed()
    labels.unlink()
    assert is_computed()
    file = kept_file(tmp_path)
    for damaged in ("", "[]", "{}", file.read_text(encoding="utf-8")[:-9]):
        file.write_text(damaged, encoding="utf-8")
        assert is_computed()
    monkeypatch.setattr(kept, "_sources", lambda _: [b"of another release"])
    assert is_computed()
    with EvaluationStore(path) as store:
        store.reopen_run(run_id)
    assert "unfinished" in show(tmp_path).stderr


def test_files_of_another_run_are_left_as_they_are(tmp_path: Path):
    older = keep_run(tmp_path)
    newer = keep_run(tmp_path)
    show(tmp_path)
    for _ in range(2):
        own = show(tmp_path, older)
        assert f"Files in: {tmp_path / 'runs' / older}" in own.stdout.replace("\n", "")
    summary = json.loads((tmp_path / "eval_results_summary.json").read_text(encoding="utf-8"))
    assert summary["metadata"]["run_id"] == newer
