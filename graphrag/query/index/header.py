"""Summarizes a built index before it is searched: settings, models, tables and fingerprint."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphrag.config.embeddings import text_unit_text_embedding
from graphrag.config.models.basic_search_config import BasicSearchConfig
from graphrag.config.models.tog_search_config import RankedSearchConfig
from graphrag.config.project_settings import read_settings
from graphrag.config.settings_files import prompt_files
from graphrag.config.table_files import IndexNotBuiltError
from graphrag.query.client.model_prices import is_hashed
from graphrag.query.index.tables import (
    IndexTables,
    check_tables,
    fingerprint_tables,
    open_tables,
    rows_of,
)
from graphrag.query.index.text_languages import WORDS_VERSION, languages_of
from graphrag.query.index.vector_tables import (
    VECTORS_OF,
    NoVectorsError,
    find_vectors,
    uses_lancedb,
)
from graphrag.query.methods import GRAPH_METHODS, RANKED, count_passages, embeds, section_name
from graphrag.text.cli_hints import release_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphrag_llm.config import ModelConfig

    from graphrag.config.models.graph_rag_config import GraphRagConfig
    from graphrag.text.languages import Languages


def index_languages(config: "GraphRagConfig", tables: IndexTables) -> "Languages":
    """Return the languages of an index's texts: from its settings, else found in the texts."""

    def read_texts() -> list[str]:
        return [text for (text,) in rows_of(tables.columns("text_units", ("text",)), "text")]

    named = cast("list[str] | None", getattr(config, "languages", None))
    return languages_of(named, tables.paths.get("text_units"), read_texts)


def check_vectors(config: "GraphRagConfig", root: Path, methods: "Iterable[str]") -> None:
    """Check that a LanceDB store has the vectors that search methods need; pass over other stores.

    Raises IndexNotBuiltError if vectors are missing, can't be read, or were made by another model
    than embeds the questions, as far as that can be checked.
    """
    from graphrag.query.index.meaning import OtherVectorsError, open_text_vectors

    needed = {name: method for method in methods for name in VECTORS_OF.get(method, ())}
    if not needed or not uses_lancedb(config):
        return
    rebuild = f"rebuild the index with: {release_line('index', '--root', Path(root))}"
    for name, method in needed.items():
        try:
            if name == text_unit_text_embedding:
                open_text_vectors(config)
            else:
                find_vectors(config, name)
                with suppress(NoVectorsError):  # vectors of texts, if any, are the same model's
                    open_text_vectors(config)
        except NoVectorsError as error:
            msg = f"{root}: {error}, which {method} needs; {rebuild}"
            raise IndexNotBuiltError(msg, str(error)) from error
        except OtherVectorsError as error:
            msg = f"{root}: {error}; {rebuild}, or name the model that made them"
            raise IndexNotBuiltError(msg, str(error)) from error


async def find_lacks(
    config: "GraphRagConfig", root: Path, methods: "Iterable[str]"
) -> dict[str, str]:
    """Return search method -> what the index lacks for it, for the methods that can't search it."""
    tables, lacks = await open_tables(config), dict[str, str]()
    for method in methods:
        try:
            check_tables(tables, config, root, (method,))
            check_vectors(config, root, (method,))
        except IndexNotBuiltError as error:
            lacks[method] = error.lack
    return lacks


_SECRET = re.compile(r"key|secret|password|header|authorization|ad_token", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Sets the parameters of released searches that settings lack, alike for all methods.

    ``community_level`` is the deepest level that local, global and DRIFT search read; None for all.
    """

    community_level: int | None = 2
    response_type: str = "Multiple Paragraphs"
    dynamic_community_selection: bool = False


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """Contains the settings of an index, and hashes and facts about its content.

    - ``fingerprint``: hash of the tables; None for data frames that were passed in.
    - ``vectors``: hash of the text units' vectors; None if they are hashed n-grams or can't be
      read.
    - ``longest``: tokens of the longest text unit; None if they were not counted.
    - ``words``: version of the way in which words are compared, and languages by script; None if
      this was not looked at.
    """

    config: "GraphRagConfig"
    options: SearchOptions = SearchOptions()
    fingerprint: str | None = None
    vectors: str | None = None
    longest: int | None = None
    words: Mapping[str, object] | None = None

    def section(self, method: str) -> Any:
        """Return a method's section of the settings."""
        section: Any = getattr(self.config, section_name(method))
        if section_name(method) != "basic_search":
            return section
        kind = RankedSearchConfig if method in RANKED else BasicSearchConfig
        values = section.model_dump(exclude_unset=True)
        return kind.model_validate({k: v for k, v in values.items() if k in kind.model_fields})

    def changed(self, method: str, changes: Mapping[str, object]) -> "IndexHeader":
        """Return the header with other values in a method's section of the settings."""
        name = section_name(method)
        section = getattr(self.config, name).model_copy(update=changes)
        return replace(self, config=self.config.model_copy(update={name: section}))

    def model_configs(self, method: str) -> dict[str, "ModelConfig"]:
        """Return the models of a method: ``completion`` and, if it embeds, ``embedding``.

        tog and ppr embed if their embedding model is in the settings and does not hash n-grams.
        """
        section = self.section(method)
        models = {
            "completion": self.config.get_completion_model_config(section.completion_model_id)
        }
        if embeds(method):
            models["embedding"] = self.config.get_embedding_model_config(section.embedding_model_id)
        elif method in GRAPH_METHODS:
            model = self.config.embedding_models.get(section.embedding_model_id or "")
            if model is not None and not is_hashed(model_name(model)):
                models["embedding"] = model
        return models

    def prompt_files(self, method: str) -> dict[str, Path]:
        """Return the prompt files that a method needs: setting -> file.

        Raises SettingsError if one is missing.
        """
        return prompt_files(section_name(method), self.section(method))

    def describe(self, method: str) -> dict[str, object]:
        """Return everything that changes a method's answers, JSON-ready, without secrets.

        Prompt files are given by the hash of their content. Raises SettingsError if one is missing.
        """
        self.prompt_files(method)
        section = cast("dict[str, object]", self.section(method).model_dump(mode="json"))
        size = cast("int | None", section.get("passage_tokens"))
        if size is None or (self.longest is not None and count_passages(self.longest, size) == 1):
            section.pop("passage_tokens", None)  # as earlier releases describe it
        named = {key: Path(str(v)) for key, v in section.items() if key.endswith("prompt") and v}
        prompts = {k: _hash(path.read_bytes()) for k, path in named.items() if path.is_file()}
        models = self.model_configs(method)
        return {
            "settings": {**section, **prompts},
            "options": asdict(self.options),
            "models": {r: describe_model(c) for r, c in models.items()},
            "index": self.fingerprint,
            **({"vectors": self.vectors} if "embedding" in models and self.vectors else {}),
            **({"words": self.words} if self.words and method in (*RANKED, *GRAPH_METHODS) else {}),
        }


async def read_header(
    root: Path | str,
    data_dir: Path | str | None = None,
    options: SearchOptions = SearchOptions(),
    methods: "Sequence[str]" = (),
    detects_changes: bool = True,
) -> IndexHeader:
    """Read a project's settings and check that its index has the tables and vectors needed.

    ``detects_changes``: whether to add ``vectors``, ``longest`` and ``words``, which show later if
    answers may change. Raises SettingsError and IndexNotBuiltError.
    """
    config = read_settings(root, data_dir)
    tables = await open_tables(config)
    await asyncio.to_thread(check_tables, tables, config, Path(root), methods)
    check_vectors(config, Path(root), methods)
    header = IndexHeader(
        config=config, options=options, fingerprint=await fingerprint_tables(config)
    )
    if not detects_changes:
        return header
    hashed = await asyncio.to_thread(_read_vectors, config)
    counted: Any = tables.columns("text_units", ("n_tokens",))
    longest = None if counted is None or not len(counted) else counted["n_tokens"].max()
    longest = int(longest) if isinstance(longest, Integral) else None
    languages = await asyncio.to_thread(index_languages, config, tables)
    by_script = {script: list(names) for script, names in languages.by_script.items()}
    words = {"version": WORDS_VERSION, "languages": by_script}
    return replace(header, vectors=hashed, longest=longest, words=words)


def _read_vectors(config: "GraphRagConfig") -> str | None:
    if all(is_hashed(model_name(model)) for model in config.embedding_models.values()):
        return None
    from graphrag.query.index.meaning import hash_vectors, open_text_vectors

    try:
        return hash_vectors(open_text_vectors(config))
    except Exception:  # from any kind of store; a search that needs vectors says what is wrong
        return None


def describe_model(config: "ModelConfig") -> dict[str, object]:
    """Return a model's name and call arguments; possible secrets are replaced by their hash."""
    return {"model": model_name(config), "call_args": _hide_secrets(config.call_args)}


def _hide_secrets(values: Mapping[str, object]) -> dict[str, object]:
    return {
        name: _hash(repr(value).encode())
        if _SECRET.search(name)
        else _hide_secrets(cast("Mapping[str, object]", value))
        if isinstance(value, Mapping)
        else value
        for name, value in values.items()
    }


def model_name(config: "ModelConfig") -> str:
    """Return a model's name as ``provider/model``."""
    return f"{config.model_provider}/{config.model}"


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
