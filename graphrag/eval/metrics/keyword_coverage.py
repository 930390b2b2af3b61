"""Compares an answer's words with keywords, aspects and the ground truth; scores its time."""

from collections.abc import Sequence
from itertools import pairwise

from graphrag.eval.metrics.quote_matching import NamedText, phrase_key
from graphrag.text.accepted_answers import split_answers
from graphrag.text.languages import main_language
from graphrag.text.sentences import sentences
from graphrag.text.stems import ENGLISH, read_as, share_covered, terms

ASPECT_SHARE = 0.6
ANY_WORD = 1e-9
"""A ``least_share`` that one content word of an aspect reaches, however long the aspect is."""
STATEMENT_SHARE = 0.6


def keyword_relevance(keywords: Sequence[str], answer: str) -> float | None:
    """Return the share of the distinct keywords that an answer names, in [0, 1].

    None if no keyword has a letter or digit. A keyword counts if its words occur in the answer side
    by side, as whole words, in any case and punctuation; in a script without spaces, if its
    characters do. If the answer and the keywords are found to be in another language than English,
    the words may have other endings. Defined by this project. It sees no synonyms, and no inflected
    forms in English.
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
    """Return the share of the aspects that an answer mentions, in [0, 1].

    An aspect is a phrase; aspects without a content word are left out. None if no aspect has one.
    An aspect counts if one sentence, or two neighboring ones, contain at least ``least_share``, in
    (0, 1], of its distinct content words. Function words are left out, English endings are cut,
    numbers are compared as digits; in a script without spaces, pairs of characters count as words.
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
    """Return whether an answer contains the words of the ground truth.

    None if the ground truth has no content word, such as "Yes". The answer must contain every
    number of the ground truth and at least ``STATEMENT_SHARE`` of its distinct content words,
    anywhere, compared as in :func:`aspect_coverage`. If there are several accepted answers, one is
    enough. ``language`` is the language of both texts; None: it is detected. A weak test, for
    tracing and not for scoring: it misses a paraphrase, and an answer that denies the fact, or
    lists everything, passes.
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
    """Return 1 for a time within the limit, falling evenly to 0 at twice the limit.

    Beyond the limit it is ``max(0, 1 - (seconds - limit_s) / limit_s)``. None if ``seconds`` is
    None, because the time was not measured. Raises ValueError if the limit is not positive or the
    time is negative.
    """
    if not limit_s > 0:
        raise ValueError(f"a time limit must be positive, not {limit_s}")
    if seconds is None:
        return None
    if not seconds >= 0:
        raise ValueError(f"a time must not be negative, as {seconds} is")
    return 1.0 if seconds <= limit_s else max(0.0, 1 - (seconds - limit_s) / limit_s)
