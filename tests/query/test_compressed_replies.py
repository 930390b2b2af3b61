"""Replies that come compressed: read where they are gzip, and never larger than a reply may be."""

import gzip
import json
import subprocess
import sys
import zlib
from typing import Any

import pytest
from support.http_service import serving
from support.lighthouse import model_config

from graphrag.query.client.call_errors import GarbledReplyError, RetryPolicy
from graphrag.query.client.direct.http import ask_json
from graphrag.query.client.models import open_completion, open_embedding
from graphrag.query.client.usage import CallLog, measure_calls

ANSWER: dict[str, Any] = {
    "choices": [{"message": {"content": "Ann."}, "finish_reason": "stop"}],
    "data": [{"embedding": [0.5, 1.0]}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2},
}
PIECE: dict[str, Any] = {"choices": [{"delta": {"content": "Ann."}, "finish_reason": "stop"}]}
WHOLE = json.dumps(ANSWER).encode()
STREAMED = b"data: " + json.dumps(PIECE).encode() + b"\n\ndata: [DONE]\n\n"
WAYS = ("method", "completion", "stream", "embedding")


async def ask(way: str, address: str) -> object:
    if way == "method":
        return await ask_json(address, {"q": "Who?"}, {})
    config = model_config(None, api_base=f"{address}/v1")
    if way == "embedding":
        model = open_embedding(config, RetryPolicy(0, 0.0, 0.0))
        return (await model.embedding_async(input=["Who?"])).first_embedding
    with measure_calls(CallLog(live=way == "stream")):
        model = open_completion(config, RetryPolicy(0, 0.0, 0.0))
        reply = await model.completion_async(messages="Who?", stream=way == "stream")
        if way == "completion":
            return reply.content
        return "".join([chunk.choices[0].delta.content or "" async for chunk in reply])


def whole(way: str) -> bytes:
    return STREAMED if way == "stream" else WHOLE


def packed(content: bytes, way: str = "gzip") -> bytes:
    return gzip.compress(content) if way == "gzip" else zlib.compress(content)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "identity"])
async def test_a_compressed_reply_is_read(way, encoding):
    content = packed(whole(way)) if "gzip" in encoding else whole(way)
    seen: list[str | None] = []

    def answer(_: str, __: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        seen.append(headers.get("Accept-Encoding"))
        return 200, content

    with serving(answer, {"Content-Encoding": encoding}) as address:
        reply = await ask(way, address)
    assert reply == {"method": ANSWER, "embedding": [0.5, 1.0]}.get(way, "Ann.")
    assert seen == ["gzip"]


@pytest.mark.parametrize(
    ("encoding", "content", "sentence"),
    [
        ("gzip", packed(WHOLE)[:-9], "its gzip breaks off"),
        ("gzip", packed(WHOLE) + packed(WHOLE), "it goes on after its gzip has ended"),
        ("gzip", WHOLE, "it is marked as gzip, and is not"),
        ("deflate", packed(WHOLE, "deflate"), "it is compressed as deflate, where only gzip"),
        ("br", b"\x0b\x02\x80Ann.\x03", "it is compressed as br, where only gzip was asked for"),
        ("zstd", b"\x28\xb5\x2f\xfd", "it is compressed as zstd, where only gzip was asked for"),
    ],
)
async def test_what_is_no_whole_gzip_is_said_in_one_sentence(encoding, content, sentence):
    with (
        serving(lambda *_: (200, content), {"Content-Encoding": encoding}) as address,
        pytest.raises(GarbledReplyError, match=sentence),
    ):
        await ask("method", address)


_ALONE = """
import asyncio, resource, sys
sys.path[:0] = sys.argv[2:]
from query.test_compressed_replies import WAYS, ask
async def main():
    for way in WAYS:
        try:
            print("answered", len(str(await ask(way, sys.argv[1]))))
        except Exception as error:
            print(error)
def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
before_mb = peak_mb()
asyncio.run(main())
print(round(peak_mb() - before_mb))
"""


def blanks(n_mb: int) -> bytes:
    """Return the gzip of a reply before which so many million blanks stand."""
    packing = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    pieces = [packing.compress(b" " * 1_000_000) for _ in range(n_mb)]
    return b"".join([*pieces, packing.compress(WHOLE), packing.flush()])


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
def test_a_small_reply_that_inflates_to_a_large_one_takes_little_memory():
    content = blanks(300)
    assert len(content) < 400_000
    with serving(lambda *_: (200, content), {"Content-Encoding": "gzip"}) as address:
        done = subprocess.run(
            [sys.executable, "-c", _ALONE, address, *sys.path],
            capture_output=True,
            text=True,
            check=True,
        )
    *said, peak_mb = done.stdout.splitlines()
    assert [" bytes or more, where " in sentence for sentence in said] == [True] * len(WAYS)
    assert int(peak_mb) < 160
