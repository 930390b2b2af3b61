"""Which executor a run has: none, processes of this machine, or Ray."""

import logging
import pickle
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.crew import Crew
from graphrag.eval.runner.executor import Executor
from graphrag.eval.runner.methods import Method
from graphrag.eval.runner.processes import ProcessLink
from graphrag.eval.runner.tasks import WorkerSetup
from graphrag.eval.scorers.judge import Judge


@dataclass(frozen=True, slots=True)
class Workers:
    """What workers need beside the configuration.

    Attributes
    ----------
    index_roots : mapping or None
        Index key -> project folder; None: the configuration's.
    judge : Judge or None
        A judge of one's own, which must be picklable; None: made from the settings.
    methods : mapping or None
        Name -> function, each importable by name from a module.
    address : str or None
        Of a Ray cluster; None: one is started on this machine.
    """

    index_roots: Mapping[str, Path | str] | None = None
    judge: Judge | None = None
    methods: Mapping[str, Method] | None = None
    address: str | None = None


@asynccontextmanager
async def open_executor(
    config: EvaluationConfig, workers: Workers | None = None
) -> AsyncGenerator[Executor | None]:
    """Open the executor that a configuration asks for; None: the work is done in this process.

    Its workers begin when there is something to do and end with the block. Hand it to
    ``EvaluationRunner(config, executor=...)``.

    Raises
    ------
    ConfigError
        If what the workers need can't be handed to them, or Ray is not installed.
    """
    given = workers or Workers()
    if given.address is not None and config.executor != "ray":
        msg = "--address names a Ray cluster; give --executor ray with it, or leave it out."
        raise ConfigError(msg)
    if config.executor == "local" and config.workers == 1:
        yield None
        return
    payload = _pack(config, given)
    if config.executor == "ray":
        from graphrag.eval.runner.on_ray import ray_links

        roots = _roots(config, given)
        with ray_links(config, payload, roots, given.address) as hire:
            async with Crew(config.workers, config.concurrency, config.patience_s, hire) as crew:
                yield crew
        return
    hire = partial(ProcessLink, payload)
    async with Crew(config.workers, config.concurrency, config.patience_s, hire) as crew:
        yield crew


def _roots(config: EvaluationConfig, workers: Workers) -> Mapping[str, Path | str]:
    return config.project_folders() if workers.index_roots is None else workers.index_roots


def _pack(config: EvaluationConfig, workers: Workers) -> bytes:
    roots = _roots(config, workers)
    setup = WorkerSetup(
        config=config.model_copy(update={"root": config.root.absolute()}),
        index_roots={key: str(Path(root).absolute()) for key, root in roots.items()},
        judge=workers.judge,
        methods=workers.methods,
        log_level=logging.getLogger("graphrag").getEffectiveLevel(),
        releases={name: version(name) for name in ("graphrag", "gtog")},
    )
    named: dict[str, object] = {"The judge": workers.judge}
    named.update({f"The method {name}": each for name, each in (workers.methods or {}).items()})
    for name, each in named.items():
        kind: object = each if isinstance(each, type) or callable(each) else type(each)
        at_prompt = "__main__" in (getattr(each, "__module__", ""), getattr(kind, "__module__", ""))
        try:
            pickle.dumps(each)
        except Exception as error:  # whatever the user's own class raises
            msg = f"{name} can't be handed to workers ({error}); leave --workers and --executor out"
            raise ConfigError(f"{msg}, or make it of what can be pickled.") from error
        if at_prompt:
            msg = f"{name} can't be handed to workers, as it stands in the program itself"
            raise ConfigError(f"{msg}; put it into a module of its own.")
    return pickle.dumps(setup)
