"""A counted result: the released pair and a search result at the same time."""

import copy
import json
import pickle
from dataclasses import asdict, fields, replace
from typing import Any

import pytest

from graphrag.query.counted_result import CountedSearchResult, make_result
from graphrag.query.structured_search.base import SearchResult
from graphrag.query.usage import Usage

CONTEXT = {"sources": [1, 2]}
USAGE = Usage(llm_calls=2, prompt_tokens=30, output_tokens=4, llm_calls_by_phase={"response": 2})


@pytest.fixture
def result() -> CountedSearchResult:
    return make_result("Yes.", CONTEXT, "shown", USAGE, 1.5)


def test_it_is_the_pair(result: CountedSearchResult) -> None:
    pair = ("Yes.", CONTEXT)

    assert isinstance(result, tuple)
    assert result == pair
    assert pair == result
    assert (result != pair) is False
    assert result != ("No.", CONTEXT)
    assert (len(result), result[0], result[-1], result[:1]) == (2, "Yes.", CONTEXT, ("Yes.",))
    assert json.dumps(result) == json.dumps(pair)
    assert f"{result} {result!r}" == f"{pair} {pair!r}"
    assert hash(replace(result, context_data="text")) == hash(("Yes.", "text"))
    response, context = result
    assert context is CONTEXT
    assert response == "Yes."


def test_it_is_a_search_result_with_counters(result: CountedSearchResult) -> None:
    assert isinstance(result, SearchResult)
    assert result.llm_calls == result.usage.llm_calls == 2
    assert (result.prompt_tokens, result.output_tokens, result.completion_time) == (30, 4, 1.5)
    assert result.llm_calls_categories == {"response": 2}
    assert asdict(result)["context_text"] == "shown"


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda result: pickle.loads(pickle.dumps(result)),
        lambda result: replace(result),
    ],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_a_copy_is_whole(again: Any, result: CountedSearchResult) -> None:
    made = again(result)

    assert type(made) is CountedSearchResult
    assert made == result
    for field in fields(result):
        assert getattr(made, field.name) == getattr(result, field.name), field.name


def test_the_pair_and_the_fields_cannot_come_apart(result: CountedSearchResult) -> None:
    with pytest.raises(AttributeError, match=r"dataclasses\.replace"):
        result.response = "No."
    assert replace(result, response="No.")[0] == "No."
    result.completion_time = 2.0
    assert result.completion_time == 2.0
