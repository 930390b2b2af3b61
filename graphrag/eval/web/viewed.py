"""What is served: a store, and how a run's page is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Viewed:
    """What is served.

    Attributes
    ----------
    place : Path
        The store.
    render : callable
        From a run's id and another run's, or None, to the page of the run.
    draw_line : str
        The command line that draws responses to label.
    import_line : callable
        From a sheet of labels to the command line that reads it.
    """

    place: Path
    render: Callable[[str, str | None], str]
    draw_line: str
    import_line: Callable[[Path], str]
