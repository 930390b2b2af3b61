"""Success criteria: the minimum and the target that a metric is held to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

Met = Literal["met target", "met minimum", "missed", "not measured"]


class SuccessCriterion(BaseModel):
    """What one metric's mean must reach.

    Attributes
    ----------
    metric : str
        A name that the measures give.
    minimum, target : float
        In the metric's unit; the target is at least as strict as the minimum.
    lower_is_better : bool
        For seconds, tokens and the like.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    metric: str
    minimum: float
    target: float
    lower_is_better: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> "SuccessCriterion":
        strict, lax = (self.minimum, self.target)
        if self.lower_is_better:
            strict, lax = lax, strict
        if strict > lax:
            msg = f"{self.metric}: the target {self.target:g} is easier than the minimum"
            raise ValueError(msg)
        return self

    def check(self, value: float | None) -> Met:
        """Hold a value to the criterion; None is "not measured"."""
        if value is None:
            return "not measured"
        sign = -1 if self.lower_is_better else 1
        if sign * value >= sign * self.target:
            return "met target"
        return "met minimum" if sign * value >= sign * self.minimum else "missed"


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """One method's mean of one metric, held to its criterion."""

    method: str
    metric: str
    value: float | None
    minimum: float
    target: float
    result: Met


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
        )
        for criterion in criteria
        for method, values in means.items()
    ]
