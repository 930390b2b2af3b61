"""The page of an audit, on which a person labels the responses: a file, or served."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.annotation.sheet import COLUMNS, Mark
from graphrag.eval.judged import JUDGED_METRICS
from graphrag.eval.web.page import render


@dataclass(frozen=True, slots=True)
class LabelKeeper:
    """The server that keeps labels for a page.

    Attributes
    ----------
    address : str
        To which the page sends each change, and which it asks for all labels.
    file : str
        Where they are kept, for people.
    marks : mapping
        Item -> its label as it is kept now.
    """

    address: str
    file: str
    marks: Mapping[str, Mark] = field(default_factory=dict[str, Mark], repr=False)


def render_labels(
    items: Sequence[AuditItem],
    embedded_models: str | None = None,
    keeper: LabelKeeper | None = None,
) -> str:
    """Return the page as HTML that needs nothing from a network.

    Without a keeper it keeps labels in the browser's local storage under the run and the metric,
    and gives them out as the CSV that ``read_sheet`` reads.

    Parameters
    ----------
    items : sequence of AuditItem
        At least one, all of one run and metric; in the order in which they are shown.
    embedded_models : str or None
        Their label when they had a part.
    keeper : LabelKeeper or None
        The server that serves the page.
    """
    metric = JUDGED_METRICS[items[0].metric]
    marks = {} if keeper is None else dict(keeper.marks)
    return render(
        "labels.html.j2",
        ["labels.js"],
        asks=keeper is not None,
        run=items[0].run,
        metric=metric,
        embedded_models=embedded_models,
        kept_in="" if keeper is None else keeper.file,
        data={
            "run": items[0].run,
            "metric": metric.name,
            "columns": COLUMNS,
            # The rest stays folded, so that person and judge judge by the same.
            "shown": metric.shown,
            "items": [asdict(item) for item in items],
            "keeper": None if keeper is None else keeper.address,
            "given": {item: mark.model_dump() for item, mark in marks.items()},
        },
    )
