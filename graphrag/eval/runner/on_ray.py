"""Workers that Ray begins, on this machine or on others."""

import contextlib
import logging
import os
import pickle
import queue
import re
import threading
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.shares import Share
from graphrag.eval.runner.tasks import Event, Order
from graphrag.installation import extra_hint
from graphrag.redaction import is_secret_variable, redact

_REFERENCE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_ALSO = ("LITELLM_LOCAL_MODEL_COST_MAP", "LANCEDB_LOG", "TQDM_DISABLE")
_START_S = 300.0
_LISTEN_S = 5.0


class RayWorker:
    """A worker in a process that Ray began; an actor with threads."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def begin(self, payload: bytes, share: Share, variables: Mapping[str, str]) -> None:
        """Begin to work.

        Parameters
        ----------
        payload : bytes
            A pickled WorkerSetup.
        share : Share
        variables : mapping
            Of the environment, keys among them: an argument goes from process to process, and
            unlike Ray's own ``runtime_env`` it is written nowhere.
        """
        os.environ.update(variables)
        from graphrag.eval.runner.worker import Worker

        self._worker = Worker(payload, share, self._events.put)
        threading.Thread(target=self._worker.run, name="work", daemon=True).start()

    def tell(self, order: bytes) -> None:
        """Take an order."""
        self._worker.deliver(pickle.loads(order))

    def listen(self) -> bytes:
        """Wait a while for events, and return all that are there."""
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            events.append(self._events.get(timeout=_LISTEN_S))
            while True:
                events.append(self._events.get_nowait())
        return pickle.dumps(events)


class RayLink:
    """The line to a worker that Ray began.

    Parameters
    ----------
    ray : module
    payload : bytes
        A pickled WorkerSetup.
    variables : mapping
        See :meth:`RayWorker.begin`.
    share : Share
    """

    def __init__(
        self, ray: ModuleType, payload: bytes, variables: Mapping[str, str], share: Share
    ) -> None:
        self._ray: Any = ray
        actor: Any = self._ray.remote(num_cpus=1, max_restarts=0, max_concurrency=4)(RayWorker)
        self._actor: Any = actor.remote()
        self._began: Any = self._actor.begin.remote(payload, share, dict(variables))

    def send(self, order: Order) -> None:
        """Send an order; an actor that is dead is noticed by :meth:`receive`."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._actor.tell.remote(pickle.dumps(order))

    def receive(self) -> list[Event]:
        """Wait for events, and return all that are there.

        Raises
        ------
        EOFError
            If the actor has died, or Ray found no room for it.
        """
        errors = self._ray.exceptions
        try:
            if self._began is not None:
                self._ray.get(self._began, timeout=_START_S)
                self._began = None
            return pickle.loads(self._ray.get(self._actor.listen.remote()))
        except errors.GetTimeoutError as error:
            raise EOFError(f"not begun within {_START_S:g} s, as Ray has no CPU free") from error
        except errors.RayTaskError as error:
            raise EOFError(redact(str(error).strip().splitlines()[-1])) from error
        except errors.RayError as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise EOFError(redact(f"as Ray says: {said[0]}")) from error

    def close(self) -> None:
        """End the actor; it holds nothing that would have to be kept."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor)


@contextlib.contextmanager
def ray_links(
    config: EvaluationConfig, payload: bytes, roots: Mapping[str, Path | str], address: str | None
) -> Generator[Callable[[Share], RayLink]]:
    """Connect to Ray, or begin it on this machine; yields what begins a worker.

    Raises
    ------
    ConfigError
        If Ray is not installed, or there is none at the address.
    """
    ray = _import_ray()
    was_there = ray.is_initialized()
    if not was_there:
        _connect(ray, config.workers, address)
    variables = choose_variables(os.environ, roots)
    try:
        yield lambda share: RayLink(ray, payload, variables, share)
    finally:
        if not was_there:
            ray.shutdown()


def choose_variables(
    environment: Mapping[str, str], roots: Mapping[str, Path | str]
) -> dict[str, str]:
    """Return what workers on other machines need of the environment.

    That is what the projects' settings name, what is a key by its name, and how the libraries
    behave; nothing of Ray's own.
    """
    wanted = set(_ALSO)
    for root in roots.values():
        for name in ("settings.yaml", "settings.yml", "settings.json"):
            with contextlib.suppress(OSError):
                text = (Path(root) / name).read_text(encoding="utf-8", errors="replace")
                wanted.update(_REFERENCE.findall(text))
    return {
        name: value
        for name, value in environment.items()
        if (name in wanted or is_secret_variable(name)) and not name.startswith("RAY_")
    }


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        msg = f"--executor ray needs Ray, which is not installed: {extra_hint('ray')}"
        raise ConfigError(msg) from error
    return ray


def _connect(ray: Any, n_workers: int, address: str | None) -> None:
    is_own = address is None and not os.environ.get("RAY_ADDRESS")
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # what it logs before it is told not to
    how = {"num_cpus": n_workers, "include_dashboard": False} if is_own else {"address": address}
    try:
        ray.init(
            **how,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            configure_logging=False,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f"at {address or os.environ.get('RAY_ADDRESS')}" if not is_own else "here"
        said = redact(" ".join(str(error).split()))
        raise ConfigError(f"Ray can't be reached {where}: {said.rstrip('.')}.") from error
