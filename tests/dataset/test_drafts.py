"""What is checked of a drafted question without a model."""

from dataclasses import replace

import pytest

from graphrag.eval.dataset.drafts import Cause, Draft, Passage, check_draft, find_quote

TOWER = Passage("Idris Vane built the tower clock in 1911. It has four faces.", "Ashcombe")
BANK = Passage("The clock was paid for by Petra Holm, who owned the bank.", "Money")
FACT = {
    "kind": "fact",
    "question": "Who built the tower clock of Ashcombe?",
    "answer": "Idris Vane",
    "quotes": ("Idris Vane built the tower clock in 1911.",),
    "passages": (TOWER,),
    "difficulty": "easy",
}
LINK = {
    **FACT,
    "kind": "link",
    "question": "Who owned the bank that paid for Idris Vane's clock?",
    "answer": "Petra Holm",
    "quotes": ("Idris Vane built the tower clock", "paid for by Petra Holm, who owned the bank"),
    "passages": (TOWER, BANK),
}


def test_a_quote_is_found_in_the_letters_of_its_text():
    text = "So the clock\u2019s\n\u201cface\u201d (of 1911)\u00a0is old \u2013 very old."
    for quote in (
        'the clock\'s "face" (of 1911) is old - very',
        "  the clock\u2018s \u00abface\u00bb",
    ):
        found = find_quote(quote, text)
        assert found is not None
        assert found in text
        assert found.startswith("the clock\u2019s\n\u201cface\u201d")
    for quote in ("The clock's", 'clocks "face"', "is old. very", "", " "):
        assert find_quote(quote, text) is None


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({}, None),
        ({"quotes": ()}, Cause.NO_QUOTES),
        ({"quotes": ("Idris Vane built the Tower clock",)}, Cause.NOT_IN_TEXT),
        ({"answer": "The tower clock"}, Cause.REVEALS_ANSWER),
        ({"question": "How old was Vane at the U-20 cup?", "answer": "20"}, None),
        ({"question": "Was Vane 20 at the U-20 cup?", "answer": "20"}, Cause.REVEALS_ANSWER),
        ({"question": "Which grade has Ashcombe's tower?", "answer": "Grade I"}, None),
        ({"question": "Is a clock what Vane built?", "answer": "A clock"}, Cause.REVEALS_ANSWER),
        ({"question": "Who built it for them?"}, Cause.NO_SUBJECT),
        ({"question": "What did the man build in Ashcombe?"}, None),
        ({"question": "What did the man build for the bank?"}, Cause.NO_SUBJECT),
        ({"question": "What is the company credit card limit for Acme managers?"}, None),
        ({"question": "What is the company credit card limit for managers?"}, None),
        ({"question": "Who approves the event budget of clerks?"}, None),
        ({"question": "How are the event hooks of httpx.AsyncClient to be written?"}, None),
        ({"question": "How much smaller have the man-db databases become?"}, None),
        ({"question": "When does `state-save` write them?"}, None),
        ({"question": "What does max_clocks do to its towers?"}, None),
        ({"question": "Who e.g. built it for them?"}, Cause.NO_SUBJECT),
        ({"question": "What did the company announce to clerks?"}, Cause.NO_SUBJECT),
        ({"question": "When was the event and who paid for clocks?"}, Cause.NO_SUBJECT),
        (
            {"question": "Which is older, the clock or the bank?", "answer": "The clock"},
            None,
        ),
        (
            {"question": "Which clock or bank has the oldest clock?", "answer": "The clock"},
            Cause.REVEALS_ANSWER,
        ),
        ({"question": "Which of the clock and the bank is older?", "answer": "The clock"}, None),
        ({"question": "Of Vane's clock and the bank, which lasted?", "answer": "The bank"}, None),
        (
            {"question": "Did Vane build the clock and the bank?", "answer": "The clock"},
            Cause.REVEALS_ANSWER,
        ),
        ({"question": "Who is the man who built the clock of Ashcombe?"}, None),
        ({"question": "Did this advisory come first?"}, Cause.NO_SUBJECT),
        ({"question": "How many faces does the tower clock have?"}, None),
        ({"question": "What does Elias say to his sister?"}, None),
        ({"question": "What is the name of the clock?"}, Cause.NO_SUBJECT),
        ({"question": "How many days of annual leave does a clerk get?"}, None),
        ({"question": "Who built the old clock of Ashcombe?"}, None),
        ({"question": "Who built Ashcombe's old tower clock?"}, Cause.DUPLICATE),
        (LINK, None),
        ({**LINK, "quotes": LINK["quotes"][:1]}, Cause.NO_QUOTES),
        ({**LINK, "quotes": ("Idris Vane built", "It has four faces.")}, Cause.NO_QUOTES),
    ],
)
def test_a_draft_is_refused_for_its_words(changes, cause):
    asked = ["Who built the old tower clock of Ashcombe?"] if cause is Cause.DUPLICATE else []
    assert check_draft(Draft(**{**FACT, **changes}), asked) is cause


def test_what_asks_the_same_texts_for_the_same_is_asked_once_in_whatever_words():
    first = Draft(**FACT)
    again = replace(first, question="Which maker does Ashcombe owe its hours to?")
    assert check_draft(replace(again, answer="Idris Vane."), [], [first]) is Cause.DUPLICATE
    assert check_draft(replace(again, answer="1911"), [], [first]) is None
    linked = Draft(**{**LINK, "answer": "Idris Vane", "question": "Whose clock had Holm pay?"})
    assert check_draft(linked, [], [first]) is None
    missing = replace(first, kind="unanswerable", answer="")
    assert check_draft(replace(again, kind="unanswerable", answer=""), [], [missing]) is None
