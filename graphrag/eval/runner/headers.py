"""The indexes of a run: their headers, what they are in words, and whether they are the same."""

import hashlib
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.config.project_settings import read_settings
from graphrag.config.settings_files import SettingsError
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError, IndexUnavailableError
from graphrag.eval.metrics.index_view import IndexView, read_index_views
from graphrag.eval.runner.index_building import NOUN_PHRASES
from graphrag.eval.runner.methods import MethodSet
from graphrag.eval.store.index_costs import IndexCost, read_index_cost
from graphrag.eval.store.records import EMBEDDING_MODEL, RunSetup
from graphrag.query.index_header import IndexHeader, IndexNotBuiltError, model_name, read_header


async def read_headers(roots: Mapping[str, Path], vectors: bool = True) -> dict[str, IndexHeader]:
    """Read the header of every index, and look at its vectors where it is to be searched.

    Raises ConfigError if a project's settings can't be used; IndexUnavailableError if an index is
    missing, incomplete or of another embedding size.
    """
    headers: dict[str, IndexHeader] = {}
    for key, root in roots.items():
        with _name_index_in_errors(key):
            headers[key] = await read_header(root, vectors=vectors)
    return headers


def read_model_settings(roots: Mapping[str, Path]) -> dict[str, IndexHeader]:
    """Read only the settings of every project; ConfigError if they can't be used."""
    headers: dict[str, IndexHeader] = {}
    for key, root in roots.items():
        with _name_index_in_errors(key):
            headers[key] = IndexHeader(read_settings(root))
    return headers


@contextmanager
def _name_index_in_errors(key: str) -> Generator[None]:
    try:
        yield
    except SettingsError as error:
        raise ConfigError(f"Index {key}: {error}") from error
    except IndexNotBuiltError as error:
        raise IndexUnavailableError(f"Index {key}: {error}") from error


def describe_indexes(
    config: EvaluationConfig,
    methods: MethodSet,
    headers: Mapping[str, IndexHeader],
    keys: Iterable[str],
) -> dict[str, dict[str, Mapping[str, object]]]:
    """Return key -> method -> everything that changes what the method answers there.

    ``headers``: by the names of the indexes that the methods ask.
    """

    def describe(key: str, name: str) -> Mapping[str, object]:
        index = config.index_of(key, name)
        project = {} if index == key else {"project": index}
        return {**methods.describe(name, headers.get(index)), **project}

    return {key: {name: describe(key, name) for name in config.methods} for key in keys}


IndexFacts: TypeAlias = Mapping[str, str | int | None]
"""Name of a setting or a count -> its value; what is not known is left out."""

_COUNTED = ("documents", "text_units", "entities", "relationships", "communities")


def read_index_facts(header: IndexHeader) -> IndexFacts:
    """Return what an index was built with, by its settings now, and how much it holds.

    Counts are those of tables that are parquet files; of other stores there are none. Blocks while
    the ends of the files are read.
    """
    from pyarrow import parquet

    config = header.config
    extraction = config.completion_models.get(config.extract_graph.completion_model_id)
    embedding = config.embedding_models.get(config.embed_text.embedding_model_id)
    facts: dict[str, str | int | None] = {
        "chunk size": config.chunking.size,
        "chunk overlap": config.chunking.overlap,
        "entity types": ", ".join(config.extract_graph.entity_types),
    }
    if NOUN_PHRASES in (config.workflows or ()):
        facts["extraction model"] = "none (noun phrases)"
    elif extraction is not None:
        facts["extraction model"] = model_name(extraction)
    if embedding is not None:
        facts[EMBEDDING_MODEL] = model_name(embedding)
    facts["prompts"] = _digest_prompts(config)
    for name in _COUNTED:
        path = Path(config.output_storage.base_dir or "") / f"{name}.parquet"
        if config.output_storage.base_dir and path.is_file():
            rows = cast("Any", parquet).read_metadata(path).num_rows
            facts[name.replace("_", " ")] = int(rows)
    return facts


def read_index_costs(
    headers: Mapping[str, IndexHeader], facts: Mapping[str, IndexFacts]
) -> dict[str, IndexCost]:
    """Return key -> what its index took to build, of those of which anything is known.

    ``facts``: see :func:`read_index_facts`.
    """
    costs = {
        key: read_index_cost(Path(folder), header.fingerprint, facts[key].get("documents"))
        for key, header in headers.items()
        if (folder := header.config.output_storage.base_dir) and header.fingerprint is not None
    }
    return {key: cost for key, cost in costs.items() if cost is not None}


def _digest_prompts(config: GraphRagConfig) -> str:
    """Return a digest of the indexing prompts; a file that is not there is named by its path."""
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


async def read_searched_views(roots: Mapping[str, Path], setup: RunSetup) -> dict[str, IndexView]:
    """Return name -> view of the indexes that are still as a run searched them.

    ``roots`` are the project folders as configured now, ``setup`` is the run's. An index that is
    gone or was built again since is left out, as what it says now is of no use.
    """
    same: dict[str, IndexHeader] = {}
    for name, searched in setup.searched().items():
        if name not in roots:
            continue
        try:
            header = (await read_headers({name: roots[name]}, vectors=False))[name]
        except (ConfigError, IndexUnavailableError):
            continue
        if searched <= {header.fingerprint}:
            same[name] = header
    return await read_index_views(same)
