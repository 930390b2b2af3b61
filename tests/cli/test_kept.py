"""A finished run is shown by what was printed of it, as long as nothing that it says changed."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import Result
from support.clock_evaluation import Evaluation, in_process

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
heavy = {"scipy", "pandas", "numpy", "litellm", "statsmodels", "lancedb", "openai"}
loaded = sorted(heavy & {*sys.modules})
print(code, *loaded)
"""


def show(folder: Path, *flags: str, run: str = "latest") -> Result:
    place = ["--root", str(folder.parents[1]), "--output", str(folder)]
    result = in_process("show", run, *place, *flags)
    assert result.exit_code == 0, result.output
    return result


def kept_file(folder: Path) -> Path:
    (path,) = folder.glob(f"runs/*/{kept.KEPT_FILE}")
    return path


def test_it_looks_as_if_it_were_computed(finished_copy, monkeypatch):
    folder = finished_copy.output
    assert "Computing" in show(folder).stderr  # its commands are to name this place
    path = kept_file(folder)
    written = path.read_bytes()
    for flags, width, color in (
        ((), "60", ""),
        (("--full",), "60", "1"),
        (("--full",), "200", ""),
        (("--quiet",), "60", ""),
    ):
        monkeypatch.setenv("COLUMNS", width)
        monkeypatch.setenv("FORCE_COLOR", color)
        path.write_bytes(written)
        again = show(folder, *flags)
        assert "Computing" not in again.stderr
        path.unlink()
        assert again.stdout == show(folder, *flags).stdout


def test_a_run_keeps_what_it_printed(make_evaluation):
    evaluation = make_evaluation(judge={"rubric": True}, trials=2)
    ran = evaluation.done()
    again = evaluation.run("show", "latest")
    assert "Computing" not in again.stderr
    assert again.stdout == ran.stdout


def loaded_by(evaluation: Evaluation, *words: str) -> list[str]:
    """Return the exit code of a command, and which large libraries it imports."""
    command = [sys.executable, "-c", _LOOK, "eval", *words, "--root", str(evaluation.root)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    return done.stdout.splitlines()[-1].split()


def test_nothing_heavy_is_loaded(finished_copy):
    finished_copy.done("show", "latest")
    assert loaded_by(finished_copy, "show", "latest") == ["0"]


def test_what_is_another_now_is_computed(finished_copy, monkeypatch):
    folder = finished_copy.output

    def is_computed() -> bool:
        computed = "Computing" in show(folder).stderr
        assert "Computing" not in show(folder).stderr
        return computed

    assert is_computed()  # of another place
    assert not is_computed()
    before = show(folder).stdout
    with EvaluationStore(finished_copy.store_path) as store:
        run_id = store.runs()[0].run_id
        unit = next(iter(store.responses(run_id)))
        store.append_verdicts(run_id, unit, {"correctness": JudgeResult(0, "no")}, Usage())
    changed = show(folder)
    assert "Computing" in changed.stderr
    assert changed.stdout != before
    labels = folder / "runs" / run_id / "audit_correctness.json"
    labels.write_text("{}", encoding="utf-8")
    assert is_computed()
    labels.unlink()
    assert is_computed()
    file = kept_file(folder)
    for damaged in ("", "[]", file.read_text(encoding="utf-8")[:-9]):
        file.write_text(damaged, encoding="utf-8")
        assert is_computed()
    monkeypatch.setattr(kept, "_sources", lambda: b"of another release")
    assert is_computed()
    with EvaluationStore(finished_copy.store_path) as store:
        store.reopen_run(run_id)
    assert "unfinished" in show(folder).stderr


def test_files_of_another_run_are_left_as_they_are(finished_copy):
    folder, older = finished_copy.output, finished_copy.newest_folder.name
    finished_copy.done("--limit", "1", "-q")
    for _ in range(2):
        own = show(folder, run=older)
        assert f"Files in: {folder / 'runs' / older}" in own.stdout.replace("\n", "")
    summary = json.loads((folder / "eval_results_summary.json").read_text(encoding="utf-8"))
    assert summary["metadata"]["run_id"] == finished_copy.newest_folder.name
