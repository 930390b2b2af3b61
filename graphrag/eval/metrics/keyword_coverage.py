"""What an answer says, by its words: keywords, aspects, the ground truth; and how fast it came."""

from collections.abc import Sequence
from itertools import pairwise

from graphrag.eval.metrics.quote_matching import NamedText, phrase_key
from graphrag.text.accepted_answers import split_answers
from graphrag.text.languages import main_language
from graphrag.text.sentences import sentences
from graphrag.text.stems import ENGLISH, read_as, share_covered, terms

ASPECT_SHARE = 0.6
ANY_WORD = 1e-9
"""A least share that one content word of an aspect reaches, however long the aspect is."""
STATEMENT_SHARE = 0.6


def keyword_relevance(keywords: Sequence[str], answer: str) -> float | None:
    """Return the share of keywords that an answer names, each counted once; None without one.

    A keyword counts when its words stand in the answer side by side, whole, whatever their case
    and punctuation; in a script without spaces, when its characters do. In other languages than
    English, as the answer and the keywords are found to be, its words may have endings.
    Defined by this project. It sees no synonyms, and no inflected forms in English.
    """
    distinct = {key: keyword for keyword in keywords if (key := phrase_key(keyword))}
    if not distinct:
        return None
    phrase, language = phrase_key(answer), main_language([" ".join([answer, *keywords])])
    named = () if language == ENGLISH else NamedText(answer, language)
    return sum(key in phrase or distinct[key] in named for key in distinct) / len(distinct)


def aspect_coverage(
    aspects: Sequence[str], answer: str, least_share: float = ASPECT_SHARE
) -> float | None:
    """Return the share of aspects that an answer speaks of; None when none has a content word.

    An aspect is a phrase. It counts when one sentence, or two neighboring ones, hold at least
    `least_share`, in (0, 1], of its distinct content words (function words left out, English
    endings cut, numbers as digits; pairs of characters in a script without spaces).
    Defined by this project. It sees words, not meaning: a denied aspect counts as covered.
    """
    with read_as(main_language([" ".join([answer, *aspects])])):
        term_sets = [words for words in (set(terms(aspect)) for aspect in aspects) if words]
        sentence_terms = [set(terms(sentence)) for sentence in sentences(answer)]
    if not term_sets:
        return None
    windows = [*sentence_terms, *(first | second for first, second in pairwise(sentence_terms))]
    covered = sum(any(share_covered(w, win) >= least_share for win in windows) for w in term_sets)
    return covered / len(term_sets)


def states_answer(ground_truth: str, answer: str, language: str | None = None) -> bool | None:
    """Return whether an answer holds the words of the ground truth; None if it has none, as "Yes".

    It must hold every number of the ground truth and at least `STATEMENT_SHARE` of its distinct
    content words, as :func:`aspect_coverage` compares them, anywhere in the answer; of several
    accepted answers those of one. ``language``: that of both, None: it is found.
    A weak test, for tracing and not for scoring: a paraphrase is missed, and an answer that
    denies the fact, or lists everything, passes.
    """
    with read_as(language or main_language([f"{ground_truth} {answer}"])):
        truths = [set(terms(accepted)) for accepted in split_answers(ground_truth)]
        answer_terms = set(terms(answer))
    if not all(truths):
        return None
    return any(_states(truth_terms, answer_terms) for truth_terms in truths)


def _states(truth_terms: set[str], answer_terms: set[str]) -> bool:
    numbers = {word for word in truth_terms if word[0].isdigit()}
    return numbers <= answer_terms and share_covered(truth_terms, answer_terms) >= STATEMENT_SHARE


def time_score(seconds: float | None, limit_s: float) -> float | None:
    """Return 1 within a time limit, falling evenly to 0 at twice the limit.

    Beyond the limit: ``max(0, 1 - (seconds - limit_s) / limit_s)``; None when the time was not
    measured. A ValueError if the limit is not positive or the time negative.
    """
    if not limit_s > 0:
        raise ValueError(f"a time limit must be positive, not {limit_s}")
    if seconds is None:
        return None
    if not seconds >= 0:
        raise ValueError(f"a time must not be negative, as {seconds} is")
    return 1.0 if seconds <= limit_s else max(0.0, 1 - (seconds - limit_s) / limit_s)
