"""Looks up scorers by name, built-in ones and a user's own, and lists those that a run asks."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations
from typing import ParamSpec, TypeVar

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import EvalError
from graphrag.eval.metrics.assertions import ASSERTIONS
from graphrag.eval.metrics.claims import CLAIMED
from graphrag.eval.metrics.judge import JudgeModel
from graphrag.eval.metrics.pairwise import PAIRWISE
from graphrag.eval.metrics.quality import QUALITY
from graphrag.eval.metrics.rubric import RUBRIC
from graphrag.eval.metrics.scorer import Grading, Material, Scorer, read_parts
from graphrag.eval.types.own_code import OwnPart, Registry, contained
from graphrag.eval.types.verdicts import Failure
from graphrag.query.client.call_errors import describe_error

P = ParamSpec("P")
T = TypeVar("T")
_OWN = {scorer.name: scorer for scorer in (RUBRIC, QUALITY, ASSERTIONS, CLAIMED, PAIRWISE)}


def _guard(own: OwnPart, scorer: Scorer) -> Scorer:
    def guarded(function: Callable[P, T]) -> Callable[P, T]:
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with own.guarded():
                return function(*args, **kwargs)

        return call

    async def grade(judge: JudgeModel, material: Material) -> Grading:
        try:
            assert scorer.grade is not None
            with contained("it"):
                value, failures = await scorer.grade(judge, material)
            json.dumps(value, allow_nan=False)
            for part, number in scorer.numbers(value).items():
                if number is not None and not scorer.limits[0] <= number <= scorer.limits[1]:
                    raise ValueError(f"{part} {number!r} is not in {list(scorer.limits)}")
                if number is None and scorer.read is read_parts and value.get(part) is not None:
                    raise TypeError(f"{part} {value[part]!r} is no number")
        except EvalError:  # it ends the whole run
            raise
        except Exception as error:
            failure = Failure(
                stage="judge", kind="error", message=str(own.refuse(describe_error(error)))
            )
            return {"failure": failure.to_dict()}, [failure]
        return value, failures

    return replace(
        scorer,
        grade=grade if scorer.grade else None,
        read=guarded(scorer.read),
        asks=guarded(scorer.asks),
        of_no_answer=scorer.of_no_answer and guarded(scorer.of_no_answer),
        count=guarded(scorer.count),
        test=scorer.test and guarded(scorer.test),
        words=scorer.words and guarded(scorer.words),
        describe=guarded(scorer.describe),
    )


SCORERS = Registry("metrics", Scorer, _OWN, _guard)
"""Name -> scorer: the built-in ones, and the user's own that a configuration names."""
OWN_SCORERS = tuple(SCORERS)
"""Names of the built-in scorers."""


def list_further(config: EvaluationConfig, samples: Iterable[Sample]) -> list[str]:
    """Return the names of the scorers that grade single responses to any of the samples."""
    every, scorers = [*samples], filter(None, map(SCORERS.find, config.judge.scorers))
    return [s.name for s in scorers if not s.of_pairs and any(map(s.asks, every))]


def list_pairs(config: EvaluationConfig) -> list[tuple[Scorer, str, str]]:
    """Return (scorer, method a, method b) for every pairwise scorer and pair of methods."""
    names = list(config.judge.graded)
    if config.judge.pairwise:
        names.insert(0, PAIRWISE.name)
    scorers = [s for s in map(SCORERS.find, names) if s is not None and s.of_pairs]
    pairs = config.judge.pairs(config.methods) or tuple(combinations(config.methods, 2))
    return [(scorer, a, b) for scorer in scorers for a, b in pairs]
