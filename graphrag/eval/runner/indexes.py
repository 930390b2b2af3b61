"""Reads, describes and compares the indexes of a run.

An index's header is its settings, models and fingerprint. Its facts are the figures that a report
shows: models, counts of rows. Its view is its tables, as measures read them. If methods are asked
on several indexes of a key, these must have the same documents.
"""

import gc
import hashlib
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from graphrag.config.embeddings import text_unit_text_embedding
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.config.project_settings import older_note, read_settings
from graphrag.config.settings_files import SettingsError
from graphrag.config.table_files import (
    OLD_PREFIX,
    SEARCHED_TABLES,
    IndexNotBuiltError,
    find_table_files,
    is_unreadable,
)
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError, IndexUnavailableError, name_index
from graphrag.eval.metrics.index_view import IndexView, read_index_views
from graphrag.eval.runner.custom_methods import MethodSet
from graphrag.eval.runner.index_building import NOUN_PHRASES, is_built
from graphrag.eval.runner.stored_config import find_searched
from graphrag.eval.store.index_costs import IndexCost, read_index_cost
from graphrag.eval.store.records import EMBEDDING_MODEL, IndexFacts, RunSetup
from graphrag.query.index.header import IndexHeader, model_name, read_header
from graphrag.query.index.tables import open_tables, rows_of
from graphrag.query.index.vector_tables import EMBEDDED, VECTORS_OF
from graphrag.query.methods import GRAPH_METHODS
from graphrag.text.message_phrases import join_names


async def read_headers(
    roots: Mapping[str, Path],
    searches: Mapping[str, Sequence[str]] = {},
) -> dict[str, IndexHeader]:
    """Read the header of every index, and check that it has what its searches need.

    ``searches``: index name -> search methods that will be asked there. Raises ConfigError if a
    project's settings can't be used, and IndexUnavailableError if an index is missing or lacks what
    a method needs.
    """
    headers: dict[str, IndexHeader] = {}
    for key, root in roots.items():
        with _name_index_in_errors(key):
            headers[key] = await read_header(root, methods=searches.get(key, ()))
    return headers


def read_model_settings(
    roots: Mapping[str, Path], assume_set: bool = False
) -> dict[str, IndexHeader]:
    """Read only the settings of every project; raise ConfigError if they can't be used.

    ``assume_set``: see :func:`read_settings`.
    """
    headers: dict[str, IndexHeader] = {}
    for key, root in roots.items():
        with _name_index_in_errors(key):
            headers[key] = IndexHeader(read_settings(root, assume_set=assume_set))
    return headers


@contextmanager
def _name_index_in_errors(key: str) -> Generator[None]:
    try:
        yield
    except SettingsError as error:
        raise ConfigError(name_index(key, error)) from error
    except IndexNotBuiltError as error:
        raise IndexUnavailableError(name_index(key, error)) from error


def list_form_notes(headers: Mapping[str, IndexHeader], roots: Mapping[str, Path]) -> list[str]:
    """Return a line about each index whose settings or tables are of an earlier version."""
    notes: list[str] = []
    for name, header in headers.items():
        if note := older_note(roots[name]):
            notes.append(f"{name}: {note}.")
        config = header.config
        folder, kind = Path(config.output_storage.base_dir or ""), config.table_provider.type
        files = find_table_files(folder, SEARCHED_TABLES, kind).values() if folder.parts else ()
        if any(file.name.startswith(OLD_PREFIX) for file in files):
            form = f"the tables {OLD_PREFIX}* are those of graphrag 0.3 to 1"
            notes.append(f"{name}: {form}, and are read as they are.")
    return notes


def list_lacking(
    methods: MethodSet, headers: Mapping[str, IndexHeader]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return method -> pairs of what it does without, and why, if rows of its index lack vectors.

    Blocks while tables are read.
    """
    from graphrag.eval.validation.vectors import count_absent  # lancedb

    counted: dict[tuple[int, str], tuple[int, int]] = {}
    lacking: dict[str, dict[tuple[str, str], None]] = {}
    searches = methods.search_methods()
    for name, header in methods.pairs(headers):
        search = searches.get(name, "")
        if not search or "embedding" not in methods.models(name, header):
            continue
        of_texts = (text_unit_text_embedding,) if search in GRAPH_METHODS else ()
        for embedding in VECTORS_OF.get(search, of_texts):
            key = id(header), embedding
            if key not in counted:
                counted[key] = count_absent(header.config, embedding)
            n, total = counted[key]
            if n:
                lack = f"vectors of {n:,} of {total:,} {EMBEDDED[embedding]}"
                why = "no search by meaning finds these, as the index has none of them"
                lacking.setdefault(name, {})[lack, why] = None
    return {name: tuple(pairs) for name, pairs in lacking.items()}


def describe_indexes(
    config: EvaluationConfig,
    methods: MethodSet,
    headers: Mapping[str, IndexHeader],
    keys: Iterable[str],
) -> dict[str, dict[str, Mapping[str, object]]]:
    """Return index key -> method -> everything that changes what the method answers there.

    ``headers``: by the name of the index.
    """

    def describe(key: str, name: str) -> Mapping[str, object]:
        index = config.index_of(key, name)
        project = {} if index == key else {"project": index}
        return {**methods.describe(name, headers.get(index)), **project}

    return {key: {name: describe(key, name) for name in config.methods} for key in keys}


def read_index_facts(header: IndexHeader) -> IndexFacts:
    """Return the facts of an index: its models, by its current settings, and its counts of rows.

    If its build recorded the workflows, these show whether its graph is of noun phrases. Rows are
    counted only in tables that are Parquet files. Blocks while the ends of the files are read.
    """
    from pyarrow import parquet

    config, folder = header.config, Path(header.config.output_storage.base_dir or "")
    tables = ("documents", "text_units", "entities", "relationships", "communities")
    there = {} if folder == Path() else find_table_files(folder, tables, "parquet")
    counts = {
        name.replace("_", " "): int(cast("Any", parquet).read_metadata(path).num_rows)
        for name, path in there.items()
        if not is_unreadable(path)
    }
    cost = read_index_cost(folder, header.fingerprint or "", counts.get("documents", -1))
    extraction = config.completion_models.get(config.extract_graph.completion_model_id)
    embedding = config.embedding_models.get(config.embed_text.embedding_model_id)
    facts: dict[str, str | int | None] = {
        "chunk size": config.chunking.size,
        "chunk overlap": config.chunking.overlap,
        "entity types": ", ".join(config.extract_graph.entity_types),
    }
    if NOUN_PHRASES in ((config.workflows or ()) if cost is None else cost.seconds):
        facts["extraction model"] = "none (noun phrases)"
    elif extraction is not None:
        facts["extraction model"] = model_name(extraction)
    if embedding is not None:
        facts[EMBEDDING_MODEL] = model_name(embedding)
    return {**facts, "prompts": _digest_prompts(config), **counts}


def read_index_costs(
    headers: Mapping[str, IndexHeader], facts: Mapping[str, IndexFacts]
) -> dict[str, IndexCost]:
    """Return index key -> cost of its build, if it is known.

    ``facts``: see :func:`read_index_facts`.
    """
    costs = {
        key: read_index_cost(Path(folder), header.fingerprint, facts[key].get("documents"))
        for key, header in headers.items()
        if (folder := header.config.output_storage.base_dir) and header.fingerprint is not None
    }
    return {key: cost for key, cost in costs.items() if cost is not None}


def _digest_prompts(config: GraphRagConfig) -> str:
    """Return a digest of the indexing prompts; the path replaces a file that is missing."""
    reports = config.community_reports
    files = {
        "extract_graph": config.extract_graph.prompt,
        "summarize_descriptions": config.summarize_descriptions.prompt,
        "graph_reports": reports.graph_prompt,
        "text_reports": reports.text_prompt,
    }
    digest = hashlib.blake2b(digest_size=4)
    for name, file in files.items():
        path = Path(file or "")
        text = path.read_bytes() if file and path.is_file() else (file or "the release's").encode()
        digest.update(f"{name}:{len(text)}:".encode())
        digest.update(text)
    return digest.hexdigest()


def release_searched() -> None:
    """Release the tables that the searches of a run have read, if they are large.

    The search engines are in circles of references, which Python would free late, and Arrow keeps
    freed memory for later tables. On an index of 100,000 text units this is a quarter of the peak.
    """
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None and arrow.total_allocated_bytes() > _LARGE_TABLES:
        gc.collect()
        arrow.default_memory_pool().release_unused()


async def read_searched_views(
    roots: Mapping[str, Path], setup: RunSetup
) -> tuple[dict[str, IndexView], dict[str, str], list[str]]:
    """Return the views and states of a run's indexes, and a line for each that can't be measured.

    The views are of indexes that are still as the run searched them: after a rebuild, an index
    shows nothing about the run. For the states see :func:`find_searched`.
    """
    same, states = await find_searched(roots, setup)
    views = await read_index_views({name: IndexHeader(config) for name, config in same.items()})
    why = {**states, **dict.fromkeys(same, "has no text units")}
    lost = "so that retrieval, paths and losses are not measured on it"
    return views, states, [f"index {n} {why[n]}, {lost}" for n in states if n not in views]


_LARGE_TABLES = 100_000_000
"""Bytes of tables in memory from which it takes less time to release them than to have them."""
_Documents = Mapping[bytes, str]
"""A digest of each document's text -> its title."""
_MOST_NAMED = 3


async def check_indexes(
    config: EvaluationConfig, samples: Iterable[Sample], built: Mapping[str, IndexHeader]
) -> None:
    """Raise ConfigError if methods on different indexes of one key can't be compared.

    That is so if the documents differ, or if evidence is named by a text unit of one of the
    indexes. ``built``: the headers of built indexes, by name.
    """
    rows = list(samples)
    for key, names in _list_rivals(config).items():
        labeled = [sample for sample in rows if sample.imdb_key == key and sample.expected_sources]
        headers = {name: built[name] for name in names if name in built}
        _check_same({name: await _read_documents(name, h) for name, h in headers.items()})
        for name in headers if labeled else ():
            view = await IndexView.open(headers[name], ("text_units", "documents"))
            for sample in labeled:
                units = [e.text for e in view.evidence_of(sample) if e.kind == "text_unit"]
                if units:
                    raise ConfigError(
                        f"{sample.name} expects the text unit {units[0]} of index {name}, which is "
                        f"none of {join_names([n for n in names if n != name])}, where methods are "
                        "asked too; name the document's title in expected_sources, or quote the "
                        "passage in evidence."
                    )


async def check_inputs(config: EvaluationConfig, roots: Mapping[str, Path]) -> None:
    """Raise ConfigError if projects of one key read different documents, before one is built.

    The documents of a project that is not built are read as the release will read them.
    """
    for names in _list_rivals(config).values():
        projects = {name: roots[name] for name in names if name in roots}
        if all(map(is_built, projects.values())):
            continue
        _check_same(
            {
                name: await _read_documents(name, header)
                if is_built(projects[name])
                else await _read_input(header.config)
                for name, header in read_model_settings(projects).items()
            }
        )


def list_model_warnings(
    config: EvaluationConfig, methods: MethodSet, headers: Mapping[str, IndexHeader]
) -> list[str]:
    """Return a warning if different models write the answers on different indexes of a key."""
    warnings: dict[str, None] = {}
    for key in _list_rivals(config):
        names: dict[str, list[str]] = {}
        for name in methods.search_methods():
            header = headers.get(config.index_of(key, name))
            model = None if header is None else methods.models(name, header)["completion"]
            if model is not None:
                names.setdefault(model, []).append(name)
        if len(names) > 1:
            writers = "; ".join(
                f"{model} those of {join_names(group)}" for model, group in names.items()
            )
            warnings[
                f"different models write the answers on different indexes ({writers}), so that "
                "these differ in more than their index; name a model for extraction alone, by "
                "extract_graph.completion_model_id"
            ] = None
    return list(warnings)


def _list_rivals(config: EvaluationConfig) -> dict[str, list[str]]:
    """Return key -> names of the indexes asked about it, for keys with more than one index."""
    indexes = {key: list(config.projects([key])) for key in config.indexes}
    return {key: names for key, names in indexes.items() if len(names) > 1}


async def _read_documents(name: str, header: IndexHeader) -> _Documents:
    tables = await open_tables(header.config, ("documents",))
    frame = tables.columns("documents", ["title", "text"]) if tables.has("documents") else None
    if frame is None:
        raise ConfigError(
            f"Index {name} has no table of its documents, so that nothing shows whether they "
            "are those of the other indexes; build it again."
        )
    return _digest_texts(rows_of(frame, "title", "text"))


async def _read_input(config: GraphRagConfig) -> _Documents:
    from graphrag_input import create_input_reader  # half a second
    from graphrag_storage import create_storage

    reader = create_input_reader(config.input, create_storage(config.input_storage))
    return _digest_texts([(document.title, document.text) async for document in reader])


def _digest_texts(texts: Iterable[tuple[str, str]]) -> _Documents:
    return {hashlib.blake2b(text.encode(), digest_size=16).digest(): name for name, text in texts}


def _check_same(documents: Mapping[str, _Documents]) -> None:
    """Raise ConfigError if an index has other documents than the index before it."""
    for (first, a), (second, b) in pairwise(documents.items()):
        only = {
            first: sorted(a[text] for text in a.keys() - b.keys()),
            second: sorted(b[text] for text in b.keys() - a.keys()),
        }
        parts = [f"{join_names(t, _MOST_NAMED)} only in {name}" for name, t in only.items() if t]
        if parts:
            raise ConfigError(
                f"The documents of indexes {first} and {second} differ: {'; '.join(parts)}. "
                "Methods are compared on the same documents; build both of the same texts, or ask "
                "the indexes under keys of their own."
            )
