"""What the release still does when the overlay can't add to it.

Each test starts processes that see graphrag's or the project's own source changed: a path hook,
put in place by ``sitecustomize`` after the overlay has started, replaces text while a module is
loaded. No file is changed. Most are forked from one that has imported large packages; a whole
overlay, and what is imported for help, are seen in interpreters of their own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from support.forked_starts import ForkedStarts

pytestmark = pytest.mark.slow

_EDIT = """
import json, os, sys
from importlib.machinery import EXTENSION_SUFFIXES as ENDINGS
from importlib.machinery import ExtensionFileLoader, FileFinder, SourceFileLoader

EDITS = json.loads(os.environ["EDITS"])

class Edited(SourceFileLoader):
    def get_code(self, name):
        if name not in EDITS:
            return super().get_code(name)
        old, new = EDITS[name]
        source = self.get_source(name)
        assert old in source, (name, old)
        source = source.replace(old, new) if old else new
        return compile(source, self.path, "exec", dont_inherit=True)

hook = FileFinder.path_hook((ExtensionFileLoader, ENDINGS), (Edited, [".py"]))
sys.path_hooks.insert(0, hook)
sys.path_importer_cache.clear()
"""

_LOOK = """
import json
import sys

out = {}
for name in sys.argv[1:]:
    __import__(name)
from graphrag.cli.main import app
from typer.testing import CliRunner

for line in ("--help", "query --help", "ask --help", "index --help", "eval --limit 1"):
    words = line.split()
    result = CliRunner().invoke(app, words)
    out[words[0]] = [result.exit_code, result.output]
if "graphrag.api" in sys.modules:
    import graphrag.api
    out["api"] = {n: getattr(graphrag.api, n).__module__ for n in graphrag.api.__all__}
if "graphrag.config.load_config" in sys.modules:
    out["config"] = sys.modules["graphrag.config.load_config"].GraphRagConfig.__module__
print(json.dumps(out))
"""

_RAISE = "raise RuntimeError('broken on purpose')\n"
_COMPLETION = "graphrag_llm.completion.completion_factory"
_QUERY = '@app.command("query")'
_OFF = "could not be extended"


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedStarts]:
    with ForkedStarts(tmp_path_factory.mktemp("starts")) as starts:
        yield starts


def run(words, folder, edits=None, forked=None, **variables):
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_EDIT)
    environment = {k: v for k, v in os.environ.items() if k not in ("GTOG_OVERLAY", "PYTHONPATH")}
    environment |= {
        "EDITS": json.dumps(edits or {}),
        "PYTHONPATH": str(folder),
        "COLUMNS": "200",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    } | variables
    if forked is not None:
        return forked.run(words, folder, environment)
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def look(folder, edits, *modules, forked=None):
    """What a process sees that imports these modules, then the command line; the lines it wrote."""
    done = run([sys.executable, "-c", _LOOK, *modules], folder, edits, forked)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr.splitlines()


def script(name):
    return Path(sys.executable).with_name(name)


def assert_released(seen):
    """The released commands are all there, and ours alone says why it isn't."""
    for command in ("--help", "index"):
        assert seen[command][0] == 0, seen[command]
    assert "prompt-tune" in seen["--help"][1]
    code, text = seen["eval"]
    assert code == 2
    assert text.startswith("Error: there is no `graphrag eval` here: ")
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    ("broken", "old", "new", "loaded", "cause"),
    [
        ("graphrag.cli.main", _QUERY, '@app.command("ask")', (), "no command query"),
        ("graphrag.cli.main", "    response_type", "    style", (), "other options"),
        ("graphrag.cli.query_command", "", _RAISE, (), "RuntimeError: broken on purpose"),
        # Found out after `query` was replaced: what was done is undone.
        (
            "graphrag.eval.cli.mount",
            "    released.add_typer(",
            "    released.added(",
            (),
            "'added'",
        ),
        ("graphrag.api.search", "", _RAISE, ("graphrag.api",), _OFF),
        ("graphrag.config.project_settings", "", "x = 1", ("graphrag.config.load_config",), _OFF),
        (_COMPLETION, "register_completion(", "register_completion(wanted, ", (_COMPLETION,), _OFF),
    ],
    ids=["renamed", "changed", "ours-broken", "half-done", "api", "config", "completion"],
)
def test_the_release_works_where_ours_can_t_be_added(
    broken, old, new, loaded, cause, tmp_path, forked
):
    seen, warnings = look(tmp_path / "broken", {broken: [old, new]}, *loaded, forked=forked)

    assert len(warnings) == 1, warnings
    assert_released(seen)
    renamed = "ask" in new
    assert seen["query"][0] == (2 if renamed else 0)
    assert seen["ask"][0] == (0 if renamed else 2)
    assert "tog" not in seen["query"][1]
    assert warnings[0].startswith("Warning: graphrag runs as released, without gtog: ")
    assert cause in warnings[0]
    assert all(f"{module} {_OFF}" in warnings[0] for module in loaded)
    assert "GTOG_OVERLAY=0" in warnings[0]
    if "graphrag.api" in loaded:
        assert "tog_search" not in seen["api"]
        assert seen["api"]["local_search"] == "graphrag.api.query"


def test_nothing_is_added_to_another_release_and_our_commands_say_why(tmp_path, forked):
    """The folder's metadata say that another graphrag is installed."""
    folder = tmp_path / "3.4.0"
    info = folder / "graphrag-3.4.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: graphrag\nVersion: 3.4.0\n")
    cause = "graphrag 3.4.0 is installed, and gtog needs 3.3"
    seen, warnings = look(folder, {}, "graphrag.config.load_config", "graphrag.api", forked=forked)

    assert len(warnings) == 1, warnings
    assert_released(seen)
    assert seen["config"] == "graphrag.config.models.graph_rag_config"
    assert seen["api"]["local_search"] == "graphrag.api.query"
    assert "tog" not in seen["query"][1]
    assert cause in warnings[0]
    assert 'pip install "graphrag==3.3.*"' in warnings[0]

    for command in (
        [script("gtog"), "eval", "--help"],
        [sys.executable, "-m", "graphrag.eval", "history"],
    ):
        done = run(command, folder, forked=forked)
        assert done.returncode == 2, (command, done.stderr)
        warning, error = done.stderr.splitlines()
        assert warning.startswith("Warning: graphrag runs as released, without gtog: ")
        assert error.startswith("Error: there is no ")
        assert cause in error


def test_a_whole_overlay_adds_everything_without_a_word(tmp_path):
    """The loaders of the path hook are not the usual ones: as another tool's would not be."""
    seen, warnings = look(tmp_path / "whole", {}, "graphrag.config.load_config", "graphrag.api")

    assert warnings == []
    assert seen["config"] == "graphrag.config.project_settings"
    assert seen["api"]["tog_search"] == "graphrag.api.search"
    assert "tog" in seen["query"][1]
    assert seen["eval"][0] == 2
    assert "eval_config.yaml does not exist" in seen["eval"][1]


def test_the_variable_switches_the_start_off(tmp_path, forked):
    folder = tmp_path / "off"
    program = dedent(
        """
        import sys
        import graphrag.cli.main as main
        print([c.name for c in main.app.registered_groups], "graphrag_overlay" in sys.modules)
        print([f.__module__ for f in sys.meta_path if hasattr(f, "__module__")])
        """
    )
    done = run([sys.executable, "-c", program], folder, forked=forked, GTOG_OVERLAY="0")
    groups, finders = done.stdout.splitlines()

    assert groups == "[] True"
    assert "graphrag_overlay" not in finders
    assert done.stderr == ""
    off = {"forked": forked, "GTOG_OVERLAY": "0"}
    assert run([script("graphrag"), "eval"], folder, **off).returncode == 2
    asked = run([script("gtog"), "eval", "--help"], folder, **off)
    assert asked.returncode == 0, asked.stderr
    assert "--methods" in asked.stdout


def test_importing_the_evaluation_adds_to_what_is_loaded_already(tmp_path, forked):
    program = dedent(
        """
        import graphrag.api, graphrag.cli.main
        before = hasattr(graphrag.api, "tog_search")
        import graphrag_overlay
        graphrag_overlay.activate()
        import graphrag.eval
        groups = [g.name for g in graphrag.cli.main.app.registered_groups]
        print(before, hasattr(graphrag.api, "tog_search"), groups)
        """
    )
    words = [sys.executable, "-c", program]
    done = run(words, tmp_path / "late", forked=forked, GTOG_OVERLAY="0")

    assert done.stdout.splitlines() == ["False True ['eval']"], done.stderr


def test_a_folder_of_encodings_of_one_s_own_goes_before_litellm_s(tmp_path):
    program = dedent(
        """
        import os
        os.environ.pop("TIKTOKEN_CACHE_DIR", None)
        import graphrag_llm.types
        print(os.environ["TIKTOKEN_CACHE_DIR"])
        """
    )
    own = {"CUSTOM_TIKTOKEN_CACHE_DIR": str(tmp_path)}
    done = run([sys.executable, "-c", program], tmp_path / "encodings", **own)

    assert done.stdout == f"{tmp_path}\n", done.stderr


def test_help_imports_no_library_that_only_the_work_needs(tmp_path):
    program = """
import sys
from graphrag.cli.main import app
for words in (["--help"], ["eval", "--help"], ["eval", "compare", "--help"]):
    sys.argv = ["graphrag", *words]
    try:
        app()
    except SystemExit as ended:
        assert not ended.code, words
    print(*sys.modules)
"""
    done = run([sys.executable, "-c", program], tmp_path / "help")
    assert done.returncode == 0, done.stderr
    assert "--accept-index-change" in done.stdout
    loaded = {*done.stdout.splitlines()[-1].split()}
    assert "graphrag.cli.main" in loaded
    assert loaded.isdisjoint({"sqlite3", "numpy", "pandas", "graphrag.eval.types.query_results"})
