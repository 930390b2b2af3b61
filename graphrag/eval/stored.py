"""What the store keeps of a run: the run, its responses, its further judgements."""

from dataclasses import dataclass
from typing import Any, Literal

from graphrag.eval.records import Failure
from graphrag.eval.retrieved import Retrieved
from graphrag.query.usage import Usage

Status = Literal["unfinished", "finished"]
ORIGIN = "responses_of"
"""Section of the setup that names the run whose responses were judged again; else not there."""


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation run; ``setup`` holds everything that changes what its results mean."""

    run_id: str
    started_at: str
    status: Status
    setup: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as it was recorded; ``failure`` is set when the search failed.

    ``trial`` counts the repeats of a whole search from 0. ``retrieved`` is None for a method that
    does not say what it retrieved.
    """

    unit: str
    sample_id: str
    method: str
    response: str
    context_text: str
    latency_s: float | None
    usage: Usage
    failure: Failure | None = None
    trial: int = 0
    retrieved: Retrieved | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a further judge said, beyond the verdicts.

    Attributes
    ----------
    subject : str
        The unit that was judged, or for a comparison of two methods the first one's.
    kind : str
        "rubric", "quality" or "pairwise:A:B".
    value : dict
        The judge's record, JSON-ready.
    failed : bool
        Whether something in it is unscored because the judge failed.
    usage : Usage
    """

    subject: str
    kind: str
    value: dict[str, Any]
    failed: bool
    usage: Usage
