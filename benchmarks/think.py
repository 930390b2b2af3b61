"""Whether Think-on-Graph's calls pay: what an oracle finds with it, at equal tokens of all calls.

    python benchmarks/think.py FILE... [--merge 4] [--budget 1500] [--noise 0.2]
        [--stop-errors 0.05] [--embeddings none|wordllama|ADDRESS] [--json OUT]

FILE is as multi_hop.py reads it; the index of its passages is built with the embedded models and
kept. ``--merge N`` puts N passages, drawn with a fixed seed, into one text unit. No language model
has a part: an OpenAI-compatible server answers as an oracle that knows which passages are needed,
and nothing else. It sees the texts and rows of a prompt; a row counts for a passage only if it
shows a sentence of it. It keeps needed texts, follows rows to needed passages, and looks up at most
three rare names (in at most 50 text units) that stand in the question or in a kept text, and in a
needed passage that was not shown; it answers once all needed passages are shown.

``--noise``: chance that a text, row or name that it picks is another of those it could pick.
``--stop-errors``: chance, at each call, that it answers although needed passages are missing. 1
answers at once; with ``--noise 1`` every pick is wrong. ``--ranker bm25`` has BM25 alone rank
inside tog. ``--embeddings none`` finds texts by words alone; ADDRESS is an OpenAI-compatible one,
as minilm.py serves it. A passage counts as found if half of its text stands in the last context.
``gain`` is tog's mean difference by question to ppr, between its budgets, at as many tokens; limits
are at 95 % (t).
"""

import argparse
import asyncio
import json
import logging
import os
import random
import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar, cast

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import numpy as np
import yaml
from multi_hop import ALL_SHOWN, Embedder, open_project, points

from graphrag.eval.stats.intervals import t_estimate
from graphrag.query.graph_index import GraphIndex, open_graph_of
from graphrag.query.structured_search.tog_search import OpenedGraph, spreading
from graphrag.query.tokens import default_encoding
from graphrag.text.tables import read_context
from graphrag.text.terms import word_keys
from graphrag.text.words import sentences

METHODS = ("bm25", "ppr", "agentic", "tog")
RARE = 50
N_LOOKED_UP = 3
STEPS = (0.5, 1, 1.5, 2, 3, 4, 6)
"""Of the budget: those of ppr, between which what it finds is interpolated."""
Json = dict[str, Any]
Item = TypeVar("Item", int, str)


def bare(text: str) -> str:
    """Return a text's letters and digits alone, however a table quotes it."""
    return re.sub(r"[\W_]+", "", text).casefold()


@dataclass(frozen=True, slots=True)
class Passage:
    """A needed passage: its sentences, bare, without its title."""

    text: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Passage":
        """Read a passage."""
        body = text.partition("\n")[2] or text
        return cls(text, tuple(filter(None, map(bare, sentences(body)))))

    def stands_in(self, shown: str) -> bool:
        """Say whether at least half of it stands in a bare text."""
        held = sum(len(part) for part in self.parts if part in shown)
        return 2 * held >= sum(map(len, self.parts))

    def is_seen_in(self, row: str) -> bool:
        """Say whether a row shows a sentence of it, or the beginning of one."""
        sentence = bare(row.rstrip("…"))
        return len(sentence) > 20 and any(
            part.startswith(sentence) or part in sentence for part in self.parts
        )


class Names:
    """The names of an index as the oracle knows them: entities, and titles of passages."""

    def __init__(self, opened: OpenedGraph, titles: Sequence[str]) -> None:
        store = opened.graph
        entities = [store.title(node) for node in range(store.n_entities)]
        every = dict.fromkeys([*entities, *titles])
        self._named = dict(zip(word_keys(list(every)), every, strict=True))
        self._longest = max(len(key.split()) for key in self._named)
        self._store = store

    def rare_in(self, text: str) -> list[str]:
        """Return the rare names in a text, also within longer ones, the rarest first."""
        words = word_keys([text])[0].split()
        keys = {
            " ".join(words[at : at + size])
            for at in range(len(words))
            for size in range(1, self._longest + 1)
        }
        names = [self._named[key] for key in keys & self._named.keys()]
        rare = [name for name in sorted(names) if self._standing(name) <= RARE]
        return sorted(rare, key=self._standing)

    def _standing(self, name: str) -> int:
        found = self._store.names_in(name)
        return self._store.standing(found[0]) if found else RARE + 1


@dataclass(frozen=True, slots=True)
class Oracle:
    """Replies to every request of the searches, by what it sees and which passages are needed."""

    needed: Mapping[str, tuple[Passage, ...]]
    names: Names
    noise: float
    stop_errors: float

    def reply(self, request: Json) -> str:
        """Return the reply to a chat completion: in the form that is asked for, if one is."""
        schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
        fields = list(schema.get("properties", ()))
        if not fields:
            return "Read."
        values = self._decide(request, fields)
        return json.dumps({name: values[name] for name in fields})

    def _decide(self, request: Json, fields: Sequence[str]) -> Json:
        system, question = (message["content"] for message in request["messages"])
        records = read_context(system)
        texts = {int(r.id): r.text for r in records if r.table == "Sources"}
        nothing: Json = {"relationships": [], "keep": [], "follow": [], "look_up": [], "query": ""}
        answer = {**nothing, "missing": "", "answer": "Read.", "sources": [*texts][:1]}
        if "keep" not in fields and "query" not in fields:
            return answer
        dice = random.Random(f"{question}|{len(system)}|{self.noise}|{self.stop_errors}")
        shown = {number: bare(text) for number, text in texts.items()}
        left = [p for p in self.needed[question] if not any(map(p.stands_in, shown.values()))]
        if not left or dice.random() < self.stop_errors:
            return answer
        keep = [n for n, text in shown.items() if self._holds(text, question)]
        keep = self._pick(keep, list(texts), dice)
        rows = {int(r.id): r.text for r in records if r.table == "Rows"}
        follow = [n for n, row in rows.items() if any(p.is_seen_in(row) for p in left)]
        known = "\n".join([question, *(texts[n] for n in keep)])
        look_up = self._names(known, "\n".join(p.text for p in left), list(texts.values()), dice)
        going_on = {"keep": keep, "follow": self._pick(follow, list(rows), dice)}
        going_on |= {"look_up": look_up, "query": " ".join(look_up)}
        missing = f"{len(left)} passages"
        return {**nothing, "missing": missing, "answer": "", "sources": [], **going_on}

    def _holds(self, shown: str, question: str) -> bool:
        return any(passage.stands_in(shown) for passage in self.needed[question])

    def _pick(self, right: list[Item], every: list[Item], dice: random.Random) -> list[Item]:
        wrong = [item for item in every if item not in right]
        picked = [
            dice.choice(wrong) if wrong and dice.random() < self.noise else item for item in right
        ]
        return list(dict.fromkeys(picked))

    def _names(self, known: str, wanted: str, texts: list[str], dice: random.Random) -> list[str]:
        ahead = set(self.names.rare_in(wanted))
        right = [name for name in self.names.rare_in(known) if name in ahead][:N_LOOKED_UP]
        every = self.names.rare_in("\n".join(texts))
        return self._pick(right, every, dice)


def serve(oracle: Oracle) -> ThreadingHTTPServer:
    """Serve an oracle on 127.0.0.1, from a thread."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer a chat completion."""
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = oracle.reply(request)
            said = " ".join(message["content"] for message in request["messages"])
            counts = [
                len(default_encoding().encode(each, disallowed_special=())) for each in (said, text)
            ]
            usage = {"prompt_tokens": counts[0], "completion_tokens": counts[1]}
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            body = {"id": "0", "object": "chat.completion", "created": 0, "model": "oracle"}
            body |= {"choices": [choice], "usage": {**usage, "total_tokens": sum(counts)}}
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's search: the share of needed passages in its last context, and its cost."""

    share: float
    tokens: int
    calls: int
    all_kept: bool


async def ask(
    index: GraphIndex, method: str, budget: int, questions: Mapping[str, tuple[Passage, ...]]
) -> list[Asked]:
    """Ask all questions, one after the other."""
    section = index.header.section(method)
    changes: dict[str, object] = {"max_context_tokens": budget}
    if "k" in type(section).model_fields:
        changes["k"] = ALL_SHOWN
    index = index.under(index.header.changed(method, changes))
    asked: list[Asked] = []
    for question, needed in questions.items():
        result = await index.search(method, question)
        shown = bare(str(result.context_text))
        share = sum(passage.stands_in(shown) for passage in needed) / len(needed)
        usage = result.usage
        asked.append(
            Asked(share, usage.prompt_tokens + usage.output_tokens, usage.llm_calls, _keeps(result))
        )
    return asked


def _keeps(result: Any) -> bool:
    """Say whether every text kept by the call before the last was shown to the last."""
    frames = cast("dict[str, Any]", result.context_data)
    calls: list[Json] = []
    if "exploration" in frames:
        calls = frames["exploration"].to_dict("records")
    return len(calls) < 2 or {*calls[-2]["kept"]} <= {*calls[-1]["shown"]}


def gain_at_equal_tokens(of: Sequence[Asked], steps: Sequence[Sequence[Asked]]) -> list[float]:
    """Return by question what a method finds more than another, interpolated at as many tokens.

    ``steps`` are the other's budgets, ascending.
    """
    tokens = float(np.mean([asked.tokens for asked in of]))
    means = [float(np.mean([asked.tokens for asked in step])) for step in steps]
    shares = np.array([[asked.share for asked in step] for step in steps])
    at = [float(np.interp(tokens, means, shares[:, place])) for place in range(len(of))]
    return [asked.share - other for asked, other in zip(of, at, strict=True)]


def merged(passages: Sequence[str], n: int) -> list[str]:
    """Put n passages each into one text, drawn with a fixed seed."""
    if n == 1:
        return list(passages)
    order = list(range(len(passages)))
    random.Random(0).shuffle(order)
    return [
        "\n\n".join(passages[place] for place in order[start : start + n])
        for start in range(0, len(order), n)
    ]


async def open_index(
    name: str, texts: Sequence[str], given: argparse.Namespace
) -> tuple[GraphIndex, Path]:
    """Open the index of the texts, or build it, without asking the oracle; and say where it is."""
    address = given.embeddings if "://" in given.embeddings else None
    embedded = "wordllama" if given.embeddings == "wordllama" else "hashed-ngrams"
    embedder = Embedder("all-MiniLM-L6-v2" if address else embedded, address)
    index = await open_project(name, texts, embedder, given.work)
    return index, given.work / f"{name}-{embedder.model}"


def under_oracle(root: Path, address: str, words_alone: bool) -> Path:
    """Write a project beside another, whose index it has, with the oracle as completion model."""
    root = root.resolve()
    settings = yaml.safe_load((root / "settings.yaml").read_text(encoding="utf-8"))
    model = {"model_provider": "openai", "model": "gpt-4o", "api_key": "none"}
    settings["completion_models"] = {"default_completion_model": {**model, "api_base": address}}
    if words_alone:
        settings |= {name: {"embedding_model_id": None} for name in ("ppr_search", "tog_search")}
    copy = root.parent / f"{root.name}-oracle"
    copy.mkdir(exist_ok=True)
    settings["output_storage"] = {"base_dir": str(root / "output")}
    settings["vector_store"]["db_uri"] = str(root / "output" / "lancedb")
    (copy / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return copy


def rank_by_bm25() -> None:
    """Leave mass where words put it, so that BM25 alone ranks."""

    def spread(seeds: spreading.Seeds, *_: object) -> spreading.Reached:
        return spreading.Reached(seeds.units, {})

    spreading.spread = spread


async def main(given: argparse.Namespace) -> None:
    """Build or open the index, ask, and print."""
    logging.getLogger("graphrag").setLevel(logging.ERROR)  # it warns of every full context
    files = [json.loads(file.read_text(encoding="utf-8")) for file in given.files]
    passages = [text for data in files for text in data["passages"]]
    needed: dict[str, tuple[Passage, ...]] = {}
    for data in files:
        rows = data["questions"][: given.questions]
        needed |= {
            row["q"]: tuple(Passage.of(data["passages"][at]) for at in row["gold"]) for row in rows
        }
    name = "+".join(file.stem for file in given.files)
    name += f"-merged{given.merge}" if given.merge > 1 else ""
    built, root = await open_index(name, merged(passages, given.merge), given)
    titles = [text.partition("\n")[0] for text in passages]
    names = Names(await asyncio.to_thread(open_graph_of, built.tables), titles)
    server = serve(Oracle(needed, names, given.noise, given.stop_errors))
    address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    index = await GraphIndex.open(under_oracle(root, address, given.embeddings == "none"))
    found = {m: await ask(index, m, given.budget, needed) for m in given.methods if m != "tog"}
    steps = [await ask(index, "ppr", round(step * given.budget), needed) for step in STEPS]
    if given.ranker == "bm25":
        rank_by_bm25()
    found["tog"] = await ask(index, "tog", given.budget, needed)
    server.shutdown()
    show(found, steps, len(needed), given.json)


def show(
    found: Mapping[str, Sequence[Asked]], steps: Sequence[Sequence[Asked]], n: int, to: Path | None
) -> None:
    """Print the table, and write it."""
    print(f"{n} questions\n\n| method | share % | tokens | calls |\n|---|---|---:|---:|")
    methods: Json = {}
    for method, asked in found.items():
        tokens, calls = (
            float(np.mean([getattr(a, k) for a in asked])) for k in ("tokens", "calls")
        )
        shares = [a.share for a in asked]
        methods[method] = {"share": float(np.mean(shares)), "tokens": tokens, "calls": calls}
        print(f"| {method} | {points(shares)} | {tokens:,.0f} | {calls:.2f} |")
    gains = gain_at_equal_tokens(found["tog"], steps)
    at = np.mean([asked.share for asked in found["tog"]]) - np.mean(gains)
    print(f"\nppr at as many tokens: {100 * at:.1f} %; gain of tog: {points(gains, '+')} points")
    kept = np.mean([asked.all_kept for asked in found["tog"]])
    print(f"kept texts in the last prompt: all of them in {100 * kept:.0f} % of the questions")
    estimate = t_estimate(np.array(gains), None)
    gain = {"mean": float(np.mean(gains)), "low": estimate.low, "high": estimate.high}
    if to is not None:
        written = json.dumps({"methods": methods, "gain": gain}, indent=2)
        to.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--merge", type=int, default=1, metavar="N")
    parser.add_argument("--budget", type=int, default=1500, help="tokens of the last context")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--stop-errors", type=float, default=0.0)
    parser.add_argument("--embeddings", default="none", metavar="none|wordllama|ADDRESS")
    parser.add_argument("--ranker", choices=("ppr", "bm25"), default="ppr")
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument("--questions", type=int, help="the first so many of each file only")
    parser.add_argument("--json", type=Path, metavar="OUT")
    kept = Path(tempfile.gettempdir()) / "gtog-multi-hop"
    parser.add_argument("--work", type=Path, default=kept, help=f"where indexes are kept: {kept}")
    asyncio.run(main(parser.parse_args()))
