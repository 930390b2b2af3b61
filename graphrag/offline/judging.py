"""Verdicts by word overlap, for the judge metrics that there are rules for.

A verdict here is an arithmetic of words, good for trying the evaluation out, not for claims
about quality. Everything judged is read as a bag of terms, so text in it that speaks to the
judge has no way to be obeyed.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from graphrag.offline.answering import fits_type
from graphrag.offline.errors import OfflineModelError
from graphrag.offline.requests import Request
from graphrag.offline.tog_replies import find_json_object
from graphrag.text.words import normalize, sentences, share_covered, terms

CORRECT_RECALL = 0.6
"""Least share of the ground truth's terms that a correct response contains."""

FAITHFUL_SHARE = 0.7
"""Least share of each sentence's terms that the context contains."""

RELEVANT_SHARE = 0.6
"""Least share of the question's terms that a relevant context contains."""

COMPLETE_SHARE = 0.3
"""Share of the question's terms from which a response counts as being about it."""

_CITATION = re.compile(r"\[Data:[^\]]*\]")
_ABSTENTION = re.compile(
    r"^\W*(?:error:|i (?:could|can|did|do) ?n(?:o|')t (?:find|know|answer|have|determine)"
    r"|i(?:'m| am) (?:sorry|unable|not able)|i don't know|unknown\W*$|n/a\W*$"
    r"|(?:the )?(?:provided |given )?(?:context|data|information) (?:does not|doesn't|is not)"
    r"|the (?:article|document|source|text)s? do(?:es)? ?n(?:o|')t (?:say|tell|state|mention))"
)


def is_abstention(text: str) -> bool:
    """Whether a response declines to answer, or is empty."""
    bare = normalize(_CITATION.sub("", text)).strip()
    return not bare or _ABSTENTION.match(bare) is not None


def judge_correctness(ground_truth: str, predicted: str) -> tuple[str, int]:
    """1 when `CORRECT_RECALL` of the ground truth's distinct terms are in the response.

    Terms are stemmed content words with numbers as digits, all weighing the same; a ground
    truth of stop words alone ("No.") is compared with stop words kept. An abstention is 1 where the
    ground truth says that there is no answer, else 0.

    Returns
    -------
    tuple[str, int]
        The reason, with the share measured, and the score.
    """
    if is_abstention(ground_truth) and ground_truth.strip():
        abstains = is_abstention(predicted)
        done = "abstains" if abstains else "answers"
        return f"There is no answer, and the response {done}.", int(abstains)
    if is_abstention(predicted):
        return "The response abstains.", 0
    predicted = _CITATION.sub("", predicted)
    wanted = terms(ground_truth)
    stops = not wanted
    wanted = wanted or terms(ground_truth, keep_stop_words=True)
    share = share_covered(wanted, set(terms(predicted, keep_stop_words=stops)))
    return (
        f"The response holds {share:.2f} of the ground truth's words (needed: {CORRECT_RECALL}).",
        int(share >= CORRECT_RECALL),
    )


def judge_faithfulness(context: str, answer: str) -> tuple[str, int]:
    """1 when the context contains `FAITHFUL_SHARE` of the terms of every sentence.

    An abstention claims nothing and is 1. Citations are left out.

    Returns
    -------
    tuple[str, int]
        The reason, with the lowest share of a sentence, and the score.
    """
    if is_abstention(answer):
        return "The response claims nothing.", 1
    present = set(terms(context))
    shares = [
        share_covered(wanted, present)
        for wanted in (terms(sentence) for sentence in sentences(_CITATION.sub("", answer)))
        if wanted
    ]
    lowest = min(shares, default=1.0)
    return (
        f"The least supported sentence has {lowest:.2f} of its words in the context "
        f"(needed: {FAITHFUL_SHARE}).",
        int(lowest >= FAITHFUL_SHARE),
    )


def judge_relevance(question: str, context: str) -> tuple[str, int]:
    """1 when the context contains `RELEVANT_SHARE` of the question's terms.

    Returns
    -------
    tuple[str, int]
        The reason, with the share measured, and the score. An empty context is 0.
    """
    wanted = terms(question) or terms(question, keep_stop_words=True)
    share = share_covered(wanted, set(terms(context, keep_stop_words=True)) | set(terms(context)))
    return (
        f"The context holds {share:.2f} of the question's words (needed: {RELEVANT_SHARE}).",
        int(share >= RELEVANT_SHARE),
    )


def judge_completeness(question: str, answer: str) -> tuple[str, int]:
    """1 when a response does not abstain and fits the question.

    It fits when it holds the kind of thing asked for (who: a name, when: a number, ...), or
    `COMPLETE_SHARE` of the question's terms.

    Returns
    -------
    tuple[str, int]
        The reason, with the share measured, and the score.
    """
    if is_abstention(answer):
        return "The response abstains.", 0
    answer = _CITATION.sub("", answer)
    share = share_covered(terms(question), set(terms(answer)))
    fits = fits_type(question, answer)
    kind = "holds" if fits else "lacks"
    return (
        f"The response {kind} the kind of thing asked for and {share:.2f} of the question's words.",
        int(fits or share >= COMPLETE_SHARE),
    )


class Rule(NamedTuple):
    """How a metric is judged: the fields of its material, those compared, and the comparison."""

    fields: tuple[str, ...]
    compared: tuple[str, str]
    compare: Callable[[str, str], tuple[str, int]]


RULES: dict[str, Rule] = {
    "correctness": Rule(
        ("question", "ground_truth", "predicted"), ("ground_truth", "predicted"), judge_correctness
    ),
    "faithfulness": Rule(("context", "answer"), ("context", "answer"), judge_faithfulness),
    "relevance": Rule(("question", "context"), ("question", "context"), judge_relevance),
    "completeness": Rule(("question", "answer"), ("question", "answer"), judge_completeness),
}
"""Metric -> its rule; nothing else is judged."""

_BY_FIELDS = {frozenset(rule.fields): rule for rule in RULES.values()}


def judge(request: Request) -> dict[str, object]:
    """Reason and score for the JSON object that the user message ends with.

    Raises
    ------
    OfflineModelError
        When the object is not the material of a metric with a rule: what names another metric
        is never taken for one of these, though its further fields may be the same.
    """
    given = find_json_object(request.user) or {}
    rule = _BY_FIELDS.get(frozenset(given))
    if rule is None:
        raise OfflineModelError(
            "Judging needs one JSON object at the end of the user message with the fields "
            + "; or ".join(", ".join(sorted(rule.fields)) for rule in RULES.values())
            + "."
        )
    reason, score = rule.compare(*(str(given[field]) for field in rule.compared))
    return {"reason": reason, "score": score}
