"""The sections of eval_config.yaml."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Annotated, Literal, cast, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from graphrag.config.models.strict_section import StrictSection, nearest
from graphrag.eval.dataset.columns import check_columns
from graphrag.eval.records import METRICS
from graphrag.query.methods import SearchMethod

Met = Literal["met target", "met minimum", "missed target", "missed", "not measured"]
_USUAL: Mapping[str, tuple[float | None, float]] = {
    "hit_rate": (0.80, 0.90),
    "mrr": (0.70, 0.85),
    "judge_score": (0.75, 0.85),
    "combined_score": (None, 1.20),
}
"""Minimum and target where neither is given."""


class SuccessCriterion(BaseModel):
    """What one metric's mean must be above.

    Attributes
    ----------
    metric : str
        A measure, a judged metric, ``rubric.<dimension>``, ``quality.<measure>``, or
        avg_latency, avg_llm_calls, avg_prompt_tokens or avg_output_tokens.
    minimum, target : float or None
        In the metric's unit; the target is at least as strict as the minimum. None: there is none,
        but one of them is needed. With neither given, hit_rate, mrr, judge_score and
        combined_score have those by which a run is held by default.
    lower_is_better : bool
        For seconds, tokens and the like, whose mean must be below.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    metric: str
    minimum: float | None = None
    target: float | None = None
    lower_is_better: bool = False

    @model_validator(mode="before")
    @classmethod
    def _with_usual_bounds(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        given = cast("Mapping[str, object]", values)
        usual = _USUAL.get(str(given.get("metric")))
        if usual is None or given.get("minimum") is not None or given.get("target") is not None:
            return given
        return {**given, "minimum": usual[0], "target": usual[1]}

    @model_validator(mode="after")
    def _ordered(self) -> "SuccessCriterion":
        if self.minimum is None and self.target is None:
            msg = f"{self.metric}: give a minimum or a target, or both"
            raise ValueError(msg)
        if self.minimum is None or self.target is None:
            return self
        strict, lax = (self.minimum, self.target)
        if self.lower_is_better:
            strict, lax = lax, strict
        if strict > lax:
            msg = f"{self.metric}: the target {self.target:g} is easier than the minimum"
            raise ValueError(msg)
        return self

    def check(self, value: float | None) -> Met:
        """Hold a value to the criterion: it must be above the bound; None is "not measured"."""
        if value is None:
            return "not measured"
        if self._is_beyond(value, self.target):
            return "met target"
        if self.minimum is None:
            return "missed target"
        return "met minimum" if self._is_beyond(value, self.minimum) else "missed"

    def _is_beyond(self, value: float, bound: float | None) -> bool:
        if bound is None:
            return False
        return value < bound if self.lower_is_better else value > bound


DEFAULT_CRITERIA = tuple(SuccessCriterion(metric=name) for name in _USUAL)
"""What every run is held to unless its configuration says otherwise."""


def _known_metric(given: object) -> object:
    if given not in METRICS:
        msg = f"unknown name {str(given)!r}{nearest(str(given), METRICS)}"
        raise ValueError(msg)
    return given


Metric = Annotated[str, BeforeValidator(_known_metric)]
Control = Literal["closed_book", "oracle"]
CONTROLS: tuple[str, ...] = get_args(Control)


class FrozenSection(StrictSection):
    """A section whose values do not change."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class DatasetSettings(FrozenSection):
    """Where the questions are.

    Attributes
    ----------
    path : str
        Relative to the root.
    columns : dict
        Field -> heading of the column that holds it, where the headings do not tell.
    """

    path: str = "eval/qa_eval.json"
    columns: dict[str, str] = Field(default_factory=dict[str, str])

    @field_validator("columns")
    @classmethod
    def _known(cls, value: dict[str, str]) -> dict[str, str]:
        check_columns(value)
        return value


class OutputSettings(FrozenSection):
    """Where results go; ``dir`` is relative to the root.

    ``save_intermediate`` keeps every response and verdict in the store as it arrives; without it
    an interrupted run can't be resumed. ``allow_outside`` lets a file name a ``dir`` that does not
    lie below the root.
    """

    dir: str = "eval/results"
    save_intermediate: bool = True
    allow_outside: bool = False


class JudgeSettings(FrozenSection):
    """Who judges.

    Attributes
    ----------
    model : str or None
        A key of ``completion_models`` in the index's settings.yaml, or the ``model`` of one of
        its entries; else ``provider/model`` with the key of its default completion model, or a
        plain name, which is asked of that model's provider, at its address, with its key and
        arguments. None for that default model itself.
    temperature : float
        0 to 2.
    max_input_tokens : int or None
        How many tokens the model reads; None: what litellm's map says of it, if anything. A run
        whose contexts may be larger is warned of.
    max_retries : int
        How often an unreadable reply is asked for again, >= 0.
    max_output_tokens : int
        Tokens that a reply of the judge may have, >= 16; as ``EvaluationConfig`` has it for the
        methods.
    timeout_s : float or None
        Seconds after which one request to the judge is given up and sent again, > 0; None: as
        ``request_timeout_s``.
    repeats : int
        How often each verdict is asked for, an odd number: the majority is the score.
    rubric : bool
        Whether responses are graded from 1 to 5 on five dimensions as well, one call each.
    quality : bool
        Whether they are measured from 0 to 1 as well, one call each.
    pairwise : bool or tuple
        The pairs of methods whose responses are held against each other, two calls a pair and
        question; True for all pairs.
    """

    model: str | None = None
    temperature: float = Field(default=0.0, ge=0, le=2)
    max_input_tokens: int | None = Field(default=None, ge=1)
    max_retries: int = Field(default=2, ge=0)
    max_output_tokens: int = Field(default=1000, ge=16)
    timeout_s: float | None = Field(default=None, gt=0)
    repeats: int = Field(default=1, ge=1)
    rubric: bool = False
    quality: bool = False
    pairwise: bool | tuple[tuple[str, str], ...] = False

    @field_validator("repeats")
    @classmethod
    def _odd(cls, value: int) -> int:
        if value % 2 == 0:
            msg = f"must be odd, so that there is a majority, not {value}"
            raise ValueError(msg)
        return value

    def pairs(self, methods: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of methods that are held against each other."""
        if isinstance(self.pairwise, bool):
            return tuple(combinations(methods, 2)) if self.pairwise else ()
        return self.pairwise


class Variant(BaseModel):
    """A method under a name of its own: a search with other settings, or a function.

    Attributes
    ----------
    method : str or None
        tog, ppr, local, basic, bm25, hybrid, agentic, global or drift; every further key is a
        setting of that method, in place of what settings.yaml says.
    function : str or None
        ``module:function``, see ``graphrag.eval.runner.methods``. One of the two is given.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    method: SearchMethod | None = None
    function: str | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "Variant":
        if (self.method is None) == (self.function is None):
            msg = "give either method, with settings of its own, or function"
            raise ValueError(msg)
        if self.function is not None and self.changes:
            msg = f"a function takes no settings, but {', '.join(self.changes)} is given"
            raise ValueError(msg)
        return self

    @property
    def changes(self) -> dict[str, object]:
        """The settings that differ."""
        return dict(self.model_extra or {})


class EqualTerms(FrozenSection):
    """What every method of a run is held to alike.

    Attributes
    ----------
    response_type : str
        Form of the answer, free text.
    max_context_tokens : int or None
        Budget of the context that the answer is written from, in the model's tokens; None: each
        search keeps its own, or has those of ``budgets``.
    """

    response_type: str = "Single paragraph"
    max_context_tokens: int | None = Field(default=8000, ge=100)


class MeasuresSettings(FrozenSection):
    """How responses are measured without a model.

    Attributes
    ----------
    cutoffs : tuple of int
        The k of recall, precision and hit rate at k.
    alpha, beta, gamma : float
        Exponents of the combined score: of hit rate, thousand tokens and the judge's score.
    time_limit_s : float or None
        Seconds; None: no time score, unless a sample's tag ``time_limit_s`` sets one.
    aspect_share : float
        Share of an aspect's words that must stand together for it to be covered, (0, 1].
    aliases : dict
        Other name of an entity -> its name.
    criteria : tuple of SuccessCriterion
        Reported as met or missed, without effect on the exit code; a list takes the place of
        the default one, an empty one holds a run to nothing.
    """

    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = (1, 5, 10)
    alpha: float = Field(default=2.0, ge=0, le=50)
    beta: float = Field(default=0.5, ge=0, le=50)
    gamma: float = Field(default=1.5, ge=0, le=50)
    time_limit_s: float | None = Field(default=None, gt=0)
    aspect_share: float = Field(default=0.6, gt=0, le=1)
    aliases: dict[str, str] = Field(default_factory=dict[str, str])
    criteria: tuple[SuccessCriterion, ...] = DEFAULT_CRITERIA
