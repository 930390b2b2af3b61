"""What further judges say of responses that are there: rubric, quality, and pairs of methods."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError, RunStoppedError
from graphrag.eval.records import Failure, QueryResult
from graphrag.eval.runner.bounds import check_asked
from graphrag.eval.runner.progress import Tally
from graphrag.eval.runner.queue import RunOutcome, RunRequest, Work
from graphrag.eval.runner.units import Unit
from graphrag.eval.scorers.evaluable import EvaluableQueryResult
from graphrag.eval.store.records import CallScope, Judgement, StoredResponse
from graphrag.eval.store.session import Session
from graphrag.query.usage import CallLog, measure_calls

if TYPE_CHECKING:
    from graphrag.eval.scorers.pairwise import PairwiseJudge
    from graphrag.eval.scorers.quality import QualityJudge
    from graphrag.eval.scorers.rubric import RubricJudge

EntityTypes = Callable[[str], Awaitable[Mapping[str, str]]]
"""Index key -> title -> type of its entities."""
Told = tuple[dict[str, object], Sequence[Failure]]
"""What a judge said, JSON-ready, and what failed in it."""
_GRADES = ("rubric", "quality")


@dataclass(frozen=True, slots=True)
class FurtherJudges:
    """The judges beyond the verdicts; all ask the same model."""

    rubric: "RubricJudge"
    quality: "QualityJudge"
    pairwise: "PairwiseJudge"

    @classmethod
    def of(cls, judge: object, config: EvaluationConfig) -> "FurtherJudges":
        """Make them of the model that gives the verdicts.

        Raises
        ------
        ConfigError
            If the judge is one of the user's own, which has no model to ask.
        """
        # Here, as they load numpy, which verdicts do without.
        from graphrag.eval.scorers.pairwise import PairwiseJudge
        from graphrag.eval.scorers.quality import QualityJudge
        from graphrag.eval.scorers.rubric import RubricJudge

        model = getattr(judge, "model", None) if "model" in dir(judge) else None
        if model is None:
            msg = "judge.rubric, quality and pairwise need a judge that asks a model"
            raise ConfigError(msg)
        given = (model, config.judge.temperature, config.judge.max_retries)
        return cls(RubricJudge(*given), QualityJudge(*given), PairwiseJudge(*given))


@dataclass(frozen=True, slots=True)
class FurtherTask:
    """One thing to judge; ``subject`` and ``kind`` as of :class:`Judgement`."""

    subject: str
    kind: str
    judge: Callable[[], Awaitable[Told]]


def is_wanted(config: EvaluationConfig) -> bool:
    """Say whether the configuration asks for a further judge."""
    return config.judge.rubric or config.judge.quality or bool(config.judge.pairwise)


def asks_judge(config: EvaluationConfig) -> bool:
    """Say whether a run asks a judge for anything."""
    return bool(config.metrics) or is_wanted(config)


def list_kinds(config: EvaluationConfig) -> list[str]:
    """Return the kinds of judgement that the configuration asks for."""
    judge = config.judge
    kinds = [
        kind for kind, wanted in (("rubric", judge.rubric), ("quality", judge.quality)) if wanted
    ]
    return [*kinds, *(pair_kind(a, b) for a, b in judge.pairs(config.methods))]


def list_judged(
    config: EvaluationConfig, units: Sequence[Unit], session: Session
) -> tuple[tuple[Unit, Judgement], ...]:
    """Return what further judges have said, with the unit that each judgement is about."""
    return tuple(
        (unit, found)
        for unit in units
        for kind in list_kinds(config)
        if (found := session.judgement(unit.key, kind)) is not None
    )


def with_grades(
    results: Sequence[QueryResult], judged: Sequence[tuple[Unit, Judgement]]
) -> list[QueryResult]:
    """Return results with what further judges said of each of them; pairs are left out."""
    grades = defaultdict[tuple[str, str, int], dict[str, Mapping[str, object]]](dict)
    for unit, found in judged:
        if found.kind in _GRADES:
            grades[unit.sample.id, unit.method, unit.trial][found.kind] = found.value
    return [
        replace(result, grades=own)
        if (own := grades.get((result.sample_id, result.method, result.trial)))
        else result
        for result in results
    ]


def pair_kind(a: str, b: str) -> str:
    """Return the kind of the judgements that hold two methods against each other."""
    return f"pairwise:{a}:{b}"


def plan_further(
    config: EvaluationConfig,
    units: Sequence[Unit],
    session: Session,
    judges: FurtherJudges,
    entity_types: EntityTypes,
) -> list[FurtherTask]:
    """Return what is to be judged and has not been yet; failed searches are left out.

    Pairs are of the first trial.
    """
    by_place = {(u.sample.id, u.method, u.trial): u for u in units if _answered(u, session)}
    tasks: list[FurtherTask] = []
    for unit in by_place.values():
        if config.judge.rubric:
            rubric = _Rubric(judges.rubric, unit, session, entity_types)
            tasks.append(FurtherTask(unit.key, "rubric", rubric))
        if config.judge.quality:
            tasks.append(FurtherTask(unit.key, "quality", _Quality(judges.quality, unit, session)))
    for a, b in config.judge.pairs(config.methods):
        for unit in by_place.values():
            other = by_place.get((unit.sample.id, b, 0))
            if unit.method == a and unit.trial == 0 and other is not None:
                compare = _Pair(judges.pairwise, (unit, other), session)
                tasks.append(FurtherTask(unit.key, pair_kind(a, b), compare))
    return [task for task in tasks if session.judgement(task.subject, task.kind) is None]


class FurtherWork:
    """Has the responses of a finished run judged beyond their verdicts.

    Parameters
    ----------
    config : EvaluationConfig
    judges : FurtherJudges
    entity_types : callable
        See :data:`EntityTypes`.
    """

    def __init__(
        self, config: EvaluationConfig, judges: FurtherJudges, entity_types: EntityTypes
    ) -> None:
        self._config = config
        self._judges = judges
        self._entity_types = entity_types

    async def run(self, request: RunRequest, outcome: RunOutcome, work: Work) -> RunOutcome:
        """Judge what has not been judged, keeping each judgement as it arrives.

        Raises
        ------
        StoreError
            If a judgement can't be kept.
        """
        session = request.session
        tasks = plan_further(self._config, request.units, session, self._judges, self._entity_types)
        n_left = await self._run_tasks(tasks, request, outcome, work)
        judged = list_judged(self._config, request.units, session)
        return replace(
            outcome,
            results=with_grades(outcome.results, judged),
            stopped=work.stop_reason if n_left else None,
            refused=work.was_refused,
            judged=judged,
            allow_usd=work.allow_usd if n_left else None,
        )

    async def _run_tasks(
        self, tasks: Sequence[FurtherTask], request: RunRequest, outcome: RunOutcome, work: Work
    ) -> int:
        """Run the tasks side by side; return how many are left."""
        session = request.session
        n_done = 0

        async def run_task(task: FurtherTask) -> None:
            nonlocal n_done
            with work.stopping():
                with work.judging(CallScope(task.kind, task.subject)) as log:
                    judged = await _judge(task, log)
                session.keep_judgement(judged, log.counted)
                n_done += 1
                tally = Tally(n_done, len(tasks), cost_usd=work.spending.spent_usd)
                request.progress.advance(tally, outcome.results[-1])

        await work.run_jobs([partial(run_task, task) for task in tasks])
        return len(tasks) - n_done


async def _judge(task: FurtherTask, log: CallLog) -> Judgement:
    with measure_calls(log):
        value, failures = await task.judge()
    check_asked(log)
    for failure in failures:
        if failure.kind == "refused":
            msg = f"The judge's service refuses the requests: {failure.message}"
            raise RunStoppedError(msg)
    return Judgement(task.subject, task.kind, value, bool(failures), log.usage())


def _answered(unit: Unit, session: Session) -> bool:
    standing = session.standing(unit.key)
    return standing is not None and not standing.failed


def _response(unit: Unit, session: Session) -> StoredResponse:
    """Read a response when it is judged: a run may have more of them than fit into memory."""
    found = session.response(unit.key)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class _Rubric:
    judge: "RubricJudge"
    unit: Unit
    session: Session
    entity_types: EntityTypes

    async def __call__(self) -> Told:
        found = _response(self.unit, self.session)
        result = EvaluableQueryResult.from_context_text(
            self.unit.sample.question,
            found.response,
            found.context_text,
            self.unit.method,
            await self.entity_types(self.unit.sample.imdb_key),
        )
        evaluation = await self.judge.evaluate(result)
        failures = [g.failure for g in evaluation.grades.values() if g.failure is not None]
        return evaluation.to_dict(), failures


@dataclass(frozen=True, slots=True)
class _Quality:
    judge: "QualityJudge"
    unit: Unit
    session: Session

    async def __call__(self) -> Told:
        sample, found = self.unit.sample, _response(self.unit, self.session)
        measured = await self.judge.evaluate(
            sample.question, found.response, sample.ground_truth, found.context_text
        )
        return measured.to_dict(), [] if measured.failure is None else [measured.failure]


@dataclass(frozen=True, slots=True)
class _Pair:
    judge: "PairwiseJudge"
    units: tuple[Unit, Unit]
    session: Session

    async def __call__(self) -> Told:
        a, b = (_response(unit, self.session).response for unit in self.units)
        compared = await self.judge.compare(self.units[0].sample.question, a, b)
        orders = (compared.a_first, compared.b_first)
        return compared.to_dict(), [o.failure for o in orders if o.failure is not None]
