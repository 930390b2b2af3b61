"""The released search functions behave as they do where only the release is installed.

Another environment holds the release and what it needs, and nothing of ours. The same calls are
made in both, each against a server of its own, and everything that the caller or the server can
see is compared.
"""

import json
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.metadata import files, version
from pathlib import Path

import pytest
from support import parity_calls
from support.commands import run_apart
from support.openai_server import Behaviour, Fault, Json, LocalServer, offline_reply, running_server
from support.projects import server_settings
from uv import find_uv_bin

pytestmark = pytest.mark.slow

DRIFT = "drift_search: {drift_k_followups: 1, n_depth: 2}\n"
GLOBAL = "global_search: {max_context_tokens: 300}\n"


@dataclass
class Seen:
    """What one environment did: modules that the API loads, outcomes by call, requests."""

    modules: set[str]
    outcomes: Json
    requests: list[Json]


@pytest.fixture(scope="module")
def released_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released") / "env"
    run_apart(find_uv_bin(), "venv", "--python", sys.executable, folder)
    python = next(folder.glob("[bS]*/python*"))
    ours = {file.parts[0] for file in files("gtog") or ()}
    if "graphrag" in ours:  # our modules lie among the release's
        wanted = f"graphrag=={version('graphrag')}"
        run_apart(find_uv_bin(), "pip", "install", "--python", folder, wanted)
        return python
    # What is installed here is compiled already: doing that again takes half a minute.
    here = Path(sysconfig.get_path("purelib"))
    there = folder / here.relative_to(sys.prefix)
    for each in here.iterdir():
        if each.name not in ours and each.name != "__pycache__":
            with suppress(FileExistsError):
                (there / each.name).symlink_to(each)
    return python


def _reply(request: Json) -> str:
    asked = (request.get("response_format") or {}).get("json_schema", {})
    if asked.get("name") != "PrimerResponse":
        return _answer(request)
    follow_ups = ["Who is Jonas Feld?", "What did the Merrow Glass Company make?"]
    return json.dumps(
        {"intermediate_answer": "Jonas Feld.", "score": 50, "follow_up_queries": follow_ups}
    )


_answer = offline_reply()


def _fault(request: Json) -> Fault | None:
    messages = request.get("messages") or [{"content": ""}]
    question = str(messages[-1]["content"])
    if question == "refuse this":
        return Fault(status=400)
    if question == "answer nothing":
        return Fault(content="")
    is_step = "refuse a step" in str(messages) and question != "refuse a step"
    return Fault(status=400) if is_step and len(messages) == 2 else None


PRICES = """
from graphrag_llm.model_cost_registry import model_cost_registry
price = {"input_cost_per_token": 1.0, "output_cost_per_token": 2.0}
model_cost_registry.register_model_costs("own/model", price)
assert model_cost_registry.get_model_costs("own/model") == price
assert "input_cost_per_token" in model_cost_registry.get_model_costs("gpt-4o")
testing = sys.modules["graphrag_llm.middleware.with_errors_for_testing"]
assert testing.exceptions.__dict__["RateLimitError"].__module__ == "litellm.exceptions"
"""
"""What the release takes of litellm; run after the calls, as those have it imported already."""


def _run(python: Path, project: Path, root: Path, server: LocalServer) -> Seen:
    requests: list[Json] = []

    def keep(_: int, request: Json) -> Fault | None:
        requests.append(request)
        return _fault(request)

    server.behaviour = Behaviour(_reply, keep)
    shutil.copytree(project / "output", root / "output")
    written = "    type: litellm\n    model_provider: openai"
    settings = server_settings(server.base_url).replace("    model_provider: openai", written)
    (root / "settings.yaml").write_text(settings + DRIFT + GLOBAL, encoding="utf-8")
    # Sets have the same order in both: the release asks about communities in a set's order.
    command = (python, parity_calls.__file__, root, server.base_url, PRICES)
    printed = run_apart(*command, cwd=root, PYTHONHASHSEED="0")
    log = (root / "logs" / "query.log").read_text(encoding="utf-8")
    assert "Traceback" in log, "of the searches that fail"
    modules, outcomes = map(json.loads, printed.splitlines()[-2:])
    return Seen({*modules}, outcomes, requests)


@pytest.fixture(scope="module")
def both(
    released_python: Path, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Seen, Seen]]:
    folder = tmp_path_factory.mktemp("parity")
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_run, python, project, folder / name, stack.enter_context(running_server()))
            for name, python in (("released", released_python), ("here", Path(sys.executable)))
        ]
        released, here = (job.result() for job in jobs)
        yield released, here


def _joined(events: list[list[Json]]) -> list[list[Json]]:
    """Return events with the pieces of a streamed reply in one, and without empty ones."""
    told: list[list[Json]] = []
    for event in events:
        if event[0] != "on_llm_new_token":
            told.append(event)
        elif told and told[-1][0] == "on_llm_new_token":
            told[-1] = [event[0], f"{told[-1][1]}{event[1]}"]
        elif event[1]:
            told.append(event)
    return told


def test_every_call_has_the_outcome_and_the_events_of_the_release(both):
    """But for where a streamed reply is cut: what may be a thought waits until it is known."""
    released, here = both

    assert list(here.outcomes) == list(released.outcomes)
    for name, expected in released.outcomes.items():
        results = [{**seen["result"]} for seen in (here.outcomes[name], expected)]
        for result in results:
            if "pieces" in result:
                result["pieces"] = "".join(result["pieces"])
        assert results[0] == results[1], name
        assert _joined(here.outcomes[name]["events"]) == _joined(expected["events"]), name


def test_the_calls_try_what_they_should(both):
    """What makes the comparison worth something, seen on the release alone."""
    outcomes = both[0].outcomes
    events = {name: {event[0] for event in found["events"]} for name, found in outcomes.items()}

    assert outcomes["local"]["result"]["first"] != ""
    assert events["local"] == {"on_context", "on_llm_new_token"}
    assert {"on_map_response_start", "on_map_response_end", "on_context"} < events["global"]
    assert {"on_reduce_response_start", "on_reduce_response_end"} < events["drift"]
    assert outcomes["drift"]["result"]["sources"]["rows"]
    assert "on_context" in events["drift"]
    assert "on_context" not in events["drift, refused at a step"]
    tokens = [event for event in outcomes["basic"]["events"] if event[0] == "on_llm_new_token"]
    assert len(tokens) > 2
    for name in ("no query", "a level that is none", "a callback that is none"):
        assert outcomes[name]["result"]["error"] == "ValidationError"
    assert outcomes["local, refused"]["result"]["error"] == "BadRequestError"
    assert outcomes["basic, an empty reply"]["result"]["first"] == ""
    assert "error" not in outcomes["local with a mapping and a level as text"]["result"]


def test_the_services_see_the_requests_of_the_release(both):
    """But for two things: a stream is asked for its usage figures, and a refused form in words."""
    released, here = (
        Counter(
            json.dumps({k: v for k, v in request.items() if k != "stream_options"}, sort_keys=True)
            for request in seen.requests
        )
        for seen in both
    )

    assert released.total() > 40
    assert not released - here
    again = [*(here - released).elements()]
    assert len(again) <= 2, again
    assert all("refuse" in request for request in again), again
    assert any('"stream": true' in request for request in here)


def test_importing_the_api_loads_next_to_nothing_more_than_the_release(both):
    released, here = both
    added = here.modules - released.modules

    assert {name for name in added if name.startswith("graphrag")} == {
        "graphrag.api.search",
        "graphrag.installation",
        "graphrag.query.client",
        "graphrag.query.search_result",
        "graphrag.query.client.checked_numbers",
        "graphrag.query.client.model_prices",
        "graphrag.query.client.active_time",
        "graphrag.query.client.streaming",
        "graphrag.query.delayed_imports",
        "graphrag.query.client.usage",
        "graphrag.text",
        "graphrag.text.json_records",
        "graphrag_overlay",
    }
    assert not {name for name in added if not name.startswith("graphrag")}


def test_packages_that_the_release_names_are_imported_when_they_are_used():
    code = """
import sys, graphrag.api, graphrag.cli.main, graphrag_llm.middleware
import graphrag_llm.model_cost_registry
from concurrent.futures import ThreadPoolExecutor
from graphrag.index.operations.snapshot_graphml import snapshot_graphml
from graphrag.query.structured_search.drift_search.state import QueryState
from graphrag_llm.types import LLMCompletionMessage
from graphrag_llm.utils import FunctionToolManager
from pydantic import BaseModel
import graphrag_vectors.lancedb, lance_namespace_urllib3_client as client
from graphrag.index.operations.build_noun_graph.np_extractors import regex_extractor
from graphrag.index.operations.build_noun_graph.np_extractors import resource_loader
late = {"litellm", "networkx", "nltk", "scipy", "sklearn", "spacy", "textblob"}
assert not (late | {"openai._client", "openai.types.batch"}) & set(sys.modules)
assert QueryState().graph.number_of_nodes() == 0
import openai._base_client  # a part, before the whole has run
with ThreadPoolExecutor(2) as pool:
    assert [*pool.map(lambda name: hasattr(openai, name), ("OpenAI", "Stream"))] == [True, True]
class Lamp(BaseModel):
    height: int
tools = FunctionToolManager()
tools.register_function_tool(
    name="light", description="Light it.", input_model=Lamp, function=lambda lamp: "lit"
)
assert tools.definitions()[0]["function"]["name"] == "light"
assert issubclass(LLMCompletionMessage, openai.types.chat.ChatCompletionMessage)
assert openai.types.Batch.__module__ == "openai.types.batch"
assert {type(openai), type(openai.types)} == {type(sys)}
try:
    resource_loader.nltk.find("corpora/nowhere")
except LookupError:
    pass
assert "nltk" in sys.modules
assert client.__name__ + ".api" not in sys.modules
assert client.TableApi.__module__ == client.__name__ + ".api.table_api"
assert type(client).__name__ == "module"
assert type(regex_extractor.TextBlob("A lamp.")).__name__ == "TextBlob"
assert "litellm" not in sys.modules
"""
    run_apart(sys.executable, "-I", "-c", code)
