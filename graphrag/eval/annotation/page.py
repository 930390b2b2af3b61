"""The page of an audit, on which a person labels the responses: a file, or served."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.annotation.labelling import Mark
from graphrag.eval.annotation.sheet import COLUMNS
from graphrag.eval.judged.discovery import JUDGED_METRICS

_ASKS = "; connect-src 'self'"


@dataclass(frozen=True, slots=True)
class LabelKeeper:
    """The server that keeps labels for a page.

    Attributes
    ----------
    address : str
        To which the page sends each change, and which it asks for all labels.
    file : str
        Where they are kept, for people.
    given : mapping
        Item -> its label as it is kept now.
    """

    address: str
    file: str
    given: Mapping[str, Mark] = field(default_factory=dict[str, Mark], repr=False)


def render_page(
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
    style, script = _read("audit.css"), _read("audit.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_read("audit.html.j2")).render(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        f"base-uri 'none'; form-action 'none'{_ASKS if keeper else ''}",
        style=Markup(style),
        script=Markup(script),
        run=items[0].run,
        metric=metric.name,
        one=metric.one,
        zero=metric.zero,
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
            "given": {}
            if keeper is None
            else {item: mark.model_dump() for item, mark in keeper.given.items()},
        },
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    text = files("graphrag.eval.annotation").joinpath(name).read_text("utf-8")
    return text.replace("\r\n", "\n")
