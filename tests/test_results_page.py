"""The commands of docs/results.md, each at a small size: they run, and print what is read there."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.openai_server import running_server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
FILM = "tt0097576"
SERVER = "http://127.0.0.1:8019/v1"
NAMES = [
    f"{first}{last}" for first in ("Bor", "Cal", "Dur", "Fen") for last in ("wyn", "usk", "ett")
]
SMALL = {
    "graphrag eval --index": f"--limit 2 --imdb-key {FILM}",
    "think.py": "--budget 250 --json {place}.json --delay 0.05",
    "--noise": "--noise 1 --stop-errors 0",
    "throughput.py": "--ways searched-direct -C 4 --latency-ms 0 --calls 12",
    "startup.py": "--starts 1 --helps 1 --imports 0",
    "gate_simulation.py": "60",
}
"""What makes a command small, given last; the sets are small already."""
RUNNER = """
import contextlib, io, json, runpy, sys, traceback
for line in sys.stdin:
    sys.argv = json.loads(line)
    sys.path[0] = sys.argv[0].rpartition("/")[0]
    printed, said, failure = io.StringIO(), io.StringIO(), ""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            failure = f"{end.code}: {said.getvalue()}" if end.code else ""
        except BaseException:
            failure = traceback.format_exc()
    print(json.dumps([printed.getvalue(), failure]), flush=True)
"""
"""Runs one command after the other in one process, which imports once what they share."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A table of the page: its commands, and the names under which they print its figures."""

    title: str
    text: str

    @property
    def commands(self) -> list[str]:
        blocks = re.findall(r"^```sh\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        joined = "".join(blocks).replace("\\\n", "")
        return [line for line in joined.splitlines() if not line.startswith("#")]

    @property
    def printed(self) -> list[str]:
        lines = re.findall(r"^Printed as (.*)$", self.text, re.MULTILINE)
        return re.findall(r"`([^`]+)`", " ".join(lines))


def read_sections() -> list[Section]:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return [Section(part.partition("\n")[0], part) for part in parts if "```sh" in part]


SECTIONS = read_sections()


def write_set(path: Path) -> None:
    """Three questions; what each needs after the first passage shares hardly a word with it."""
    passages: list[str] = []
    questions: list[Json] = []
    for trade, at in (("printers", 0), ("lamps", 4), ("ropes", 8)):
        firm, owner, village, river = NAMES[at : at + 4]
        first = len(passages)
        passages += [
            f"{firm} Works\n{firm} Works makes {trade} for the whole coast. It belongs to {owner}, "
            "who bought it from a cousin after the war.",
            f"{owner}\n{owner} grew up in the village of {village}, and left it at the age of "
            "twenty. Letters to an aunt are all that is left.",
            f"{village}\n{village} lies on the river {river}, which floods its meadows each "
            "spring. Its church was built of red stone in 1622.",
        ]
        passages += [
            f"Note {n} on {firm}\nThe owner of {firm} Works was seen on the river with {trade} "
            f"at {n} o'clock. Nobody in the village had seen anything like it."
            for n in range(1, 5)
        ]
        asked = f"On which river lies the village where the owner of {firm} Works grew up?"
        questions.append({"q": asked, "gold": [first, first + 1, first + 2]})
    path.write_text(json.dumps({"passages": passages, "questions": questions}), encoding="utf-8")


def write_files(folder: Path) -> None:
    """Write what the commands read: small sets, one film, and a part of the archipelago."""
    (folder / "sets").mkdir()
    for name in ("musique", "hotpot"):
        write_set(folder / f"{name}.json")
        shutil.copy(folder / f"{name}.json", folder / "sets")
    built = shutil.ignore_patterns("results", "output", "cache", "logs")
    for name in (FILM, "eval", "examples/archipelago"):
        shutil.copytree(ROOT / name, folder / name, ignore=built)
    shutil.copy(ROOT / "eval_config.yaml", folder)
    islands = folder / "examples" / "archipelago"
    needed: set[str] = set()
    for name in ("questions.json", "paraphrases.json"):
        rows = json.loads((islands / name).read_text(encoding="utf-8"))[:2]
        (islands / name).write_text(json.dumps(rows), encoding="utf-8")
        needed |= {source for row in rows for source in row["expected_sources"]}
    for article in sorted((islands / "input").iterdir())[15:]:
        if article.name not in needed:
            article.unlink()


def arguments(command: str, place: int, address: str) -> list[str]:
    """Return the file that a command runs, with its arguments, at a small size."""
    small = " ".join(more for name, more in SMALL.items() if name in command)
    line = command.replace(SERVER, address)
    words = [*shlex.split(line), *shlex.split(small.format(place=place))]
    if words[0] == "python":
        return [str(ROOT / words[1]), *words[2:]]
    return [str(Path(sys.executable).with_name(words[0])), *words[1:]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Run all commands; return the folder, and of each what it printed and why it failed."""
    folder = tmp_path_factory.mktemp("results")
    write_files(folder)
    commands = [command for section in SECTIONS for command in section.commands]
    with running_server(lambda request: "no model of the page chats") as server:
        lines = [
            json.dumps(arguments(command, place, server.base_url))
            for place, command in enumerate(commands)
        ]
        done = subprocess.run(
            [sys.executable, "-c", RUNNER],
            input="\n".join(lines),
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder), "PYTHONPYCACHEPREFIX": ""},
            capture_output=True,
            text=True,
            timeout=900,
        )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(commands), done.stderr
    return folder, dict(zip(commands, told, strict=True))


@pytest.mark.parametrize("section", SECTIONS, ids=[section.title for section in SECTIONS])
def test_a_tables_commands_print_what_it_is_read_from(section, found):
    _, told = found
    printed = ""
    for command in section.commands:
        out, failure = told[command]
        assert not failure, (command, failure)
        printed += out
    assert section.printed
    missing = [name for name in section.printed if name not in printed]
    assert not missing, printed
    for word in ("Measured at `", "**Limits.**", "**Others.**"):
        assert word in section.text


def test_the_table_of_words_and_meaning_has_a_row_for_each_set(found):
    told = found[1]["python benchmarks/mixture.py sets examples"][0]
    rows = [line.strip("| ").split(" | ") for line in told.splitlines()[2:]]
    names = ("musique", "hotpot", "archipelago/questions", "archipelago/paraphrases")
    assert {row[0] for row in rows} == {f"{name}, wordllama" for name in names}
    for row in rows:
        words, vectors, hybrid = (float(cell.partition(" / ")[0]) for cell in row[2:5])
        assert float(row[-1]) == pytest.approx(max(0, max(words, vectors) - hybrid), abs=0.11)


def written(found: tuple[Path, dict[str, list[str]]], options: str) -> Json:
    """Return what the oracle's command with these options wrote."""
    folder, told = found
    (place,) = [n for n, command in enumerate(told) if command.endswith(f"think.py {options}")]
    return json.loads((folder / f"{place}.json").read_text(encoding="utf-8"))


def test_a_perfect_model_finds_with_tog_what_no_method_of_one_call_shows(found):
    result = written(found, "musique.json --budget 1500")
    methods, trials = result["methods"], result["trials"]
    assert {*methods} == {"bm25", "ppr", "agentic", "tog"}
    assert methods["tog"]["share"] == 1
    assert methods["ppr"]["share"] < 0.7
    assert [methods[name]["calls"] for name in ("bm25", "ppr")] == [1, 1]
    assert 1 < methods["tog"]["calls"] <= 3
    at_once = trials["answers at once"]
    assert at_once["calls"] == 1
    assert at_once["tokens"] - methods["ppr"]["tokens"] == pytest.approx(at_once["tokens_to_ppr"])
    assert at_once["tokens_to_ppr"] <= 200
    assert at_once["share"] <= methods["ppr"]["share"], "a row is no text"
    timed = found[1]["python benchmarks/think.py musique.json --budget 1500"][0]
    assert "1 at once: median" in timed
    assert "8 at once: median" in timed


def test_merged_passages_count_one_by_one_and_a_model_that_errs_is_always_wrong(found):
    folder, _ = found
    noise = "--noise 0.2 --stop-errors 0.05"
    result = written(found, f"musique.json --merge 4 --budget 3000 {noise}")
    built = folder / "gtog-mixture" / "musique-merged4-hashed-ngrams"
    units = (built / "input" / "passages.jsonl").read_text(encoding="utf-8")
    assert len(units.splitlines()) == 6, "21 passages"
    wrong = result["trials"]["always wrong"]
    assert result["methods"]["tog"] == {key: wrong[key] for key in ("share", "tokens", "calls")}
    lost = result["methods"]["ppr"]["share"] - wrong["share"]
    assert wrong["share_to_ppr"]["mean"] == pytest.approx(-lost)
    assert wrong["calls"] > 1


def test_the_films_figures_are_those_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^(\w+) +([\d.]+ \(\d+-\d+\)) +\d+ +([\d,]+) ", readme, re.MULTILINE)
    assert len(rows) == 5
    (films,) = [section.text for section in SECTIONS if section.title == "Films"]
    for method, right, tokens in rows:
        assert re.search(
            rf"^\| {method} \| {re.escape(right)} \| .* \| {tokens} \|", films, re.MULTILINE
        )
