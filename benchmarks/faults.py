"""What a service that fails in every way costs a run: verdicts, answers, and money not counted.

``faults.py [--seeds 1 2] [--settings heavy outage]``: 30 questions to a method of one call, each
answer judged on four metrics, against a local service whose replies depend on the request alone.
So a run over a faultless service says what every answer and verdict should be. Which fault an
attempt meets is drawn by seed, request and number of the attempt:

- ``heavy``: 30 % 429, 20 % 500, 15 % dropped connections, 10 % garbage with status 200;
- ``outage``: 5 %, 2 %, 2 % and 2 %, and 60 s of 503 to everything from the middle of the run on.

Of garbage there are eight kinds; two are texts that a model might have written, which nobody can
tell from an answer: prose in place of an answer, and JSON in place of one. They are counted apart.
"""

import argparse
import asyncio
import hashlib
import json
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from graphrag_llm.config import ModelConfig
from support.openai_server import Fault, LocalServer, running_server

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.judge import LLMJudge
from graphrag.eval.runner.custom_methods import MethodAnswer
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.scheduler import RunOutcome, Work
from graphrag.eval.store.records import Unit
from graphrag.eval.store.session import unkept_session
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS
from graphrag.query.client.call_errors import RetryPolicy
from graphrag.query.client.models import open_completion
from graphrag.query.client.usage import Usage, sum_usages

N, PLACES, OUTAGE_S = 30, 8, 60.0
RETRY = RetryPolicy(max_retries=5, base_delay_s=0.1, max_delay_s=2.0)
ENVELOPE = '{"id": "chatcmpl-1", "object": "chat.completion", "choices": []}'
GARBAGE = {
    "no body": Fault(raw=b""),
    "body cut off": Fault(raw=b'{"id": "chatcmpl-1", "object": "chat.comp'),
    "web page": Fault(content="<!DOCTYPE html><html><body>502 Bad Gateway</body></html>"),
    "envelope": Fault(content=ENVELOPE),
    "no text": Fault(content=""),
    "broken characters": Fault(content="Th\ufffd\ufffd answ\x00er is\ufffd"),
    "other JSON": Fault(content='{"status": "ok", "data": null}'),
    "other prose": Fault(content="I would be happy to help you with that."),
}
CAN_NOT_BE_TOLD = {"other JSON", "other prose"}


@dataclass(frozen=True)
class Setting:
    """Shares of attempts that meet a fault, and whether there is an outage."""

    throttled: float
    broken: float
    dropped: float
    garbage: float
    has_outage: bool = False


SETTINGS = {
    "heavy": Setting(throttled=0.30, broken=0.20, dropped=0.15, garbage=0.10),
    "outage": Setting(throttled=0.05, broken=0.02, dropped=0.02, garbage=0.02, has_outage=True),
}


@dataclass
class Faults:
    """Draws the faults of a run, and counts them."""

    setting: Setting
    seed: int
    met: Counter[str] = field(default_factory=Counter[str])
    _attempts: Counter[str] = field(default_factory=Counter[str])
    _down_since: float | None = None

    def __call__(self, number: int, request: dict[str, object]) -> Fault | None:
        if self.setting.has_outage and number >= N * (1 + len(DEFAULT_METRICS)) // 2:
            self._down_since = self._down_since or time.monotonic()
            if time.monotonic() - self._down_since < OUTAGE_S:
                return self._meet("outage", Fault(status=503))
        key = json.dumps(request, sort_keys=True)
        self._attempts[key] += 1
        chance = random.Random(f"{self.seed} {self._attempts[key]} {key}")
        at, drawn = 0.0, chance.random()
        for share, name, fault in (
            (self.setting.throttled, "429", Fault(status=429)),
            (self.setting.broken, "500", Fault(status=500)),
            (self.setting.dropped, "dropped", Fault(disconnect="before")),
        ):
            at += share
            if drawn < at:
                return self._meet(name, fault)
        if drawn < at + self.setting.garbage:
            kind = chance.choice(sorted(GARBAGE))
            role = "answer" if "response_format" not in request else "verdict"
            return self._meet(f"{kind} as {role}", GARBAGE[kind])
        return None

    def _meet(self, name: str, fault: Fault) -> Fault:
        self.met[name] += 1
        return fault


def reply(request: dict[str, Any]) -> str:
    """Answer in words, and judge by a score, that depend on what was asked first alone.

    A judge whose reply could not be read is asked again about the same material: with more words
    after it, or in a further message.
    """
    told, _, material = request["messages"][0]["content"].partition("Material:\n")
    asked = told + material.partition("\n")[0]
    digest = hashlib.sha256(asked.encode()).hexdigest()
    if "response_format" in request:
        return json.dumps({"reason": f"So says {digest[:12]}.", "score": int(digest, 16) % 2})
    return f"Marta Quill keeps the lamp, as page {int(digest[:6], 16)} says."


async def run(server: LocalServer, kind: str, folder: Path) -> RunOutcome:
    """Ask and judge all questions."""
    given: dict[str, Any] = {
        **({"type": kind} if kind == "litellm" else {}),
        "model_provider": "openai",
        "model": "gpt-4o",
        "api_key": "none",
    }
    model = open_completion(ModelConfig(**given, api_base=server.base_url), RETRY)

    async def mine(question: str) -> MethodAnswer:
        answer = (await model.completion_async(messages=question)).content
        return MethodAnswer(response=answer, contexts=("The lamps are kept by Marta Quill.",))

    config = EvaluationConfig(root=folder, concurrency=PLACES)
    runner = EvaluationRunner(config, LLMJudge(model), {}, {"mine": mine})
    samples = [
        Sample(
            id=f"s{i}", imdb_key="a", question=f"Who keeps lamp {i}?", ground_truth="Marta Quill"
        )
        for i in range(N)
    ]
    with unkept_session() as session:
        return await runner.run(
            Work(config, [Unit(key=s.id, sample=s, method="mine") for s in samples], session)
        )


def spent(outcome: RunOutcome) -> Usage:
    """Sum up what a run counted."""
    both = [u for r in outcome.results for u in (r.usage, r.judge_usage) if u is not None]
    return sum_usages(both)


def compare(found: RunOutcome, right: RunOutcome) -> dict[str, int]:
    """Hold a run against the faultless one; verdicts on a wrong answer are left out."""
    counts = Counter[str]()
    for now, then in zip(found.results, right.results, strict=True):
        if now.failure is not None:
            counts["failed"] += 1
            continue
        if now.response != then.response:
            wrong = {GARBAGE[kind].content for kind in CAN_NOT_BE_TOLD}
            counts["untold" if now.response in wrong else "answers"] += 1
            continue
        for metric in DEFAULT_METRICS:
            given, expected = now.scores.get(metric), then.scores.get(metric)
            counts["unscored"] += given.score is None
            counts["verdicts"] += given.score is not None and given.score != expected.score
    return counts


def measure(name: str, seed: int, kind: str) -> str:
    """Run with faults and without; return a line of the table."""
    with tempfile.TemporaryDirectory() as folder, running_server(reply) as server:
        right = asyncio.run(run(server, kind, Path(folder)))
        assert right.is_complete
        before, faults = len(server.records), Faults(setting=SETTINGS[name], seed=seed)
        server.behaviour = type(server.behaviour)(
            reply, lambda number, request: faults(number - before, request)
        )
        started = time.perf_counter()
        found = asyncio.run(run(server, kind, Path(folder)))
        seconds, calls = time.perf_counter() - started, server.records[before:]
    if not found.is_complete:
        return f"{name:8}{seed:5}  stopped: {found.stopped}"
    counts, usage = compare(found, right), spent(found)
    tokens = sum(call.prompt_tokens + call.completion_tokens for call in calls)
    garbled = sum(n for what, n in faults.met.items() if " as " in what)
    line = f"{name:8}{seed:5}{seconds:8.1f}{garbled:9}{counts['failed']:8}{counts['unscored']:10}"
    line += f"{counts['verdicts']:7}{counts['answers']:9}{counts['untold']:8}"
    line += f"{usage.llm_calls:9}{len(calls):7}"
    return line + f"{usage.prompt_tokens + usage.output_tokens:9}{tokens:9}"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--settings", nargs="+", default=["heavy", "outage"], choices=SETTINGS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--type", default="direct", choices=["direct", "litellm"])
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # each outage is told, which a heavy one has many of
    print(f"{N} answers, {N * len(DEFAULT_METRICS)} verdicts, {PLACES} at once, {given.type}")
    print(
        f"{'':8}{'seed':>5}{'s':>8}{'garbage':>9}{'failed':>8}{'unscored':>10}{'wrong':>7}"
        f"{'wrong':>9}{'not to':>8}{'counted':>9}{'seen':>7}{'counted':>9}{'seen':>9}\n"
        f"{'':8}{'':5}{'':8}{'':9}{'':8}{'':10}{'':7}{'answers':>9}{'tell':>8}{'calls':>9}"
        f"{'':7}{'tokens':>9}"
    )
    for name in given.settings:
        for seed in given.seeds:
            print(measure(name, seed, given.type), flush=True)


if __name__ == "__main__":
    main()
