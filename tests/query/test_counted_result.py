"""A counted result: the released pair and a search result at the same time.

What code written for the pair can do with it is held against the release in
``test_released_parity``.
"""

import copy
import json
import pickle
from dataclasses import asdict, fields, replace

import pytest

from graphrag.query.counted_result import CountedSearchResult, Outcome, make_result
from graphrag.query.usage import Usage

CONTEXT = {"sources": [1, 2]}
USAGE = Usage(llm_calls=2, prompt_tokens=30, output_tokens=4, llm_calls_by_phase={"response": 2})
RESULT = make_result(Outcome("Yes.", CONTEXT, "shown"), USAGE, 1.5)


def again(result: CountedSearchResult) -> CountedSearchResult:
    return pickle.loads(pickle.dumps(result))


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, again, replace])
def test_a_copy_is_whole(make):
    made = make(RESULT)
    assert type(made) is CountedSearchResult
    assert made == RESULT == ("Yes.", CONTEXT) != ("No.", CONTEXT)
    assert [getattr(made, f.name) for f in fields(made)] == [
        getattr(RESULT, f.name) for f in fields(made)
    ]


def test_the_pair_and_the_fields_cannot_come_apart():
    result = copy.copy(RESULT)
    with pytest.raises(AttributeError, match=r"dataclasses\.replace"):
        result.response = "No."
    assert replace(result, response="No.")[0] == "No."
    assert hash(replace(result, context_data="text")) == hash(("Yes.", "text"))
    assert json.dumps(result) == json.dumps(["Yes.", CONTEXT])
    result.completion_time = 2.0
    assert result.completion_time == 2.0
    assert (result.llm_calls, result.llm_calls_categories) == (2, {"response": 2})
    assert (result.prompt_tokens, result.output_tokens) == (30, 4)
    assert asdict(result)["context_text"] == "shown"
