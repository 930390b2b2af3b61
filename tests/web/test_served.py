"""The pages of a store through the real server: what they say, and whom they refuse."""

import asyncio
import csv
import http.client
import io
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphrag_llm.config import ModelConfig
from support.clock_evaluation import wait_until
from support.openai_server import running_server
from support.viewed_store import Served, keep_run, keep_three, serving

from graphrag.eval.annotation.sheet import read_sheet
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import UsageError
from graphrag.eval.metrics.judge import LLMJudge
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.run_setup import describe_setup
from graphrag.eval.runner.scheduler import Work
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunDetails, Unit
from graphrag.eval.store.session import StoredSession
from graphrag.eval.web.server import Listener
from graphrag.query.client.models import open_completion


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: a pinned one, a worse one, and one that was interrupted."""
    made = tmp_path_factory.mktemp("view")
    keep_three(made, questions=4)
    return made


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with serving(folder) as found:
        yield found


def ids_of(folder: Path) -> list[str]:
    """Return the runs' ids, the oldest first."""
    with EvaluationStore(folder / "eval.db", reads_only=True) as store:
        return [run.run_id for run in reversed(store.runs())]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def raw(served: Served, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    """Send just these headers; return status and text."""
    connection = http.client.HTTPConnection("127.0.0.1", served.listener.port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def test_only_this_server_by_its_own_name_is_answered(served):
    port = served.listener.port
    cookie = f"graphrag-eval-view-{port}={served.listener.token}"
    own = f"127.0.0.1:{port}"
    assert raw(served, "GET", "/", {"Host": own, "Cookie": cookie})[0] == 200
    assert raw(served, "GET", "/", {"Host": f"localhost:{port}", "Cookie": cookie})[0] == 200
    hosts = ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.evil.example")
    for host in (*hosts, f"127.0.0.1:{port + 1}", f"[::1]:{port}", ""):
        status, text = raw(served, "GET", "/", {"Host": host, "Cookie": cookie})
        assert (status, "Runs" in text) == (403, False), host
    for site in ("cross-site", "same-site"):
        asked = {"Host": own, "Cookie": cookie, "Sec-Fetch-Site": site}
        assert raw(served, "GET", "/", asked)[0] == 403


def test_without_the_token_nothing_is_shown(served):
    own = f"127.0.0.1:{served.listener.port}"
    name = f"graphrag-eval-view-{served.listener.port}"
    for path in ("/", "/?token=", "/?token=x", "/runs/x", "/nothing", "/audit"):
        status, text = raw(served, "GET", path, {"Host": own})
        assert (status, text.count("\n")) == (403, 1), path
    for value in ("", "x", served.listener.token[:-1], f"{served.listener.token}x", "\u00e9"):
        assert raw(served, "GET", "/", {"Host": own, "Cookie": f"{name}={value}"})[0] == 403
    with httpx.Client() as fresh:
        answer = fresh.get(f"{served.origin}//evil.example/?token={served.listener.token}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/evil.example/")
        cookie = answer.headers["set-cookie"].casefold()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie


def test_a_change_needs_this_server_s_own_origin(served, folder):
    before = (folder / "audit_correctness.csv").read_bytes()
    item = read_sheet(folder / "audit_correctness.csv")[0].item
    body = {"item": item, "label": "1", "seen": {}}
    address = "/audit/correctness/labels"
    others = ("null", "http://evil.example", f"{served.origin}0", f"https{served.origin[4:]}")
    for origin in (None, *others):
        headers = {} if origin is None else {"Origin": origin}
        assert served.client.post(address, json=body, headers=headers).status_code == 403
    other = {"Origin": served.origin, "Host": "evil.example"}
    assert served.client.post(address, json=body, headers=other).status_code == 403
    for method in ("PUT", "DELETE", "OPTIONS"):
        answer = served.client.request(method, address, headers={"Origin": served.origin})
        assert answer.status_code in (403, 405)
        assert "access-control-allow-origin" not in answer.headers
    assert (folder / "audit_correctness.csv").read_bytes() == before


def test_every_answer_is_held_to_a_policy(served, folder):
    run = ids_of(folder)[0]
    for path in ("/", f"/runs/{run}", "/audit", "/audit/correctness", "/nothing"):
        headers = served.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
    assert "sha256-" in served.client.get(f"/runs/{run}/report").headers["content-security-policy"]


def test_runs_are_listed_with_status_scores_and_cost(served, folder):
    html = served.client.get("/").text
    first, worse, unfinished = ids_of(folder)
    assert html.index(f"/runs/{unfinished}") < html.index(f"/runs/{worse}")
    listed = (
        html.partition('<table id="runs">')[2].partition("</form>")[0].split("<tr data-run=")[1:]
    )
    rows = {i: words(r) for i, r in zip(ids_of(folder)[::-1], listed, strict=True)}
    assert " pinned " in rows[first]
    assert "correctness tog 100 basic 98.3" in rows[first]
    assert "correctness basic 98.3 (+0.0) tog 33.3 (-66.7)" in rows[worse]
    assert f"Same settings as {first}." in rows[worse]
    assert "so far: correctness basic 85.7 (n 7) tog 57.1 (n 7)" in rows[unfinished]
    assert "basic 110 31.50 tog 110 30.50" in rows[worse]
    # 120 searches and 119 judgings at half a dollar.
    assert " $119.5000 " in rows[first]
    gates = [row.partition(" </tbody>")[0] for row in rows.values()]
    assert [gate.split()[-1] for gate in gates[:2]] == ["unfinished", "FAIL"]
    assert " baseline Compare the two chosen" in gates[2]
    (panel, *_) = html.split('<details class="panel">')[1:]
    assert f"{worse} 33.3 98.3" in words(panel)
    assert 'class="spark"' in panel.partition("</summary>")[0]
    assert f"{unfinished} 57.1 (n 7) 85.7 (n 7)" in words(panel)
    drawn = panel.partition("</summary>")[2].partition("</svg>")[0]
    assert 'class="marked"' in drawn
    assert worse in drawn
    assert unfinished not in drawn


def test_runs_of_embedded_models_are_on_no_line_with_others(tmp_path):
    real, offline = keep_run(tmp_path), keep_run(tmp_path, model="offline/rules")
    with serving(tmp_path) as served:
        html = served.client.get("/").text
    assert html.count("offline baseline models: rules and word vectors") == 1
    drawn = html.partition("<figure>")[2].partition("</svg>")[0]
    marks = re.findall(r'<path class="mark( hollow)? s\d" [^>]*><title>[^<]*run ([^\s<]+)', drawn)
    assert sorted(marks) == sorted([("", real), (" hollow", offline)] * 2)
    assert "line s" not in drawn  # what can't be compared is not joined


def test_what_can_t_be_compared_leads_back_to_a_choice(served, folder):
    _, worse, _ = ids_of(folder)
    said = {
        (worse, worse): "name another run to compare with. Choose two of these.",
        ("", "latest"): "Choose two runs to compare.",
        (
            worse,
            "../../etc/passwd",
        ): " has no run &#39;../../etc/passwd&#39;. Choose two of these.",
        (worse, "a.json"): " has no run &#39;a.json&#39;. Choose two of these.",
    }
    for (new, old), sentence in said.items():
        answer = served.client.get("/compare", params={"new": new, "old": old})
        assert answer.status_code in (400, 404)
        told = answer.text.partition('id="notice"')[2].partition("</p>")[0]
        assert sentence in told
        assert "Compare the two chosen" in answer.text


def test_two_runs_count_answers_and_show_each_figure_as_a_run_does(tmp_path):
    old, new = keep_run(tmp_path, 0), keep_run(tmp_path, 4, basic_wrong=2)
    with serving(tmp_path) as served:
        page = served.client.get("/compare", params={"new": new, "old": old}).text
    assert "6 answers newly wrong: by 2 methods to 4 questions" in words(page)
    assert "0 answers newly right" in words(page)
    figures = words(page.partition("Every figure of each run alone")[2])
    assert "correctness 100 66.7 91.7 75.0" in figures
    assert "seconds 6.50 6.50 7.50 7.50 tokens 110 110 110 110 $ 0.5000" in figures


def test_a_note_is_kept_and_overwrites_no_other(tmp_path):
    run, nothing = keep_run(tmp_path, n=2), {"label": "", "note": ""}
    with serving(tmp_path) as served:

        def put(said: Any, seen: Any, origin: str | None = None) -> httpx.Response:
            body = {"wanted": said, "seen": seen}
            headers = {"Origin": origin or served.origin}
            return served.client.post(f"/runs/{run}/note", json=body, headers=headers)

        first = {"label": "base", "note": "before <b>the</b> move"}
        assert put(first, nothing, "http://evil.example").status_code == 403
        assert "base</b>" not in served.client.get("/").text
        assert put(first, nothing).json() == first
        row = served.client.get("/").text.partition("data-run=")[2]
        assert words(row).startswith(f'"{run}"> base {run}')
        assert "before &lt;b&gt;the&lt;/b&gt; move" in row
        lost = put({"label": "other", "note": ""}, nothing)
        assert (lost.status_code, lost.json()) == (409, first)
        assert put({"label": "other", "note": ""}, first).status_code == 200
        assert put({"label": "x" * 61, "note": ""}, nothing).status_code == 400
        assert put({"label": 1}, nothing).status_code == 400
        assert put({"label": "", "note": "x" * 200_000}, nothing).status_code == 413
        gone = served.client.post(
            "/runs/none/note",
            json={"wanted": nothing, "seen": nothing},
            headers={"Origin": served.origin},
        )
        assert (gone.status_code, "open the page again" in gone.text) == (400, True)


def test_a_run_says_its_answer_and_what_changed_since_the_one_before(tmp_path):
    first, second = keep_run(tmp_path, 6), keep_run(tmp_path, 3, model="n")
    own = tmp_path / "runs" / first
    own.mkdir(parents=True)
    answer = {"chip": "TIED", "headline": "Use basic: as good as tog."}
    (own / "eval_results_summary.json").write_text(json.dumps({"answer": answer}))
    keep_run(tmp_path, 3, n=4)  # other questions
    with serving(tmp_path) as served:
        html = served.client.get("/").text
    third, newer, older = (words(row) for row in html.split("<tr data-run=")[1:])
    assert "TIED Use basic: as good as tog." in older
    assert "its page is computed anew" in words(html)
    assert f"Same settings as {first}." in newer
    assert second in newer
    assert "tog 75.0 (+25.0)" in newer
    assert "settings" not in third
    assert 'id="newest"' not in html  # as the newest one says nothing
    (tmp_path / "runs" / first).rename(tmp_path / "runs" / words(third).split('"')[1])
    with serving(tmp_path) as served:
        html = served.client.get("/").text
    newest = words(html.partition('id="newest"')[2].partition("</div>")[0])
    assert "Use basic: as good as tog. This is the answer of the newest finished run" in newest


def test_a_run_is_looked_up_and_no_path(served):
    cookie = f"graphrag-eval-view-{served.listener.port}={served.listener.token}"
    headers = {"Host": f"127.0.0.1:{served.listener.port}", "Cookie": cookie}
    for name in ("..%2f..%2feval.db", "latest", "pinned", "%00", "2026", "..", "%2e%2e", "%3Cb%3E"):
        for end in ("", "/now", "/report"):
            status, text = raw(served, "GET", f"/runs/{name}{end}", headers)
            assert (status, "<b>" in text) == (404, False), name
        assert raw(served, "GET", f"/audit/{name}", headers)[0] == 404


def test_a_store_that_can_t_be_shown_is_one_sentence(tmp_path, capsys):
    with serving(tmp_path) as served:
        missing = served.client.get("/")
        assert (missing.status_code, "There is no run in" in missing.text) == (400, True)
        (tmp_path / "eval.db").write_bytes(b"SQLite format 3\0" + b"\x07" * 5000)
        damaged = served.client.get("/")
        assert damaged.status_code == 500
        assert ".recover | sqlite3" in words(damaged.text)
        (tmp_path / "eval.db").unlink()
        EvaluationStore(tmp_path / "eval.db").close()
        assert "has no run yet" in served.client.get("/").text
        assert "view --labels latest" in served.client.get("/audit").text
    assert "Traceback" not in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(served):
    with pytest.raises(UsageError, match=r"Port \d+ of 127.0.0.1 is taken; name another"):
        Listener.on(served.listener.port)


def test_a_run_in_progress_is_shown_from_the_store_alone(tmp_path):
    """The service answers five calls, then none until it is let go."""
    let_go, calls = threading.Event(), [0]

    def reply(request: Any) -> str:
        calls[0] += 1
        if calls[0] > 5:
            let_go.wait(20)
        if "response_format" in request:
            return '{"reason": "since", "score": 1}'
        return "Said."

    samples = [Sample(f"q{i}", "a", f"What is {i}?", "x") for i in range(6)]
    config = EvaluationConfig(
        root=tmp_path, output={"dir": str(tmp_path)}, metrics=("correctness",), concurrency=1
    )

    async def evaluate(base: str) -> None:
        given: Any = {"model_provider": "openai", "model": "gpt-4o"}
        model = open_completion(ModelConfig(**given, api_base=base, api_key="none"))

        async def mine(question: str) -> str:
            if "2" in question:
                raise ValueError("no such thing")
            return (await model.completion_async(messages=question)).content

        setup = describe_setup(config, samples, {"a": {"mine": {}}}, {"model": "openai/gpt-4o"})
        setup = type(setup)({**setup.root, "methods": {"order": ["mine"]}})
        with EvaluationStore(tmp_path / "eval.db") as store:
            run = store.add_run(
                setup,
                samples,
                RunDetails("command", 6, config.to_dict(), command="graphrag eval --root /r"),
            )
            runner = EvaluationRunner(config, LLMJudge(model), {}, {"mine": mine})
            units = [Unit(sample.id, sample, "mine") for sample in samples]
            outcome = await runner.run(Work(config, units, StoredSession(store, run.run_id)))
            assert outcome.is_complete
            store.finish_run(run.run_id)

    with running_server(reply) as server, serving(tmp_path) as served:
        work = threading.Thread(target=lambda: asyncio.run(evaluate(server.base_url)))
        work.start()
        try:
            assert wait_until(lambda: calls[0] > 5)
            run = ids_of(tmp_path)[0]
            held = words(served.client.get(f"/runs/{run}").text)
            again = words(served.client.get(f"/runs/{run}/now").text)
            listed = words(served.client.get("/").text)
            with EvaluationStore(tmp_path / "eval.db", reads_only=True) as store:
                responses = store.responses(run).values()
                n_failed = sum(found.failure is not None for found in responses)
                n_scored = len(store.verdicts(run))
        finally:
            let_go.set()
            work.join()
        done = words(served.client.get(f"/runs/{run}/now").text)
    assert (n_failed, n_scored) == (1, 2)
    assert "graphrag eval --root /r --resume goes on" in held
    assert "Unfinished: 3 of 6 done" in held
    assert f"{len(responses)} of 6 planned; {len(responses) - 3} of them wait for verdicts" in held
    assert "method correctness mine 66.7 (" in held
    assert " mine search failed, counts 0 1 error: ValueError: no such thing " in held
    assert "5 calls" in held
    assert "not a result" in held
    assert "1 call sent and not answered" in held
    assert again.split("Read from")[0] in held
    assert f"{run}" in listed
    assert "so far: correctness mine 66.7 (n 3)" in listed
    assert "Finished." in done
    assert "6 of 6 planned; 0 of them wait" in done
    assert "method correctness mine 83.3 (" in done


def test_a_label_is_kept_in_the_sheet_and_overwrites_no_other(served, folder):
    sheet = folder / "audit_correctness.csv"
    items = [each.item for each in read_sheet(sheet)]

    def put(item: str, seen: Any = None, **mark: Any) -> httpx.Response:
        body = {"item": item, "seen": seen or {}, **mark}
        headers = {"Origin": served.origin}
        return served.client.post("/audit/correctness/labels", json=body, headers=headers)

    assert put(items[0], label="1", comment="=1+1").status_code == 200
    # Another tab, which has seen neither, labels the second, then the first.
    assert put(items[1], label="0").status_code == 200
    lost = put(items[0], label="0")
    assert (lost.status_code, lost.json()["label"], lost.json()["comment"]) == (409, "1", "=1+1")
    assert put(items[0], seen=lost.json(), label="0").status_code == 200
    assert put(items[2], skipped=True).status_code == 200
    # A spreadsheet adds a column of its own.
    rows = list(csv.reader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";").writerows([*row, f"own {n}"] for n, row in enumerate(rows))
    sheet.write_text(text.getvalue(), "utf-8-sig", newline="")
    assert put(items[3], label="1").status_code == 200
    assert "own 4" in sheet.read_text("utf-8-sig")
    assert [each.label for each in read_sheet(sheet)[:4]] == [0, 0, None, 1]
    marks = served.client.get("/audit/correctness/labels").json()
    assert marks[items[2]] == {"label": "", "skipped": True, "comment": ""}
    assert put("r-no-such", label="1").status_code == 400
    assert put(items[0], label="2").status_code == 400
    assert put(items[0], label="1", comment="x" * 200_000).status_code == 413
    assert "4 of" in words(served.client.get("/audit").text)
    page = served.client.get("/audit/correctness").text.partition("</style>")[2]
    assert not re.search(r"\btog\b|\bbasic\b|verdict", page)
