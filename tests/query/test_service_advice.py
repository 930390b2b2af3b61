"""A service that can't be used is named by its address, with the setting to look at."""

import logging
import warnings
from pathlib import Path

import pytest
from support.lighthouse import METHODS, QUESTION, MakeProject, SpiedServer
from support.openai_server import Fault
from typer.testing import CliRunner, Result

from graphrag.log_lines import lines_to
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.methods import embeds

NOWHERE = "http://127.0.0.1:9/v1"  # the discard service's port, which nothing answers


async def cause_of(project: Path, method: str = "basic") -> SearchError:
    index = await GraphIndex.open(project)
    with pytest.raises(SearchError) as caught:
        await index.search(method, QUESTION)
    return caught.value


def set_chat(project: Path, before: str, after: str) -> None:
    """Change the settings of the completion model, which come first."""
    path = project / "settings.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(before, after, 1), encoding="utf-8")


@pytest.mark.parametrize("method", METHODS)
async def test_a_service_that_is_not_there_is_named_by_its_address(
    method: str, make_project: MakeProject
) -> None:
    cause = await cause_of(make_project(base_url=NOWHERE, max_retries=2), method)

    kind = "completion" if method == "drift" or not embeds(method) else "embedding"
    assert f"no connection to {NOWHERE}" in str(cause)
    assert f"check api_base under {kind}_models in settings.yaml" in str(cause)
    assert "litellm" not in str(cause)
    assert not cause.refused, "it may come back"


async def test_an_address_is_named_without_the_password_in_it(make_project: MakeProject) -> None:
    secret = "http://me:hidden@127.0.0.1:9/v1?key=hidden"
    cause = await cause_of(make_project(base_url=secret, max_retries=2))

    assert NOWHERE in str(cause)
    assert "hidden" not in str(cause)


@pytest.mark.parametrize(("status", "keys"), [(401, "api_key"), (404, "model and api_base")])
async def test_a_refusal_names_the_address_and_the_setting(
    status: int, keys: str, make_project: MakeProject, server: SpiedServer
) -> None:
    server.behave(faults=lambda *_: Fault(status=status))
    cause = await cause_of(make_project())

    assert cause.refused
    assert server.base_url in str(cause)
    assert f"check {keys} under embedding_models in settings.yaml" in str(cause)


@pytest.mark.parametrize("method", ["tog", "local", "drift"])
async def test_a_provider_that_does_not_exist_is_a_refusal(
    method: str, make_project: MakeProject
) -> None:
    project = make_project()
    for _ in range(2):
        set_chat(project, "model_provider: openai", "model_provider: opnai")
    cause = await cause_of(project, method)

    assert cause.refused
    assert "no provider 'opnai'; did you mean 'openai'? Correct model_provider" in str(cause)
    assert "in settings.yaml" in str(cause)
    assert "LLM Provider" not in str(cause)


async def test_a_provider_without_embeddings_is_a_refusal(make_project: MakeProject) -> None:
    project = make_project()
    for provider in ("OPENAI", "anthropic"):  # the second, which embeds
        set_chat(project, "model_provider: openai", f"model_provider: {provider}")
    set_chat(project, "model_provider: OPENAI", "model_provider: openai")
    cause = await cause_of(project)

    assert cause.refused
    assert "anthropic offers no embeddings" in str(cause)
    assert "model_provider under embedding_models in settings.yaml" in str(cause)


def query(project: Path, *flags: str) -> Result:
    from graphrag.cli.main import app

    return CliRunner().invoke(app, ["query", QUESTION, "-r", str(project), "-m", "tog", *flags])


@pytest.mark.parametrize("flags", [(), ("--streaming",)])
def test_a_query_that_fails_says_one_sentence(
    flags: tuple[str, ...], make_project: MakeProject
) -> None:
    result = query(make_project(base_url=NOWHERE, max_retries=2), *flags)

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: the search failed: no connection to ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_what_litellm_drops_when_it_is_cancelled_is_not_warned_of() -> None:
    class Client:
        async def acompletion(self) -> None: ...

        async def other(self) -> None: ...

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with lines_to(logging.NullHandler(), logging.WARNING):
            Client().acompletion()
            Client().other()
    assert [str(each.message).split("'")[1].rpartition(".")[2] for each in said] == ["other"]
