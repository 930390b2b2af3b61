"""Indexes that graphrag 0.3 to 3 built, asked as they are by every method that they can serve."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from support.lighthouse import QUESTION
from support.older_indexes import FORMS, LENGTH, LFS_POINTER, make_form
from support.openai_server import LocalServer, embed, running_server
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
    if not (root / "eval_config.yaml").exists():
        assert graphrag("eval", "init", "--root", root).exit_code == 0
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
        for told in (flat(made), flat(asked)):
            assert f"the form of graphrag {'2' if form == '2' else '1'}" in told
    assert ("the tables create_final_* are those of graphrag" in flat(asked)) is (form[0] in "01")
    assert digests(root) == before


def results_of(root: Path) -> dict:
    return json.loads(next(root.rglob("eval_results_summary.json")).read_text("utf-8"))


def test_a_method_that_lost_its_vectors_says_so_wherever_its_score_stands(copied):
    root = copied("3")
    ask(root, "--methods", "tog,ppr,bm25")
    first = flat(graphrag("eval", "show", "latest", "--root", root, "--full"))
    assert "without vectors" not in first
    shutil.rmtree(root / "output" / "lancedb")
    rows = [{"id": str(n), "question": f"{QUESTION} {n}", "answer": "Jonas Feld"} for n in range(6)]
    pd.DataFrame(rows).to_csv(root / "eval" / "questions.csv", index=False)
    words = ("--root", root, "--metrics", "correctness", "--methods", "tog,ppr,bm25")
    asked = graphrag("eval", *words)
    assert asked.exit_code == 0, asked.output
    said = "with tog and ppr without vectors."
    why = "tog and ppr answered without vectors: the index has no vector store"
    page = " ".join(next(root.rglob("report.html")).read_text("utf-8").split())
    for surface in (flat(asked), flat(graphrag("eval", "show", "latest", "--root", root)), page):
        assert said in surface
        assert why in surface
    summary = results_of(root)
    assert summary["metadata"]["conditions"]["ppr"][0]["without"] == "vectors"
    assert "bm25" not in summary["metadata"]["conditions"]
    assert graphrag("eval", "compare", "latest", "--pin", "--root", root).exit_code == 0
    again = graphrag("eval", *words)
    assert again.exit_code == 0, again.output
    compared = flat(graphrag("eval", "compare", "latest", "pinned", "--root", root))
    assert ", with in both runs tog and ppr without vectors." in compared


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda p: p.write_text(LFS_POINTER), "is a pointer of Git LFS, not the table; .*git lfs"),
        (lambda p: p.write_bytes(p.read_bytes()[:-900]), "is cut short: the end of the file"),
        (lambda p: p.write_bytes(b""), "is empty, not a table"),
        (lambda p: pd.read_parquet(p).drop(columns="title").to_parquet(p), "has no column title"),
        (lambda p: pd.read_parquet(p)[:0].to_parquet(p), "has no rows, which tog"),
    ],
)
def test_a_table_that_no_search_can_read_is_named_before_anything_is_asked(
    damage, said, copied, server
):
    import re

    root = copied("3")
    assert graphrag("eval", "init", "--root", root).exit_code == 0
    damage(root / "output" / "entities.parquet")
    n_calls = len(server.records)
    asked = ask(root, "--methods", "tog,bm25")
    queried = graphrag("query", "--root", root, "--method", "tog", QUESTION)
    for result in (asked, queried):
        assert result.exit_code == 2, result.output
        assert re.search(f"entities.parquet {said}", flat(result)), result.output
        assert "Traceback" not in result.output
    assert len(server.records) == n_calls
    if "column" in said or "rows" in said:
        assert ask(root, "--methods", "bm25").exit_code == 0


@pytest.mark.parametrize(
    ("table", "column", "refused"),
    [
        ("communities", "community", "local, global and drift"),
        ("community_reports", "level", "local, global and drift"),
        ("community_reports", "title", "local, global and drift"),
        ("community_reports", "id", "drift"),
        ("entities", "text_unit_ids", "global"),
        ("entities", "type", ""),
        ("relationships", "id", ""),
        ("documents", "id", ""),
    ],
)
def test_a_column_is_done_without_or_named_before_anything_is_asked(
    table, column, refused, copied, server
):
    root = copied("3")
    assert graphrag("eval", "init", "--root", root).exit_code == 0
    path = root / "output" / f"{table}.parquet"
    pd.read_parquet(path).drop(columns=column).to_parquet(path)
    n_calls = len(server.records)
    asked = ask(root, "--methods", "tog,ppr,bm25,local,basic,global,drift")
    if not refused:
        assert asked.exit_code == 0, asked.output
        return
    assert asked.exit_code == 2, asked.output
    assert f"{path.name} has no column {column}, which {refused} can't do" in flat(asked)
    assert len(server.records) == n_calls


def test_vectors_without_their_files_are_called_that(copied):
    root = copied("3")
    shutil.rmtree(root / "output" / "lancedb" / "text_unit_text.lance" / "_versions")
    for path in (root / "output" / "lancedb" / "entity_description.lance" / "data").iterdir():
        path.write_text(LFS_POINTER)
    made = flat(graphrag("eval", "init", "--root", root))
    assert methods_of(root) == ["tog", "ppr", "bm25"]
    assert "_versions is missing (a line *.manifest in a .gitignore leaves it out)" in made
    assert "contains pointers of Git LFS; fetch the files with: git lfs pull" in made


def test_an_embedding_model_of_another_length_is_named(copied, server):
    root = copied("3")
    settings = root / "settings.yaml"
    text = settings.read_text("utf-8")
    text = text.replace(
        "text-embedding-3-small,", "text-embedding-3-small, call_args: {dimensions: 64},"
    )
    settings.write_text(text, encoding="utf-8")
    asked = ask(root, "--methods", "basic")
    assert asked.exit_code != 0
    assert "gives a question a vector of 64 numbers, and the stored ones have 96" in flat(asked)
    told = flat(ask(root, "--methods", "ppr"))
    assert "without vectors" in told


@pytest.mark.parametrize("form", FORMS)
def test_the_command_query_answers_by_the_released_methods_too(form, copied):
    root = copied(form)
    for method in ("local", "global", *(["basic"] if form != "0.5" else [])):
        result = graphrag("query", "--root", root, "--method", method, QUESTION)
        assert result.exit_code == 0, f"{method}: {result.output}\n{result.exception!r}"
        assert result.stdout.strip()


def test_a_text_without_a_vector_is_told_beside_the_methods_that_rank_by_vectors(copied):
    import lancedb

    root = copied("3")
    unit = pd.read_parquet(root / "output" / "text_units.parquet")["id"]
    stored = lancedb.connect(str(root / "output" / "lancedb")).open_table("text_unit_text")
    stored.delete(f"id = '{unit.iloc[0]}'")
    told = flat(ask(root, "--methods", "bm25,basic,ppr,local"))
    what = f"without vectors of 1 of {len(unit)} text units"
    assert f"basic and ppr answered {what}: no search by meaning finds these" in told
    conditions = results_of(root)["metadata"]["conditions"]
    assert set(conditions) == {"basic", "ppr"}


def test_an_index_without_settings_gets_those_of_the_embedded_models_and_keeps_its_tables(copied):
    root = copied("2")
    (root / "settings.yaml").unlink()
    shutil.rmtree(root / "input")
    before = digests(root)
    refused = graphrag("eval", "init", "--root", root)
    assert refused.exit_code == 2
    assert "has an index, and" in flat(refused)
    assert "no settings.yaml to say which models answer; write one with:" in flat(refused)
    made = graphrag("eval", "init", "--offline", "--root", root)
    assert made.exit_code == 0, made.output
    assert methods_of(root) == ["tog", "ppr", "bm25"]
    assert "another model made the vectors of the texts" in flat(made)
    assert {path: digests(root)[path] for path in before} == before


@pytest.mark.parametrize("is_writable", [True, False])
def test_vectors_in_the_table_of_the_entities_serve_local_search(is_writable, copied, server):
    root = copied("0.5")
    shutil.rmtree(root / "output" / "lancedb")
    path = root / "output" / "create_final_entities.parquet"
    frame = pd.read_parquet(path)
    texts = [f"{row['name']}:{row['description']}" for row in frame.to_dict("records")]
    frame.assign(description_embedding=[embed(text, LENGTH) for text in texts]).to_parquet(path)
    before = digests(root)
    made = graphrag("eval", "init", "--root", root)
    assert methods_of(root) == SERVED["0.5"], flat(made)
    if not is_writable:  # no folder can be made there, whoever asks
        kept = root / "output" / "tog_graph" / "vectors"
        shutil.rmtree(kept)
        kept.write_text("a file")
    asked = ask(root, "--methods", "local")
    assert asked.exit_code == 0, asked.output
    details = json.loads(next(root.rglob("eval_results_detailed.json")).read_text("utf-8"))
    context = details["results"][0]["methods"]["local"]
    assert "ERROR" not in context["response"]
    assert digests(root) == before
    assert "local" not in results_of(root)["metadata"].get("conditions", {})


def test_init_lists_what_an_index_serves_before_a_key_is_set(copied, monkeypatch):
    root = copied("2")
    (root / ".env").unlink()
    monkeypatch.delenv("GRAPHRAG_API_KEY", raising=False)
    shutil.rmtree(root / "output" / "lancedb")
    told = flat(graphrag("eval", "init", "--root", root))
    assert "${GRAPHRAG_API_KEY} is not set; put GRAPHRAG_API_KEY=... into" in told
    assert methods_of(root) == ["tog", "ppr", "bm25"]
    assert "local and basic are left out" in told


def test_init_says_what_an_index_without_text_units_lacks(copied):
    root = copied("2")
    (root / "output" / "text_units.parquet").unlink()
    told = flat(graphrag("eval", "init", "--root", root))
    assert "no method can search the index as it is" in told
    assert "text_units" in told
    assert "--index" not in told


@pytest.mark.parametrize("form", ["2", "1"])
def test_settings_of_an_earlier_graphrag_build_no_index(form, copied, server):
    root = copied(form)
    for path in [*(root / "output").glob("*entities.parquet")]:
        path.unlink()
    made = graphrag("eval", "init", "--root", root)
    assert made.exit_code == 0, made.output
    before, n_calls = digests(root), len(server.records)
    asked = ask(root, "--index")
    assert asked.exit_code == 2, asked.output
    said = flat(asked)
    assert f"can't be built from settings of graphrag {form}" in said
    assert "Leave --index out" in said
    assert digests(root) == before
    assert len(server.records) == n_calls
