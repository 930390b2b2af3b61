"""The page of a run in a real browser, without a network: what a person does there."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from support.chromium import findings, overflow, watched
from support.page_results import METRICS, N_QUESTIONS, NASTY, answer, evaluated

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.assertions import AssertionEvaluation, RuledAssertion
from graphrag.eval.metrics.claims import Claim, ClaimEvaluation, MisplacedCitation, split_sentences
from graphrag.eval.metrics.failure_stage import STAGES, LossRecord, summarize_loss
from graphrag.eval.metrics.measures import MeasuredAnswer
from graphrag.eval.report.run_tables import documents_table
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.eval.results.method_conditions import Conditions
from graphrag.eval.results.run_figures import Figures
from graphrag.eval.store.records import CLAIMS
from graphrag.eval.types.verdicts import MetricScores
from graphrag.eval.web.run_report import report_pieces
from graphrag.query.client.usage import Usage

SAMPLES = [
    Sample(
        f"q{n}",
        "film-a" if n % 2 else "film-b",
        f"Question {n}?",
        f"Truth {n}",
        evidence=("Ada taught Ben, and he thanked her", "Nobody ever said this"),
        tags={"tags": ["rare"] if n == 7 else [], "level": NASTY},
    )
    for n in range(N_QUESTIONS)
]


def figures() -> Figures:
    """Basic finds nothing of every third question; what else is lost is said and judged wrong."""
    traced: list[tuple[MeasuredAnswer, LossRecord]] = []
    for n, sample in enumerate(SAMPLES):
        for method in ("tog", "basic"):
            is_right = method == "tog" or n % 10 == 0
            lost = None if is_right else STAGES[4] if n % 3 == 0 else STAGES[7]
            values = {"mrr": 0.5 if method == "tog" else None, "recall": 0.5}
            measured = MeasuredAnswer(
                sample.id, sample.imdb_key, method, (), values, 1, 0, has_list=True, tokens=0
            )
            traced.append((measured, LossRecord(method, sample.imdb_key, 1, 0, lost, is_right)))
    loss = summarize_loss(record for _, record in traced)
    return Figures({}, loss, [], {}, Usage(), {}, {}, traced=traced)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = (evaluated(), figures(), SAMPLES, (NASTY,), {"Ask again": "graphrag eval"})
    return written(tmp_path_factory.mktemp("page"), *given)


def opened(
    browser: Browser, path: Path, width: int = 1280, scheme: str = "light"
) -> Iterator[Page]:
    view = {"width": width, "height": 900}
    with watched(browser, offline=True, viewport=view, color_scheme=scheme) as tab:
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-listed=yes]")
        yield tab


@pytest.fixture
def page(browser: Browser, path: Path) -> Iterator[Page]:
    yield from opened(browser, path)


def count(page: Page) -> int:
    page.wait_for_function("new Promise(done => setTimeout(() => done(true), 60))")
    text = page.inner_text("#count")
    return 0 if text.startswith("None") else int(text.split()[0])


def choose(page: Page, method: str, outcome: str) -> None:
    page.select_option(f'select[name="is:{method}"]', label=outcome)


def test_the_answer_comes_first_with_its_table_and_plots(page):
    assert page.inner_text("#answer .headline").startswith("WINNER Use tog")
    for part in ("#answer", "#won table", "#plot-cost svg"):
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] < 900, f"{part} is below the fold"


def test_a_decision_can_be_read_off_the_plots(page):
    """A mark a method with its limits; a bar from 0 to each difference; and the same in words."""
    cost = page.locator("#plot-cost svg")
    told = cost.locator("path.mark title").all_text_contents()
    assert [line.partition(",")[0] for line in told] == ["tog", "basic"]
    assert told[0].endswith("US dollars a question: 100 (96-100) %")
    assert cost.locator("line.limits").count() == 2
    assert cost.locator("desc").text_content() == "; ".join(told)
    pairs = page.locator("#plot-pairs svg")
    assert pairs.locator("rect.bar").count() == pairs.locator("line.limits").count() == 1
    zero, bar = (
        float(pairs.locator(part).get_attribute(name) or "nan")
        for part, name in (("line.marked", "x1"), ("rect.bar", "x"))
    )
    assert zero == bar
    assert (pairs.locator("desc").text_content() or "").startswith("tog - basic: +")


def test_unequal_budgets_are_said_where_prices_stand_side_by_side():
    results = aggregate_results(
        [answer(n, m, 1) for n in range(8, 20) for m in ("a", "b")], METRICS
    )
    conditions = Conditions(budgets={"a": {"film-a": 8000}, "b": {"film-a": 12000}})
    pages = [
        "".join(report_pieces(each)) for each in (results, results.under_conditions(conditions))
    ]
    plots = [page.partition('id="plot-cost"')[2].partition("</figure>")[0] for page in pages]
    said = (
        "Budgets of context differ: a 8,000; b 12,000 tokens. What methods take is not comparable."
    )
    assert [said in plot for plot in plots] == [False, True]
    assert ["Better is up" in plot for plot in plots] == [True, False]
    assert ['class="ring"' in plot for plot in plots] == [True, False]


def test_seven_methods_with_long_names_fit_a_phone(browser, tmp_path):
    names = [f"method {n} with a name that is long" for n in range(7)]
    answers = [
        answer(n, m, int(n % 8 > place)) for n in range(8, 40) for place, m in enumerate(names)
    ]
    for tab in opened(browser, written(tmp_path, aggregate_results(answers, METRICS)), 390):
        assert overflow(tab) <= 0
        assert tab.locator("#plot-pairs rect.bar").count() == 6  # those of the best one
        assert "Pairs with method 0" in tab.inner_text("#plot-pairs .note")
        for plot in ("scores", "cost", "pairs"):
            small, wide, crossed = tab.evaluate(_TEXTS, f"#plot-{plot} svg")
            assert (small >= 11, wide, crossed) == (True, [], []), plot
        marks = tab.locator("#plot-cost .mark:not(:has(title))").evaluate_all(
            "all => all.map(e => e.classList[1] + e.getAttribute('d').replace(/[^a-z]/g, ''))"
        )
        assert len({*marks}) == len(marks) == 7  # color and shape


_TEXTS = """selector => {
  const svg = document.querySelector(selector);
  const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent);
  const boxes = texts.map(text => text.getBoundingClientRect());
  const own = svg.getBoundingClientRect();
  const wide = texts.filter((_, n) =>
    boxes[n].left < own.left - 1 || boxes[n].right > own.right + 1);
  const over = (a, b) => a.left < b.right - 1 && a.right > b.left + 1
    && a.top < b.bottom - 3 && a.bottom > b.top + 3;
  const crossed = texts.filter((_, n) => boxes.some((box, m) => m > n && over(box, boxes[n])));
  return [12 * own.width / 360, wide.map(t => t.textContent), crossed.map(t => t.textContent)];
}"""


def test_find_what_one_method_lost_and_the_other_won_and_read_why(page):
    choose(page, "basic", "wrong")
    choose(page, "tog", "right")
    # Neither the search that failed nor the missing verdict is a wrong answer.
    assert count(page) == N_QUESTIONS - 12 - 2
    address = page.url
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#question .side")
    assert page.locator("#won").is_hidden(), "a question is a page of its own"
    basic = page.locator(".side", has_text="basic")
    badges = basic.locator(".badge").all_inner_texts()
    assert badges == ["wrong", "evidence said, judged wrong"]
    assert "because" in basic.locator(".verdicts").inner_text()
    assert "Truth 2" in page.inner_text("#question")
    page.keyboard.press("j")
    page.wait_for_selector("text=Truth 4")
    page.keyboard.press("k")
    page.wait_for_selector("text=Truth 2")
    page.keyboard.press("u")
    page.wait_for_selector("#list a:focus")
    assert page.evaluate("document.activeElement.hash") == "#q=2"
    page.goto("about:blank")
    page.goto(address)  # as it was sent to somebody else
    page.wait_for_selector("html[data-listed=yes]")
    assert count(page) == N_QUESTIONS - 12 - 2


def test_figures_of_the_failures_lead_to_their_questions(page):
    row = page.locator("#fails tr", has_text="all basic")
    lost = row.locator("a").first
    n = int(lost.inner_text())
    lost.click()
    assert count(page) == n == N_QUESTIONS * 3 // 10
    assert page.locator("#list a").first.is_visible()
    right = page.locator("#fails tr", has_text="all tog").locator("a").last
    right.click()
    assert count(page) == int(right.inner_text()) == N_QUESTIONS
    for what in ("search failed", "correctness unscored"):
        page.locator("#fails tr", has_text=what).locator("a").click()
        assert count(page) == 1, what
    page.click("#clear")
    assert count(page) == N_QUESTIONS


def test_every_filter_narrows_and_all_is_given_back(page):
    assert count(page) == N_QUESTIONS
    narrowed = {
        ("#film", "film-a"): N_QUESTIONS // 2,
        ('[name="is:"]', "search failed"): 1,
        ('[name="is:"]', "no verdict"): 1,
        ("#tag", "rare"): 1,
        ("#lost", f"basic: not found ({N_QUESTIONS * 3 // 10})"): N_QUESTIONS * 3 // 10,
    }
    for (field, label), expected in narrowed.items():
        page.select_option(field, label=label)
        assert count(page) == expected, (field, label)
        page.click("#clear")
        assert count(page) == N_QUESTIONS
    choose(page, "tog", "wrong")
    assert count(page) == 0
    page.click("#clear")
    choose(page, "basic", "wrong")
    page.select_option("#metric", "faithfulness")
    assert count(page) == 0
    page.click("#clear")
    page.check("#differ")
    assert count(page) == N_QUESTIONS - 12 - 1
    page.click("#clear")
    page.keyboard.press("/")
    page.keyboard.type("truth 11")
    assert count(page) == 11  # 11, and 110 to 119 without 120
    page.fill("#search", "")
    page.select_option("#order", "latency")
    assert page.locator("#list a").first.get_attribute("href") == f"#q={N_QUESTIONS - 1}"


def test_quotes_and_citations_lead_to_their_texts(page):
    page.locator("#list a").first.click()
    page.wait_for_selector(".side")
    assert [side.inner_text() for side in page.locator(".side h2").all()] == ["tog", "basic"]
    tog = page.locator(".side").first
    assert "evidence first at rank 2, 50 % of it found" in tog.locator(".badges").inner_text()
    held, missing = page.locator("blockquote").all()
    assert "tog: not shown" in missing.inner_text()
    held.get_by_role("button", name="tog: Relationships 7").click()
    assert tog.locator(".row.cited mark").inner_text() == "Ada taught Ben,\nand he thanked her"
    cites = tog.locator(".text button.cite")
    assert cites.all_inner_texts() == ["7", "99", "2"]
    assert cites.nth(1).get_attribute("data-lost") == "yes"
    cites.nth(2).click()
    assert tog.locator(".row.cited").inner_text() == '2|"A ""quoted"" text."'
    usage = tog.locator("table")
    assert "exploration\t1\t40\t4" in usage.inner_text()
    assert "judge\t2\t100\t10" in usage.inner_text()
    assert usage.evaluate("t => t.offsetWidth <= t.parentElement.clientWidth"), (
        "a column is cut off"
    )


def test_the_way_of_a_search_is_told_call_by_call(page):
    page.goto(page.url + "#q=0")
    page.wait_for_selector(".way")
    calls = page.locator(".way ol > li")
    assert calls.count() == 2
    assert calls.nth(0).locator("p").inner_text() == "Call 1 read Sources (1) and 2 rows"
    said = calls.nth(0).locator("ul li").all_text_contents()
    assert said[:2] == ["missing: who Ada taught", "kept Sources (1)"]
    assert [text.split(" ")[0] for text in said[2:]] == ["followed", "looked"]
    assert NASTY in said[3]
    assert calls.nth(1).locator(".cited").inner_text() == "the answer cites Sources (2)"
    page.goto(page.url.replace("#q=0", "#q=6"))  # of a search that told no way
    page.wait_for_selector("#question:not([hidden]) .side")
    assert page.locator(".way").count() == 0


def test_texts_of_models_and_documents_stay_texts(page):
    page.goto(page.url + "#q=1")
    page.wait_for_selector("#question:not([hidden]) .side")
    for where in ("h1", ".text", ".verdicts"):
        assert NASTY in (page.locator(f"#question {where}").first.text_content() or "")
    page.get_by_text("What the model was shown: 4 rows").first.click()
    page.locator(".rows > *").first.wait_for()
    assert NASTY in (page.locator(".rows").first.text_content() or "")
    assert page.locator("img").count() == 0
    assert "owned" not in page.title().replace(NASTY, "")


def test_it_is_walked_through_by_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("?")
    assert "next, earlier" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    assert page.locator("dialog").is_hidden()
    page.keyboard.press("Enter")
    names: list[str] = []
    for _ in range(14):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.name || document.activeElement.tagName"))
    wanted = "text is: is:tog is:basic lost film metric tag cause order differ"
    assert names[:11] == wanted.split()
    assert names[-1] == "A"
    page.keyboard.press("Enter")
    page.wait_for_selector(".side")
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.press("Escape")
    page.wait_for_selector("#list a:focus")


def test_the_search_is_left_for_what_it_found_by_enter(page):
    wanted = page.locator("#list a").nth(2).inner_text()
    page.keyboard.press("/")
    page.keyboard.type(wanted)
    page.keyboard.press("Enter")
    page.wait_for_selector("#list a:focus")
    assert page.locator("#list a:focus").inner_text() == wanted
    assert page.inner_text("#count").startswith("1 of ")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(browser, path, scheme, width):
    for page in opened(browser, path, width, scheme):
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        rules = () if width == 390 else ("color-contrast",)
        assert (findings(page, *rules), overflow(page) <= 0) == ([], True)
        for place in ("#q=0", "#q=4"):
            page.goto(path.as_uri() + place)
            page.wait_for_selector("#question .side")
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            assert (findings(page, *rules), overflow(page) <= 0) == ([], True), place
        page.emulate_media(media="print")
        page.goto(path.as_uri() + "#questions")
        assert page.locator("#filters").is_hidden()
        assert page.locator("#answer").is_visible()


def test_fewer_than_three_megabytes_for_a_whole_run():
    """Contexts of 359 questions x 3 methods share the rows of their indexes."""
    rows = [f"{n}|Entity {n}|{n:064b} said {n * n} of {n}" for n in range(3000)]
    answers = [
        replace(
            answer(n, method, 1),
            response=f"An answer to {n} by {method}.",
            context_text="\n".join(rows[(n * 7 + k * 13) % 3000] for k in range(250)),
            question=f"Question {n}?",
        )
        for n in range(10, 369)
        for method in ("tog", "local", "basic")
    ]
    html = "".join(report_pieces(aggregate_results(answers, METRICS)))
    assert len(html.encode()) < 3_000_000


def written(folder: Path, *given: Any, **more: Any) -> Path:
    path = folder / "report.html"
    path.write_text("".join(report_pieces(*given, **more)), encoding="utf-8")
    return path


def test_odd_answers_are_found_and_shown_by_their_own_names(browser, tmp_path):
    """An abstention with assertions, unknown cost and context, and one that nobody judged."""
    ruled = RuledAssertion("Ben paid.", "vital", "not_say", "supported", NASTY, is_met=False)
    held = AssertionEvaluation((ruled, replace(ruled, ruling=None, is_met=None))).to_dict()
    answers = [
        replace(answer(0, "tog", 1), abstained=True, grades={"assertions": held}),
        replace(answer(1, "tog", 1), usage=None, context_text=None),
        replace(answer(2, "tog", 1), scores=MetricScores.of({})),
    ]
    path = written(tmp_path, aggregate_results(answers, METRICS), unread=(NASTY,))
    for page in opened(browser, path):
        assert page.text_content("#unread li") == NASTY
        page.select_option("#metric", "faithfulness")
        for outcome in ("declined", "not judged", "right"):
            choose(page, "tog", outcome)
            assert count(page) == 1, outcome
        choose(page, "tog", "no verdict")
        assert page.inner_text("#count").startswith("None of 3 questions fits")
        took: list[str] = []
        for position in (0, 1):
            page.goto(f"{path.as_uri()}#q={position}")
            page.wait_for_selector(f"#question :text('Truth {position}')")
            took.append(page.inner_text("#question .side > .note >> nth=-1"))
            if not position:
                lines = page.get_by_label("Assertions").locator("li").all_inner_texts()
                what = "vital, must not be said Ben paid."
                assert lines == [f"✗ {what} supported: {NASTY}", f"? {what} no ruling: {NASTY}"]
        assert "is unknown: it does not report it" in page.inner_text("#question .side")
    assert took[0].endswith("$0.0100")
    assert "cost not known" in took[1]


def test_a_document_that_nobody_judged_is_not_called_unscored():
    answers = [answer(0, "tog", 1), replace(answer(1, "tog", 1), scores=MetricScores.of({}))]
    results = aggregate_results(answers, METRICS)
    assert results.analysis is not None
    table = documents_table(results.analysis)
    assert dict(table.texts)["film-a"] == "not judged"


def test_sentences_that_are_not_supported_are_marked_and_claims_lead_to_their_rows(
    browser, tmp_path
):
    said = "Ada taught Ben [Data: Sources (1)]. He left in 1912, and\nBen wept. Ada did so too."
    right, bad, lost = split_sentences(said)
    claims = [
        Claim("Ada taught Ben.", right.text, "supported", ("Sources (1)",)),
        Claim("Ben left.", bad.text, "not_found"),
        Claim("Ben left in 1912.", bad.text, "contradicted", ("Sources (2)",)),
        Claim("Ada wept.", lost.text, "not_found"),
    ]
    found = ClaimEvaluation(tuple(claims), 1, (MisplacedCitation(right.text, "Sources (1)"),))
    context = "-----Sources-----\nid|text\n1|Ada taught Ben.\n2|Ben left in 1911."
    first = replace(
        answer(0, "tog", 0), response=said, context_text=context, grades={CLAIMS: found.to_dict()}
    )
    path = written(tmp_path, aggregate_results([first]))
    for page in opened(browser, path):
        page.goto(f"{path.as_uri()}#q=0")
        page.wait_for_selector("#question .side")
        assert page.locator("mark.contradicted").all_text_contents() == [bad.text]
        assert page.locator("mark.not_found").all_text_contents() == [lost.text]
        assert page.locator(".side .text").text_content() == said
        page.get_by_text("Claims: 1 of 4 supported").click()
        assert "misplaced citation" in page.inner_text(".claims")
        page.locator(".claims button", has_text="Sources (2)").click()
        assert page.inner_text(".row.cited") == "2|Ben left in 1911."
        assert findings(page) == []
