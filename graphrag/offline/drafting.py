"""Draft questions, answer them from given texts, and rule on statements, by words alone.

A drafted question is a sentence with a name left out. That is weak, and says so: it tries the way
from a text to a dataset, and no skill of anybody's.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from graphrag.offline.answering import SUFFICIENT_COVERAGE, answer_question
from graphrag.offline.extraction import is_heading
from graphrag.offline.grading import judge_correctness, read_material
from graphrag.offline.names import find_mentions, split_words
from graphrag.offline.requests import Request, find_json_object
from graphrag.text.tables import Record
from graphrag.text.words import sentences, share_covered, terms

_BLANK = "____"
_HELD = 0.7
"""Least share of a statement's words that a text has which supports it."""
_CLOZE = re.compile(rf'"([^"]*{_BLANK}[^"]*)"')
_WORDS = range(6, 41)
"""Words of a sentence that a name is left out of."""
_NEVER_SAID = ("telephone number", "shoe size", "favourite colour", "blood group", "bank balance")


def draft_question(request: Request) -> dict[str, object]:
    """Leave a name out of a sentence of each text, and ask for it.

    Without a sentence for each, question and answer are "". Where nothing is said of the form, the
    text may be there for a question that it does not answer; then something is asked of its most
    frequent name that no text says.
    """
    material = find_json_object(request.user) or {}
    texts = [
        str(each["text"]) for each in cast("Sequence[Mapping[str, object]]", material["texts"])
    ]
    blanks = [blank for text in texts if (blank := _leave_out(text)) is not None]
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
        reply["assertions"] = [{"text": q, "weight": "vital", "must": "say"} for q in quotes]
    elif "it does not answer" in request.user.partition("Material:")[0]:
        quotes = quotes[:1]
        asked = _NEVER_SAID[len(quotes[0]) % len(_NEVER_SAID)]
        reply["question"] = f"What is the {asked} of {names[0]}?"
    else:
        shown = " and ".join(f'"{cloze}"' for cloze in clozes)
        which = "name belongs in the blank" if len(clozes) == 1 else "names belong in the blanks"
        reply["question"] = f"Which {which} of {shown}?"
        reply["answer"] = "; ".join(names)
    return {**reply, "quotes": [*quotes]}


def propose_assertions(request: Request) -> dict[str, object]:
    """Take the quotes' sentences that hold the answer as vital, else the answer, others as okay."""
    material = find_json_object(request.user) or {}
    answer, quotes = str(material["answer"]), cast("Sequence[str]", material["quotes"])
    said = [each for quote in quotes for each in sentences(quote)]
    wanted = set(terms(answer))
    vital = [each for each in said if wanted and wanted <= set(terms(each))] or [answer or said[0]]
    weights = {**dict.fromkeys(said, "okay"), **dict.fromkeys(vital, "vital")}
    listed = [{"text": text, "weight": weight, "must": "say"} for text, weight in weights.items()]
    return {"assertions": listed}


def _leave_out(text: str) -> tuple[str, str, str] | None:
    """Return a name, the first sentence that has it with enough else, and that without it."""
    found = [
        each
        for each in sentences(text)
        if len(each.split()) in _WORDS and not is_heading(each) and each in text
    ]
    for sentence, mentions in zip(found, find_mentions([*map(split_words, found)]), strict=True):
        names = [each.name for each in mentions if each.name in sentence]
        if names and len(names) < 4:
            return names[0], sentence, sentence.replace(names[0], _BLANK)
    return None


def answer_from_texts(request: Request) -> dict[str, object]:
    """Answer with the sentences of the given texts that cover the question; without any, decline.

    A question without texts is one that nothing is known of.
    """
    material = find_json_object(request.user) or {}
    question = str(material.get("question", ""))
    texts = cast("Sequence[object]", material.get("texts", ()))
    records = [Record("Sources", str(n), str(text)) for n, text in enumerate(texts)]
    clozes = [each.replace(_BLANK, " ") for each in _CLOZE.findall(question)]
    answers = [answer_question(each, records) for each in clozes or [question]]
    found = min(each.coverage for each in answers) >= SUFFICIENT_COVERAGE
    return {"found": found, "answer": " ".join(each.text for each in answers) if found else ""}


def compare_meaning(request: Request) -> dict[str, object]:
    """1 where one answer is correct by the words of the other."""
    material = find_json_object(request.user) or {}
    reason, same = judge_correctness(str(material.get("other")), str(material.get("one")))
    return {"difference": reason, "same": same}


def rule_on_statements(request: Request) -> dict[str, object]:
    """Support a statement by the share of its words that the answer holds.

    None is ever contradicted: words alone don't tell.
    """
    material = read_material(request, {"question", "answer", "statements"})
    present, statements = set(terms(str(material["answer"]))), material["statements"]
    shares = {
        int(number): share_covered(terms(text), present)
        for number, text in cast("Mapping[str, str]", statements).items()
    }
    return {
        "rulings": [
            {
                "number": number,
                "reason": f"{share:.2f} of its words are there (needed: {_HELD}).",
                "ruling": "supported" if share >= _HELD else "missing",
            }
            for number, share in shares.items()
        ]
    }
