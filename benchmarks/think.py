"""Whether Think-on-Graph's calls pay: what an oracle finds with it, at equal tokens of all calls.

    python benchmarks/think.py FILE... [--merge 4] [--budget 1500] [--noise 0.2]
        [--stop-errors 0.05] [--embeddings none|wordllama|ADDRESS] [--json OUT]

FILE is as mixture.py reads it; the index of its passages is built with the embedded models and
kept. ``--merge N`` puts N passages, drawn with a fixed seed, into one text unit. No language model
has a part: an OpenAI-compatible server answers as an oracle that knows which passages are needed,
and nothing else. It sees the texts and rows of a prompt; a row counts for a passage only if it
shows a sentence of it. It keeps needed texts, follows rows to needed passages, and looks up at most
three rare names (in at most 50 text units) that stand in the question or in a kept text, and in a
needed passage that was not shown; it answers once all needed passages are shown.

``--noise``: chance that a text, row or name that it picks is another of those it could pick.
``--stop-errors``: chance, at each call, that it answers although needed passages are missing.
``--embeddings none`` finds texts by words alone; ADDRESS is an OpenAI-compatible one, as minilm.py
serves it. A passage counts as found if half of its text stands in the texts of the last context;
rows don't count. ``gain`` is tog's mean difference by question to ppr, between its budgets, at as
many tokens; limits are at 95 % (t).

Three trials of tog follow: with BM25 alone in place of the ranker inside, which says whether the
graph pays; with an oracle that answers at once; and with one whose every pick is wrong.

``--delay 1`` has each reply take a second, and says what a search of tog takes beside its calls:
one after the other, and 8 at once. What the oracle replies was found before.
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
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar, cast

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import numpy as np
import yaml
from mixture import ALL_SHOWN, Embedder, open_project, points

from graphrag.eval.stats.intervals import t_estimate
from graphrag.query.client.tokens import default_encoding
from graphrag.query.graph import OpenedGraph, pagerank
from graphrag.query.graph_index import GraphIndex, open_graph_of
from graphrag.text.context_tables import read_context
from graphrag.text.sentences import sentences
from graphrag.text.tokenize import word_keys

METHODS = ("bm25", "ppr", "agentic", "tog")
RARE = 50
N_LOOKED_UP = 3
STEPS = (0.5, 1, 1.5, 2, 3, 4, 6)
"""Of the budget: those of ppr, between which what it finds is interpolated."""
N_TIMED, AT_ONCE = 24, 8
Json = dict[str, Any]
Item = TypeVar("Item", int, str)


@cache
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
        self._rare, self._standing = cache(self._find_rare), cache(self._find_standing)

    def rare_in(self, texts: Iterable[str]) -> list[str]:
        """Return the rare names in texts, also within longer ones, the rarest first."""
        found = {name for text in texts for name in self._rare(text)}
        return sorted(found, key=lambda name: (self._standing(name), name))

    def _find_rare(self, text: str) -> list[str]:
        words = word_keys([text])[0].split()
        keys = {
            " ".join(words[at : at + size])
            for at in range(len(words))
            for size in range(1, self._longest + 1)
        }
        names = [self._named[key] for key in keys & self._named.keys()]
        return [name for name in names if self._standing(name) <= RARE]

    def _find_standing(self, name: str) -> int:
        found = self._store.names_in(name)
        return self._store.frequency(found[0]) if found else RARE + 1


@dataclass(frozen=True, slots=True, eq=False)
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
        known = [question, *(texts[n] for n in keep)]
        look_up = self._names(known, [p.text for p in left], list(texts.values()), dice)
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

    def _names(
        self, known: list[str], wanted: list[str], texts: list[str], dice: random.Random
    ) -> list[str]:
        ahead = set(self.names.rare_in(wanted))
        right = [name for name in self.names.rare_in(known) if name in ahead][:N_LOOKED_UP]
        return self._pick(right, self.names.rare_in(texts) if self.noise else [], dice)


class Service(ThreadingHTTPServer):
    """Serves an oracle on 127.0.0.1, from a thread; each reply takes ``delay_s`` longer."""

    request_queue_size = 64

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.oracle, self.delay_s = oracle, 0.0
        self.completion = cache(self._completion)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def _completion(self, oracle: Oracle, asked: bytes) -> bytes:
        request = json.loads(asked)
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
        return json.dumps(body).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers chat completions."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a chat completion."""
        service = cast("Service", self.server)
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        data = service.completion(service.oracle, asked)
        time.sleep(service.delay_s)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's search: the share of needed passages in its last context, and its cost."""

    share: float
    tokens: int
    calls: int
    shown: frozenset[str]
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
        records = read_context(str(result.context_text))
        shown = bare("\n".join(each.text for each in records if each.table == "Sources"))
        share = sum(passage.stands_in(shown) for passage in needed) / len(needed)
        usage = result.usage
        tokens = usage.prompt_tokens + usage.output_tokens
        frames = cast("dict[str, Any]", result.context_data)
        shown = frozenset(frames["sources"]["id"].astype(str).to_list())
        asked.append(
            Asked(
                share=share,
                tokens=tokens,
                calls=usage.llm_calls,
                shown=shown,
                all_kept=_keeps(result),
            )
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


@contextmanager
def bm25_alone() -> Generator[None]:
    """Leave mass where words put it, so that BM25 alone ranks."""

    def spread(seeds: pagerank.Seeds, *_: object) -> pagerank.Reached:
        return pagerank.Reached(seeds.units, {})

    kept, pagerank.spread = pagerank.spread, spread
    try:
        yield
    finally:
        pagerank.spread = kept


async def seconds_beside(
    index: GraphIndex, questions: Sequence[str], delay_s: float, at_once: int
) -> list[float]:
    """Return what each search takes beside its calls, so many at once."""
    free = asyncio.Semaphore(at_once)

    async def search(question: str) -> float:
        async with free:
            began = time.perf_counter()
            result = await index.search("tog", question)
            return time.perf_counter() - began - delay_s * result.usage.llm_calls

    return await asyncio.gather(*map(search, questions))


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
    oracle = Oracle(needed=needed, names=names, noise=given.noise, stop_errors=given.stop_errors)
    service = Service(oracle)
    index = await GraphIndex.open(under_oracle(root, service.address, given.embeddings == "none"))
    steps = [await ask(index, "ppr", round(step * given.budget), needed) for step in STEPS]
    found = {m: await ask(index, m, given.budget, needed) for m in METHODS}
    written = show(found, steps)
    with bm25_alone():
        trials = {"bm25 inside": await ask(index, "tog", given.budget, needed)}
    service.oracle = replace(oracle, noise=0.0, stop_errors=1.0)
    trials["answers at once"] = await ask(index, "tog", given.budget, needed)
    service.oracle = replace(oracle, noise=1.0, stop_errors=0.0)
    trials["always wrong"] = await ask(index, "tog", given.budget, needed)
    written["trials"] = show_trials(trials, found["ppr"], steps)
    if given.json is not None:
        given.json.write_text(json.dumps(written, indent=2), encoding="utf-8")
    if given.delay:
        service.oracle = oracle
        await show_seconds(index, service, given, list(needed)[:N_TIMED])
    service.shutdown()


def show(found: Mapping[str, Sequence[Asked]], steps: Sequence[Sequence[Asked]]) -> Json:
    """Print the table of the methods, and return it."""
    print(f"{len(found['tog'])} questions\n\n| method | share % | tokens | calls |")
    print("|---|---|---:|---:|")
    methods = {method: line(method, asked) for method, asked in found.items()}
    gains = gain_at_equal_tokens(found["tog"], steps)
    at = np.mean([asked.share for asked in found["tog"]]) - np.mean(gains)
    print(f"\nppr at as many tokens: {100 * at:.1f} %; gain of tog: {points(gains, '+')} points")
    kept = np.mean([asked.all_kept for asked in found["tog"]])
    print(f"kept texts in the last prompt: all of them in {100 * kept:.0f} % of the questions")
    return {"methods": methods, "gain": limits(gains)}


def show_trials(
    trials: Mapping[str, Sequence[Asked]], ppr: Sequence[Asked], steps: Sequence[Sequence[Asked]]
) -> Json:
    """Print the table of the trials, and return it."""
    print("\n| tog | share % | tokens | calls |\n|---|---|---:|---:|")
    told = {name: line(name, asked) for name, asked in trials.items()}
    gains = gain_at_equal_tokens(trials["bm25 inside"], steps)
    print(f"\nwith bm25 inside: {points(gains, '+')} points to ppr at as many tokens")
    first, wrong = trials["answers at once"], trials["always wrong"]
    more = float(np.mean([a.tokens - b.tokens for a, b in zip(first, ppr, strict=True)]))
    also = np.mean([len(a.shown & b.shown) / len(a.shown) for a, b in zip(first, ppr, strict=True)])
    print(
        f"answers at once: {more:+,.0f} tokens to ppr, which shows {100 * also:.0f} % of its texts"
    )
    differences = [a.share - b.share for a, b in zip(wrong, ppr, strict=True)]
    print(f"always wrong: {points(differences, '+')} points to ppr at the last context")
    told["bm25 inside"]["gain"] = limits(gains)
    told["answers at once"]["tokens_to_ppr"] = more
    told["always wrong"]["share_to_ppr"] = limits(differences)
    return told


async def show_seconds(
    index: GraphIndex, service: Service, given: argparse.Namespace, questions: Sequence[str]
) -> None:
    """Print what searches take beside their calls."""
    index = index.under(index.header.changed("tog", {"max_context_tokens": given.budget}))
    await seconds_beside(index, questions, 0.0, 1)  # so that the replies are known
    service.delay_s = given.delay
    print(f"\nreplies that take {given.delay:g} s; {len(questions)} searches, seconds beside calls")
    for at_once in (1, AT_ONCE):
        began, of_cpu = time.perf_counter(), time.process_time()
        beside = await seconds_beside(index, questions, given.delay, at_once)
        of_cpu = (time.process_time() - of_cpu) / len(questions)
        print(
            f"{at_once} at once: median {np.median(beside):.3f}, at most {max(beside):.3f};"
            f" {of_cpu:.3f} of CPU a search; {time.perf_counter() - began:.1f} s in all"
        )


def line(name: str, asked: Sequence[Asked]) -> Json:
    """Print what a method or a trial found and cost, and return it."""
    shares = [each.share for each in asked]
    tokens, calls = (float(np.mean([getattr(a, k) for a in asked])) for k in ("tokens", "calls"))
    print(f"| {name} | {points(shares)} | {tokens:,.0f} | {calls:.2f} |", flush=True)
    return {"share": float(np.mean(shares)), "tokens": tokens, "calls": calls}


def limits(values: Sequence[float]) -> Json:
    """Return a mean with its limits."""
    estimate = t_estimate(np.array(values), None)
    return {"mean": float(np.mean(values)), "low": estimate.low, "high": estimate.high}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--merge", type=int, default=1, metavar="N")
    parser.add_argument("--budget", type=int, default=1500, help="tokens of the last context")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--stop-errors", type=float, default=0.0)
    parser.add_argument("--embeddings", default="none", metavar="none|wordllama|ADDRESS")
    parser.add_argument("--questions", type=int, help="the first so many of each file only")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS")
    kept = Path(tempfile.gettempdir()) / "gtog-mixture"
    parser.add_argument("--work", type=Path, default=kept, help=f"where indexes are kept: {kept}")
    asyncio.run(main(parser.parse_args()))
