"""action.yml and the scripts of docs/ci.md, run as far as a machine without GitHub can."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from support.clock_evaluation import ROWS, Evaluation
from support.clock_fixtures import maker
from support.served_graphrag import Done, Shell, write_stub

SECRET = "ghs_0123456789abcdefghijABCDEFGHIJ"
# A pull request's comments in a file, as the API of the `gh` command has them.
GH = """\
#!{python} -IS
import json, os, sys
arguments, path = sys.argv[1:], {comments!r}
if os.environ["GH_TOKEN"] != {token!r}:
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
comments = json.load(open(path)) if os.path.exists(path) else []
url = next(word for word in arguments if word.startswith("repos/"))
if "--method" not in arguments:
    assert url == "repos/owner/name/issues/7/comments", url
    mine = [each for each in comments if each["user"] == os.environ["AUTHOR"]]
    mine = [each for each in mine if each["body"].startswith(os.environ["MARKER"])]
    print("\\n".join(str(each["id"]) for each in mine))
    sys.exit()
(body,) = [word for word in arguments if word.startswith("body=@")]
text = open(body.removeprefix("body=@")).read()
if arguments[arguments.index("--method") + 1] == "POST":
    comments.append(dict(id=len(comments) + 100, user=os.environ["AUTHOR"], body=text))
else:
    comments[int(url.rsplit("/", 1)[1]) - 100]["body"] = text
json.dump(comments, open(path, "w"))
"""
UV = """\
#!/bin/bash
echo "uv $*" >>{log}
for last; do :; done
if [[ $1 == venv ]]; then mkdir -p "$last/bin" && cp {graphrag} "$last/bin/"; fi
"""


class Runner:
    """GitHub's runner of a composite action, as far as the action needs one."""

    def __init__(self, action: dict[str, Any], folder: Path, evaluation: Evaluation) -> None:
        self.action, self.folder, self.evaluation = action, folder, evaluation
        self.shell = Shell(folder)
        self.comments = folder / "comments.json"
        self.outputs: dict[str, dict[str, str]] = {}
        self.used: list[str] = []
        (folder / "temp").mkdir()
        gh = GH.format(python=sys.executable, comments=str(self.comments), token=SECRET)
        write_stub(self.shell.stubs / "gh", gh)
        graphrag = self.shell.stubs / "graphrag"
        graphrag.rename(folder / "graphrag")  # the action is to find what it installed
        uv = UV.format(log=folder / "uv.log", graphrag=folder / "graphrag")
        write_stub(self.shell.stubs / "uv", uv)

    @property
    def summary(self) -> str:
        path = self.folder / "summary.md"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def run(self, pull_request: str = "7", **inputs: str) -> tuple[int, list[Done]]:
        """Run every step; return the exit code of the first that fails, else 0, and all ends."""
        (self.folder / "summary.md").unlink(missing_ok=True)
        defaults = {name: str(each["default"]) for name, each in self.action["inputs"].items()}
        given = {**defaults, "token": SECRET, "root": str(self.evaluation.root), **inputs}
        values = {f"inputs.{name}": value for name, value in given.items()}
        values["github.event.pull_request.number"] = pull_request
        ends: list[Done] = []
        self.outputs, self.used = {}, []
        for step in self.action["runs"]["steps"]:
            if not self._is_wanted(step.get("if"), values):
                continue
            if "uses" in step:
                self.used.append(step["uses"])
                continue
            done = self._step(step, values)
            ends.append(done)
            if done.code:
                return done.code, ends
        return 0, ends

    def _is_wanted(self, condition: str | None, values: dict[str, str]) -> bool:
        parts = [part.strip() for part in (condition or "").split("&&") if part.strip()]
        for part in parts:
            name, _, wanted = part.partition(" == ")
            value = values[name]
            if value != wanted.strip("'") if wanted else not value:
                return False
        return True

    def _step(self, step: dict[str, Any], values: dict[str, str]) -> Done:
        files = {name: self.folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_PATH")}
        files["GITHUB_OUTPUT"].write_text("", encoding="utf-8")
        path = files["GITHUB_PATH"].read_text().split() if files["GITHUB_PATH"].exists() else []
        steps = {
            f"steps.{name}.outputs.{key}": value
            for name, found in self.outputs.items()
            for key, value in found.items()
        }
        known = {**values, **steps}
        environment = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], str(value))
            for name, value in step.get("env", {}).items()
        }
        done = self.shell.run(
            step["run"],
            self.evaluation.root,
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": "/action",
                "GITHUB_REPOSITORY": "owner/name",
                "GITHUB_RUN_ID": "42",
                "GITHUB_SERVER_URL": "https://github.example",
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
                "RUNNER_TEMP": str(self.folder / "temp"),
                "PATH": ":".join([*path, str(self.shell.stubs), "/usr/bin", "/bin"]),
                **{name: str(file) for name, file in files.items()},
                **environment,
            },
        )
        if "id" in step:
            lines = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in lines)
        return done


@pytest.fixture
def action(project_root: Path) -> dict[str, Any]:
    return yaml.safe_load((project_root / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pinned(built_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """Return an evaluation with a pinned baseline, which is copied for each test."""
    made = maker(built_project, tmp_path_factory.mktemp("pinned"))(methods=["basic"])
    made.write_rows([*ROWS[1:], {**ROWS[0], "answer": "Nobody at all"}])
    assert made.run("-q").exit_code == 0
    assert made.run("compare", "latest", "--pin").exit_code == 0
    return made


@pytest.fixture
def evaluation(pinned: Evaluation, tmp_path: Path) -> Evaluation:
    shutil.copytree(pinned.root, tmp_path / "evaluation")
    return Evaluation(tmp_path / "evaluation")


@pytest.fixture
def runner(action: dict[str, Any], evaluation: Evaluation, tmp_path: Path) -> Runner:
    folder = tmp_path / "runner"
    folder.mkdir()
    return Runner(action, folder, evaluation)


def test_the_action_runs_the_gate_and_keeps_one_comment(runner):
    code, ends = runner.run()
    printed = "".join(each.stdout + each.stderr for each in ends)
    outputs = runner.outputs["gate"]
    assert (code, outputs["verdict"], outputs["exit-code"]) == (3, "INCONCLUSIVE", "3"), printed
    assert SECRET not in printed
    report = Path(outputs["report"])
    names = {path.name for path in report.iterdir()}
    assert {"junit.xml", "summary.md", "gate.json", "rows.csv", "eval_results_summary.json"} <= (
        names
    )
    suites = ElementTree.parse(report / "junit.xml").getroot()
    assert [suite.get("tests") for suite in suites] == ["1", str(len(ROWS))]
    assert runner.summary.count("### Evaluation gate") == 1
    assert "offline baseline models" in runner.summary
    installed = (runner.folder / "uv.log").read_text(encoding="utf-8")
    assert "uv pip install" in installed
    assert "/action" in installed
    (comment,) = json.loads(runner.comments.read_text(encoding="utf-8"))
    assert comment["body"].startswith("<!-- graphrag-eval: default -->\n### Evaluation gate: ")
    assert "https://github.example/owner/name/actions/runs/42" in comment["body"]
    assert runner.used == ["astral-sh/setup-uv@v6", "actions/upload-artifact@v4"]

    # On other terms, and by the token of a fork, which may only read.
    inputs = {"compare-arguments": "--margin 0.9", "token": "of a fork", "upload": "false"}
    code, ends = runner.run(**inputs)
    assert (code, runner.outputs["gate"]["verdict"]) == (0, "PASS")
    assert "::notice::The comment can't be written" in "".join(each.stdout for each in ends)
    assert runner.summary.startswith("### Evaluation gate: PASS")
    assert json.loads(runner.comments.read_text(encoding="utf-8")) == [comment]
    assert runner.used == ["astral-sh/setup-uv@v6"]


def test_a_missed_threshold_fails_what_the_gate_passes(runner):
    runner.evaluation.configure(thresholds={"correctness": 1.0})
    code, _ = runner.run(**{"compare-arguments": "--margin 0.9"})
    outputs = runner.outputs["gate"]
    assert (code, outputs["verdict"], outputs["exit-code"]) == (100, "PASS", "100")
    assert "The run itself ended with exit code 100, so the check fails." in runner.summary


def test_what_can_not_be_compared_is_an_error_in_the_one_comment(runner):
    others = [{"id": 100, "user": "someone", "body": "<!-- graphrag-eval: default -->"}]
    runner.comments.write_text(json.dumps(others), encoding="utf-8")
    for _ in range(2):
        code, _ = runner.run(baseline="no/such.json; echo injected")
        assert (code, runner.outputs["gate"]["verdict"]) == (2, "ERROR")
    other, mine = json.loads(runner.comments.read_text(encoding="utf-8"))
    assert other == others[0]
    assert "### Evaluation gate: ERROR" in mine["body"]
    assert "### Evaluation gate: ERROR" in runner.summary
    runner.comments.unlink()
    assert runner.run(pull_request="", baseline="no/such.json")[0] == 2
    assert not runner.comments.exists()


def test_no_script_of_the_action_has_a_value_written_into_it(action):
    steps = action["runs"]["steps"]
    for step in steps:
        assert "${{" not in step.get("run", ""), step["name"]
        assert step.get("shell", "bash") == "bash"
        assert ("run" in step) == ("shell" in step)
    uses = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", each) for each in uses)
    with_token = [step["name"] for step in steps if "inputs.token" in str(step.get("env"))]
    assert with_token == ["Comment on the pull request"]
    named = set(re.findall(r"inputs\.([\w-]+)", str(action["runs"])))
    assert named == set(action["inputs"])
    assert all(each["description"] for each in (*action["inputs"].values(),))


def blocks(project_root: Path, language: str) -> list[str]:
    text = (project_root / "docs" / "ci.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_documented_workflow_passes_inputs_that_there_are(action, project_root):
    github, *_ = [yaml.safe_load(block) for block in blocks(project_root, "yaml")]
    (job,) = github["jobs"].values()
    (step,) = [step for step in job["steps"] if "gtog@" in step.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])
    assert github["permissions"]["pull-requests"] == "write"
    text = (project_root / "docs" / "ci.md").read_text(encoding="utf-8")
    assert [n for n in (*action["inputs"], *action["outputs"]) if f"`{n}`" not in text] == []


def test_the_other_scripts_of_the_documentation_run(evaluation, project_root, tmp_path):
    (once, _), (cron,) = blocks(project_root, "sh"), blocks(project_root, "bash")
    _, gitlab, _ = [yaml.safe_load(block) for block in blocks(project_root, "yaml")]
    (evaluation.output / "baseline.json").unlink()
    folder = tmp_path / "shell"
    folder.mkdir()
    shell = Shell(folder)
    done = shell.run(once, evaluation.root, {})
    assert done.code == 0, done
    assert (evaluation.output / "baseline.json").exists()

    job = gitlab["evaluate"]
    done = shell.run("set +e\n" + "\n".join(job["script"]), evaluation.root, {})
    assert done.code in (0, *[job["allow_failure"]["exit_codes"]]), done
    for name in (job["artifacts"]["reports"]["junit"], *job["artifacts"]["paths"]):
        assert (evaluation.root / name).stat().st_size, name

    script = evaluation.root / "evaluate.sh"
    write_stub(script, cron)
    done = shell.run(f"cd / && {script}", evaluation.root, {})
    assert (done.code == 0) == (not done.stdout)
    (evaluation.output / "baseline.json").unlink()
    done = shell.run(f"cd / && {script}", evaluation.root, {})
    assert done.code == 2
    assert "No baseline is pinned" in done.stdout
