"""Distributes the units of a run to Ray workers, on this machine or on others.

The process of the command keeps the queue, the store, the progress and the stop. A worker opens
indexes and models at their first use, works on several units in one event loop, and writes nothing.
If a worker dies, another one begins its units again.
"""

import asyncio
import contextlib
import logging
import os
import pickle
import platform
import re
import signal
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

from graphrag.config.settings_files import SETTINGS_FILES, is_project
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError, EvalError, RunStoppedError
from graphrag.eval.metrics.judge import Judge
from graphrag.eval.runner.custom_methods import Method
from graphrag.eval.store.records import StoredResponse, Unit
from graphrag.eval.types.own_code import Kind, list_specs, load_part
from graphrag.eval.types.verdicts import JudgeResult
from graphrag.installation import extra_hint
from graphrag.query.client.call_errors import describe_error
from graphrag.query.client.rate_limit import CallLimit, ModelQueue, Spending
from graphrag.query.client.usage import (
    CallAttempt,
    CallLog,
    CallTime,
    Exchange,
    Exchanges,
    FailedCall,
    OutputBound,
)
from graphrag.text.library_logs import LIBRARIES, lines_to
from graphrag.text.redaction import is_secret_variable, know_settings, redact

_log = logging.getLogger(__name__)
_REFERENCE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_ALSO = ("LITELLM_LOCAL_MODEL_COST_MAP", "LANCEDB_LOG", "TQDM_DISABLE")
_START_S = 300.0
_TRIES = 3


Ray: TypeAlias = Any
"""The module ray, or an object of it, without types: Ray need not be installed."""


class WorkerDiedError(RuntimeError):
    """A worker has died; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """Everything that each worker of a run needs.

    ``releases``: library -> version in the process of the command. ``own_parts``: kind and
    ``module:object`` of the user's own judges and measures.
    """

    config: EvaluationConfig
    index_roots: Mapping[str, str]
    judge: Judge | None = None
    methods: Mapping[str, Method] | None = None
    log_level: int = 0
    releases: Mapping[str, str] = field(default_factory=dict[str, str])
    own_parts: Sequence[tuple[Kind, str]] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """One worker's share of what a run may ask and spend; shares add up to the configured limits.

    - ``index``, ``n_workers``: number of the worker, from 0, and of all workers.
    - ``concurrency``: requests in flight of all workers together, >= ``n_workers``.
    - ``patience_s``: see ``CallLimit``.
    - ``most_usd``: most that this worker may spend; None: no limit.
    - ``is_successor``: whether it replaces a worker that died. What that worker asked within the
      period of a rate is unknown, so the successor first waits for a full period.
    """

    index: int
    n_workers: int
    concurrency: int
    patience_s: float
    most_usd: float | None = None
    is_successor: bool = False

    def part(self, total: int) -> float:
        """Return this worker's part of a total: an integer, or a fraction if less than 1."""
        if total < self.n_workers:
            return total / self.n_workers
        return total // self.n_workers + (self.index < total % self.n_workers)


class SharedLimit(CallLimit):
    """The limit of one worker: its share of the requests in flight, the rates and the money."""

    def __init__(self, share: Share) -> None:
        super().__init__(
            int(share.part(share.concurrency)),
            share.patience_s,
            after_others=share.is_successor,
            spending=Spending(share.most_usd),
        )
        self._share = share

    def queue(self, key: Hashable, name: str, rate: object = None) -> ModelQueue:
        """Return a model's queue of requests under this worker's share of the ``rate_limit:``."""
        if rate is not None:
            totals = (getattr(rate, f"{kind}_per_period", None) for kind in ("requests", "tokens"))
            requests, tokens = (self._share.part(total) if total else None for total in totals)
            rate = SimpleNamespace(
                period_in_seconds=getattr(rate, "period_in_seconds", None),
                requests_per_period=requests,
                tokens_per_period=tokens,
            )
        return super().queue(key, name, rate)


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a unit of work, its cost, and the log lines written meanwhile."""

    result: StoredResponse | dict[str, JudgeResult] | None = None
    error: Exception | None = None
    attempts: tuple[CallAttempt, ...] = ()
    failures: tuple[FailedCall, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    lines: tuple[tuple[str, int, str], ...] = ()


class RayWorker:
    """One worker of a run; in a process that Ray started it is an actor."""

    async def begin(self, payload: bytes, share: Share, variables: Mapping[str, str]) -> str | None:
        """Prepare the worker; return None, or a sentence that says why it can't work.

        ``payload``: a pickled WorkerSetup. ``variables``: of the environment, secrets included.
        Unlike Ray's own ``runtime_env``, an argument is written nowhere on its way between
        processes.
        """
        os.environ.update(variables)
        from graphrag.eval.runner.evaluation_runner import EvaluationRunner

        try:
            know_settings({})
            setup: WorkerSetup = pickle.loads(payload)
            if (problem := find_problem(setup)) is not None:
                return redact(problem)
            for kind, spec in setup.own_parts:
                load_part(kind, spec, setup.config.root)
            self._runner = EvaluationRunner(
                setup.config, setup.judge, setup.index_roots, setup.methods
            )
        except Exception as error:  # whatever the user's own classes raise
            return redact(f"A worker can't make what it is handed: {describe_error(error)}")
        self._limit = SharedLimit(share)
        self._lines = _Lines()
        self._logging = lines_to(self._lines, setup.log_level, ("graphrag", *LIBRARIES))
        self._logging.__enter__()
        return None

    async def work(
        self,
        unit: Unit,
        response: StoredResponse | None,
        metrics: tuple[str, ...],
        bound: OutputBound | None,
        time: CallTime | None,
        keeps_exchanges: bool,
    ) -> bytes:
        """Search or judge a unit; return a pickled Reply, with exchanges if ``keeps_exchanges``."""
        exchanges = Exchanges()
        kept = exchanges if keeps_exchanges else None
        log = CallLog(self._limit, bound=bound, time=time, exchanges=kept)
        result, error = None, None
        try:
            if response is None:
                result = await self._runner.search_unit(unit, log)
            else:
                result = await self._runner.judge_unit(unit, response, metrics, log)
            pickle.dumps(result)  # the user's own judge may return what can't be sent
        except EvalError as raised:
            error = type(raised)(redact(str(raised)))
        except Exception as raised:
            result, error = None, RuntimeError(redact(describe_error(raised)))
        records = (tuple(log.attempts), tuple(log.failures), tuple(exchanges.listed))
        return pickle.dumps(Reply(result, error, *records, self._lines.take()))


class _Lines(logging.Handler):
    """Keeps log lines, with secrets removed, until they are passed on."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[tuple[str, int, str]] = []
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append((record.name, record.levelno, redact(self.format(record))))

    def take(self) -> tuple[tuple[str, int, str], ...]:
        lines, self._kept = tuple(self._kept), []
        return lines


def find_problem(setup: WorkerSetup) -> str | None:
    """Return a sentence that says why this process can't work on a run; None if it can."""
    machine = platform.node() or "the worker's machine"
    for name, release in setup.releases.items():
        if version(name) != release:
            return (
                f"{machine} has {name} {version(name)}, and the run {release}; install the same "
                "release on every machine."
            )
    for key, root in setup.index_roots.items():
        if not is_project(root):
            return (
                f"Index {key}: {machine}, where a worker runs, has no project at {root}; put "
                "the projects where every machine finds them under one path."
            )
    return None


@dataclass(slots=True, eq=False)
class _Member:
    share: Share
    worker: "asyncio.Future[_Actor]"
    n_items: int = 0
    spent_usd: float = 0.0


class Crew:
    """Gives units to workers instead of the runner; workers start when there is work for them.

    ``config``: its ``workers`` share its ``concurrency``. ``hire``: starts a worker and waits until
    it can work.
    """

    def __init__(
        self, config: EvaluationConfig, hire: "Callable[[Share], Awaitable[_Actor]]"
    ) -> None:
        self._config = config
        self._hire = hire
        self._members: list[_Member] = []
        self._most_usd: float | None = None

    async def close(self) -> None:
        """End all workers."""
        members, self._members = self._members, []
        for member in members:
            member.worker.cancel()
        for worker in await asyncio.gather(*(m.worker for m in members), return_exceptions=True):
            if not isinstance(worker, BaseException):
                worker.close()

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Answer a question; see ``EvaluationRunner.search_unit``."""
        return cast("StoredResponse", await self._do(log, unit, None, ()))

    async def judge_unit(
        self, unit: Unit, response: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Have a response judged; see ``EvaluationRunner.judge_unit``."""
        result = await self._do(log, unit, response, tuple(metrics))
        return cast("dict[str, JudgeResult]", result)

    async def _do(self, log: CallLog, *work: object) -> object:
        assert isinstance(log.limit, CallLimit)
        spending, exchanges = log.limit.spending, log.exchanges
        for n_left in reversed(range(_TRIES)):
            member = self._choose(spending)
            member.n_items += 1
            try:
                worker = await asyncio.shield(member.worker)
                reply: Reply = pickle.loads(
                    await worker.work(*work, log.bound, log.time, exchanges is not None)
                )
            except WorkerDiedError as error:
                self._replace(member, error)
                if not n_left:
                    raise RunStoppedError(
                        f"{_TRIES} workers died at the same work, the last one {error}; what was "
                        "finished is kept, see whether memory was short"
                    ) from error
                continue
            finally:
                member.n_items -= 1
            for logger, level, text in reply.lines:
                logging.getLogger(logger).log(level, "%s", text)
            before = spending.spent_usd
            for attempt in reply.attempts:
                spending.count(attempt)
            member.spent_usd += spending.spent_usd - before
            log.attempts.extend(reply.attempts)
            log.failures.extend(reply.failures)
            if exchanges is not None:
                exchanges.listed.extend(reply.exchanges)
            if reply.error is not None:
                raise reply.error
            return reply.result
        raise AssertionError

    def _choose(self, spending: Spending) -> _Member:
        """Return the worker with the fewest units; start a new one before any worker gets two."""
        member = min(self._members, key=lambda m: m.n_items, default=None)
        if member is None or (member.n_items and len(self._members) < self._config.workers):
            config, left = self._config, spending.left_usd
            if not self._members:
                self._most_usd = None if left is None else left / config.workers
            rank = len(self._members), config.workers
            member = self._add(Share(*rank, config.concurrency, config.patience_s, self._most_usd))
        return member

    def _add(self, share: Share) -> _Member:
        member = _Member(share=share, worker=asyncio.ensure_future(self._hire(share)))
        self._members.append(member)
        return member

    def _replace(self, member: _Member, error: WorkerDiedError) -> None:
        """Start a successor of a worker that died, once for all of its units."""
        if member not in self._members:
            return
        self._members.remove(member)
        if member.worker.done() and member.worker.exception() is None:
            member.worker.result().close()  # an unreachable worker may go on, and cost money
        share = member.share
        _log.warning("worker %d died, %s: another replaces it", share.index + 1, error)
        left = None if share.most_usd is None else share.most_usd - member.spent_usd
        self._add(replace(share, most_usd=left, is_successor=True))


@asynccontextmanager
async def open_executor(
    config: EvaluationConfig,
    index_roots: Mapping[str, Path | str] | None = None,
    judge: Judge | None = None,
    methods: Mapping[str, Method] | None = None,
    address: str | None = None,
) -> AsyncGenerator[Crew | None]:
    """Open the workers that a configuration asks for; None if this process is to do the work.

    ``async with open_executor(config=config) as executor`` gives the ``executor`` of
    ``EvaluationRunner(config=config, executor=executor)``; the workers end with the block.

    - ``index_roots``: index key -> project folder; None: the configuration's.
    - ``judge``: the user's own judge, which must be picklable; None: made from the settings.
    - ``methods``: name -> function, importable by name from a module.
    - ``address``: of a Ray cluster; None: one is started on this machine.
    """
    if config.workers == 1:
        if address is not None:
            msg = "--address names a Ray cluster; give --workers with it, or leave it out."
            raise ConfigError(msg)
        yield None
        return
    roots = config.project_folders() if index_roots is None else index_roots
    payload = _pack(config, roots, judge, methods)
    ray = _import_ray()
    was_there = ray.is_initialized()
    if not was_there:
        _connect(ray, config.workers, address)
    variables = choose_variables(os.environ, roots)
    crew = Crew(config, lambda share: _hire(ray, payload, share, variables))
    try:
        yield crew
    finally:
        await crew.close()
        if not was_there:
            ray.shutdown()


def _pack(
    config: EvaluationConfig,
    roots: Mapping[str, Path | str],
    judge: Judge | None,
    methods: Mapping[str, Method] | None,
) -> bytes:
    parts: dict[str, object] = {"The judge": judge}
    parts.update({f"The method {name}": method for name, method in (methods or {}).items()})
    for name, part in parts.items():
        kind: object = part if isinstance(part, type) or callable(part) else type(part)
        try:
            if "__main__" in (getattr(part, "__module__", ""), getattr(kind, "__module__", "")):
                raise TypeError("it is in the program itself")
            pickle.dumps(part)
        except Exception as error:  # whatever the user's own class raises
            raise ConfigError(
                f"{name} can't be handed to workers ({error}); make it of what can be pickled, in "
                "a module of its own, or leave --workers out."
            ) from error
    setup = WorkerSetup(
        config=config.model_copy(update={"root": config.root.absolute()}),
        index_roots={key: str(Path(root).absolute()) for key, root in roots.items()},
        judge=judge,
        methods=methods,
        log_level=logging.getLogger("graphrag").getEffectiveLevel(),
        releases={name: version(name) for name in ("graphrag", "gtog")},
        own_parts=list_specs([*config.metrics, *config.judge.graded, *config.measures.further]),
    )
    return pickle.dumps(setup)


class _Actor:
    def __init__(self, ray: Ray, actor: Ray) -> None:
        self._ray, self._actor = ray, actor

    async def work(self, *work: object) -> bytes:
        """Return the pickled Reply for a unit of work."""
        reference = self._actor.work.remote(*work)
        try:
            return await reference
        except asyncio.CancelledError:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.cancel(reference)
            raise
        except self._ray.exceptions.RayError as error:
            raise WorkerDiedError(_first_line(error)) from error

    def close(self) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor)


async def _hire(ray: Ray, payload: bytes, share: Share, variables: Mapping[str, str]) -> _Actor:
    kind = ray.remote(
        num_cpus=1,
        max_restarts=0,
        max_concurrency=share.concurrency,
    )(RayWorker)
    actor = kind.remote()
    worker = _Actor(ray, actor)
    try:
        problem = await asyncio.wait_for(actor.begin.remote(payload, share, variables), _START_S)
    except TimeoutError as error:
        worker.close()
        raise WorkerDiedError(f"not begun within {_START_S:g} s, as Ray has no CPU free") from error
    except ray.exceptions.RayError as error:
        raise WorkerDiedError(_first_line(error)) from error
    if problem is not None:
        worker.close()
        raise ConfigError(problem)
    return worker


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return redact(f"as Ray says: {lines[0]}")


def choose_variables(
    environment: Mapping[str, str], roots: Mapping[str, Path | str]
) -> dict[str, str]:
    """Return the environment variables that workers on other machines need.

    These are the variables that the projects' settings name, that have the name of a secret, or
    that configure the libraries. Ray's own variables are left out.
    """
    names = set(_ALSO)
    for root in roots.values():
        for name in SETTINGS_FILES:
            with contextlib.suppress(OSError):
                text = (Path(root) / name).read_text(encoding="utf-8", errors="replace")
                names.update(_REFERENCE.findall(text))
    return {
        name: value
        for name, value in environment.items()
        if (name in names or is_secret_variable(name)) and not name.startswith("RAY_")
    }


def _import_ray() -> Ray:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Without this, under `uv run`, Ray would copy the whole folder and install the project from it.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        msg = f"More than one worker needs Ray, which is not installed: {extra_hint('ray')}"
        raise ConfigError(msg) from error
    return ray


def _connect(ray: Ray, n_workers: int, address: str | None) -> None:
    is_own = address is None and not os.environ.get("RAY_ADDRESS")
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # silences what it logs before ray.init
    # "local", or Ray would take the cluster that `ray start` began on this machine.
    own = {"address": "local", "num_cpus": n_workers, "include_dashboard": False}
    how = own if is_own else {"address": address}
    terminates = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():  # the children run Ray's programs and don't use lancedb
            warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
            ray.init(
                **how, log_to_driver=False, logging_level=logging.CRITICAL, configure_logging=False
            )
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f"at {address or os.environ.get('RAY_ADDRESS')}" if not is_own else "here"
        cause = redact(" ".join(str(error).split()))
        raise ConfigError(f"Ray can't be reached {where}: {cause.rstrip('.')}.") from error
    finally:
        with contextlib.suppress(ValueError):  # Ray replaces the handler if this is the main thread
            signal.signal(signal.SIGTERM, terminates)
