"""What a notebook shows of results."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

from support.page_results import METRICS, NASTY, answer, evaluated

from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.eval.web.notebook import render_cell
from graphrag.query.client.usage import Usage


class Shown(HTMLParser):
    """The texts, the tags and the images of a fragment, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))
            self.texts.append("IMAGE")

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())

    def drawings(self) -> list[str]:
        heads = [str(image["src"]).partition(",") for image in self.images]
        assert {head for head, _, _ in heads} == {"data:image/svg+xml;base64"}
        return [base64.b64decode(data).decode("utf-8") for _, _, data in heads]


def test_the_answer_comes_first_then_one_table_and_one_plot():
    from IPython.core.formatters import DisplayFormatter  # every worker imports what is above

    bundle: Any = DisplayFormatter().format(evaluated(20))[0]  # pyright: ignore
    assert bundle.keys() == {"text/html", "text/plain"}
    assert "metadata" in bundle["text/plain"]
    shown = Shown(bundle["text/html"])
    assert shown.texts[0].startswith("WINNER: Use tog")
    order = ("Score: correctness", "IMAGE", "How this was computed", "tog - basic")
    places = [shown.texts.index(text) for text in order]
    assert places == sorted(places)
    assert len(shown.images) == 1
    assert shown.images[0]["alt"]
    (drawing,) = shown.drawings()
    assert ElementTree.fromstring(drawing).tag.endswith("svg")
    # No script and no address stands by an image, and its colours are its own.
    assert not re.search(r"<script|href=", drawing)
    used, own = (set(re.findall(rf"{form}(--\w+)", drawing)) for form in (r"var\(", r"[{; ]"))
    assert used <= own


def test_texts_of_others_stay_texts():
    found = [replace(answer(n, "tog", 1), method=NASTY) for n in range(3)]
    found += [answer(n, "basic", 0) for n in range(3)]
    shown = Shown(render_cell(aggregate_results(found, METRICS)))
    assert "script" not in shown.tags
    assert len(shown.images) == shown.tags.count("img") == 1
    assert not any("<script" in drawing for drawing in shown.drawings())


def test_embedded_models_are_named_in_the_answer_and_below_it():
    found = [answer(n, method, n % 2) for n in range(4) for method in ("tog", "basic")]
    offline = [replace(each, usage=Usage(1, 5, 5, models=("offline/rules",))) for each in found]
    texts = Shown(render_cell(aggregate_results(offline, METRICS))).texts
    assert "(offline baseline models): " in texts[0]
    assert texts.index("offline baseline models") < texts.index("IMAGE")


def test_results_that_nobody_analysed_are_their_means_and_nothing_is_nothing():
    made = EvaluationResults({}, [], {"tog": {"correctness": 0.5}}, {}, {})
    shown = Shown(render_cell(made))
    assert shown.texts[-5:] == ["tog", "50.0", "unscored", "unscored", "unscored"]
    assert shown.images == []
    assert Shown(render_cell(aggregate_results([]))).texts == []


def test_plots_have_no_background_and_can_be_read_on_white_and_on_black():
    for drawing in Shown(render_cell(evaluated(20))).drawings():
        painted = set(re.findall(r"--\w+: (#\w{6});", drawing))
        assert painted
        white, black = luminance("#ffffff"), luminance("#111111")
        for own in map(luminance, painted):  # contrasts as WCAG 2 has them
            assert min(white / own, own / black) > 4, painted


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.05 + sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
