"""Where --config and --output lead, and that the commands which are printed run when pasted."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from support.clock_evaluation import Evaluation, MakeEvaluation, flat, in_process

from graphrag.text.cli_hints import runnable

DONE, USAGE = 0, 2
BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back that ``uv run``, which may run these tests, lends its path to programs."""
    monkeypatch.delenv("UV_RUN_RECURSION_DEPTH", raising=False)
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")


def paste(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run a command line in another folder, taken apart as a shell does, in this process."""
    program, group, *words = shlex.split(line)
    assert (program, group) == ("graphrag", "eval")
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        return in_process(*words)


def told(text: str) -> list[str]:
    """Return the command lines that a text tells to run."""
    return re.findall(r"(?:with|then|now): ((?:\S*graphrag|\S*python) .*?)\.?$", text, flags=re.M)


@pytest.fixture
def spaced(make_evaluation: MakeEvaluation) -> Evaluation:
    """An evaluation whose folder has a blank in its name, asked of one method."""
    return make_evaluation(name="my evaluation", methods=["basic"])


def test_config_and_output_are_relative_to_the_root(spaced, tmp_path):
    other = spaced.root / "settings" / "other.yaml"
    other.parent.mkdir()
    shutil.move(spaced.root / "eval_config.yaml", other)
    flags = ("--config", "settings/other.yaml", "--output", "out/here")
    spaced.done("--limit", "1", "-q", *flags)
    assert (spaced.root / "out" / "here" / "eval.db").is_file()
    for command in (("show",), ("show", "latest"), ("judge", "latest")):
        again = spaced.run(*command, *flags)
        assert again.exit_code == DONE, (command, again.output)
    assert not (Path.cwd() / "out").exists()
    absolute = tmp_path / "absolute"
    spaced.done("--limit", "1", "-q", *flags[:2], "-o", str(absolute))
    assert (absolute / "eval.db").is_file()


def test_a_file_in_the_place_of_a_folder_is_refused(spaced):
    for command, sentence in (
        (("compare", "a", "b", "--output", "x.json"), "x.json is a file; this command reads a"),
        (("--limit", "1", "--output", "x.json"), "x.json is a file; this command reads a"),
        (("--output", "x.csv"), "x.csv is the name of a file; name the folder of the results"),
        (("--output", "questions.json/deep"), "can't be written"),
    ):
        result = spaced.run(*command)
        assert result.exit_code in (1, USAGE), result.output
        assert sentence in flat(result.output)
        assert not (spaced.root / command[-1]).exists()
    spaced.configure(output={"dir": "results.json"})
    result = spaced.done("--limit", "1", code=USAGE)
    assert "output.dir" in flat(result.output)
    assert not (spaced.root / "results.json").exists()


def test_every_follow_up_runs_when_pasted_into_another_folder(spaced, tmp_path, monkeypatch):
    """From ``init`` to ``compare``, with relative paths, blanks in names, and variables."""
    elsewhere = tmp_path / "some where"
    elsewhere.mkdir()
    root, project = spaced.root, spaced.project
    (root / "eval_config.yaml").unlink()
    monkeypatch.chdir(root.parent)
    relative = f"{root.name}/clock"
    result = in_process("show", "--root", relative)
    assert result.exit_code == USAGE
    (init,) = told(result.stderr)
    assert init == f"graphrag eval init --root '{project}'"
    done = paste(init, elsewhere, monkeypatch)
    assert done.exit_code == DONE, done.stderr
    shutil.copy(root / "questions.json", project / "eval" / "questions.json")
    config = yaml.safe_load((project / "eval_config.yaml").read_text(encoding="utf-8"))
    config |= {"dataset": {"path": "eval/questions.json"}, "methods": ["basic"]}
    (project / "eval_config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert told(done.stdout) == [f"graphrag eval --root '{project}'"]

    shutil.move(project / "eval_config.yaml", project / "named.yaml")
    flags = ["--config", "named.yaml", "--output", "out", "--limit", "2"]
    variables = {"GRAPHRAG_EVAL_ROOT": relative, "GRAPHRAG_EVAL_SKIP_JUDGE": "1"}
    result = in_process(*flags, **variables)
    assert result.exit_code == DONE, result.output
    (stopped,) = (line for line in told(result.output) if "--resume" in line)
    for part in (f"--root '{project}'", "--limit 2", "--resume"):
        assert part in stopped
    done = paste(stopped, elsewhere, monkeypatch)
    assert done.exit_code == DONE, done.output

    there = ["--root", relative, *flags[:4]]
    (listed,) = told(in_process("show", "nothing", *there).stderr)
    done = paste(listed, elsewhere, monkeypatch)
    assert done.exit_code == DONE, done.output
    (compare,) = told(in_process("judge", "latest", *there).stderr)
    assert "Undecided for " in paste(compare, elsewhere, monkeypatch).stdout
    drawn = in_process("view", "--labels", "latest", *there).stdout
    assert "name the file that its button Download CSV saves), then: graphrag eval judge" in drawn
    (labelled,) = told(drawn)
    assert "has no label yet" in paste(labelled, elsewhere, monkeypatch).stderr
    assert not list(elsewhere.iterdir())


def test_a_project_that_is_not_built_says_how_to_build_it(spaced, tmp_path, monkeypatch):
    shutil.rmtree(spaced.project / "output")
    monkeypatch.chdir(spaced.root.parent)
    refused = in_process("--root", spaced.root.name)
    assert refused.exit_code == USAGE
    (build,) = told(refused.stderr)
    assert build == f"graphrag index --root '{spaced.project}'"
    assert "add --index, or build it with" in flat(refused.stderr)


@pytest.mark.parametrize(
    ("variable", "value"), [("PATH", os.defpath), ("UV_RUN_RECURSION_DEPTH", "1")]
)
def test_a_program_that_the_shell_does_not_find_is_named_by_its_path(variable, value, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(BIN / "graphrag"), "eval"])
    assert runnable("graphrag eval") == ("graphrag", "eval")
    monkeypatch.setenv(variable, value)
    assert runnable("graphrag eval") == (f"{BIN}/graphrag", "eval")
