"""The embedded models as models: settings, usage, streaming, determinism, vectors."""

import json
import os
import sys

import numpy as np
import pytest
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import create_embedding
from pydantic import BaseModel
from support.commands import run_apart

from graphrag.embedded import OfflineModelError
from graphrag.eval.metrics.judge import JudgeReply

SYSTEM = (
    "-----Sources-----\nid|text\n1|Mara sold the silver clock to Otto in the harbour of Rome.\n"
    "2|The silver clock of Mara was sold by the old man to nobody at all that winter.\n"
)
MESSAGES = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "Who bought the silver clock?"},
]


class Poem(BaseModel):
    verses: list[str]


@pytest.mark.parametrize("form", [None, JudgeReply], ids=["text", "structured"])
async def test_a_stream_joins_to_the_response_whose_usage_is_counted(completion, form):
    judged = [{"role": "user", "content": json.dumps({"question": "Who?", "answer": "Mara."})}]
    request = {"messages": judged, "response_format": form} if form else {"messages": MESSAGES}
    whole = await completion.completion_async(**request)
    usage, tokenizer = whole.usage, completion.tokenizer
    assert usage.prompt_tokens == tokenizer.num_prompt_tokens(request["messages"])
    assert usage.completion_tokens == len(tokenizer.encode(whole.content))
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert form is None or whole.formatted_response == JudgeReply.model_validate_json(whole.content)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(completion.completion(**request, **options))
    later = [c async for c in await completion.completion_async(**request, **options)]
    assert [c.model_dump() for c in chunks] == [c.model_dump() for c in later]
    assert len(chunks) > 2
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == whole.content
    assert [c.usage for c in chunks] == [None] * (len(chunks) - 1) + [usage]
    assert chunks[-1].choices[0].delta.content is None
    assert {c.model for c in chunks} == {whole.model} == {"offline/rules"}
    assert all(c.usage is None for c in completion.completion(**request, stream=True))


@pytest.mark.parametrize(
    ("request_args", "message"),
    [
        ({"messages": "Write a poem."}, r"answer or go on.*configure a language model"),
        ({"messages": MESSAGES, "response_format": Poem}, "fields verses"),
        ({"messages": []}, "user message"),
        ({"messages": [{"content": "Hello"}]}, "user message"),
        ({"messages": [{"role": "system", "content": SYSTEM}]}, "user message"),
    ],
)
async def test_what_it_cannot_do_it_refuses(completion, request_args, message):
    with pytest.raises(OfflineModelError, match=message):
        await completion.completion_async(**request_args)


@pytest.mark.parametrize(
    ("create", "field", "value", "message"),
    [
        (create_embedding, "dimension", 7, "`dimension`.*did you mean `dimensions`"),
        (create_embedding, "api_kee", 7, "`api_kee`.*did you mean `api_key`"),
        (create_completion, "cal_args", 7, "`cal_args`.*did you mean `call_args`"),
        (create_completion, "dimensions", 7, "`dimensions`.*it may have only: .*api_key"),
        *((create_embedding, "dimensions", value, "must be a whole") for value in (0, 7, "384")),
        *((create_embedding, "dimensions", value, "must be a whole") for value in (True, 12.5)),
    ],
)
def test_a_setting_that_nothing_could_read_is_refused(create, field, value, message):
    given = {"type": "offline", "model_provider": "offline", "model": "x", field: value}
    with pytest.raises(OfflineModelError, match=message):
        create(ModelConfig.model_validate(given))


GIVEN = """
from graphrag.embedded.vectors import hash_text
from graphrag.prompts.index.extract_graph import GRAPH_EXTRACTION_PROMPT
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig
text = "So Mara, Otto and Ines of Rome met Dr. Paul Berg. Berg told Mara of Vik Castle."
prompt = GRAPH_EXTRACTION_PROMPT.format(entity_types="person,geo", input_text=text)
rules = ModelConfig(type="offline", model_provider="offline", model="rules")
print(create_completion(rules).completion(messages=prompt).content)
print(hash_text(text, 384).tolist())
"""
PROBE = f"""
import sys, graphrag.embedded
assert not {{"litellm", "numpy"}} & {{*sys.modules}}
{GIVEN}
assert "litellm" not in sys.modules
"""


def test_another_process_gives_the_same_bytes(capsys):
    """Its strings have other hashes, so that its sets are in another order."""
    exec(GIVEN, {})
    here = capsys.readouterr().out
    assert "MARA" in here
    other = int(os.environ.get("PYTHONHASHSEED", "").replace("random", "") or 0) + 1
    assert run_apart(sys.executable, "-c", PROBE, PYTHONHASHSEED=str(other)) == here


def test_vectors_have_the_length_asked_for_and_their_tokens_are_counted(embedding):
    texts = ["A silver clock", "Eine Uhr", "", " ", "\x00", "🙂"]
    response = embedding.embedding(input=texts)
    assert np.linalg.norm(response.embeddings, axis=1) == pytest.approx(1.0)
    assert np.shape(response.embeddings) == (len(texts), 384)
    assert all(type(x) is float for x in response.first_embedding)
    assert response.usage.prompt_tokens == sum(len(embedding.tokenizer.encode(t)) for t in texts)
    assert len(embedding.embedding(input=["x"], dimensions=64).first_embedding) == 64


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Who stole the silver clock?", "The thief steals silver clocks.", "It rained all day."),
        ("银钟在哪里", "他把银钟藏在北京。", "王先生喜欢音乐。"),
        ("Где серебряные часы?", "Серебряные часы лежат в саду.", "Сегодня идёт дождь."),
        ("Silver  CLOCK\n", "\uff33ilver clock", "Silver clock tower"),
    ],
)
def test_texts_about_the_same_thing_are_nearer(embedding, text, near, far):
    a, b, c = map(np.array, embedding.embedding(input=[text, near, far]).embeddings)
    assert a @ b > a @ c + 0.05
