"""Grades by word overlap, for the rubric, the quality and the pairwise judge prompts.

As in `graphrag.offline.judging`: an arithmetic of words, for trying the evaluation out. What is
graded is read as a bag of terms, so text in it that speaks to the judge can't be obeyed.
"""

import json
import re
from collections.abc import Collection
from typing import Any

from graphrag.offline.answering import fits_type
from graphrag.offline.errors import OfflineModelError
from graphrag.offline.judging import COMPLETE_SHARE, is_abstention
from graphrag.offline.requests import Request
from graphrag.offline.tog_replies import find_json_object
from graphrag.text.words import sentences, share_covered, terms

RUBRIC_FIELDS = frozenset({"question", "answer", "entities", "relationships", "texts"})
QUALITY_FIELDS = frozenset({"question", "ground_truth", "context", "predicted"})
PAIRWISE_FIELDS = frozenset({"question", "first", "second"})

TIE_WITHIN = 0.1
"""Two answers whose worth differs by no more than this are a tie."""

_CITATION = re.compile(r"\[Data:[^\]]*\]")


def grade_rubric(request: Request) -> dict[str, object]:
    """Grade the five dimensions, each ``1 + round(4 * share)``.

    The shares: relevance, the question's terms in the answer (at least 0.75 when it holds the
    kind of thing asked for); faithfulness, the terms of the least supported sentence in the
    retrieved material (1 for an abstention, which claims nothing); completeness, 1, 0.5 or 0
    when both, one or none hold of the kind of thing asked for and enough of the question's
    terms; coherence, sentences that are no repetition; groundedness, the answer's terms in the
    material. An abstention has 0 in relevance, completeness and groundedness. The overall score
    is the mean of the five.

    Raises
    ------
    OfflineModelError
        When the message ends with no object of the rubric's fields.
    """
    given = _material(request, RUBRIC_FIELDS)
    question, answer = str(given["question"]), _bare(str(given["answer"]))
    retrieved = [given[name] for name in ("entities", "relationships", "texts")]
    present = set(terms(json.dumps(retrieved, ensure_ascii=False)))
    abstains = is_abstention(answer)
    asked = _asked(question, answer)
    least = 1.0 if abstains else _least_supported(answer, present)
    shares = {
        "relevance": (0.0 if abstains else _relevance(question, answer), "question's words used"),
        "faithfulness": (least, "words of the least supported sentence found in the material"),
        "completeness": (0.0 if abstains else asked, "of what was asked for is there"),
        "coherence": (_without_repeats(answer), "sentences that repeat no other"),
        "groundedness": (
            0.0 if abstains else share_covered(terms(answer), present),
            "words found in the material",
        ),
    }
    scores = {name: 1 + round(4 * share) for name, (share, _) in shares.items()}
    grades: dict[str, object] = {
        name: {"reasoning": f"Share {share:.2f}: {what}.", "score": scores[name]}
        for name, (share, what) in shares.items()
    }
    return {
        **grades,
        "overall_score": sum(scores.values()) / len(scores),
        "summary": "Shares of words, counted by an embedded model, which reads no meaning.",
    }


def grade_quality(request: Request) -> dict[str, object]:
    """Measure accuracy, completeness and relevance as shares of words, and average them.

    Accuracy is the share of the ground truth's terms in the answer; without a ground truth, the
    share of the least supported sentence in the context; without either, 0.5 for any answer.
    Completeness and relevance are those of the rubric. An abstention has 0 in all.

    Raises
    ------
    OfflineModelError
        When the message ends with no object of the quality judge's fields.
    """
    given = _material(request, QUALITY_FIELDS)
    question, answer = str(given["question"]), _bare(str(given["predicted"]))
    scores: dict[str, float] = {"accuracy": 0.0, "completeness": 0.0, "relevance": 0.0}
    if not is_abstention(answer):
        scores = {
            "accuracy": _accuracy(given["ground_truth"], given["context"], answer),
            "completeness": _asked(question, answer),
            "relevance": _relevance(question, answer),
        }
    scores["overall_score"] = sum(scores.values()) / 3
    return {
        "reasoning": "Shares of words that the answer has in common with what it is held against.",
        **{name: round(score, 4) for name, score in scores.items()},
    }


def compare_answers(request: Request) -> dict[str, object]:
    """Name the answer that covers more of the question; equal within `TIE_WITHIN` is a tie.

    The worth is the rubric's relevance and completeness, averaged; an abstention is worth 0.
    The order of the answers changes nothing.

    Raises
    ------
    OfflineModelError
        When the message ends with no object of the pairwise judge's fields.
    """
    given = _material(request, PAIRWISE_FIELDS)
    question = str(given["question"])
    first, second = (_worth(question, _bare(str(given[place]))) for place in ("first", "second"))
    winner = "tie"
    if abs(first - second) > TIE_WITHIN:
        winner = "first" if first > second else "second"
    return {
        "reasoning": f"By the question's words the first is worth {first:.2f}, "
        f"the second {second:.2f}.",
        "winner": winner,
    }


def _material(request: Request, wanted: frozenset[str]) -> dict[str, Any]:
    given = find_json_object(request.user) or {}
    if frozenset(given) != wanted:
        raise OfflineModelError(
            "Grading needs one JSON object at the end of the user message with the fields "
            f"{', '.join(sorted(wanted))}."
        )
    return given


def _bare(answer: str) -> str:
    return _CITATION.sub("", answer)


def _relevance(question: str, answer: str) -> float:
    share = share_covered(terms(question), set(terms(answer)))
    return max(share, 0.75) if fits_type(question, answer) else share


def _asked(question: str, answer: str) -> float:
    covered = share_covered(terms(question), set(terms(answer))) >= COMPLETE_SHARE
    return (fits_type(question, answer) + covered) / 2


def _least_supported(answer: str, present: Collection[str]) -> float:
    bags = [terms(sentence) for sentence in sentences(answer)]
    return min((share_covered(bag, present) for bag in bags if bag), default=1.0)


def _without_repeats(answer: str) -> float:
    bags = [tuple(terms(sentence, keep_stop_words=True)) for sentence in sentences(answer)]
    return len(set(bags)) / len(bags) if bags else 0.0


def _accuracy(ground_truth: Any, context: Any, answer: str) -> float:
    if ground_truth is not None:
        wanted = terms(str(ground_truth))
        stops = not wanted
        wanted = wanted or terms(str(ground_truth), keep_stop_words=True)
        return share_covered(wanted, set(terms(answer, keep_stop_words=stops)))
    return 0.5 if context is None else _least_supported(answer, set(terms(str(context))))


def _worth(question: str, answer: str) -> float:
    if is_abstention(answer):
        return 0.0
    return (_relevance(question, answer) + _asked(question, answer)) / 2
