"""Renders the page on which a person labels an audit's responses, as a file or served."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.annotation.sheet import COLUMNS, Mark
from graphrag.eval.types.metric_definitions import JUDGED_METRICS
from graphrag.eval.web.page import render

_NO_MARKS: Mapping[str, Mark] = {}


def render_labels(
    items: Sequence[AuditItem],
    embedded_models: str | None = None,
    kept_in: str = "",
    marks: Mapping[str, Mark] = _NO_MARKS,
) -> str:
    """Return the page as HTML that needs no network.

    - ``items``: at least one, of one run and metric, in the order in which they are shown.
    - ``embedded_models``: the label of the embedded models, if they were asked in the run.
    - ``kept_in``: the file in which the page's server keeps labels. Without it, the page keeps them
      in the browser's local storage under the run and the metric, and exports them as the CSV that
      ``read_sheet`` reads.
    - ``marks``: item -> its label as it is kept now.
    """
    metric = JUDGED_METRICS[items[0].metric]
    return render(
        "labels.html.j2",
        ["labels.js"],
        asks=bool(kept_in),
        run=items[0].run,
        metric=metric,
        embedded_models=embedded_models,
        kept_in=kept_in,
        data={
            "run": items[0].run,
            "metric": metric.name,
            "columns": COLUMNS,
            # All else stays folded, so that person and judge see the same.
            "shown": metric.shown,
            "items": [asdict(item) for item in items],
            "keeper": f"/audit/{metric.name}/labels" if kept_in else None,
            "marks": {item: mark.model_dump() for item, mark in marks.items()},
        },
    )
