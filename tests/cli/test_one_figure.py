"""One mean of a metric, whoever shows it, where searches fail or decline and verdicts miss."""

import json
import re
from pathlib import Path
from statistics import fmean

import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation
from support.openai_server import Behaviour, LocalServer

from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS
from graphrag.eval.web.runs import read_live

N = 40
ZERO_IF_FAILED = {"correctness", "completeness"}
RULES = {"correctness": 2, "faithfulness": 3, "relevance": 4, "completeness": 5}
"""A judge says 0 where the number of a question can be divided by this."""
UNREAD = {"relevance": {6, 7, 13}, "correctness": {8}}
MODULE = """
from graphrag.eval.runner.custom_methods import MethodAnswer

asked = set()

def number(question):
    return int(question.split("number ")[1].rstrip("?"))

async def frail(question):
    n = number(question)
    if n % 10 == 1:
        raise ConnectionError("no answer today")
    return MethodAnswer(f"Idris, number {n}?", (f"The number {n}?",), abstained=n % 10 == 2)

async def wavering(question):
    if question in asked:
        raise ConnectionError("no second answer")
    asked.add(question)
    return MethodAnswer("Idris", (question,))

async def dead(question):
    raise ConnectionError("no answer at all")

async def firm(question):
    n = number(question)
    return MethodAnswer(f"Idris, number {n}?", (f"The number {n}?",), abstained=n % 20 == 4)
"""


def failed(method: str, n: int) -> bool:
    return method == "frail" and n % 10 == 1


def abstained(method: str, n: int) -> bool:
    return n % 10 == 2 if method == "frail" else n % 20 == 4


def expected(method: str, metric: str, failed_as_0: bool, unread: bool) -> list[int]:
    """Return the scores that a mean is over, by the rules that the judge follows."""
    scores: list[int] = []
    for n in range(N):
        if failed(method, n):
            scores += [0] if failed_as_0 else []
        elif metric == "faithfulness" and abstained(method, n):
            continue  # there is no answer whose claims could be traced
        elif not (unread and n in UNREAD.get(metric, ())):
            scores.append(int(n % RULES[metric] != 0))
    return scores


def judging(unread: bool) -> Behaviour:
    def reply(request: dict[str, object]) -> str:
        text = str(request["messages"])
        grades = {
            "correctness": "an answer is correct",
            "faithfulness": "within its sources",
            "relevance": "retrieved text is of use",
            "completeness": "covers its question",
        }
        (metric,) = (name for name, words in grades.items() if words in text)
        n = int(re.findall(r"number (\d+)\?", text)[-1])
        if unread and n in UNREAD.get(metric, ()):
            return "I would rather not say."
        return json.dumps({"reason": "said", "score": int(n % RULES[metric] != 0)})

    return Behaviour(reply)


@pytest.fixture
def evaluation(
    make_evaluation: MakeEvaluation,
    server: LocalServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Evaluation:
    own = f"figures_{tmp_path.name}".replace("-", "_")
    made = make_evaluation(
        server.base_url,
        methods=[{"name": name, "function": f"{own}:{name}"} for name in ("frail", "firm")],
        thresholds={"relevance": 0.8},
    )
    (made.root / f"{own}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(made.root))
    made.write_rows(
        [{"id": f"q{n}", "question": f"Who is number {n}?", "answer": "Idris"} for n in range(N)]
    )
    return made


def share(mean: float) -> str:
    return "100" if mean == 1 else f"{100 * mean:.1f}"


def cells(text: str, title: str) -> dict[tuple[str, str], str]:
    """Return (method, column) -> cell of the tables of a terminal that follow a title."""
    found: dict[tuple[str, str], str] = {}
    columns: list[str] = []
    for line in text.partition(title)[2].splitlines()[1:]:
        parts = re.split(r"\s{2,}", line.strip())
        if parts[0] == "method":
            columns = parts[1:]
        elif parts[0] in ("frail", "firm"):
            found |= {(parts[0], name): cell for name, cell in zip(columns, parts[1:], strict=True)}
        elif line.strip("─"):
            break
    return found


def page_cells(page: str, caption: str) -> dict[tuple[str, str], str]:
    table = page.partition(f"<caption>{caption}")[2].partition("</table>")[0]
    columns = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)[1:]
    found: dict[tuple[str, str], str] = {}
    for row in re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", table):
        method, *shown = re.findall(r"<bdi>(.*?)</bdi>", row)
        found |= {(method, name): cell for name, cell in zip(columns, shown, strict=True)}
    return found


def check(evaluation: Evaluation, output: str, unread: bool) -> None:
    summary = evaluation.read_results("summary")
    terminal = {**cells(output, "Score: correctness"), **cells(output, "Every metric in %")}
    page = (evaluation.output / "report.html").read_text(encoding="utf-8")
    on_page = page_cells(page, "Every metric in %")
    main = page_cells(page, "Score: correctness")
    with EvaluationStore(evaluation.store_path) as store:
        table = read_live(store, store.runs()[0])["tables"][0]
    live = {
        (m, n): cell for m, *row in table.rows for n, cell in zip(table.names[1:], row, strict=True)
    }
    (history, *_) = json.loads(evaluation.run("history", "--json").stdout)
    for method in ("frail", "firm"):
        counts, outcomes = summary["counts"][method], summary["outcomes"][method]
        n_failed = sum(failed(method, n) for n in range(N))
        n_declined = sum(abstained(method, n) for n in range(N))
        row = [terminal[method, name] for name in ("judged", "failed", "declined")]
        n_judged = len(expected(method, "correctness", False, unread))
        assert row == [f"{n_judged} of {N}", str(n_failed), str(n_declined)]
        assert [main[method, name] for name in ("judged", "failed", "declined")] == row
        for metric in DEFAULT_METRICS:
            answered = expected(method, metric, False, unread)
            both = expected(method, metric, True, unread)
            shown = both if metric in ZERO_IF_FAILED else answered
            of = outcomes[metric]
            assert counts["n_scored"][metric] == of["n_scored"] == len(answered)
            assert summary["by_method"][method][metric] == pytest.approx(fmean(both))
            assert summary["by_movie"]["clock"][method][metric] == pytest.approx(fmean(both))
            assert (of["end_to_end"]["mean"], of["end_to_end"]["n"]) == (
                pytest.approx(fmean(both)),
                len(both),
            )
            assert (of["given_answer"]["mean"], of["given_answer"]["n"]) == (
                pytest.approx(fmean(answered)),
                len(answered),
            )
            told = [(metric, shown)]
            if shown is not both and n_failed:
                told.append((f"{metric}, failed as 0", both))
            for name, scores in told:
                cell, _, n = live[method, name].partition(" n ")
                assert cell.startswith(f"{share(fmean(scores))} (")
                assert int(n) == len(scores)
                assert on_page[method, name] == f"{cell} n {n}"
                assert terminal[method, name] == f"{cell} n {n}"
                if metric == "correctness":
                    assert terminal[method, "right %"] == main[method, "right %"] == cell
                assert history["means"][method][name] == pytest.approx(fmean(scores))
                assert history["n"][method][name] == len(scores)


def test_one_mean_of_a_metric_stands_everywhere(evaluation, server, tmp_path, monkeypatch):
    server.behaviour = judging(unread=True)
    result = evaluation.done("--full", COLUMNS="300", code=3)
    check(evaluation, result.output, unread=True)
    assert "frail: verdicts on 4 of 36 responses are unscored" in result.output
    # One call less for each abstention, which makes no claims; two more tries where none is read.
    with EvaluationStore(evaluation.store_path) as store:
        (run,) = store.runs()
        verdicts = store.verdicts(run.run_id)
        responses = store.responses(run.run_id)
    asked = [unit for unit, found in responses.items() if found.failure is None]
    declined = [unit for unit in asked if responses[unit].abstained]
    assert all(verdicts[unit]["faithfulness"].score is None for unit in declined)
    assert all(verdicts[unit]["faithfulness"].failure is None for unit in declined)
    assert len(declined) == 4 + 2
    server.behaviour = judging(unread=False)
    result = evaluation.done("--retry-errors", "--full", COLUMNS="300", code=100)
    check(evaluation, result.output, unread=False)
    before = evaluation.read_results("summary")["by_method"]
    told = " ".join(result.output.split())
    for method, name in (("frail", "relevance, failed as 0"), ("firm", "relevance")):
        scores = expected(method, "relevance", True, False)
        line = f"threshold missed: {method}: {name} {fmean(scores):.3f} (n {len(scores)}) is below"
        assert line in told
    monkeypatch.setitem(RULES, "relevance", 10)
    evaluation.done("-q")
    found = tmp_path / "gate.json"
    compared = evaluation.run(
        "compare", "latest", run.run_id, "--metric", "relevance", "--json", str(found)
    )
    assert compared.exit_code in (0, 3), compared.output
    items = {each["method"]: each for each in json.loads(found.read_text("utf-8"))["items"]}
    summary = evaluation.read_results("summary")
    for method, item in items.items():
        now, old = summary["by_method"][method]["relevance"], before[method]["relevance"]
        assert now > old
        assert item["difference"]["difference"] == pytest.approx(now - old)
        assert item["difference"]["n_pairs"] == N


def test_the_page_of_a_run_so_far_counts_every_search_of_a_question(evaluation, server):
    server.behaviour = judging(unread=False)
    own = next(evaluation.root.glob("figures_*.py")).stem
    evaluation.configure(methods=[{"name": "wavering", "function": f"{own}:wavering"}])
    evaluation.done("--repeat", "2", "--limit", "10", "--metrics", "correctness", "-q")
    summary = evaluation.read_results("summary")["outcomes"]["wavering"]["correctness"]
    with EvaluationStore(evaluation.store_path) as store:
        (table, *_) = read_live(store, store.runs()[0])["tables"]
    rows = {name: row for name, *row in table.rows}
    assert summary["end_to_end"]["mean"] == fmean(n % 2 / 2 for n in range(10)) == 0.25
    assert rows["wavering"][0].startswith("25.0 (")


def test_a_method_that_answered_nothing_has_0_beside_questions_that_can_not_be_answered(
    evaluation, server
):
    server.behaviour = Behaviour(lambda _: json.dumps({"reason": "said", "score": 1}))
    own = next(evaluation.root.glob("figures_*.py")).stem
    methods = [{"name": name, "function": f"{own}:{name}"} for name in ("firm", "dead")]
    evaluation.configure(methods=methods, thresholds={"completeness": 0.2})
    rows = [
        {"id": f"q{n}", "question": f"Who is number {n}?", "answer": "X", "answerable": n > 0}
        for n in range(8)
    ]
    evaluation.write_rows(rows)
    metrics = "correctness,relevance,completeness"
    result = evaluation.done("--metrics", metrics, "--full", COLUMNS="300", code=100)
    told = " ".join(result.output.split())
    assert "threshold missed: dead: completeness 0.000 (n 7) is below 0.2" in told
    summary = evaluation.read_results("summary")
    assert summary["by_method"]["dead"] == {
        **{"correctness": 0.0, "relevance": 0.0, "completeness": 0.0, "faithfulness": None}
    }
    of = summary["outcomes"]["dead"]
    assert [of[m]["end_to_end"]["n"] for m in metrics.split(",")] == [8, 7, 7]
    assert of["relevance"]["given_answer"]["mean"] is None
    (history,) = json.loads(evaluation.run("history", "--json").stdout)
    assert history["means"]["dead"] == {
        **{"correctness": 0.0, "relevance": None, "completeness": 0.0},
        "relevance, failed as 0": 0.0,
    }
