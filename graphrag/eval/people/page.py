"""The page of an audit: one file, on which a person labels the responses."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from graphrag.eval.judged import JUDGED_METRICS
from graphrag.eval.people.audit import AuditItem
from graphrag.eval.people.sheet import COLUMNS


def render_page(items: Sequence[AuditItem], embedded_models: str | None = None) -> str:
    """Return the page as HTML that needs nothing from a network.

    It keeps labels in the browser's local storage under the run and the metric, and gives them
    out as the CSV that ``read_sheet`` reads.

    Parameters
    ----------
    items : sequence of AuditItem
        At least one, all of one run and metric; in the order in which they are shown.
    embedded_models : str or None
        Their label when they had a part.
    """
    template = files("graphrag.eval.people").joinpath("audit.html.j2").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    metric = JUDGED_METRICS[items[0].metric]
    return environment.from_string(template).render(
        run=items[0].run,
        metric=metric.name,
        one=metric.one,
        zero=metric.zero,
        embedded_models=embedded_models,
        data={
            "run": items[0].run,
            "metric": metric.name,
            "columns": COLUMNS,
            # The rest stays folded, so that person and judge judge by the same.
            "shown": metric.shown,
            "items": [asdict(item) for item in items],
        },
    )
