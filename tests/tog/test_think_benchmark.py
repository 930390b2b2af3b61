"""benchmarks/think.py, as people run it: small sets whose answers are three passages away."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

THINK = Path(__file__).parents[2] / "benchmarks" / "think.py"
NAMES = [
    f"{first}{last}" for first in ("Bor", "Cal", "Dur", "Fen") for last in ("wyn", "usk", "ett")
]
Json = dict[str, Any]


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


def think(folder: Path, *options: str) -> tuple[str, Json]:
    """Run it on the set; return what it prints and writes."""
    write_set(folder / "chains.json")
    command = [sys.executable, THINK, folder / "chains.json", "--budget", "250", *options]
    files = ["--work", folder / "work", "--json", folder / "out.json"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "out.json").read_text(encoding="utf-8"))


def test_a_perfect_model_finds_with_tog_what_no_method_of_one_call_shows(tmp_path):
    printed, found = think(tmp_path, "--delay", "0.05")
    methods, trials = found["methods"], found["trials"]
    assert {*methods} == {"bm25", "ppr", "agentic", "tog"}
    assert methods["tog"]["share"] == 1
    assert methods["ppr"]["share"] < 0.7
    assert [methods[name]["calls"] for name in ("bm25", "ppr")] == [1, 1]
    assert 1 < methods["tog"]["calls"] <= 3
    assert found["gain"].keys() == trials["bm25 inside"]["gain"].keys() == {"mean", "low", "high"}
    assert "all of them in 100 % of the questions" in printed
    at_once = trials["answers at once"]
    assert at_once["calls"] == 1
    assert at_once["tokens"] - methods["ppr"]["tokens"] == pytest.approx(at_once["tokens_to_ppr"])
    assert at_once["tokens_to_ppr"] <= 200
    assert at_once["share"] <= methods["ppr"]["share"], "a row is no text"
    timed = printed.partition("replies that take 0.05 s")[2]
    assert "1 at once: median" in timed
    assert "8 at once: median" in timed


def test_merged_passages_count_one_by_one_and_a_model_that_errs_is_always_wrong(tmp_path):
    _, found = think(tmp_path, "--merge", "2", "--noise", "1")
    units = (tmp_path / "work/chains-merged2-hashed-ngrams/input/passages.jsonl").read_text("utf-8")
    assert len(units.splitlines()) == 11, "21 passages"
    wrong = found["trials"]["always wrong"]
    assert found["methods"]["tog"] == {key: wrong[key] for key in ("share", "tokens", "calls")}
    lost = found["methods"]["ppr"]["share"] - wrong["share"]
    assert wrong["share_to_ppr"]["mean"] == pytest.approx(-lost)
    assert wrong["calls"] > 1
