"""Renders results for a notebook cell: the answer, a table and a plot; further tables are folded.

There is one HTML representation for every front end: of several representations, JupyterLab would
show a plot in place of the answer. The plot is an image in a ``data:`` address, which is shown even
where scripts and inline SVG are removed, as by GitHub and in notebooks that are not trusted.
"""

import base64
from typing import TYPE_CHECKING

from graphrag.eval.report.formatting import share
from graphrag.eval.report.recommendation import answer_run, list_lines
from graphrag.eval.report.run import make_sections
from graphrag.eval.report.run_tables import label_results
from graphrag.eval.report.table import METHOD, Line, Table
from graphrag.eval.web.page import read, render
from graphrag.eval.web.plots import plot_run

if TYPE_CHECKING:
    from graphrag.eval.results.evaluation_results import EvaluationResults

# The contrast is 4.3:1 on white and on the #111 of a dark notebook; one color can't have more.
_COLOURS = (
    "svg { --text: #727a89; --line: rgba(128, 128, 128, 0.35); --back: none; --m0: #0e7adb; "
    "--m1: #ce530d; --m2: #208b54; --m3: #cb3eb0; --m4: #937600; --m5: #727a88; }\n"
)
_TABLES = ("score",)
_FURTHER = ("metrics", "pairs", "spent")


def render_cell(results: "EvaluationResults") -> str:
    """Return an HTML fragment that has no scripts and needs no network.

    Results without an analysis, such as those put together by hand, are a table of their means.
    """
    analysis = results.analysis
    if analysis is None:
        label = results.metadata.get("embedded_models")
        plain = Table(
            title="Mean scores in %",
            columns=[METHOD, *((metric, "percent") for metric in results.metrics)],
            rows=[
                [method, *(share(means.get(m), missing="unscored") for m in results.metrics)]
                for method, means in results.by_method.items()
            ],
        )
        return render(
            "notebook.html.j2", answer=[], label=label, plots=[], tables=[plain], further=[]
        )
    style = _COLOURS + read("svg_chart.css")
    plots: list[tuple[str, str, str]] = []
    if (plot := plot_run(results, analysis).get("scores")) is not None:
        data = base64.b64encode(plot.svg(style).encode("utf-8", "replace")).decode("ascii")
        plots.append((plot.title, plot.about, f"data:image/svg+xml;base64,{data}"))
    sections, answer = make_sections(results), answer_run(results)
    tables, further = (
        [part for name in names for part in sections[name] if isinstance(part, Table) and part.rows]
        for names in (_TABLES, _FURTHER)
    )
    return render(
        "notebook.html.j2",
        answer=[
            *([] if answer is None else [line.text for line in list_lines(answer)]),
            *(line.text for line in sections["left_out"] if isinstance(line, Line)),
        ],
        label=label_results(results),
        plots=plots,
        tables=tables,
        further=further,
    )
