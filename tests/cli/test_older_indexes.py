"""Indexes that graphrag 0.3 to 3 built, asked as they are by every method that they can serve."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from support.lighthouse import QUESTION
from support.older_indexes import FORMS, LENGTH, make_form
from support.openai_server import LocalServer, running_server
from typer.testing import CliRunner, Result

ALL = ["tog", "ppr", "bm25", "local", "basic"]
SERVED = {"0.5": ["tog", "ppr", "bm25", "local"]}
"""Form -> methods, where these are not all: 0.5 stored vectors of entities alone."""


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with running_server(vector_size=LENGTH) as server:
        yield server


@pytest.fixture(scope="module")
def makes(lighthouse: Path, server: LocalServer, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("forms")
    return {f: make_form(lighthouse, folder / f"isle-{f}", f, server.base_url) for f in FORMS}


@pytest.fixture
def copied(makes, tmp_path):
    """Return a function that copies a project of a form, for a test that changes it."""

    def copy(form: str) -> Path:
        root = tmp_path / f"isle-{form}"
        shutil.copytree(makes[form], root)
        return root

    return copy


def graphrag(*words: object) -> Result:
    from graphrag.cli.main import app

    return CliRunner().invoke(app, [str(word) for word in words])


def flat(result: Result) -> str:
    return " ".join(result.output.split())


def methods_of(root: Path) -> list[str]:
    import yaml

    return yaml.safe_load((root / "eval_config.yaml").read_text("utf-8"))["methods"]


def ask(root: Path, *more: object) -> Result:
    rows = [{"id": "1", "question": QUESTION, "answer": "Jonas Feld"}]
    (root / "eval").mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(root / "eval" / "questions.csv", index=False)
    return graphrag("eval", "--root", root, "--metrics", "none", *more)


def digests(root: Path) -> dict[str, str]:
    files = [p for p in sorted(root.rglob("*")) if p.is_file()]
    owned = [p for p in files if not {"tog_graph", "eval"} & set(p.relative_to(root).parts)]
    kept = [p for p in owned if p.name != "eval_config.yaml"]
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}


@pytest.mark.parametrize("form", FORMS)
def test_every_method_that_an_index_serves_answers_at_once(form, copied, server):
    root = copied(form)
    before = digests(root)
    made = graphrag("eval", "init", "--root", root)
    assert made.exit_code == 0, made.output
    assert methods_of(root) == SERVED.get(form, ALL)
    n_calls = len(server.records)
    asked = ask(
        root, "--methods", ",".join([*methods_of(root), "agentic"][: 6 if form != "0.5" else 4])
    )
    assert asked.exit_code == 0, asked.output
    embedded = [r for r in server.records[n_calls:] if r.endpoint == "embeddings"]
    assert embedded, "no question was embedded"
    details = json.loads(next(root.rglob("eval_results_detailed.json")).read_text("utf-8"))
    responses = details["results"][0]["methods"]
    assert all(each["response"] for each in responses.values())
    assert all("ERROR" not in each["response"] for each in responses.values())
    if form != "3":
        assert f"the form of graphrag {'2' if form == '2' else '1'}" in flat(made)
    assert digests(root) == before
