"""What the owner of the store and its workers tell each other; all of it can be pickled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.records import JudgeResult
from graphrag.eval.runner.methods import Method
from graphrag.eval.scorers.judge import Judge
from graphrag.eval.store.records import StoredResponse, Unit
from graphrag.query.limits import CallTime
from graphrag.query.usage import CallAttempt, OutputBound, RecordedCall


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What every worker of a run needs, as the owner of the store has it.

    Attributes
    ----------
    config : EvaluationConfig
    index_roots : mapping
        Index key -> project folder, absolute; the same on every worker's machine.
    judge : Judge or None
        A judge of the user's own; None: made from the settings.
    methods : mapping or None
        Name -> function, for methods that are registered in Python.
    log_level : int
        Log lines below it are not passed on.
    releases : mapping
        Distribution -> version: a worker of another one would give other results.
    """

    config: EvaluationConfig
    index_roots: Mapping[str, str]
    judge: Judge | None = None
    methods: Mapping[str, Method] | None = None
    log_level: int = 0
    releases: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Item:
    """A search, or with a response the verdicts on it.

    ``finished`` holds the calls of it that were answered before: they are not sent again.
    ``left_usd`` is what the run may still spend, None: as much as it takes.
    """

    number: int
    unit: Unit
    found: StoredResponse | None
    metrics: tuple[str, ...]
    finished: Mapping[str, RecordedCall]
    bound: OutputBound | None
    time: CallTime | None
    left_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody waits for this item any more."""

    number: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The store has the worker's finished calls up to this one, counted from 1.

    ``left_usd`` as of an Item, with these counted.
    """

    up_to: int
    left_usd: float | None = None


Order = Item | Cancel | Kept


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker can begin, or says in one sentence why it can't."""

    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """What happened to a call of an item; ``call`` is given with "finish" alone."""

    item: int
    what: Literal["start", "finish", "abandon"]
    key: str
    call: RecordedCall | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """An item is done: what came of it, or the error by kind and sentence.

    ``counted`` names the finished calls that are part of ``attempts``, as in ``CallLog``. ``error``
    begins with the name of a class of ``graphrag.eval.errors``; "" for any other error.
    """

    item: int
    result: StoredResponse | dict[str, JudgeResult] | None = None
    attempts: tuple[CallAttempt, ...] = ()
    failures: tuple[str, ...] = ()
    replayed: int = 0
    counted: frozenset[str] = frozenset()
    error: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A line for the log."""

    logger: str
    level: int
    text: str


Event = Ready | Noted | Ended | Said
