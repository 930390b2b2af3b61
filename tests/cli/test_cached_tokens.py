"""What providers read from their own caches, from the calls of a run to everything it writes."""

from support.openai_server import Behaviour, Fault, LocalServer, Record, offline_reply

DONE = 0
N_CACHED = 3


def chats(server: LocalServer, since: int) -> list[Record]:
    return [
        record
        for record in server.records[since:]
        if record.endpoint == "chat" and record.outcome == "answered"
    ]


def test_a_run_that_was_broken_off_counts_what_was_cached_before_and_after(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["tog"], concurrency=1)
    since = len(server.records)

    def until(n: int | None) -> None:
        def fault(_: int, request: dict[str, object]) -> Fault | None:
            if "messages" not in request:
                return None
            is_refused = n is not None and len(chats(server, since)) >= n
            return Fault(status=401) if is_refused else Fault(cached_tokens=N_CACHED)

        server.behaviour = Behaviour(offline_reply(), faults=fault)

    until(2)  # in the middle of the first search
    assert evaluation.run("--limit", "2").exit_code != DONE
    n_before = len(chats(server, since))
    assert n_before == 2
    until(None)
    done = evaluation.done("--limit", "2", "--resume", COLUMNS="300")

    asked = chats(server, since)
    found = evaluation.read_results("summary")["efficiency"]["tog"]
    cached, judged = found["cached_prompt_tokens"], found["judge_cached_prompt_tokens"]
    assert cached + judged == N_CACHED * len(asked)
    calls = found["calls_reporting_cached_tokens"]
    assert cached == N_CACHED * calls
    assert calls == sum(found["llm_calls_by_phase"].values())
    entries = [entry["methods"]["tog"] for entry in evaluation.read_results()["results"]]
    assert sum(entry["cached_prompt_tokens"] for entry in entries) == cached
    # gpt-4o: 2.50 dollars a million prompt tokens, 1.25 for cached ones, 10 for output
    read = sum(record.prompt_tokens for record in asked)
    written = sum(record.completion_tokens for record in asked)
    embedded = [r for r in server.records[since:] if r.endpoint == "embeddings"]
    cost = read * 2.5e-6 - N_CACHED * len(asked) * 1.25e-6 + written * 1e-5
    cost += sum(record.prompt_tokens for record in embedded) * 2e-8
    assert abs(found["cost_usd"] + found["judge_cost_usd"] - cost) < 1e-9

    tokens = sum(found["prompt_tokens_by_phase"].values())
    line = (
        f"Prompt tokens from the providers' caches: tog {cached:,} of {tokens:,} "
        f"({calls} of {calls} calls report); the judge {judged:,}."
    )
    shown = " ".join(evaluation.run("show", "latest", COLUMNS="300").output.split())
    assert line in " ".join(done.output.split())
    assert line in shown
    page = (evaluation.newest_folder / "report.html").read_text(encoding="utf-8")
    assert line.replace("'", "&#39;") in page or line in page
