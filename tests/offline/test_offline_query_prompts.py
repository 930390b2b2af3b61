"""The embedded model behind search prompts, Think-on-Graph's and the released ones."""

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag.embedded import NOT_FOUND
from graphrag.prompts.query.basic_search_system_prompt import BASIC_SEARCH_SYSTEM_PROMPT
from graphrag.prompts.query.drift_search_system_prompt import (
    DRIFT_LOCAL_SYSTEM_PROMPT,
    DRIFT_PRIMER_PROMPT,
    DRIFT_REDUCE_PROMPT,
)
from graphrag.prompts.query.global_search_map_system_prompt import MAP_SYSTEM_PROMPT
from graphrag.prompts.query.global_search_reduce_system_prompt import REDUCE_SYSTEM_PROMPT
from graphrag.prompts.query.local_search_system_prompt import LOCAL_SEARCH_SYSTEM_PROMPT
from graphrag.prompts.query.question_gen_system_prompt import QUESTION_SYSTEM_PROMPT
from graphrag.query.context_builder.rate_prompt import RATE_QUERY
from graphrag.query.graph.prompts import NextStep, ReasonedAnswer
from graphrag.query.structured_search.drift_search.primer import PrimerResponse
from graphrag.text.context_tables import read_context

SOURCES = {
    3: "Mara walked to the harbour. She sold the silver clock to Otto Brandt in 1931.",
    4: "The storm broke the mast. Nobody slept that night because the wind howled.",
    12: 'Ines said "never | again" and hid the letters.\nIn the cellar Ines kept a green lamp.',
}
LOCAL = (
    "-----Entities-----\nid|entity|description|number of relationships\n"
    "0|MARA|Mara walked to the harbour.|3\n"
    "-----Relationships-----\nid|source|target|description|weight\n"
    "7|INES|PAUL|Ines taught the piano to Paul.|2\n"
    "-----Sources-----\nid|text\n" + "".join(f"{i}|{text}\n" for i, text in SOURCES.items())
)
BASIC = pd.DataFrame({"id": list(SOURCES), "text": list(SOURCES.values())}).to_csv(
    index=False, escapechar="\\", sep="|"
)


def local(context=LOCAL):
    return LOCAL_SEARCH_SYSTEM_PROMPT.format(context_data=context, response_type="One line")


@pytest.mark.parametrize(
    "system",
    [local(), BASIC_SEARCH_SYSTEM_PROMPT.format(context_data=BASIC, response_type="One line")],
    ids=["local", "basic"],
)
@pytest.mark.parametrize(
    ("question", "answer", "source"),
    [
        ("Who bought the silver clock that Mara sold?", "Otto Brandt", 3),
        ("When was the silver clock sold?", "1931", 3),
        ("Why did nobody sleep that night?", "because the wind howled", 4),
        ("Where did Ines keep the green lamp?", "In the cellar", 12),
    ],
)
def test_the_best_sentence_answers_with_its_source(ask, system, question, answer, source):
    reply = ask(question, system)
    assert answer in reply
    assert f"[Data: Sources ({source})]" in reply


CLOCKS = (
    "-----Sources-----\nid|text\n1|Ines saw a clock in the window.\n"
    "2|Mara sold the silver clock to Otto.\n"
)
CHINESE = "-----Sources-----\nid|text\n1|王先生住在北京。\n2|李小姐喜欢音乐。他买了一只银钟。\n"


@pytest.mark.parametrize(
    ("context", "question", "answer"),
    [
        (
            LOCAL,
            "Who taught Paul the piano?",
            "Ines taught the piano to Paul. [Data: Relationships (7)]",
        ),
        (CLOCKS, "What became of the silver clock that was sold?", "Mara sold"),
        (CHINESE, "谁喜欢音乐？", "李小姐喜欢音乐。 [Data: Sources (2)]"),  # noqa: RUF001
        # A word in common is no answer.
        (
            LOCAL,
            "Which carpenter from Lisbon restored the cathedral organ after Mara vanished?",
            NOT_FOUND,
        ),
        *((context, "Which planet has purple volcanoes?", NOT_FOUND) for context in (LOCAL, "")),
        ("-----Sources-----\nid|text\n", "Which planet has purple volcanoes?", NOT_FOUND),
    ],
)
def test_what_covers_most_is_cited_and_what_covers_too_little_is_not(
    ask, context, question, answer
):
    assert ask(question, local(context)).startswith(answer)


POINT = "Mara sold the silver clock. [Data: Reports (2)]"


def test_global_and_drift_steps_keep_the_citation_and_rate_by_overlap(ask):
    question, one_line = "Who sold the silver clock?", {"response_type": "One line"}
    reports = "id|title|content|rank\n2|Clocks|Mara sold the silver clock.|1.0\n"
    system = MAP_SYSTEM_PROMPT.format(context_data=reports, max_length=100)
    point = json.loads(ask(question, system))["points"][0]
    assert point["description"] == POINT
    assert 1 <= point["score"] <= 100
    assert json.loads(ask("Which planet has purple volcanoes?", system))["points"][0]["score"] == 0

    analysts = f"----Analyst 1----\nImportance Score: 90\n{POINT}"
    system = REDUCE_SYSTEM_PROMPT.format(report_data=analysts, max_length=50, **one_line)
    assert ask(question, system) == POINT
    assert ask(question, DRIFT_REDUCE_PROMPT.format(context_data=[POINT], **one_line)) == POINT

    for text, rating in (
        ("Mara sold the silver clock. It was old.", 5),
        ("A storm broke the mast.", 0),
    ):
        system = RATE_QUERY.format(description=text, question=question)
        assert json.loads(ask(question, system))["rating"] == rating


def test_drift_steps_give_what_the_release_reads(ask):
    primer = ask(
        DRIFT_PRIMER_PROMPT.format(
            query="Who sold the silver clock?",
            community_reports="# Clocks\n\nMara sold the silver clock. Otto slept.",
        ),
        response_format=PrimerResponse,
    )
    assert "Mara sold the silver clock." in primer.intermediate_answer
    assert 0 < primer.score <= 100
    assert primer.follow_up_queries
    system = DRIFT_LOCAL_SYSTEM_PROMPT.format(
        context_data=LOCAL, response_type="One line", global_query="Who?", followups=3
    )
    step = json.loads(ask("Who bought the silver clock?", system))
    assert "[Data: Sources (3)]" in step["response"]
    assert set(step) == {"response", "score", "follow_up_queries"}


def test_making_questions_up_is_refused(ask):
    system = QUESTION_SYSTEM_PROMPT.format(question_count=3, context_data=LOCAL)
    with pytest.raises(ValueError, match="made up"):
        ask("Who is Mara?", system)


ROWS = (
    "-----Rows-----\nnumber|from -> to|document|sentence\n"
    "1|MARA -> REX|Dogs|Mara feeds Rex.\n2|LISBON|Trades|A carpenter came from Lisbon.\n"
)


def test_a_call_that_may_go_on_answers_where_one_sentence_is_enough(ask):
    system = f"Answer or go on.\n\n{LOCAL}\n\n{ROWS}"
    reply = ask("Who taught Paul the piano?", system, response_format=NextStep)
    assert (reply.missing, reply.answer) == ("", "Ines taught the piano to Paul.")
    assert reply.relationships == [7]
    assert (reply.keep, reply.follow, reply.look_up) == ([], [], [])


def test_otherwise_it_keeps_what_fits_and_follows_rows_by_their_words(ask):
    system = f"Answer or go on.\n\n{LOCAL}\n\n{ROWS}"
    question = "Which carpenter from Lisbon later repaired the silver clock?"
    reply = ask(question, system, response_format=NextStep)
    assert "lisbon" in reply.missing
    assert (reply.answer, reply.sources) == ("", [])
    assert reply.keep == [3]
    assert reply.follow == [2]
    assert reply.look_up == ["Otto Brandt later repaired"]


@pytest.mark.parametrize(
    ("question", "answer", "ids", "missing"),
    [
        ("Who taught Paul the piano?", "Ines taught the piano to Paul.", ([7], []), ""),
        (
            "Which carpenter from Lisbon later repaired the silver clock?",
            "She sold the silver clock to Otto Brandt in 1931.",
            ([], [3]),
            "lisbon",
        ),
        ("Which planet has purple volcanoes?", "", ([], []), "volcano"),
    ],
)
def test_check_answers_with_ids_and_says_what_is_missing(ask, question, answer, ids, missing):
    reply = ask(question, f"Answer.\nData tables:\n\n{LOCAL}", response_format=ReasonedAnswer)
    assert reply.answer == answer
    assert bool(reply.missing) == bool(missing)
    assert (reply.relationships, reply.sources) == ids
    assert missing in reply.missing


@settings(max_examples=30, deadline=None)
@given(question=st.text(max_size=80), text=st.text(max_size=200))
def test_any_unicode_question_and_context_get_a_reply(ask, question, text):
    reply = ask(question, local(f"-----Sources-----\nid|text\n1|{text}\n").replace("\x00", ""))
    assert reply == NOT_FOUND or "[Data: Sources (1)]" in reply


def test_the_names_of_a_row_are_kept_apart():
    rows = "-----Relationships-----\nid|source|target|description\n1|MARA VALE|OTTO|sold to\n"
    assert [record.names for record in read_context(rows)] == [("MARA VALE", "OTTO")]
