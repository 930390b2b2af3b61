"""The embedded models as models: settings, usage, streaming, determinism, vectors."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import create_embedding
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from graphrag.offline import OFFLINE_LABEL, OfflineModelError

SYSTEM = (
    "-----Sources-----\nid|text\n1|Mara sold the silver clock to Otto in the harbour of Rome.\n"
    "2|The silver clock of Mara was sold by the old man to nobody at all that winter.\n"
)
MESSAGES = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "Who bought the silver clock?"},
]


class Verdict(BaseModel):
    reason: str
    score: int


JUDGED = [{"role": "user", "content": json.dumps({"question": "Who?", "answer": "Mara."})}]
REQUESTS = pytest.mark.parametrize(
    "request_args",
    [{"messages": MESSAGES}, {"messages": JUDGED, "response_format": Verdict}],
    ids=["text", "structured"],
)


@REQUESTS
async def test_a_stream_joins_to_the_response_and_ends_with_its_usage(completion, request_args):
    whole = completion.completion(**request_args)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(completion.completion(**request_args, **options))
    later = [c async for c in await completion.completion_async(**request_args, **options)]
    assert [c.model_dump() for c in chunks] == [c.model_dump() for c in later]
    assert len(chunks) > 2
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == whole.content
    assert [c.usage for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].usage == whole.usage
    assert chunks[-1].choices[0].delta.content is None
    assert {c.model for c in chunks} == {whole.model} == {"offline/rules"}


@REQUESTS
def test_a_stream_gives_usage_only_when_asked(completion, request_args):
    assert all(c.usage is None for c in completion.completion(**request_args, stream=True))


@REQUESTS
async def test_usage_is_what_the_tokenizer_counts(completion, request_args):
    response = await completion.completion_async(**request_args)
    tokenizer = completion.tokenizer
    assert response.usage.prompt_tokens == tokenizer.num_prompt_tokens(request_args["messages"])
    assert response.usage.completion_tokens == len(tokenizer.encode(response.content))
    assert response.usage.total_tokens == (
        response.usage.prompt_tokens + response.usage.completion_tokens
    )


def test_a_structured_reply_is_parsed(completion):
    response = completion.completion(messages=JUDGED, response_format=Verdict)
    assert response.formatted_response == Verdict.model_validate_json(response.content)


def test_metrics_are_added_up_in_the_store(completion, embedding):
    before = completion.metrics_store.get_metrics().get("successful_response_count", 0)
    completion.completion(messages=MESSAGES)
    after = completion.metrics_store.get_metrics()["successful_response_count"]
    assert after == before + 1
    embedding.embedding(input=["Ann"])
    assert embedding.metrics_store.get_metrics()["successful_response_count"] >= 1


def test_metrics_tell_of_calls_and_failures(completion):
    metrics = {"asked": 1.0}
    completion.completion(messages=MESSAGES, metrics=metrics)
    assert metrics["successful_response_count"] == 1
    assert metrics["prompt_tokens"] > 0
    with pytest.raises(OfflineModelError):
        completion.completion(messages="Sing.", metrics=metrics)
    assert metrics["failed_response_count"] == 1


def test_the_connectivity_test_is_answered(completion):
    text = "This is an LLM connectivity test. Say Hello World"
    assert completion.completion(messages=text).content == "Hello World"


class Poem(BaseModel):
    verses: list[str]


@pytest.mark.parametrize(
    "request_args",
    [
        {"messages": "Write a poem about the sea."},
        {"messages": [{"role": "user", "content": "Hello"}], "response_format": Poem},
        {"messages": []},
        {"messages": [{"role": "system", "content": SYSTEM}]},
        {"messages": MESSAGES, "tools": [{"type": "function"}]},
        {"messages": MESSAGES, "n": 2},
    ],
)
async def test_what_it_cannot_do_it_refuses(completion, request_args):
    with pytest.raises(OfflineModelError):
        await completion.completion_async(**request_args)


def test_the_refusal_says_what_is_supported(completion):
    with pytest.raises(OfflineModelError, match=r"edge scoring.*configure a language model"):
        completion.completion(messages="Write a poem about the sea.")


def settings_of(**fields):
    return ModelConfig.model_validate(
        {"type": "offline", "model_provider": "offline", "model": "x", **fields}
    )


@pytest.mark.parametrize(
    ("create", "field", "near"),
    [
        (create_embedding, "dimension", "did you mean `dimensions`"),
        (create_embedding, "api_kee", "did you mean `api_key`"),
        (create_completion, "cal_args", "did you mean `call_args`"),
        (create_completion, "dimensions", "it may have only: .*api_key"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_known(create, field, near):
    with pytest.raises(OfflineModelError, match=f"`{field}`.*{near}"):
        create(settings_of(**{field: 7}))


@pytest.mark.parametrize("length", [0, 7, "384", True, 12.5])
def test_a_bad_vector_length_is_refused(length):
    with pytest.raises(OfflineModelError, match="dimensions"):
        create_embedding(settings_of(dimensions=length))


PROBE = """
from graphrag.offline.dispatch import reply
from graphrag.offline.requests import read_request
from graphrag.offline.vectors import hash_text
from graphrag.prompts.index.extract_graph import GRAPH_EXTRACTION_PROMPT
text = "So Mara, Otto and Ines of Rome met Dr. Paul Berg. Berg told Mara of Vik Castle."
prompt = GRAPH_EXTRACTION_PROMPT.format(entity_types="person,geo", input_text=text)
print(reply(read_request([{"role": "user", "content": prompt}], None)).text)
print(hash_text(text, 384).tolist())
"""


def test_another_process_gives_the_same_bytes():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert b"MARA" in outputs[0]
    assert outputs[0] == outputs[1]


def test_importing_the_package_loads_no_model_library():
    code = "import sys, graphrag.offline; print(sorted({'litellm', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
    assert OFFLINE_LABEL == "offline baseline models"


def test_threads_share_one_model(completion, embedding):
    expected = completion.completion(messages=MESSAGES).content
    vector = embedding.embedding(input=["a silver clock"]).first_embedding
    seen = []

    def work():
        for _ in range(20):
            seen.append(completion.completion(messages=MESSAGES).content == expected)
            seen.append(embedding.embedding(input=["a silver clock"]).first_embedding == vector)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 160
    assert all(seen)


async def test_vectors_have_the_length_asked_for_and_their_tokens_are_counted(embedding):
    texts = ["A silver clock", "Eine Uhr", ""]
    response = await embedding.embedding_async(input=texts)
    assert [len(v) for v in response.embeddings] == [384] * 3
    assert all(type(x) is float for x in response.first_embedding)
    assert response.usage.prompt_tokens == sum(len(embedding.tokenizer.encode(t)) for t in texts)
    assert len(embedding.embedding(input=["x"], dimensions=64).first_embedding) == 64
    with pytest.raises(OfflineModelError, match="input"):
        embedding.embedding()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=120))
def test_every_text_has_a_vector_of_length_one(embedding, text):
    vector = np.array(embedding.embedding(input=[text]).first_embedding)
    assert np.linalg.norm(vector) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Who stole the silver clock?", "The thief steals silver clocks.", "It rained all day."),
        ("银钟在哪里", "他把银钟藏在北京。", "王先生喜欢音乐。"),
        ("Где серебряные часы?", "Серебряные часы лежат в саду.", "Сегодня идёт дождь."),
    ],
)
def test_texts_about_the_same_thing_are_nearer(embedding, text, near, far):
    a, b, c = map(np.array, embedding.embedding(input=[text, near, far]).embeddings)
    assert a @ b > a @ c + 0.05


def test_case_width_and_spaces_make_no_difference(embedding):
    a, b = embedding.embedding(input=["Silver  CLOCK\n", "\uff33ilver clock"]).embeddings
    assert a == pytest.approx(b)
