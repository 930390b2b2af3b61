"""Opening a project: its own settings, nothing outside touched, one sentence when it can't be."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from support.lighthouse import QUESTION
from support.projects import OFFLINE_SETTINGS

from graphrag.config.project_settings import unknown_settings
from graphrag.config.settings_files import SettingsError
from graphrag.config.table_files import IndexNotBuiltError
from graphrag.eval.errors import ConfigError, IndexBuildError
from graphrag.eval.runner.index_building import build_index
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index.header import read_header

Make = Callable[..., Path]


@pytest.fixture
def make(project: Path, tmp_path: Path) -> Make:
    """Return a function that makes a project over the built tables with settings of its own."""

    def make(settings: str, name: str = "isle", env: str | None = None) -> Path:
        root = tmp_path / name
        shutil.copytree(project / "output", root / "output")
        (root / "settings.yaml").write_text(settings, encoding="utf-8", errors="surrogateescape")
        if env is not None:
            (root / ".env").write_text(env, encoding="utf-8")
        return root

    return make


async def test_each_project_reads_its_own_env_file_after_the_environment(make, monkeypatch):
    settings = OFFLINE_SETTINGS + "tog_search: {width: ${GTOG_TEST_WIDTH}}\n"
    first = make(settings, "first", "GTOG_TEST_WIDTH=2\n")
    second = make(settings, "second", "GTOG_TEST_WIDTH=5\n")
    folder, environment = Path.cwd(), dict(os.environ)

    async def width(root: Path) -> int:
        return (await GraphIndex.open(root)).header.section("tog").width

    assert [await width(root) for root in (first, second, first)] == [2, 5, 2]
    assert (Path.cwd(), dict(os.environ)) == (folder, environment)
    monkeypatch.setenv("GTOG_TEST_WIDTH", "4")
    assert await width(first) == 4


async def test_prompt_files_are_found_from_another_folder(make, tmp_path, monkeypatch):
    root = make(OFFLINE_SETTINGS + "basic_search: {prompt: prompts/basic.txt}\n")
    (root / "prompts").mkdir()
    prompt = root / "prompts" / "basic.txt"
    prompt.write_text("Answer from {context_data} in {response_type}.", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    header = (await GraphIndex.open(Path("../isle"))).header

    assert header.section("basic").prompt == str(prompt.resolve())
    before = header.describe("basic")
    prompt.write_text("Answer shortly from {context_data}. {response_type}", encoding="utf-8")
    assert (await GraphIndex.open(root)).header.describe("basic") != before


async def test_a_missing_prompt_stops_the_method_that_needs_it_and_no_other(make):
    """One that ``graphrag init`` names without writing it is the built-in one."""
    named = "drift_search: {reduce_prompt: prompts/drift_search_reduce_prompt.txt}\n"
    root = make(OFFLINE_SETTINGS + named + "basic_search: {prompt: no.txt}\n")
    index = await GraphIndex.open(root)
    question = "Who keeps the lighthouse on Gannet Isle?"
    assert (await index.search("local", question)).response
    message = r"^basic_search\.prompt: the prompt file \S*no\.txt does not exist; [^.]*\.$"
    with pytest.raises(SettingsError, match=message):
        await index.search("basic", question)
    with pytest.raises(SettingsError, match=message):
        index.header.describe("basic")
    assert index.header.section("drift").reduce_prompt is None

    written = root / "prompts" / "drift_search_reduce_prompt.txt"
    written.parent.mkdir()
    written.write_text("Join {context_data} as {response_type}.", encoding="utf-8")
    assert (await GraphIndex.open(root)).header.section("drift").reduce_prompt == str(written)

    lacking = OFFLINE_SETTINGS.replace("extract_graph:\n", "extract_graph:\n  prompt: no.txt\n")
    (root / "settings.yaml").write_text(lacking, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"extract_graph\.prompt: the prompt file \S*no\.txt"):
        await build_index(root, lambda name: pytest.fail(f"{name} was begun"))

    nowhere = OFFLINE_SETTINGS + "output_storage: {type: file, base_dir: settings.yaml/out}\n"
    (root / "settings.yaml").write_text(nowhere, encoding="utf-8")
    with pytest.raises(IndexBuildError, match=r"out\.building'; name a folder"):
        await build_index(root, lambda _: None)


@pytest.mark.parametrize(
    "braces", ['Reply as {"a": 1} from {context_data}.', "Reply with }.", "{}"]
)
async def test_a_prompt_whose_braces_are_no_fields_stops_the_search_before_a_call(make, braces):
    root = make(
        OFFLINE_SETTINGS
        + "basic_search: {prompt: prompt.txt}\nlocal_search: {prompt: doubled.txt}\n"
        + "tog_search: {reasoning_prompt: single.txt}\n"
    )
    (root / "prompt.txt").write_text(braces, encoding="utf-8")
    (root / "doubled.txt").write_text('Not {{"a": 1}}: {context_data}{response_type}', "utf-8")
    (root / "single.txt").write_text('Not {"a": 1}: {context_data}{response_type}', "utf-8")
    index = await GraphIndex.open(root)
    question = "Who keeps the lighthouse on Gannet Isle?"

    with pytest.raises(SettingsError, match=r"^basic_search\.prompt: in the prompt file .* twice"):
        await index.search("bm25", question)
    for method in ("local", "tog"):  # which takes a brace for itself where no field begins
        assert (await index.search(method, question)).response


async def test_the_fingerprint_is_of_the_tables_and_not_of_the_folder(make, project):
    same, other = make(OFFLINE_SETTINGS, "same"), make(OFFLINE_SETTINGS, "other")
    pd.read_parquet(other / "output" / "text_units.parquet").iloc[1:].to_parquet(
        other / "output" / "text_units.parquet"
    )
    headers = [(await GraphIndex.open(root)).header for root in (project, same, other)]
    prints = [header.fingerprint for header in headers]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("tog_search: {widht: 3}\n", r"tog_search: unknown key 'widht'; did you mean 'width'\?"),
        ("tog_search: {width: 0}\n", r"tog_search\.width: .*greater than or equal to 1"),
        ("ppr_search: {width: 3}\n", r"ppr_search: unknown key 'width'"),
        (
            "tog_search: [",
            r"settings\.yaml is not valid YAML: line \d+, column \d+: (?!.*unicode string)",
        ),
        ("# \udcff\n", r"settings\.yaml can't be read: it is not UTF-8"),
        ("tog_search: {width: ${GTOG_NOT_SET}}\n", r"\$\{GTOG_NOT_SET\} is not set; put .*\.env"),
        ("# costs $5\n", r"a lone \$ must be written \$\$"),
        ("nowhere", "does not exist"),
        ("nothing", r"contains no settings\.yaml"),
        ("- a list", "must be a mapping of sections"),
    ],
)
async def test_settings_that_cannot_be_used_are_refused(make, tmp_path, extra, message):
    root = tmp_path / "nowhere"
    if extra != "nowhere":
        root = tmp_path if extra == "nothing" else make(OFFLINE_SETTINGS + extra)
    if extra == "- a list":
        (root / "settings.yaml").write_text(extra, encoding="utf-8")
    with pytest.raises(SettingsError, match=message):
        await GraphIndex.open(root)


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("relationships.parquet", "no table relationships in .*which local needs.*graphrag index"),
        ("lancedb/text_unit_text.lance", "no vectors of its text units: .*which basic needs"),
        ("lancedb/entity_description.lance", "no vectors of its entities: .*which local needs"),
        ("lancedb", "no vector store"),
    ],
)
async def test_an_index_that_is_not_complete_is_refused(gone, message, make):
    root = make(OFFLINE_SETTINGS)
    path = root / "output" / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(IndexNotBuiltError, match=message):
        await GraphIndex.open(root)
    assert (await read_header(root, methods=("bm25",))).fingerprint is not None


async def test_the_length_of_the_stored_vectors_counts_and_no_setting(make):
    root = make(OFFLINE_SETTINGS.replace("vector_size: 384", "vector_size: 1536"))
    index = await GraphIndex.open(root)
    for method in ("local", "basic", "hybrid"):
        assert (await index.search(method, QUESTION)).response, method


async def test_a_search_asks_for_the_tables_that_it_reads(make):
    root = make(OFFLINE_SETTINGS)
    (root / "output" / "relationships.parquet").unlink()
    index = await GraphIndex.open(root, vectors=False)
    for method in ("bm25", "basic", "hybrid", "agentic", "global"):
        assert (await index.search(method, QUESTION)).response, method
    for method in ("tog", "ppr", "local", "drift"):
        with pytest.raises(
            IndexNotBuiltError, match=f"no table relationships in .*, which {method} needs"
        ):
            await index.search(method, QUESTION)


async def test_the_tables_may_lie_in_another_folder(make, tmp_path):
    root = make(OFFLINE_SETTINGS)
    (root / "output" / "entities.parquet").rename(tmp_path / "entities.parquet")
    for name in ("relationships", "text_units", "communities", "community_reports"):
        shutil.copy(root / "output" / f"{name}.parquet", tmp_path)
    with pytest.raises(IndexNotBuiltError):
        await GraphIndex.open(root)
    index = await GraphIndex.open(root, data_dir=tmp_path)

    assert len(index.tables.table("entities")) > 10


async def test_text_units_as_graphrag_2_wrote_them_are_searched(make, project):
    root = make(OFFLINE_SETTINGS)
    path = root / "output" / "text_units.parquet"
    frame = pd.read_parquet(path)
    named = [[document] for document in frame["document_id"]]
    frame.assign(document_ids=named).drop(columns="document_id").to_parquet(path)
    before, after = [await GraphIndex.open(each) for each in (project, root)]
    for method in ("bm25", "hybrid", "local", "basic", "ppr"):
        responses = [(await each.search(method, QUESTION)).response for each in (before, after)]
        assert responses[0] == responses[1], method
    wanted = ("id", "document_id")
    for index in (after, await GraphIndex.open(root)):  # as a whole, and by columns
        units = index.tables.columns("text_units", wanted)
        assert units.equals(before.tables.columns("text_units", wanted))


async def test_mistyped_names_are_told_with_the_nearest_one(make):
    root = make(
        OFFLINE_SETTINGS + "local_serch: {top_k_entities: 3}\nchunks: {}\n"
        "ppr_search: {graph_share: 0.3}\nlocal_search: {top_k: 3}\n"
    )
    unused = unknown_settings(root)
    assert str(unused[0]) == "local_serch is not used; did you mean 'local_search'?"
    kinds = [(each.section, each.key, each.has_gone) for each in unused[1:]]
    assert kinds == [
        ("", "chunks", False),
        ("ppr_search", "graph_share", True),
        ("local_search", "top_k", False),
    ]
    assert str(unused[2]).startswith("ppr_search.graph_share is no longer used: ")
    with pytest.raises(ValueError, match="unknown method 'locl'; did you mean 'local'"):
        await (await GraphIndex.open(root)).search("locl", "Who?")
