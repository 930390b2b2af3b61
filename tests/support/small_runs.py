"""A small run whose every model call and store write can be seen, and stopped at."""

import asyncio
import os
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from graphrag_llm.completion.completion_factory import register_completion
from graphrag_llm.config import ModelConfig
from support.clock_evaluation import flat

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.judge import LLMJudge
from graphrag.eval.runner.custom_methods import MethodAnswer
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.resume import choose_run
from graphrag.eval.runner.run_setup import RunOptions, RunPlan, describe_setup
from graphrag.eval.runner.scheduler import RunOutcome, Work
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunDetails, Unit
from graphrag.eval.store.session import StoredSession
from graphrag.query.client.models import open_completion
from graphrag.query.client.structured_output import Completion, TokenUsage

METRICS = ("correctness", "relevance")
_TYPE = "at_once"
_WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT")
OnAsked = Callable[[str], None]
OnWrite = Callable[[int, bool], None]
"""Receives the number of a statement that writes, from 1, and whether it is done."""


class AtOnce:
    """Answers every request at once with words that depend on it alone."""

    on_asked: OnAsked = staticmethod(lambda _: None)

    async def completion_async(self, /, **kwargs: Any) -> Completion:
        said = str(kwargs["messages"][-1]["content"])
        AtOnce.on_asked(said)
        await asyncio.sleep(0)
        content = f"Said of {len(said)} characters."
        if kwargs.get("response_format") is not None:
            content = f'{{"reason": "{len(said)}", "score": {len(said) % 2}}}'
        return Completion.of(content, "stop", usage=TokenUsage(len(said), 7))


register_completion(_TYPE, lambda **_: AtOnce())


@dataclass(frozen=True)
class SmallRun:
    """Questions to a method that makes two calls for each, and to a judge, kept in a folder.

    Another ``first`` word, of as many letters, asks something else in the first call alone.
    """

    folder: Path
    n: int = 2
    concurrency: int = 2
    first: str = "Plan"

    @property
    def path(self) -> Path:
        return self.folder / "eval.db"

    @property
    def config(self) -> EvaluationConfig:
        given: dict[str, Any] = {
            "root": self.folder,
            "output": {"dir": str(self.folder)},
            "metrics": METRICS,
            "concurrency": self.concurrency,
        }
        return EvaluationConfig(**given)

    @property
    def samples(self) -> list[Sample]:
        # Each question has a length of its own, as long as there are not too many for that.
        words = ("x" * i if i < 200 else f"x{i}" for i in range(self.n))
        return [Sample(f"s{i}", "a", f"What is {x}?", "x") for i, x in enumerate(words)]

    @property
    def units(self) -> list[Unit]:
        return [Unit(sample.id, sample, "mine") for sample in self.samples]

    def go(self, resume: bool = False, on_open: Callable[[], None] | None = None) -> RunOutcome:
        """Run or go on, as ``graphrag eval`` and its ``--resume`` do."""
        return asyncio.run(self._go(resume, on_open))

    async def _go(self, resume: bool, on_open: Callable[[], None] | None) -> RunOutcome:
        given: Any = {"type": _TYPE, "model_provider": "openai", "model": "gpt-4o", "api_key": "k"}
        model = open_completion(ModelConfig(**given))

        async def mine(question: str) -> MethodAnswer:
            first = await model.completion_async(messages=f"{self.first}: {question}")
            second = await model.completion_async(messages=f"Say: {question} {first.content}")
            return MethodAnswer(f"{question} {second.content}", ())

        config = self.config
        described = {"a": {"mine": {"models": {}}}}
        setup = describe_setup(config, self.samples, described, {"model": "openai/gpt-4o"})
        details = RunDetails("command", self.n, config.to_dict())
        with EvaluationStore(self.path) as store:
            if on_open is not None:
                on_open()
            plan = RunPlan(setup, self.samples, details, config, self.units)
            run = choose_run(store, plan, RunOptions(resume), print, print)
            session = StoredSession(store, run.run_id)
            runner = EvaluationRunner(config, LLMJudge(model), {}, {"mine": mine})
            outcome = await runner.run(Work(config, self.units, session))
            if outcome.is_complete:
                store.finish_run(run.run_id)
        return outcome

    def go_on(self) -> None:
        """Resume what is unfinished, or begin where the first run had not been noted yet."""
        with EvaluationStore(self.path) as store:
            runs = store.runs()
        if not runs or runs[0].status == "unfinished":
            assert self.go(resume=bool(runs)).is_complete

    def noted_calls(self) -> tuple[int, int]:
        """Return how many calls are noted as sent and not answered, and how many as answered."""
        with EvaluationStore(self.path) as store:
            return self.count_noted(store)

    def count_noted(self, store: EvaluationStore) -> tuple[int, int]:
        """Return the same of a store that is open."""
        runs = store.runs()
        if not runs:
            return 0, 0
        session = StoredSession(store, runs[0].run_id)
        usages = [found.usage for found in store.responses(runs[0].run_id).values()]
        usages += [u for each in store.judge_usage(runs[0].run_id).values() for u in each]
        usages += store.unclaimed_usage(runs[0].run_id).values()
        assert session.spent_usd == pytest.approx(sum(u.cost_usd or 0 for u in usages))
        return store.calls_in_flight(runs[0].run_id), sum(u.llm_calls for u in usages)

    def kept(self) -> list[Any]:
        """Return all that the store holds of its runs' results, without times and ids."""
        with EvaluationStore(self.path) as store:
            return [
                (
                    run.status,
                    store.samples(run.run_id),
                    {u: _timeless(r) for u, r in store.responses(run.run_id).items()},
                    store.verdicts(run.run_id),
                    store.judge_usage(run.run_id),
                    store.forgotten_usage(run.run_id),
                    store.calls_in_flight(run.run_id),
                    store.unclaimed_usage(run.run_id),
                    StoredSession(store, run.run_id).spent_usd,
                )
                for run in store.runs()
            ]


def _timeless(response: Any) -> Any:
    values = {name: getattr(response, name) for name in response.__dataclass_fields__}
    return {**values, "latency_s": None}


@contextmanager
def noting(on_asked: OnAsked) -> Generator[None]:
    """Tell of every request that the model gets."""
    before, AtOnce.on_asked = AtOnce.on_asked, staticmethod(on_asked)
    try:
        yield
    finally:
        AtOnce.on_asked = before


@contextmanager
def watched_writes(on_write: OnWrite, only: tuple[str, ...] = _WRITES) -> Generator[None]:
    """Tell of every statement that writes, or begins with these words, before and after it."""
    connect, count = sqlite3.connect, 0

    def opened(*given: Any, factory: type[sqlite3.Connection], **more: Any) -> Any:
        class Watched(factory):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                return _told(lambda: super(Watched, self).execute(sql, *values), sql)

            def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
                return _told(lambda: super(Watched, self).executemany(sql, *values), sql)

            def executescript(self, sql: str) -> sqlite3.Cursor:
                return _told(lambda: super(Watched, self).executescript(sql), sql)

        return connect(*given, factory=Watched, **more)

    def _told(write: Callable[[], sqlite3.Cursor], sql: str) -> sqlite3.Cursor:
        nonlocal count
        if not sql.lstrip().upper().startswith(only):
            return write()
        count += 1
        number = count
        on_write(number, False)
        done = write()
        on_write(number, True)
        return done

    sqlite3.connect = opened
    try:
        yield
    finally:
        sqlite3.connect = connect


class Asked:
    """The requests of a run in a file, which a killed process leaves whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, said: str) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(handle, f"{flat(said)}\n".encode())
        os.close(handle)

    def count(self) -> Counter[str]:
        return Counter(self._path.read_text().splitlines() if self._path.exists() else ())


def in_child(work: Callable[[], object]) -> int:
    """Do work in a forked process; return its exit code, negative for a signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which have no part in it
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
