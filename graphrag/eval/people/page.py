"""The page of an audit: one file, on which a person labels the responses."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from graphrag.eval.people.audit import AuditItem
from graphrag.eval.people.sheet import COLUMNS

_MEANING = {
    "correctness": (
        "the response means the same as the ground truth; wording, order and further detail that "
        "does not contradict it are fine",
        "it says something else, leaves out what the ground truth consists of, contradicts it, "
        "or says that it does not know",
    ),
    "faithfulness": (
        "every claim of the response can be traced to the context, directly or by an obvious step",
        "at least one claim can't, even if you know it to be true",
    ),
    "relevance": (
        "the context holds information that helps to answer the question, fully or in part",
        "nothing in the context brings a reader closer to the answer",
    ),
    "completeness": (
        "the response addresses every part of the question, whether rightly or not",
        "it leaves a part out, evades it, or only says that it is unknown",
    ),
}
# What the judge saw is shown; the rest stays folded, so that both judge by the same.
_SHOWN = {
    "correctness": ("question", "ground_truth", "response"),
    "faithfulness": ("response", "context"),
    "relevance": ("question", "context"),
    "completeness": ("question", "response"),
}


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
    metric = items[0].metric
    one, zero = _MEANING[metric]
    return environment.from_string(template).render(
        run=items[0].run,
        metric=metric,
        one=one,
        zero=zero,
        embedded_models=embedded_models,
        data={
            "run": items[0].run,
            "metric": metric,
            "columns": COLUMNS,
            "shown": _SHOWN[metric],
            "items": [asdict(item) for item in items],
        },
    )
