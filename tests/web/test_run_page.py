"""The page of a run in a real browser, without a network: every filter, link and drawing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from support.page_results import METRICS, N_QUESTIONS, NASTY, answer, evaluated

from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import MetricScores
from graphrag.eval.report.run_tables import documents_table
from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.eval.results.rows import rows_of
from graphrag.eval.results.runs import RunMetadata, RunRows
from graphrag.eval.store.records import RunSetup
from graphrag.eval.web.run_page import Baseline, ReportInput, render_report


def baseline_of(results: EvaluationResults) -> Baseline:
    """The same run, in which the tenth question went wrong for tog."""
    new = rows_of(results.results)
    old = [
        replace(row, scores={**row.scores, "correctness": 0})
        if (row.question_id, row.method) == ("q9", "tog")
        else row
        for row in new
    ]
    newer, older = (
        RunMetadata(name, name, None, "finished", RunSetup({}), "") for name in ("newer", "older")
    )
    compared = compare_runs(RunRows(new, newer), RunRows(old, older), metrics=METRICS)
    return Baseline(compared, old)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = evaluated()
    samples = [
        Sample(
            f"q{n}",
            "film-a" if n % 2 else "film-b",
            f"Question {n}?",
            f"Truth {n}",
            tags={"tags": ["rare"] if n == 7 else [], "level": NASTY},
        )
        for n in range(N_QUESTIONS)
    ]
    commands = {"Ask the same again": "graphrag eval"}
    given = ReportInput(results, None, samples, (NASTY,), commands, {}, baseline_of(results))
    made = tmp_path_factory.mktemp("page") / "report.html"
    made.write_text(render_report(given), encoding="utf-8")
    return made


def opened(browser: Browser, path: Path, **options: Any) -> Iterator[Page]:
    """Yield the page in a tab; what goes wrong there, or is asked for, fails the test."""
    wrong: list[str] = []
    asked: list[str] = []
    context = browser.new_context(offline=True, **options)
    tab = context.new_page()
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda line: wrong.append(line.text))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-listed=yes]")
    yield tab
    context.close()
    assert wrong == []
    assert all(url.startswith("file:") for url in asked)


@pytest.fixture
def page(browser: Browser, path: Path) -> Iterator[Page]:
    yield from opened(browser, path, viewport={"width": 1280, "height": 900})


def count(page: Page) -> int:
    page.wait_for_function("new Promise(done => setTimeout(() => done(true), 60))")
    text = page.inner_text("#count")
    return 0 if text.startswith("None") else int(text.split()[0])


def test_the_answer_comes_first_and_everything_is_drawn(page: Page):
    assert page.locator("#answer").inner_text().startswith("WINNER: Use tog")
    places = [page.locator(f"#{name}").bounding_box() for name in ("won", "cost", "fails")]
    tops = [place["y"] for place in places if place is not None]
    assert tops == sorted(tops)
    assert len(tops) == 3
    for plot in ("means", "pairs", "cost", "latency"):
        assert page.locator(f"#plot-{plot} svg").is_visible(), plot
    assert "timeout: no answer in 5 s" in page.inner_text("#fails")
    assert "unreadable: odd reply" in page.inner_text("#fails")
    assert "The gate says" in page.inner_text("#won")


def test_texts_of_models_and_documents_stay_texts(page: Page):
    page.goto(page.url + "#q=1")
    page.wait_for_selector("#question:not([hidden]) .side")
    for where in ("h3", ".text", ".verdicts"):
        assert NASTY in (page.locator(f"#question {where}").first.text_content() or "")
    page.get_by_text("Context: 4 rows").first.click()
    page.locator(".rows > *").first.wait_for()
    assert NASTY in (page.locator(".rows").first.text_content() or "")
    assert page.locator("img").count() == 0
    assert "owned" not in page.title().replace(NASTY, "")
    assert page.locator("bdi[dir=auto]").count() > 5


def test_every_filter_narrows_and_all_is_given_back(page: Page):
    assert count(page) == N_QUESTIONS
    narrowed = {
        ("#film", "film-a"): N_QUESTIONS // 2,
        ("#outcome", "search_failed"): 1,
        ("#outcome", "unscored"): 1,
        ("#tag", "rare"): 1,
    }
    for (field, value), expected in narrowed.items():
        page.select_option(field, value)
        assert count(page) == expected, (field, value)
        page.click("#clear")
        assert count(page) == N_QUESTIONS
    page.select_option("#method", "tog")
    page.select_option("#outcome", "0")
    assert count(page) == 0
    page.select_option("#method", "basic")
    # Neither the search that failed nor the missing verdict is a wrong answer.
    assert count(page) == N_QUESTIONS - 12 - 2
    page.select_option("#metric", "faithfulness")
    assert count(page) == 0
    page.click("#clear")
    page.check("#disagree")
    assert count(page) == N_QUESTIONS - 12 - 1
    page.click("#clear")
    page.check("#changed")
    assert count(page) == 1
    page.click("#clear")
    page.fill("#search", "truth 11")
    assert count(page) == 11  # 11, and 110 to 119 without 120
    page.fill("#search", "")
    page.select_option("#order", "latency")
    assert page.locator("#list a").first.get_attribute("href") == f"#q={N_QUESTIONS - 1}"


def test_one_question_beside_each_method_with_its_citations(page: Page):
    page.locator("#list a").first.click()
    page.wait_for_selector(".side")
    assert [side.inner_text() for side in page.locator(".side h3").all()] == ["tog", "basic"]
    tog = page.locator(".side").first
    cites = tog.locator("button.cite")
    assert cites.all_inner_texts() == ["7", "99", "2"]
    assert cites.nth(1).get_attribute("data-lost") == "yes"
    cites.first.click()
    assert tog.locator(".row.cited").inner_text().endswith('and he thanked her."')
    cites.nth(2).click()
    assert tog.locator(".row.cited").inner_text() == '2|"A ""quoted"" text."'
    usage = tog.locator("table").inner_text()
    assert "exploration\t1\t40\t4" in usage
    assert "judge\t2\t100\t10" in usage
    page.get_by_role("link", name="Next question").click()
    page.wait_for_selector("#question h3:has-text('owned')")
    page.go_back()
    page.keyboard.press("Escape")
    page.wait_for_selector("#list a")
    assert page.locator("#question").is_hidden()


def test_the_walk_is_drawn_with_what_was_pruned(page: Page):
    page.goto(page.url + "#q=0")
    page.wait_for_selector(".graph svg")
    graph = page.locator(".graph")
    assert graph.locator("circle").count() == 1 + 1 + 3
    page.locator(".paths input[type=checkbox]").uncheck()
    assert graph.locator("circle").count() == 4
    graph.locator("[data-edge] text").filter(has_text="0.9").click()
    page.wait_for_selector(".said:has-text('Ada taught Ben')")
    page.get_by_text("All 3 edges as a table").click()
    rows = page.locator(".paths table").first.locator("tbody tr")
    assert [row.locator("td").all_inner_texts() for row in rows.all()] == [
        ["1", "0.9", "walked", "Relationships (7)"],
        ["1", "0.1", "pruned", ""],
        ["2", "0.5", "kept", ""],
    ]
    assert graph.locator("path.leads").count() == 1, "of the edges one leads to what is cited"
    assert page.inner_text(".paths .unreached") == (
        "The answer cites Sources (2), which no edge of this walk leads to: it came from the "
        "ranking of texts."
    )
    assert "leads to what the answer cites" in page.inner_text(".paths .key")
    rows.nth(1).locator("button").click()
    assert "no context in this page has its text" in page.inner_text(".said")


def test_a_response_of_an_older_release_shows_its_paths(page: Page):
    page.goto(page.url + "#q=6")
    page.wait_for_selector(".graph svg")
    assert "did not record which edges were scored" in page.inner_text(".paths")
    assert page.locator(".graph circle").count() == 1 + 1 + 2
    page.get_by_text("All 2 edges as a table").click()
    page.locator(".paths table button").nth(1).click()
    assert "Ben wrote to Carl." in page.inner_text(".said")


def test_it_is_walked_through_by_keyboard(page: Page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    reached: list[str] = []
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    wanted = ["search", "film", "method", "metric", "outcome", "tag", "order", "disagree"]
    assert [name for name in reached if name in wanted] == wanted
    assert reached[-1] == "A"
    page.keyboard.press("Enter")
    page.wait_for_selector(".side")
    assert page.evaluate("document.activeElement.id") == "question"
    assert page.locator(".scroll:not([tabindex])").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read(browser: Browser, path: Path, scheme: str):
    for page in opened(browser, path, viewport={"width": 360, "height": 800}, color_scheme=scheme):
        for place in ("", "#q=0", "#q=4"):
            page.goto(path.as_uri() + place)
            page.wait_for_selector("#question .side" if place else "#list a")
            across = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
            assert across[0] <= across[1], (place, across)
        weakest: list[Any] = page.evaluate(_CONTRASTS)
        assert weakest[0] >= 4.5, weakest  # WCAG 2.2, 1.4.3
        page.emulate_media(media="print")
        assert page.locator("#filters").is_hidden()
        assert page.locator("#answer").is_visible()


def test_fewer_than_three_megabytes_for_a_whole_run(tmp_path: Path):
    """Contexts of 359 questions x 3 methods share the rows of their indexes."""
    rows = [f"{n}|Entity {n}|{n:064b} said {n * n} of {n}" for n in range(3000)]
    found = [
        replace(
            answer(n, method, 1),
            response=f"An answer to {n} by {method}.",
            context_text="\n".join(rows[(n * 7 + k * 13) % 3000] for k in range(250)),
            question=f"Question {n}?",
        )
        for n in range(10, 369)
        for method in ("tog", "local", "basic")
    ]
    html = render_report(ReportInput(aggregate_results(found, METRICS)))
    assert len(html.encode()) < 3_000_000


_CONTRASTS = """() => {
const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgb = c => { probe.clearRect(0, 0, 1, 1); probe.fillStyle = c; probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data]; };
const light = c => rgb(c).slice(0, 3).map(v => v / 255)
  .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const behind = e => { for (; e; e = e.parentElement) {
  const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] === 255) return c; }
  return 'Canvas'; };
const found = [...document.querySelectorAll('body *')]
  .filter(e => e.checkVisibility() && !e.disabled
    && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
  .map(e => { const own = light(getComputedStyle(e).color), back = light(behind(e));
    const ratio = (Math.max(own, back) + .05) / (Math.min(own, back) + .05);
    return [ratio, e.outerHTML.slice(0, 200)]; });
return found.sort((a, b) => a[0] - b[0])[0]; }"""


def test_a_run_at_budgets_draws_a_curve_a_method(browser: Browser, tmp_path: Path):
    groups = {method: {b: f"{method}@{b}" for b in (500, 1000)} for method in ("tog", "basic")}
    names = [name for of_method in groups.values() for name in of_method.values()]
    answers = [answer(n, name, n % 2) for name in names for n in range(8)]
    made = tmp_path / "curves.html"
    results = aggregate_results(answers, METRICS, curves=groups)
    made.write_text(render_report(ReportInput(results)), encoding="utf-8")
    for tab in opened(browser, made, viewport={"width": 900, "height": 900}):
        assert tab.locator("#plot-curve-0 svg").count() == 1
        assert tab.locator("#plot-means").count() == 0
        assert "Scores against tokens" in tab.inner_text("#won")


@pytest.fixture
def odd_page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of three answers: an abstention, one of unknown cost, and one not judged."""
    answers = [
        replace(answer(0, "tog", 1), abstained=True),
        replace(answer(1, "tog", 1), usage=None),
        replace(answer(2, "tog", 1), scores=MetricScores.of({})),
    ]
    given = ReportInput(aggregate_results(answers, METRICS), unread=(NASTY,))
    path = tmp_path / "odd.html"
    path.write_text(render_report(given), encoding="utf-8")
    yield from opened(browser, path)


def test_each_outcome_is_found_by_its_own_name(odd_page: Page):
    odd_page.select_option("#metric", "faithfulness")
    for outcome in ("abstained", "not_judged", "1"):
        odd_page.select_option("#outcome", outcome)
        assert count(odd_page) == 1, outcome
    odd_page.select_option("#outcome", "unscored")
    assert odd_page.inner_text("#count").startswith("None of 3 questions fits")


def test_an_unknown_cost_is_not_shown_like_none(odd_page: Page):
    took: list[str] = []
    for position in (0, 1):
        odd_page.goto(f"{odd_page.url.partition('#')[0]}#q={position}")
        took.append(odd_page.inner_text("#question .side .note >> nth=0"))
    assert took[0].endswith("$0.0100")
    assert took[1].endswith("cost not known")


def test_what_could_not_be_read_stands_on_the_page(odd_page: Page):
    assert odd_page.text_content("#unread li") == NASTY


def test_a_document_that_nobody_judged_is_not_called_unscored(tmp_path: Path):
    answers = [answer(0, "tog", 1), replace(answer(1, "tog", 1), scores=MetricScores.of({}))]
    results = aggregate_results(answers, METRICS)
    assert results.analysis is not None
    table = documents_table(results.analysis)
    assert table is not None
    assert dict(table.rows)["film-a"] == "not judged"
