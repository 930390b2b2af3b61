"""The 60 labeled answers that judges are held against, and the command that does it."""

import json
import sys
from collections import Counter
from runpy import run_path
from typing import Any

from support.openai_server import running_server
from support.projects import server_settings

SCORES = {
    "right": {1},
    "half-right": {0},
    "hedged": {0, 1},
    "overlong": {0, 1},
    "refusing": {0},
    "unanswerable": {0, 1},
}


def test_the_rows_are_sound_and_the_command_counts_agreement_by_kind(
    project_root, tmp_path, monkeypatch, capsys
):
    command = project_root / "benchmarks" / "judge_answers.py"
    lines = command.with_suffix(".jsonl").read_text("utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert Counter(row["kind"] for row in rows) == dict.fromkeys(SCORES, 10)
    assert len({(row["question"], row["answer"]) for row in rows}) == len(rows)
    for kind, scores in SCORES.items():
        assert {row["score"] for row in rows if row["kind"] == kind} == scores
    for row in rows:
        assert {*row} == {"kind", "question", "ground_truth", "answerable", "answer", "score"}
        assert all(row[name].strip() for name in ("question", "ground_truth", "answer"))
        assert row["answerable"] == (row["kind"] != "unanswerable")

    few = {row["kind"]: row for row in reversed(rows)}
    first = [few[kind] for kind in SCORES]
    kinds = {row["answer"]: row["kind"] for row in first}

    def reply(request: dict[str, Any]) -> str:
        shown = json.loads(request["messages"][0]["content"].rpartition("Material:\n")[2])
        kind = kinds[shown["predicted"]]
        if ("ground_truth" in shown) != (kind != "unanswerable") or kind == "refusing":
            return "no JSON"
        score = few[kind]["score"]
        return json.dumps({"reason": "so", "score": 1 - score if kind == "hedged" else score})

    (tmp_path / command.name).write_text(command.read_text("utf-8"), encoding="utf-8")
    written = "".join(json.dumps(row) + "\n" for row in first)
    (tmp_path / "judge_answers.jsonl").write_text(written, encoding="utf-8")
    with running_server(reply) as server:
        (tmp_path / "settings.yaml").write_text(server_settings(server.base_url), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["", str(tmp_path), "default_completion_model"])
        run_path(str(tmp_path / command.name), run_name="__main__")
    told = [line.strip().split(": ") for line in capsys.readouterr().out.splitlines()]
    ends = {"hedged": "0 of 1, 0 unscored", "refusing": "0 of 1, 1 unscored"}
    assert told == [[kind, ends.get(kind, "1 of 1, 0 unscored")] for kind in SCORES]
