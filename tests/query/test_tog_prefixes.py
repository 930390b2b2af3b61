"""What a provider can read from its cache: the scoring calls of one search begin alike."""

from itertools import takewhile
from typing import Any

import pytest
from support.lighthouse import SpiedServer
from support.tog_world import read_scoring

from graphrag.query.graph_index import GraphIndex

QUESTION = "Who repaired the great lamp with Marta Quill?"


@pytest.fixture
async def calls(make_project: Any, server: SpiedServer) -> dict[str, list[str]]:
    """What each call of one search was sent, by what it is for."""
    index = await GraphIndex.open(make_project())
    await index.search("tog", QUESTION)
    sent: dict[str, list[str]] = {"scoring": [], "checking": []}
    for request in server.requests.values():
        if "messages" in request:
            text = "\n".join(message["content"] for message in request["messages"])
            sent["scoring" if "Score the edges" in text else "checking"].append(text)
    assert len(sent["scoring"]) > 1
    assert len(sent["checking"]) == 1
    return sent


def begin_alike(texts: list[str]) -> str:
    """The longest text that all of these begin with."""
    columns = zip(*texts, strict=False)
    return "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, columns))


async def test_scoring_begins_with_the_instructions_and_the_question(
    calls: dict[str, list[str]],
) -> None:
    """And every edge is sent once a search."""
    alike = begin_alike(calls["scoring"])
    assert "Reply with JSON only" in alike
    assert f"Question: {QUESTION}\n" in alike
    asked = [read_scoring(text[text.index("Question: ") :])["edges"] for text in calls["scoring"]]
    sent = [(e["source"], e["target"], e["relationship"]) for edges in asked for e in edges]
    assert len(sent) == len(set(sent)) > 0
