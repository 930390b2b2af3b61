"""Several indexes of the same documents: what is refused before their answers are compared."""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from graphrag.config.project_settings import ProjectConfig, read_settings
from graphrag.config.settings_files import SettingsError
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.runner.index_building import is_built
from graphrag.eval.runner.methods import MethodSet
from graphrag.query.index_header import IndexHeader, open_tables, rows_of
from graphrag.text.phrases import join_names

_Documents = Mapping[bytes, str]
"""A digest of each document's text -> its title."""
_MOST_NAMED = 3


async def check_indexes(
    config: EvaluationConfig, samples: Iterable[Sample], built: Mapping[str, IndexHeader]
) -> None:
    """Refuse what makes methods on different indexes of a key incomparable; ConfigError says what.

    That is documents that differ, and evidence that is named by a text unit of one of them.
    ``built``: by name, of the indexes that are there.
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
    """Refuse projects of one key that read different documents, before one of them is built.

    Of those that are not built they are read as the release will read them.
    """
    for names in _list_rivals(config).values():
        projects = {name: roots[name] for name in names if name in roots}
        if all(map(is_built, projects.values())):
            continue
        try:
            settings = {name: read_settings(root) for name, root in projects.items()}
        except SettingsError as error:
            raise ConfigError(str(error)) from error
        _check_same(
            {
                name: await _read_documents(name, IndexHeader(project))
                if is_built(projects[name])
                else await _read_input(project)
                for name, project in settings.items()
            }
        )


def list_model_warnings(
    config: EvaluationConfig, methods: MethodSet, headers: Mapping[str, IndexHeader]
) -> list[str]:
    """Warn of methods on several indexes of a key whose answers different models write."""
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
    """Return key -> the indexes that methods ask about it, of those with more than one."""
    indexes = {
        key: list(dict.fromkeys(config.index_of(key, name) for name in config.methods))
        for key in config.indexes
    }
    return {key: names for key, names in indexes.items() if len(names) > 1}


async def _read_documents(name: str, header: IndexHeader) -> _Documents:
    tables = await open_tables(header.config, ("documents",))
    frame = tables.columns("documents", ["title", "text"]) if tables.has("documents") else None
    if frame is None:
        raise ConfigError(
            f"Index {name} has no table of its documents, so that it can't be told whether they "
            "are those of the other indexes; build it again."
        )
    return _digest_texts(rows_of(frame, "title", "text"))


async def _read_input(config: ProjectConfig) -> _Documents:
    from graphrag_input import create_input_reader  # half a second
    from graphrag_storage import create_storage

    reader = create_input_reader(config.input, create_storage(config.input_storage))
    return _digest_texts([(document.title, document.text) async for document in reader])


def _digest_texts(texts: Iterable[tuple[str, str]]) -> _Documents:
    return {hashlib.blake2b(text.encode(), digest_size=16).digest(): name for name, text in texts}


def _check_same(documents: Mapping[str, _Documents]) -> None:
    """Raise ConfigError if one of the indexes has other documents than the one before it."""
    for (first, ours), (second, theirs) in pairwise(documents.items()):
        only = {
            first: sorted(ours[text] for text in ours.keys() - theirs.keys()),
            second: sorted(theirs[text] for text in theirs.keys() - ours.keys()),
        }
        parts = [f"{join_names(t, _MOST_NAMED)} only in {name}" for name, t in only.items() if t]
        if parts:
            raise ConfigError(
                f"The documents of indexes {first} and {second} differ: {'; '.join(parts)}. "
                "Methods are compared on the same documents; build both of the same texts, or ask "
                "the indexes under keys of their own."
            )
