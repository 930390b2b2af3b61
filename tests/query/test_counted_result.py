"""A counted result: the released pair and a search result at the same time."""

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import asdict, fields, replace

import pytest

from graphrag.query.counted_result import CountedSearchResult, Outcome, make_result
from graphrag.query.structured_search.base import SearchResult
from graphrag.query.usage import Usage

CONTEXT = {"sources": [1, 2]}
USAGE = Usage(llm_calls=2, prompt_tokens=30, output_tokens=4, llm_calls_by_phase={"response": 2})


RESULT = make_result(Outcome("Yes.", CONTEXT, "shown"), USAGE, 1.5)
PAIR = ("Yes.", CONTEXT)


def test_it_is_the_pair_and_a_search_result_with_counters() -> None:
    assert isinstance(RESULT, tuple)
    assert RESULT == PAIR
    assert PAIR == RESULT
    assert (RESULT != PAIR) is False
    assert RESULT != ("No.", CONTEXT)
    assert (len(RESULT), RESULT[0], RESULT[-1], RESULT[:1]) == (2, "Yes.", CONTEXT, ("Yes.",))
    assert json.dumps(RESULT) == json.dumps(PAIR)
    assert f"{RESULT} {RESULT!r}" == f"{PAIR} {PAIR!r}"
    assert hash(replace(RESULT, context_data="text")) == hash(("Yes.", "text"))
    response, context = RESULT
    assert (context is CONTEXT, response) == (True, "Yes.")

    assert isinstance(RESULT, SearchResult)
    assert RESULT.llm_calls == RESULT.usage.llm_calls == 2
    assert (RESULT.prompt_tokens, RESULT.output_tokens, RESULT.completion_time) == (30, 4, 1.5)
    assert RESULT.llm_calls_categories == {"response": 2}
    assert asdict(RESULT)["context_text"] == "shown"


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result)), replace]
)
def test_a_copy_is_whole(again: Callable[[CountedSearchResult], CountedSearchResult]) -> None:
    made = again(RESULT)
    assert type(made) is CountedSearchResult
    assert made == RESULT
    for field in fields(RESULT):
        assert getattr(made, field.name) == getattr(RESULT, field.name), field.name


def test_the_pair_and_the_fields_cannot_come_apart() -> None:
    result = copy.copy(RESULT)
    with pytest.raises(AttributeError, match=r"dataclasses\.replace"):
        result.response = "No."
    assert replace(result, response="No.")[0] == "No."
    result.completion_time = 2.0
    assert result.completion_time == 2.0
