"""The project installed beside the released graphrag, and taken away again.

One environment serves them all: it gets the release, then the project in each way that people
install it, and after each of them the project is uninstalled. What a user sees of the release
alone is looked at once, when the project has been there twice and is gone: the release's files
and what an interpreter imports as it starts are then as they were before.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name

import pytest
from support.commands import copy_compiled, run_apart
from uv import find_uv_bin

import graphrag_overlay
from graphrag.installation import requirements

pytestmark = pytest.mark.slow

_LOOK = """
import json
from importlib.util import find_spec

import graphrag.api
from graphrag.cli.main import app
from graphrag_llm.completion.completion_factory import completion_factory
from graphrag_llm.embedding.embedding_factory import embedding_factory
from typer.testing import CliRunner

def help_of(*words):
    result = CliRunner().invoke(app, [*words, "--help"])
    return result.output if result.exit_code == 0 else None

print(json.dumps({
    "help": help_of(),
    "query": help_of("query"),
    "eval": help_of("eval"),
    "names": sorted(set(graphrag.api.__all__)),
    "functions": {
        name: getattr(graphrag.api, name).__module__ for name in graphrag.api.__all__
    },
    "ours": [
        name
        for name in ("graphrag.eval", "graphrag.embedded", "graphrag.query.graph_index")
        if find_spec(name)
    ],
    "offline": ["offline" in completion_factory, "offline" in embedding_factory],
}))
"""


run = partial(run_apart, COLUMNS="100")


@dataclass(frozen=True)
class Environment:
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def uv(self, verb: str, *what: object) -> None:
        run(find_uv_bin(), "pip", verb, "--python", self.python, *what)

    def pip(self, verb: str, *what: object) -> None:
        run(self.python, "-m", "pip", verb, "--disable-pip-version-check", *what)

    def look(self) -> dict[str, object]:
        """What a user of this environment sees of graphrag, from a folder that isn't ours."""
        return json.loads(run(self.python, "-I", "-c", _LOOK))

    def start(self) -> str:
        """Return what an interpreter has imported, and what will import for it, as it starts."""
        code = "import sys; print(sorted(sys.modules), sys.meta_path, sys.path_hooks, sys.path)"
        return re.sub(r" at 0x\w+", "", run(self.python, "-I", "-c", code))

    @property
    def site(self) -> Path:
        return next(self.folder.rglob("site-packages"))

    def files(self) -> dict[str, str]:
        """Every file, folder, start-up hook and script of graphrag's and ours, with its hash."""
        found = [
            path
            for top in [*self.site.glob("*graphrag*"), *self.site.glob("*gtog*")]
            for path in [top, *top.rglob("*")]
        ]
        found += [*self.site.glob("*.pth"), *self.python.parent.glob("*graphrag*")]
        return {
            path.relative_to(self.folder).as_posix(): _digest(path)
            for path in found
            if "__pycache__" not in path.parts
        }


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"


@pytest.fixture(scope="session")
def archives(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(find_uv_bin(), "build", "--python", sys.executable, "--out-dir", folder, project_root)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


@dataclass(frozen=True)
class Released:
    """An environment with nothing but the release, and what it was like."""

    environment: Environment
    files: dict[str, str]
    start: str

    @property
    def names(self) -> list[str]:
        """What the release's API names, read from its source."""
        source = self.environment.site / "graphrag" / "api" / "__init__.py"
        (named,) = [
            node.value
            for node in ast.parse(source.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node)
        ]
        return sorted(ast.literal_eval(named))

    def assert_untouched(self) -> None:
        assert self.environment.files() == self.files
        assert self.environment.start() == self.start


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    environment = Environment(tmp_path_factory.mktemp("released") / "env")
    run(find_uv_bin(), "venv", "--seed", "--python", sys.executable, environment.folder)
    environment.uv("install", f"graphrag=={version('graphrag')}", "hatchling", "editables")
    copy_compiled(environment.site)
    return Released(environment, environment.files(), environment.start())


@pytest.mark.parametrize(
    ("install", "uninstall"),
    [
        (lambda env, _, wheel: env.uv("install", wheel), lambda env: env.uv("uninstall", "gtog")),
        (
            lambda env, root, _: env.pip("install", "--no-build-isolation", "--editable", root),
            lambda env: env.pip("uninstall", "-y", "gtog"),
        ),
    ],
    ids=["uv-wheel", "pip-editable"],
)
def test_an_installation_adds_its_parts_and_leaves_nothing_behind(
    install, uninstall, released, project_root, archives
):
    environment = released.environment

    install(environment, project_root, archives[1])
    try:
        seen = environment.look()
        files = environment.files()
        start = environment.start()
    finally:
        uninstall(environment)

    assert files.items() >= released.files.items(), "files of the release were changed"
    assert "graphrag_overlay" in start
    assert {"tog_search", *released.names} <= set(seen["names"])
    assert seen["functions"]["local_search"] == "graphrag.api.search"
    assert "--methods" in seen["eval"]
    assert "tog" in seen["query"]
    assert "prompt-tune" in seen["help"]
    assert len(seen["ours"]) == 3
    assert seen["offline"] == [True, True]
    released.assert_untouched()


def test_once_the_project_is_gone_all_is_as_before(released):
    released.assert_untouched()
    assert "graphrag_overlay" not in released.start
    seen = released.environment.look()
    assert seen["names"] == released.names
    assert seen["functions"]["local_search"] == "graphrag.api.query"
    assert "prompt-tune" in seen["help"]
    assert "tog" not in seen["query"]
    assert (seen["eval"], seen["ours"], seen["offline"]) == (None, [], [False, False])


def test_the_wheel_holds_the_package_and_its_hook_and_replaces_no_file(archives, released):
    with zipfile.ZipFile(archives[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        metadata = {name.rpartition("/")[2] for name in wheel.namelist()} - names

        scripts = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
        commands = wheel.read(*scripts).decode().split("\n")

    outside = {name for name in names if not name.startswith("graphrag/")}
    assert outside == {f"graphrag_overlay.{ending}" for ending in ("py", "pth", "start")}
    assert not {"graphrag/__init__.pyi", "graphrag/py.typed"} & names
    assert not [name for name in names if name.endswith(".pyc")]
    assert "LICENSE" in metadata
    # No script of the release's name: installers disagree on which of two stays.
    assert [line for line in commands if line] == [
        "[console_scripts]",
        "gtog = graphrag_overlay:main",
    ]
    site = released.environment.site.relative_to(released.environment.folder).as_posix()
    assert f"{site}/graphrag/cli/main.py" in released.files
    assert not [name for name in names if f"{site}/{name}" in released.files]


def test_the_sdist_holds_every_file_of_the_project(archives, project_root):
    if not (project_root / ".git").exists():
        pytest.skip("not a git checkout: nothing says which files belong to the project")
    tracked = run("git", "-C", project_root, "ls-files").splitlines()
    with tarfile.open(archives[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}

    assert {"pyproject.toml", "graphrag_overlay.pth"} <= set(tracked)
    assert {name for name in tracked if (project_root / name).is_file()} - names == set()


@pytest.fixture
def installed(released: Released, archives: tuple[Path, Path]) -> Iterator[Environment]:
    released.environment.uv("install", archives[1])
    yield released.environment
    released.environment.uv("uninstall", "gtog")


def test_the_commands_are_there_without_the_start_hook(installed):
    """``python -S`` reads no ``.pth``, and neither does who has a ``--target`` folder on a path."""
    bare = ["env", f"PYTHONPATH={installed.site}", installed.python, "-S"]
    program = "import sys, graphrag.eval, graphrag.api as a; print(a.tog_search.__module__)"

    assert "graphrag_overlay" not in run(*bare, "-c", "import sys; print(*sys.modules)")
    assert "--methods" in run(*bare, "-m", "graphrag.eval", "--help")
    assert "--methods" in run(*bare, installed.python.with_name("gtog"), "eval", "--help")
    assert run(*bare, "-c", program).strip() == "graphrag.api.search"


def test_a_missing_requirement_stops_our_commands_alone(installed):
    installed.uv("uninstall", "stopwordsiso")
    words = [installed.python.with_name("graphrag"), "eval", "history"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    program = "import graphrag.api as a; print(a.local_search.__module__, hasattr(a, 'tog_search'))"
    api = subprocess.run(
        [installed.python, "-I", "-c", program], capture_output=True, text=True, check=True
    )

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: not installed: stopwordsiso")
    assert re.search(r'Run: \S+ -m pip install "stopwordsiso', done.stderr)
    assert "prompt-tune" in run(words[0], "--help")
    if api.stdout.strip() == "graphrag.api.query False":
        (warning,) = [line for line in api.stderr.splitlines() if "gtog" in line]
        assert "not installed: stopwordsiso" in warning
    else:  # where the searches can be imported without it
        assert api.stdout.strip() == "graphrag.api.search True"


def test_the_file_for_newer_pythons_names_what_the_line_of_the_hook_calls(project_root):
    assert f"graphrag<3.4,>={graphrag_overlay._RELEASE}" in requirements()
    (entry,) = (project_root / "graphrag_overlay.start").read_text().split()
    (line,) = (project_root / "graphrag_overlay.pth").read_text().splitlines()

    assert resolve_name(entry) is graphrag_overlay.start
    assert line == f"import graphrag_overlay; {entry.replace(':', '.')}()"


def test_every_pip_command_of_the_docs_asks_for_what_the_metadata_ask(project_root):
    known = {
        frozenset(re.split(r"(?=[<>=])|,", line))
        for extra in (None, "examples")
        for line in requirements(extra)
    }
    texts = [*(project_root / "docs").glob("*.md"), *(project_root / "examples").glob("*.py")]
    shown = [
        line
        for path in texts
        for command in re.findall(r"pip install ((?:\"[^\"]+\"\s*)+)", path.read_text("utf-8"))
        for line in re.findall(r'"([^"$]+)"', command)
        if not line.startswith("gtog[")  # an extra, which asks for what the metadata ask
    ]

    assert len(set(shown)) == 2
    assert {frozenset(re.split(r"(?=[<>=])|,", line)) for line in shown} <= known


def test_the_start_hook_imports_nothing_heavy():
    code = "import sys; print(*sorted(sys.modules))"
    with_hook = set(run(sys.executable, "-I", "-c", code).split())
    without = set(run(sys.executable, "-I", "-S", "-c", code).split())

    assert "graphrag_overlay" in with_hook
    added = {name for name in with_hook - without if not name.startswith("_")}
    assert not added & {"graphrag", "typing", "importlib.util", "importlib.abc", "types", "re"}
