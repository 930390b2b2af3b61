"""The page of an audit, on which a person labels the responses: a file, or served."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.annotation.sheet import COLUMNS, Mark
from graphrag.eval.records.judged import JUDGED_METRICS
from graphrag.eval.web.page import render


class LabelKeeper(NamedTuple):
    """The server that keeps labels: its ``address`` takes each change and gives all labels.

    ``file`` is where they are kept, for people; ``marks``: item -> its label as it is kept now.
    """

    address: str
    file: str
    marks: Mapping[str, Mark]


def render_labels(
    items: Sequence[AuditItem],
    embedded_models: str | None = None,
    keeper: LabelKeeper | None = None,
) -> str:
    """Return the page as HTML that needs nothing from a network.

    ``items``, at least one, are of one run and metric, in the order in which they are shown;
    ``embedded_models`` the label of those that had a part. Without a keeper, the server of the
    page, it keeps labels in the browser's local storage under the run and the metric, and gives
    them out as the CSV that ``read_sheet`` reads.
    """
    metric = JUDGED_METRICS[items[0].metric]
    address, file, marks = keeper or LabelKeeper("", "", {})
    return render(
        "labels.html.j2",
        ["labels.js"],
        asks=keeper is not None,
        run=items[0].run,
        metric=metric,
        embedded_models=embedded_models,
        kept_in=file,
        data={
            "run": items[0].run,
            "metric": metric.name,
            "columns": COLUMNS,
            # The rest stays folded, so that person and judge judge by the same.
            "shown": metric.shown,
            "items": [asdict(item) for item in items],
            "keeper": address or None,
            "given": {item: mark.model_dump() for item, mark in marks.items()},
        },
    )
