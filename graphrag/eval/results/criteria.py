"""Success criteria: the minimum and the target that a metric is held to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphrag.eval.config.sections import Met, SuccessCriterion


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """One method's mean of one metric, held to its criterion."""

    method: str
    metric: str
    value: float | None
    minimum: float | None
    target: float | None
    result: Met
    lower_is_better: bool = False


def check_criteria(
    criteria: Iterable[SuccessCriterion], means: Mapping[str, Mapping[str, float | None]]
) -> list[CriterionResult]:
    """Hold every method's means to every criterion.

    Parameters
    ----------
    criteria : iterable of SuccessCriterion
    means : mapping
        Method -> metric -> mean. A metric that is not there is "not measured".
    """
    return [
        CriterionResult(
            method=method,
            metric=criterion.metric,
            value=values.get(criterion.metric),
            minimum=criterion.minimum,
            target=criterion.target,
            result=criterion.check(values.get(criterion.metric)),
            lower_is_better=criterion.lower_is_better,
        )
        for criterion in criteria
        for method, values in means.items()
    ]
