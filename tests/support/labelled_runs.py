"""Rows of runs with a judge that errs, and the labels that an import would have kept of them."""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from graphrag.eval.results.human_labels import judged_questions, keep_labels
from graphrag.eval.results.scored_rows import Row
from graphrag.eval.stats.label_correction import draw_for_labels
from graphrag.eval.stats.outcomes import State
from graphrag.eval.store.atomic_files import run_folder
from graphrag.eval.types.metric_definitions import METRICS

METHODS = ("tog", "basic")
Verdicts = Mapping[tuple[str, str], tuple[int | None, int | None]]


def rows_of(verdicts: Verdicts) -> list[Row]:
    """Return rows; None is a failed search."""
    return [
        Row(
            question_id=key[1],
            document=key[0],
            method=method,
            states={
                **dict.fromkeys(METRICS, State.NOT_JUDGED),
                "correctness": State.SEARCH_FAILED if score is None else State.SCORED,
            },
            scores={**dict.fromkeys(METRICS), "correctness": score},
            censored=score is None,
        )
        for key, scores in verdicts.items()
        for method, score in zip(METHODS, scores, strict=True)
    ]


def draw(n: int, seed: int, favour: float = 0.0) -> tuple[Verdicts, Verdicts]:
    """Return a judge's verdicts and the truth: it takes wrong answers of tog for right ones."""
    chance = random.Random(seed)
    truth = {(f"d{i % 3}", f"q{i}"): (chance.randint(0, 1), chance.randint(0, 1)) for i in range(n)}
    seen = {
        key: (int(right[0] or chance.random() < favour), right[1]) for key, right in truth.items()
    }
    return seen, truth


def write_labels(
    folder: Path, run: str, verdicts: Verdicts, truth: Verdicts, n: int, seed: int = 0
) -> list[Row]:
    rows = rows_of(verdicts)
    judged = judged_questions(rows, METHODS, "correctness")
    drawn = draw_for_labels([question.stratum for question in judged], n, seed)
    questions = [
        question._replace(
            labels={
                method: right
                for method, right in zip(METHODS, truth[question.key], strict=True)
                if method in question.judged
            }
        )
        if place in drawn
        else question
        for place, question in enumerate(judged)
    ]
    kept = keep_labels(questions, METHODS, "correctness")
    path = run_folder(folder, run) / "audit_correctness.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"run_id": run, "labels": asdict(kept)}), encoding="utf-8")
    return rows
