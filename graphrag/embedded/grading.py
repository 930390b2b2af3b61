"""Judges, grades and compares answers by word overlap, and drafts questions, to try out runs.

Everything judged is read as a set of terms, so that text addressed to the judge can't be obeyed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from graphrag.embedded import OfflineModelError
from graphrag.embedded.answering import SUFFICIENT_COVERAGE, answer_question, fits_type
from graphrag.embedded.extraction import is_heading
from graphrag.embedded.names import find_mentions, split_words
from graphrag.embedded.requests import Request
from graphrag.text.accepted_answers import split_answers
from graphrag.text.citations import CITATION
from graphrag.text.context_tables import Record, read_context
from graphrag.text.sentences import sentences
from graphrag.text.stems import share_covered, terms
from graphrag.text.tokenize import fold

# Least share of the ground truth's terms in a correct response.
_CORRECT = 0.6
# Least share of each sentence's terms in the context of a faithful response.
_FAITHFUL = 0.7
# Least share of the question's terms in a relevant context.
_RELEVANT = 0.6
# Least share of the question's terms in a response that is about the question.
_COMPLETE = 0.3
# Two answers whose worth differs by no more than this are a tie.
_TIE_WITHIN = 0.1
_WORD_OR_NUMBER = re.compile(r"(?<=\s)[^\W\d_]{2,}|\d[\d.,]*")
_ITEM = re.compile(r"^\d{1,2}(?:[.)]\s+|[\u3001\uff09\uff0e])")
_ABSTENTION = re.compile(
    r"^\W*(?:error:|i (?:could|can|did|do) ?n(?:o|')t (?:find|know|answer|have|determine)"
    r"|i(?:'m| am) (?:sorry|unable|not able)|i don't know|unknown\W*$|n/a\W*$"
    r"|(?:the )?(?:provided |given )?(?:context|data|information) (?:does not|doesn't|is not)"
    r"|the (?:article|document|source|text)s? do(?:es)? ?n(?:o|')t (?:say|tell|state|mention))"
)

Verdict = tuple[str, int]
"""A reason, with the share measured, and a score of 0 or 1."""


def is_abstention(text: str) -> bool:
    """Say whether a response declines to answer, or is empty."""
    bare = fold(CITATION.sub("", text)).strip()
    return not bare or _ABSTENTION.match(bare) is not None


def _judge_correctness(ground_truth: str, predicted: str) -> Verdict:
    """Score 1 if 0.6 of the ground truth's distinct terms are in the response.

    Terms are stemmed content words, with numbers as digits, all of the same weight. A ground truth
    of stop words alone ("No.") is compared with stop words kept. An abstention scores 1 if the
    ground truth abstains, too, else 0.
    """
    abstains = is_abstention(predicted)
    if is_abstention(ground_truth) and ground_truth.strip():
        done = "abstains" if abstains else "answers"
        return f"There is no answer, and the response {done}.", int(abstains)
    if abstains:
        return "The response abstains.", 0
    return _judge_recall("response", ground_truth, _uncited(predicted))


def _judge_recall(subject: str, ground_truth: str, text: str) -> Verdict:
    share = _recall(ground_truth, text)
    reason = f"The {subject} holds {share:.2f} of the ground truth's words (needed: {_CORRECT})."
    return reason, int(share >= _CORRECT)


def _judge_faithfulness(context: str, answer: str) -> Verdict:
    """Score 1 if the context has 0.7 of the terms of every sentence; an abstention scores 1."""
    if is_abstention(answer):
        return "The response claims nothing.", 1
    lowest = _least_supported(_uncited(answer), set(terms(context)))
    share = f"{lowest:.2f} of its words in the context (needed: {_FAITHFUL})"
    return f"The least supported sentence has {share}.", int(lowest >= _FAITHFUL)


def _judge_relevance(question: str, context: str) -> Verdict:
    """Score 1 if the context contains 0.6 of the question's terms; an empty context scores 0."""
    question_terms = terms(question) or terms(question, keep_stop_words=True)
    share = share_covered(question_terms, set(terms(context, keep_stop_words=True)))
    reason = f"The context holds {share:.2f} of the question's words (needed: {_RELEVANT})."
    return reason, int(share >= _RELEVANT)


def _judge_completeness(question: str, answer: str) -> Verdict:
    """Score 1 if a response has the kind of thing asked for, or 0.3 of the question's terms."""
    if is_abstention(answer):
        return "The response abstains.", 0
    share = share_covered(terms(question), set(terms(_uncited(answer))))
    fits = fits_type(question, _uncited(answer))
    return (
        f"The response {'holds' if fits else 'lacks'} the kind of thing asked for and "
        f"{share:.2f} of the question's words.",
        int(fits or share >= _COMPLETE),
    )


class Rule(NamedTuple):
    """How a metric is judged: the fields of its material, and a comparison of the last two."""

    fields: tuple[str, ...]
    compare: Callable[[str, str], Verdict]


def _judge_refusal(question: str, predicted: str) -> Verdict:
    """Score 1 if a response to a question without an answer abstains."""
    abstains = is_abstention(predicted)
    return f"The response {'abstains' if abstains else 'answers'}.", int(abstains)


RULES: dict[str, Rule] = {
    "correctness": Rule(("question", "ground_truth", "predicted"), _judge_correctness),
    "faithfulness": Rule(("context", "answer"), _judge_faithfulness),
    "relevance": Rule(("question", "context"), _judge_relevance),
    "completeness": Rule(("question", "answer"), _judge_completeness),
    "sufficiency": Rule(("question", "ground_truth", "context"), partial(_judge_recall, "context")),
    "refusal": Rule(("question", "predicted"), _judge_refusal),
}
"""Metric -> its rule; other metrics can't be judged."""


def judge(request: Request) -> dict[str, object]:
    """Return reason and score for the JSON object at the end of the user message.

    Raises OfflineModelError if its fields or its ``metric`` are those of no rule.
    """
    material = request.material
    named = material.get("metric")
    fitting = (
        rule
        for name, rule in RULES.items()
        if {*rule.fields} == material.keys() - {"metric"} and named in (None, name)
    )
    if (rule := next(fitting, None)) is None:
        raise OfflineModelError(
            "Judging needs one JSON object at the end of the user message with the fields "
            + "; or ".join(", ".join(sorted(rule.fields)) for rule in RULES.values())
            + "."
        )
    first, second = (str(material[field]) for field in rule.fields[-2:])
    return dict(zip(("reason", "score"), rule.compare(first, second), strict=True))


def judge_without_doubt(request: Request) -> dict[str, object]:
    """Return :func:`judge` with an empty ``doubt``: no row of the dataset is ever doubted."""
    return {**judge(request), "doubt": ""}


def split_claims(request: Request) -> dict[str, object]:
    """Return each sentence as one claim, without its item number; an abstention has no claims."""
    numbered: dict[str, str] = _material(request, "question sentences")["sentences"]
    texts = {n: _ITEM.sub("", text) for n, text in numbered.items()}
    claims = {n: [text] for n, text in texts.items() if not is_abstention(text)}
    return {"sentences": [{"number": int(n), "claims": claims.get(n, [])} for n in numbered]}


def rule_on_claims(request: Request) -> dict[str, object]:
    """Call a claim supported by every row with 0.7 of its terms and all its names and numbers.

    A name is a capitalized word that does not begin the claim. A text without tables is one row
    without a name. No claim is ever contradicted: words alone can't show it.
    """
    material = _material(request, "text claims")
    rows = {
        f"{row.table} ({row.id})": set(terms(f"{row.label} {row.text}"))
        for row in read_context(str(material["text"]), ("|", ","))
    } or {"": set(terms(str(material["text"])))}
    rulings: list[dict[str, object]] = []
    for number, claim in material["claims"].items():
        words = _WORD_OR_NUMBER.findall(claim)
        names = [word for word in words if not word[0].isalpha() or word[0].isupper()]
        claim_terms, named = terms(claim), set(terms(" ".join(names)))
        supporting = [
            name
            for name, row in rows.items()
            if named <= row and share_covered(claim_terms, row) >= _FAITHFUL
        ]
        ruling = "supported" if supporting else "not_found"
        reason = "The words of a row hold it." if supporting else "No row has most of its words."
        texts = [*filter(None, supporting)]
        rulings.append({"number": int(number), "reason": reason, "texts": texts, "ruling": ruling})
    return {"claims": rulings}


_SHARES = {
    "relevance": "question's words used",
    "faithfulness": "words of the least supported sentence found in the material",
    "completeness": "of what was asked for is there",
    "coherence": "sentences that repeat no other",
    "groundedness": "words found in the material",
}


def grade_rubric(request: Request) -> dict[str, object]:
    """Grade the five dimensions, each ``1 + round(4 * share)``; overall is their mean.

    - relevance: the question's terms in the answer, at least 0.75 if it has the kind of thing
      asked for.
    - faithfulness: the terms of the least supported sentence in the retrieved material; 1 for an
      abstention.
    - completeness: half for the kind of thing asked for, half for enough of the question's terms.
    - coherence: sentences that repeat no other.
    - groundedness: the answer's terms in the material.

    An abstention has share 0 in relevance, completeness and groundedness.
    """
    material = _material(request, "question answer entities relationships texts")
    question, answer = str(material["question"]), _uncited(material["answer"])
    listed = [material[name] for name in ("entities", "relationships", "texts")]
    present = set(terms(json.dumps(listed, ensure_ascii=False)))
    bags = [tuple(terms(sentence, keep_stop_words=True)) for sentence in sentences(answer)]
    abstains = is_abstention(answer)
    claims = 0.0 if abstains else 1.0
    shares = {
        "relevance": claims * _relevance(question, answer),
        "faithfulness": 1.0 if abstains else _least_supported(answer, present),
        "completeness": claims * _completeness(question, answer),
        "coherence": len(set(bags)) / len(bags) if bags else 0.0,
        "groundedness": claims * share_covered(terms(answer), present),
    }
    scores = {name: 1 + round(4 * share) for name, share in shares.items()}
    return {
        **{
            name: {"reasoning": f"Share {shares[name]:.2f}: {_SHARES[name]}.", "score": score}
            for name, score in scores.items()
        },
        "overall_score": sum(scores.values()) / len(scores),
        "summary": "Shares of words, counted by an embedded model, which reads no meaning.",
    }


def grade_quality(request: Request) -> dict[str, object]:
    """Grade accuracy, completeness and relevance as shares of words, and average them.

    Accuracy is the share of the ground truth's terms in the answer; without a ground truth, the
    share of the least supported sentence in the context; without either, 0.5. Completeness and
    relevance are those of the rubric. An abstention has 0 in all three.
    """
    material = _material(request, "question ground_truth context predicted")
    question, answer = str(material["question"]), _uncited(material["predicted"])
    truth, context = material["ground_truth"], material["context"]
    accuracy = 0.5
    if truth is not None:
        accuracy = _recall(str(truth), answer)
    elif context is not None:
        accuracy = _least_supported(answer, set(terms(str(context))))
    claims = 0.0 if is_abstention(answer) else 1.0
    scores = {
        "accuracy": claims * accuracy,
        "completeness": claims * _completeness(question, answer),
        "relevance": claims * _relevance(question, answer),
    }
    scores["overall_score"] = sum(scores.values()) / 3
    return {
        "reasoning": "Shares of words that the answer has in common with what it is held against.",
        **{name: round(score, 4) for name, score in scores.items()},
    }


def compare_answers(request: Request) -> dict[str, object]:
    """Name the answer that covers more of the question; a difference of up to 0.1 is a tie.

    An answer's worth is the mean of the rubric's relevance and completeness; an abstention is worth
    0. The order of the answers changes nothing.
    """
    material = _material(request, "question ground_truth first second")
    question = str(material["question"])

    def worth(answer: str) -> float:
        if is_abstention(answer):
            return 0.0
        return (_relevance(question, answer) + _completeness(question, answer)) / 2

    first, second = worth(_uncited(material["first"])), worth(_uncited(material["second"]))
    winner = "first" if first > second else "second"
    return {
        "reasoning": f"By the question's words the first is worth {first:.2f}, "
        f"the second {second:.2f}.",
        "winner": winner if abs(first - second) > _TIE_WITHIN else "tie",
    }


def _material(request: Request, fields: str) -> dict[str, Any]:
    names = sorted(fields.split())
    if sorted(request.material) != names:
        raise OfflineModelError(
            "Grading needs one JSON object at the end of the user message with the fields "
            f"{', '.join(names)}."
        )
    return request.material


def _uncited(answer: object) -> str:
    return CITATION.sub("", str(answer))


def _recall(truth: str, answer: str) -> float:
    """Return the share of the truth's terms in the answer, the greatest if several are accepted."""
    return max(_recall_one(accepted, answer) for accepted in split_answers(truth))


def _recall_one(truth: str, answer: str) -> float:
    """Return the share of one answer's terms in another.

    Stop words count if the answer consists of them alone.
    """
    truth_terms = terms(truth)
    present = set(terms(answer, keep_stop_words=not truth_terms))
    return share_covered(truth_terms or terms(truth, keep_stop_words=True), present)


def _relevance(question: str, answer: str) -> float:
    share = share_covered(terms(question), set(terms(answer)))
    return max(share, 0.75) if fits_type(question, answer) else share


def _completeness(question: str, answer: str) -> float:
    covers = share_covered(terms(question), set(terms(answer))) >= _COMPLETE
    return (fits_type(question, answer) + covers) / 2


def _least_supported(answer: str, present: Collection[str]) -> float:
    bags = [terms(sentence) for sentence in sentences(answer)]
    return min((share_covered(bag, present) for bag in bags if bag), default=1.0)


_BLANK = "____"
_SUPPORTED = 0.7
"""Least share of a statement's words in a text that supports it."""
_CLOZE = re.compile(rf'"([^"]*{_BLANK}[^"]*)"')
_WORDS = range(6, 41)
"""Number of words of a sentence from which a name is left out."""
_NEVER_STATED = ("telephone number", "shoe size", "favourite colour", "blood group", "bank balance")


def draft_question(request: Request) -> dict[str, object]:
    """Draft a question: leave a name out of a sentence of each text, and ask for the name.

    A global question asks about the most frequent of these names instead. A question that the text
    must not answer asks for something that no text states, such as a shoe size. Question and answer
    are "" if no text has a suitable sentence, or only one has if the material names a ``form``.
    """
    material = request.material
    texts = [str(unit["text"]) for unit in material["texts"]]
    blanks = [blank for text in texts if (blank := _make_cloze(text)) is not None]
    reply: dict[str, object] = {"question": "", "answer": "", "quotes": [], "difficulty": "easy"}
    is_global = "assertions" in request.fields
    if is_global:
        reply["assertions"] = []
    if not blanks or (material["form"] and len(blanks) < 2):
        return reply
    names, quotes, clozes = zip(*blanks, strict=True)
    if is_global:
        quotes = quotes[:4]
        reply["question"] = f"What about {Counter(names).most_common(1)[0][0]}?"
        reply["answer"] = " ".join(quotes)
        reply["assertions"] = [{"text": q, "weight": "vital"} for q in quotes]
    elif "it does not answer" in request.user.partition("Material:")[0]:
        quotes = quotes[:1]
        fact = _NEVER_STATED[len(quotes[0]) % len(_NEVER_STATED)]
        reply["question"] = f"What is the {fact} of {names[0]}?"
    else:
        phrase = " and ".join(f'"{cloze}"' for cloze in clozes)
        which = "name belongs in the blank" if len(clozes) == 1 else "names belong in the blanks"
        reply["question"] = f"Which {which} of {phrase}?"
        reply["answer"] = "; ".join(names)
    return {**reply, "quotes": [*quotes]}


def propose_assertions(request: Request) -> dict[str, object]:
    """Return the quotes' sentences as assertions: vital if they contain the answer, else okay.

    If no sentence contains the answer, the answer itself is the vital one.
    """
    answer = str(request.material["answer"])
    quoted = [s for quote in request.material["quotes"] for s in sentences(quote)]
    key_terms = set(terms(answer))
    vital = [s for s in quoted if key_terms and key_terms <= set(terms(s))] or [answer or quoted[0]]
    weights = {**dict.fromkeys(quoted, "okay"), **dict.fromkeys(vital, "vital")}
    listed = [{"text": text, "weight": weight} for text, weight in weights.items()]
    return {"assertions": listed}


def _make_cloze(text: str) -> tuple[str, str, str] | None:
    """Return a name, the first suitable sentence that contains it, and that sentence without it.

    None if no sentence is suitable.
    """
    pool = [
        sentence
        for sentence in sentences(text)
        if len(sentence.split()) in _WORDS and not is_heading(sentence) and sentence in text
    ]
    for sentence, mentions in zip(pool, find_mentions([*map(split_words, pool)]), strict=True):
        names = [mention.name for mention in mentions if mention.name in sentence]
        if names and len(names) < 4:
            return names[0], sentence, sentence.replace(names[0], _BLANK)
    return None


def answer_from_texts(request: Request) -> dict[str, object]:
    """Answer with sentences of the texts that cover the question; decline if there are none.

    Without texts the question is always declined: nothing is known without them.
    """
    question, texts = str(request.material.get("question", "")), request.material.get("texts", ())
    records = [
        Record(table="Sources", id=str(n), text=str(unit["text"])) for n, unit in enumerate(texts)
    ]
    clozes = [cloze.replace(_BLANK, " ") for cloze in _CLOZE.findall(question)]
    answers = [answer_question(cloze, records) for cloze in clozes or [question]]
    is_found = min(answer.coverage for answer in answers) >= SUFFICIENT_COVERAGE
    return {"found": is_found, "answer": " ".join(a.text for a in answers) if is_found else ""}


def compare_meaning(request: Request) -> dict[str, object]:
    """Score 1 if one answer is correct by the words of the other."""
    texts = request.material
    reason, same = _judge_correctness(str(texts.get("other")), str(texts.get("one")))
    return {"difference": reason, "same": same}


def rule_on_statements(request: Request) -> dict[str, object]:
    """Call a statement supported if the answer has 0.7 of its words.

    No statement is ever contradicted: words alone can't show it.
    """
    material = _material(request, "question answer statements")
    present = set(terms(str(material["answer"])))
    rulings: list[dict[str, object]] = []
    for number, text in material["statements"].items():
        share = share_covered(terms(text), present)
        reason = f"{share:.2f} of its words are there (needed: {_SUPPORTED})."
        ruling = "supported" if share >= _SUPPORTED else "missing"
        rulings.append({"number": int(number), "reason": reason, "ruling": ruling})
    return {"rulings": rulings}
