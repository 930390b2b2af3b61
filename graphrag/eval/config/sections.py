"""Defines the sections of eval_config.yaml, with their defaults and checks."""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Annotated, Literal, cast, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    field_validator,
    model_validator,
)

from graphrag.config.models.strict_section import StrictSection, nearest
from graphrag.eval.dataset.files import check_columns
from graphrag.eval.types.metric_definitions import METRICS, SUFFICIENCY, is_graded
from graphrag.query.methods import SearchMethod
from graphrag.text.encodings import check_encoding
from graphrag.text.float_compare import is_below

Met = Literal["met target", "met minimum", "missed target", "missed", "not measured"]
_USUAL: Mapping[str, tuple[float | None, float]] = {
    "hit_rate": (0.80, 0.90),
    "mrr": (0.70, 0.85),
    "judge_score": (0.75, 0.85),
    "combined_score": (None, 1.20),
}
"""Metric -> its minimum and target if neither is given."""


class FrozenSection(StrictSection):
    """A section whose values do not change; docstrings of its settings are in the schema."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class SuccessCriterion(FrozenSection):
    """The bounds that the mean of one metric must meet."""

    metric: str
    """A measure, a judged metric, ``rubric.<dimension>``, ``quality.<measure>``, assertions.vital,
    assertions.with_okay, claims.supported, ``<judge>.<part>`` of a judge of your own, or
    avg_latency, avg_llm_calls, avg_prompt_tokens or avg_output_tokens."""
    minimum: float | None = None
    """The mean must be above this, in the metric's unit; the target is at least as strict. Give one
    of the two, or both. Without either, hit_rate, mrr, judge_score and combined_score have default
    bounds."""
    target: float | None = None
    """Like ``minimum``."""
    lower_is_better: bool = False
    """For seconds, tokens and the like: the mean must be below the bounds."""

    @model_validator(mode="before")
    @classmethod
    def _with_usual_bounds(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        fields = cast("Mapping[str, object]", values)
        usual = _USUAL.get(str(fields.get("metric")))
        if usual is None or fields.get("minimum") is not None or fields.get("target") is not None:
            return fields
        return {**fields, "minimum": usual[0], "target": usual[1]}

    @model_validator(mode="after")
    def _check_order(self) -> "SuccessCriterion":
        if self.minimum is None and self.target is None:
            raise ValueError(f"{self.metric}: give a minimum or a target, or both")
        bounds = [bound for bound in (self.minimum, self.target) if bound is not None]
        if bounds != sorted(bounds, reverse=self.lower_is_better):
            msg = f"{self.metric}: the target {self.target:g} is easier than the minimum"
            raise ValueError(msg)
        return self

    def check(self, value: float | None) -> Met:
        """Compare a value with the bounds, beyond which it must be; None is "not measured"."""
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
        return is_below(value, bound) if self.lower_is_better else is_below(bound, value)


DEFAULT_CRITERIA = tuple(SuccessCriterion(metric=name) for name in _USUAL)
"""The criteria of every run whose configuration gives no others."""


def _check_metric(name: object) -> object:
    if not is_graded(name) and name not in METRICS:
        known = [*METRICS, SUFFICIENCY.name]
        near = nearest(str(name), known) or "."
        raise ValueError(f"unknown name {str(name)!r}{near} Known: {', '.join(known)}")
    return name


Metric = Annotated[str, BeforeValidator(_check_metric)]
Control = Literal["closed_book", "oracle"]
CONTROLS: tuple[str, ...] = get_args(Control)


class DatasetSettings(FrozenSection):
    """The file with the questions."""

    path: str = "eval/qa_eval.json"
    """Relative to the root."""
    columns: dict[str, str] = Field(default_factory=dict[str, str])
    """Field -> heading of its column, if the headings don't show it."""
    encoding: str | None = None
    """The encoding of the file, such as ``gbk``; None: UTF-8, or as detected."""

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, value: str | None) -> str | None:
        return None if value is None else check_encoding(value)

    @field_validator("columns")
    @classmethod
    def _check_fields(cls, value: dict[str, str]) -> dict[str, str]:
        check_columns(value)
        return value


class OutputSettings(FrozenSection):
    """Where results are written, and what is kept."""

    dir: str = "eval/results"
    """Relative to the root, and below it; --output may name any other folder."""
    save_intermediate: bool = True
    """Keep every response and verdict in the store as it arrives; without it an interrupted run
    can't be resumed."""
    keep_calls: bool = True
    """Keep every request to a model and its reply in the store, so that you can read them."""


class FaithfulnessSettings(FrozenSection):
    """How faithfulness is judged."""

    by: Literal["response", "claim"] = "response"
    """``response``: the response as a whole, in one call. ``claim``: claim by claim, in two calls:
    one splits the response into claims, one rules on each."""


class JudgeSettings(FrozenSection):
    """Which model judges, and what it is asked."""

    model: str | None = None
    """A key of ``completion_models`` in the index's settings.yaml, or the ``model`` of one of its
    entries. Else ``provider/model``, which is asked with the key of the default completion model;
    or a plain name, which is asked of that model's provider, at its address, with its key and
    arguments. None: the default completion model itself."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Temperature of the judge, 0 to 2."""
    max_retries: int = Field(default=2, ge=0)
    """How often to ask again after an unreadable reply, >= 0."""
    max_output_tokens: int = Field(default=1000, ge=16)
    """The most tokens of a reply of the judge, >= 16; works like the methods'
    ``max_output_tokens``."""
    repeats: int = Field(default=1, ge=1)
    """How often to ask for each verdict, an odd number; the majority is the score."""
    faithfulness: FaithfulnessSettings = FaithfulnessSettings()
    """Whether faithfulness is judged as a whole or claim by claim."""
    rubric: bool = False
    """Also grade responses from 1 to 5 on five dimensions, one call each."""
    quality: bool = False
    """Also measure responses from 0 to 1, one call each."""
    assertions: bool = True
    """Also check responses against the assertions of their question, if its row has any, one call
    each."""
    graded: tuple[str, ...] = ()
    """Judges of your own that grade responses on their own scale, as ``module:object``, one call
    each. You may also name them in ``metrics``."""
    pairwise: bool | tuple[tuple[str, str], ...] = False
    """Also compare the responses of these pairs of methods, two calls per pair and question; True
    for all pairs."""

    @field_validator("repeats")
    @classmethod
    def _check_odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError(f"must be odd, so that there is a majority, not {value}")
        return value

    @property
    def scorers(self) -> tuple[str, ...]:
        """The scorers that are asked in addition to the metrics, except those of ``pairwise``."""
        own = ("rubric", "quality", "assertions")
        return (*(name for name in own if getattr(self, name)), *self.graded)

    def pairs(self, methods: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of methods whose responses are compared."""
        if isinstance(self.pairwise, bool):
            return tuple(combinations(methods, 2)) if self.pairwise else ()
        return self.pairwise


_IN_BRACES = re.compile(r"\$\{\w+\}")


class HttpService(FrozenSection):
    """A service behind HTTP that answers one question per request, and the paths in its reply.

    A path is keys with dots between them, such as ``usage.prompt_tokens``. A number is a position
    in a list, and ``*`` is each of its items: ``passages.*.text``. A value that is missing at its
    path is unknown; only the answer must be there.
    """

    url: str
    """http or https. ``{question}`` and ``{index}``, the key of the index, are filled in here and
    in the texts of ``body``."""
    body: dict[str, JsonValue] | None = None
    """JSON to send by POST; None: the service is asked by GET."""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """Header -> its value. Write a key as ``${NAME}``, a variable of the environment or of .env: a
    key written here would be stored with the run."""
    answer: str = "answer"
    """The path of the answer, a text."""
    contexts: str | None = None
    """The path of the texts that were retrieved, best first. None, or a reply without any:
    unknown, and metrics that read the context are not judged."""
    llm_calls: Annotated[int, Field(ge=0)] | str | None = None
    """The path of the number of completions, or the number itself if every question takes the
    same."""
    prompt_tokens: str | None = None
    """The path of the number of prompt tokens."""
    output_tokens: str | None = None
    """The path of the number of output tokens. Unless all three numbers are known, none is
    shown."""
    cost_usd: str | None = None
    """The path of the cost in US dollars."""
    version: str | None = None
    """Any text. If the service changes behind its address, give another one: it makes new runs."""

    @model_validator(mode="after")
    def _check(self) -> "HttpService":
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url must begin with http:// or https://, not {self.url!r}")
        for name, value in self.headers.items():
            if not _IN_BRACES.search(value):
                msg = f"headers.{name}: name a variable of the environment, such as ${{RAG_KEY}}"
                raise ValueError(msg)
        if "{question}" not in f"{self.url}{self.body}":
            msg = "neither url nor body contains {question}, so the service would not be asked it"
            raise ValueError(msg)
        return self


class Variant(BaseModel):
    """A method under a name of its own: a search with other settings, a function, a service."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    method: SearchMethod | None = None
    """tog, ppr, local, basic, bm25, hybrid, agentic, global or drift. Every further key is a
    setting of that method, which replaces the one in settings.yaml."""
    function: str | None = None
    """``module:function``, see ``graphrag.eval.runner.custom_methods``."""
    http: HttpService | None = None
    """A service behind HTTP. Exactly one of the three is given."""
    index: dict[str, str] | None = None
    """Key of ``indexes`` -> another project of the same documents, relative to the root, which this
    method asks instead. None: it asks the projects in ``indexes``."""

    @model_validator(mode="after")
    def _check_kind(self) -> "Variant":
        if [self.method, self.function, self.http].count(None) != 2:
            raise ValueError("give either method, with settings of its own, or function, or http")
        if self.method is None and self.index is not None:
            raise ValueError("index names other projects for a method, and none is given")
        if self.method is None and self.changes:
            kind = "a function takes" if self.http is None else "an HTTP service takes"
            raise ValueError(f"{kind} no settings, but {', '.join(self.changes)} is given")
        return self

    @property
    def changes(self) -> dict[str, object]:
        """The settings that replace the project's."""
        return dict(self.model_extra or {})


class EqualTerms(FrozenSection):
    """Terms that are the same for every method of a run."""

    response_type: str = "Single paragraph"
    """Form of the answer, free text."""
    max_context_tokens: int | None = Field(default=8000, ge=100)
    """Budget, in the model's tokens, of the context that an answer is written from. None: each
    search keeps its own."""


class MeasuresSettings(FrozenSection):
    """How responses are measured without a model."""

    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = (1, 5, 10)
    """The k of recall, precision and hit rate at k."""
    alpha: float = Field(default=2.0, ge=0, le=50)
    """Exponent of the hit rate in the combined score."""
    beta: float = Field(default=0.5, ge=0, le=50)
    """Exponent of the tokens, in thousands, in the combined score."""
    gamma: float = Field(default=1.5, ge=0, le=50)
    """Exponent of the judge's score in the combined score."""
    time_limit_s: float | None = Field(default=None, gt=0)
    """Time limit in seconds. None: no time score, unless a sample's tag ``time_limit_s`` sets a
    limit."""
    aliases: dict[str, str] = Field(default_factory=dict[str, str])
    """Other name of an entity -> its name."""
    further: tuple[str, ...] = ()
    """Your own measures, as ``module:object``, in addition to the built-in ones."""
    criteria: tuple[SuccessCriterion, ...] = DEFAULT_CRITERIA
    """Reported as met or missed, without effect on the exit code. Your list replaces the default
    one; an empty list means no criteria."""
