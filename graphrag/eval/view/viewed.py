"""What is served: a store, and how a run's page is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from graphrag.eval.store import StorePlace


@dataclass(frozen=True, slots=True)
class Viewed:
    """What is served.

    Attributes
    ----------
    place : Path or StoreLocation
        The store.
    render : callable
        From a run's id and another run's, or None, to the page of the run.
    lines : mapping
        What it is for -> a command line, as "audit" for drawing responses to label.
    """

    place: StorePlace
    render: Callable[[str, str | None], str]
    lines: Mapping[str, str] = field(default_factory=dict[str, str])
