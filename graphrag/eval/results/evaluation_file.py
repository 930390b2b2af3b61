"""A method's retrieval, judge's score and tokens, question by question, as a file of its own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any
from urllib.parse import quote

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.scorers.measuring import MeasuredAnswer
from graphrag.eval.scorers.response import Answered, JudgeSource

_UNSAFE = re.compile(r"[^\w.-]")
_AVERAGED = ("hit_rate", "mrr", "judge_score", "combined_score", "num_tokens")


@dataclass(frozen=True, slots=True)
class EvaluatedAnswer:
    """One response: the question's text, what is known of it, and its measures.

    Attributes
    ----------
    question : str
    answered : Answered
    judge_score : float or None
        Of the judge that counts, in [0, 1].
    measured : MeasuredAnswer or None
        None where the index can't be looked at.
    """

    question: str
    answered: Answered
    judge_score: float | None
    measured: MeasuredAnswer | None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of the file; undefined is None."""
        values: Mapping[str, float | None] = {}
        if self.measured is not None:
            values = self.measured.values
        return {
            "question": self.question,
            "hit_rate": values.get("hit_rate"),
            "mrr": values.get("mrr"),
            "judge_score": self.judge_score,
            "num_tokens": self.answered.tokens,
            "combined_score": values.get("combined_score"),
        }


def judge_source(config: EvaluationConfig) -> JudgeSource:
    """Return whose score counts as the judge's in a run."""
    return "quality" if config.judge.quality else "correctness"


def evaluation_reports(
    config: EvaluationConfig, given: Sequence[EvaluatedAnswer], metadata: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Put each method's questions together.

    Parameters
    ----------
    config : EvaluationConfig
    given : sequence of EvaluatedAnswer
        Of the first trial, in the order of the dataset.
    metadata : mapping
        Of the run's results; ``timestamp`` is needed.

    Returns
    -------
    dict
        Method -> ``timestamp``, ``num_questions``, ``summary`` (means over the questions for which
        a figure is defined, the best combined score, and all tokens, None as soon as those of one
        question are not known), ``metadata``, ``results``: one entry a question.
    """
    judge: Mapping[str, Any] = metadata.get("judge") or {}
    reports: dict[str, dict[str, Any]] = {}
    for method in dict.fromkeys((*config.methods, *(each.answered.method for each in given))):
        rows = [each.to_dict() for each in given if each.answered.method == method]
        reports[method] = {
            "timestamp": metadata["timestamp"],
            "num_questions": len(rows),
            "summary": _summarize(rows),
            "metadata": {
                "ground_truth_file": config.dataset.path,
                "search_mode": method,
                "judge_model": judge.get("model"),
                "judge_score": judge_source(config),
                **{
                    name: metadata.get(name)
                    for name in ("embedded_models", "run_id", "is_complete")
                },
            },
            "results": rows,
        }
    return reports


def evaluation_names(methods: Sequence[str]) -> dict[str, str]:
    """Return method -> name of its file; what no file may be called is written as in a URL."""
    if len(methods) == 1:
        return {methods[0]: "evaluation.json"}
    return {name: f"evaluation_{_UNSAFE.sub(_quoted, name)}.json" for name in methods}


def _quoted(found: re.Match[str]) -> str:
    return quote(found[0], safe="")


def _summarize(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    known = {name: [row[name] for row in rows if row[name] is not None] for name in _AVERAGED}
    means = {f"avg_{name}": fmean(known[name]) if known[name] else None for name in _AVERAGED}
    tokens = means.pop("avg_num_tokens")
    return {
        **means,
        "best_combined_score": max(known["combined_score"], default=None),
        "avg_num_tokens": tokens,
        "total_tokens": sum(known["num_tokens"]) if len(known["num_tokens"]) == len(rows) else None,
    }
