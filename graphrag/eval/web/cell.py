"""What a notebook shows of results: the answer, the page's plots as images, its tables.

One representation for every front end: of several a front end shows the one it likes best, and
JupyterLab would show a plot in place of the answer. An image in a ``data:`` address is shown where
scripts and inline SVG are taken out, as by GitHub and in notebooks that are not trusted.
"""

import base64
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from jinja2 import Environment, StrictUndefined

from graphrag.eval.report.answer import describe_answer
from graphrag.eval.report.cells import number
from graphrag.eval.report.run_lines import label_results
from graphrag.eval.report.tables import Table, metrics_table, score_table, spent_table
from graphrag.eval.web.plots import Spec, make_plots, title_plots
from graphrag.eval.web.tables import areas_table, curves_table, pairs_table

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.evaluation_results import EvaluationResults

_WIDTH_PX = 460
# On white and on the #111 of a dark notebook alike: 4.3:1, which is all that one colour can have.
_COLOURS = {
    "--text": "#727a89",
    "--line": "rgba(128, 128, 128, 0.35)",
    "--m0": "#0e7adb",
    "--m1": "#ce530d",
    "--m2": "#208b54",
    "--m3": "#cb3eb0",
    "--m4": "#937600",
    "--m5": "#727a88",
}
_NAMES_OF_OTHERS = ("data", "domain", "sort")
_FROM_THE_PAGE = re.compile(r"currentColor|var\((--\w+)\)")


@dataclass(frozen=True, slots=True)
class _Image:
    title: str
    about: str
    source: str


def render_cell(results: "EvaluationResults") -> str:
    """Return an HTML fragment without scripts, which needs nothing from a network.

    Results that nobody analysed, as those put together by hand, are a table of their means.
    """
    analysis = results.analysis
    if analysis is None:
        answer, label, images = [], results.metadata.get("embedded_models"), []
        tables = [_plain_means(results)]
    else:
        label = label_results(results)
        answer = describe_answer(results, f" ({label})" if label else "")
        images = _draw(results, analysis)
        tables = _tables(results, analysis)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_read("cell.html.j2"))
    return template.render(answer=answer, label=label, plots=images, tables=tables)


def _tables(results: "EvaluationResults", analysis: "Analysis") -> list[Table]:
    found = [score_table(results, analysis)]
    if results.metrics:
        methods = list(analysis.outcomes.items())
        title = "Every metric in % (95 % interval each), n questions"
        found.append(metrics_table(title, results.metrics, methods))
    if analysis.comparisons:
        found.append(pairs_table(analysis))
    if results.curves is not None:
        found += [curves_table(results.curves), areas_table(results.curves)]
    return [table for table in (*found, spent_table(results)) if table.rows]


def _plain_means(results: "EvaluationResults") -> Table:
    rows = [
        (method, *(number(means.get(metric), ".3f", "unscored") for metric in results.metrics))
        for method, means in results.by_method.items()
    ]
    return Table("Mean scores", ("Method", *results.metrics), tuple(rows))


def _draw(results: "EvaluationResults", analysis: "Analysis") -> list[_Image]:
    import vl_convert

    titles = title_plots(results, analysis)
    images: list[_Image] = []
    for name, spec in make_plots(results, analysis).items():
        svg = vl_convert.vegalite_to_svg(_alone(spec), allowed_base_urls=[])
        data = base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")
        source = f"data:image/svg+xml;base64,{data}"
        images.append(_Image(titles[name], spec["description"], source))
    return images


def _alone(spec: Spec) -> Spec:
    """Return a plot that no style sheet helps: no background, colours for any, a width."""
    made: Spec = _coloured(spec)
    config = {**made["config"], "background": None, "font": "sans-serif"}
    # The reader's letters may be wider than those that the drawing was measured with.
    return {**made, "width": _WIDTH_PX, "padding": 20, "config": config}


def _coloured(value: Any) -> Any:
    if isinstance(value, dict):
        given = cast("Spec", value)
        return {k: v if k in _NAMES_OF_OTHERS else _coloured(v) for k, v in given.items()}
    if isinstance(value, list):
        return [_coloured(each) for each in cast("list[Any]", value)]
    if isinstance(value, str):
        return _FROM_THE_PAGE.sub(lambda found: _COLOURS[found[1] or "--text"], value)
    return value


def _read(name: str) -> str:
    return files("graphrag.eval.web").joinpath(name).read_text("utf-8")
