"""One response, and what is known of it, as the measures without a model look at it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import Retrieved
from graphrag.eval.scorers.combined import CombinedSettings
from graphrag.eval.scorers.evidence import Evidence
from graphrag.eval.scorers.index_view import IndexView
from graphrag.eval.scorers.ranking import DEFAULT_CUTOFFS
from graphrag.eval.scorers.wording import ASPECT_SHARE

JudgeSource: TypeAlias = Literal["correctness", "quality"]
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Answered:
    """One response with all that the measures without a model look at.

    Attributes
    ----------
    context_text : str
        What the method showed to its model.
    retrieved : Retrieved or None
        None when it was not recorded, or the search failed.
    correctness : int or None
        The judge's 0 or 1; None when unscored.
    tokens : int or None
        Prompt and output tokens of the search.
    abstained : bool
        Whether the response is none to the question.
    quality : float or None
        The quality judge's overall score, in [0, 1].
    """

    sample_id: str
    imdb_key: str
    method: str
    response: str
    context_text: str = ""
    retrieved: Retrieved | None = None
    correctness: int | None = None
    tokens: int | None = None
    latency_s: float | None = None
    failed: bool = False
    abstained: bool = False
    quality: float | None = None


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """How responses are measured.

    Attributes
    ----------
    cutoffs : tuple of int
        The k of recall, precision and hit rate at k, each >= 1.
    aspect_share : float
        See :func:`aspect_coverage`.
    time_limit_s : float or None
        Seconds; a sample's own tag ``time_limit_s`` goes before it. None: no time score.
    combined : CombinedSettings
    aliases : mapping
        Other names of entities -> name.
    judge_score : "correctness" or "quality"
        Whose score counts as the judge's: the verdict, or the quality judge's overall score.
    """

    cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS
    aspect_share: float = ASPECT_SHARE
    time_limit_s: float | None = None
    combined: CombinedSettings = field(default_factory=CombinedSettings)
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    judge_score: JudgeSource = "correctness"

    def judged(self, answered: Answered) -> float | None:
        """Return the score of the judge that counts, in [0, 1]; None without one."""
        return answered.quality if self.judge_score == "quality" else answered.correctness


@dataclass(frozen=True, slots=True)
class MeasureInput:
    """What every measure is computed from.

    Attributes
    ----------
    sample : Sample
    answered : Answered
    index : IndexView
        Of the sample's ``imdb_key``.
    settings : MeasureSettings
    items : tuple of Evidence
        The sample's expected sources, but for quotes that the text does not hold.
    is_told : bool
        Whether the method says what it retrieves, here or in another response.
    """

    sample: Sample
    answered: Answered
    index: IndexView
    settings: MeasureSettings
    items: tuple[Evidence, ...] = ()
    is_told: bool = True
    _done: dict[Callable[..., Any], Any] = field(
        default_factory=dict[Callable[..., Any], Any], init=False, repr=False, compare=False
    )

    @property
    def judge_score(self) -> float | None:
        """What the judge that counts says of the response, in [0, 1]; None without a score."""
        return self.settings.judged(self.answered)

    @property
    def said(self) -> str:
        """The response; "" for a search that failed."""
        return "" if self.answered.failed else self.answered.response

    @property
    def retrieved(self) -> Retrieved | None:
        """What was retrieved; None for a search that failed."""
        return None if self.answered.failed else self.answered.retrieved

    def once(self, work: "Callable[[MeasureInput], _Found]") -> _Found:
        """Return what ``work`` makes of this input: made once, for all measures that share it."""
        if work not in self._done:
            self._done[work] = work(self)
        return self._done[work]
