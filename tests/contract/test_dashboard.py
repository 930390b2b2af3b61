"""The dashboard in a real browser: it loads nothing, and shows what was kept and recorded."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support.chromium import open_browser, overflow, watched

from graphrag.eval import MetricsCollector, StoredRun, list_runs, write_dashboard
from graphrag.eval.errors import UsageError
from graphrag.eval.report.formatting import figure
from graphrag.eval.web.runs import write_dashboard as same

DONE, USAGE = 0, 2
NASTY = "<img src=x onerror=alert(1)>"
AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=[("light", 1280), ("dark", 360)])
def page(
    request: pytest.FixtureRequest, browser: Browser, collector: MetricsCollector, tmp_path: Path
) -> Iterator[Page]:
    """A tab without a network; what goes wrong there, or is asked of others, fails the test."""
    path = write_dashboard(tmp_path / "d.html", collector=collector)
    scheme, width = request.param
    size = {"width": width, "height": 900}
    options = {"offline": True, "color_scheme": scheme, "viewport": size}
    with watched(browser, own=path.as_uri(), **options) as opened:
        opened.goto(path.as_uri())
        yield opened


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> MetricsCollector:
    made = MetricsCollector(tmp_path_factory.mktemp("recorded") / "metrics.db")
    for hour in range(700):
        labels = {"method": "tog" if hour % 2 else NASTY}
        made.record("answer_s", hour % 7, labels, at=AT + timedelta(hours=hour))
    made.record(NASTY, 3.0, at=AT)
    return made


def table(page: Page, name: str) -> list[list[str]]:
    rows = page.locator(f'[aria-label="Table of {name}"] tr')
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def test_an_empty_store_and_nothing_at_all(make_evaluation, tmp_path):
    with pytest.raises(UsageError, match="nothing to show"):
        write_dashboard(tmp_path / "d.html")
    with pytest.raises(UsageError, match="There is no run in"):
        write_dashboard(tmp_path / "d.html", tmp_path / "eval.db")
    assert not (tmp_path / "d.html").exists()
    evaluation = make_evaluation()
    result = evaluation.run("dashboard")
    assert result.exit_code == USAGE
    assert "There is no run in" in result.output
    missing = evaluation.run("dashboard", "--collector", "nowhere.db")
    assert missing.exit_code == USAGE
    assert "nowhere.db does not exist" in missing.output


def test_it_is_one_file_of_every_figure(make_evaluation, collector, tmp_path):
    evaluation = make_evaluation(judge={"rubric": True, "quality": True})
    for flags in ((), ("--limit", "2")):
        assert evaluation.run("-q", *flags).exit_code == DONE
    path = tmp_path / "new" / "dashboard.html"
    assert write_dashboard(path, evaluation.store_path, collector) == path
    assert same is write_dashboard
    newest, older = list_runs(str(evaluation.store_path))
    with open_browser() as browser:
        page = browser.new_context(offline=True).new_page()
        page.goto(path.as_uri())
        check_runs(page, newest, older)
    shown = evaluation.run("dashboard")
    assert shown.exit_code == DONE, shown.output
    assert (evaluation.output / "dashboard.html").is_file()
    given = evaluation.run(
        "dashboard", "--to", str(tmp_path / "d.html"), "--collector", str(collector.path)
    )
    assert given.exit_code == DONE, given.output
    assert "answer_s" in (tmp_path / "d.html").read_text("utf-8")


HEADINGS = {"median_latency_s": "seconds", "tokens": "tokens", "cost_usd": "$"}


def check_runs(page: Page, newest: StoredRun, older: StoredRun) -> None:
    """Hold every table and a drawing against the store: every figure that has a value."""
    runs, n_tables = (newest, older), 0
    for of in ("means", "measured"):
        for name in getattr(newest, of)["tog"]:
            values = [[getattr(run, of)[m][name] for m in ("tog", "basic")] for run in runs]
            if name == "latency_s" or {v for row in values for v in row} == {None}:
                continue  # the mean is in the JSON; a run's page has the median
            head, *rows = table(page, HEADINGS.get(name, name))
            methods = [
                m
                for m, *of_m in zip(("tog", "basic"), *values, strict=True)
                if any(v is not None for v in of_m)
            ]
            assert head == ["run, from its start", *methods]
            for row, run in zip(rows, runs, strict=True):
                assert row[0] == f"{run.run_id} (embedded)"
                shown = [cell.partition(" (n ")[0] for cell in row[1:]]
                assert shown == [figure(name, getattr(run, of)[m][name]) for m in methods]
            n_tables += 1
    assert page.locator(".panel").count() == n_tables + 2  # and two of the collector
    assert newest.embedded_models is not None
    assert newest.embedded_models in page.inner_text("main")
    drawing = page.locator('svg[aria-label^="correctness over time"]')
    assert drawing.locator(".hollow").count() == 4
    assert drawing.locator("path.line").count() == 2


def test_it_fits_and_can_be_read_on_every_screen(page):
    assert overflow(page) <= 0
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    contrasts: list[float] = page.evaluate(_CONTRASTS)
    assert min(contrasts) >= 3, (dark, contrasts)  # WCAG 2.2, 1.4.11: graphics
    assert page.evaluate(_TEXT_CONTRAST) >= 4.5  # 1.4.3: text
    head, *rows = table(page, "answer_s")
    assert head == ["at (UTC)", "value", "labels"]
    assert len(rows) == 50
    assert rows[0] == ["2026-03-30 03:00:00", "6", "method=tog"]
    assert page.locator("section", has_text="n = 700, mean").count() == 1
    # Text is text, and each region of its own scrolling can be reached by the keyboard.
    assert page.locator("img").count() == 0
    assert NASTY in page.inner_text("main")
    assert page.locator(".scroll:not([tabindex='0'])").count() == 0


_LUMINANCE = """
const rgb = c => c.match(/[0-9.]+/g).slice(0, 3).map(Number);
const light = c => rgb(c).map(v => v / 255)
  .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const probe = document.createElement('div');
probe.style.color = 'Canvas'; document.body.append(probe);
const back = light(getComputedStyle(probe).color); probe.remove();
const contrast = c => { const own = light(c);
  return (Math.max(own, back) + .05) / (Math.min(own, back) + .05); };
"""
_CONTRASTS = f"""() => {{ {_LUMINANCE}
return [0, 1, 2, 3, 4, 5].map(n => {{ const e = document.createElement('div');
  e.className = 's' + n; e.style.color = 'var(--own)'; document.body.append(e);
  const c = getComputedStyle(e).color; e.remove(); return contrast(c); }}); }}"""
_TEXT_CONTRAST = f"""() => {{ {_LUMINANCE}
return contrast(getComputedStyle(document.querySelector('.drawing text')).fill); }}"""
