"""Converts settings of graphrag 0.3 to 2 into those of graphrag 3.

It converts models, storage, vectors and searches, in memory; the settings file stays as it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

Values = dict[str, object]
VECTOR_TABLES = {
    "entity_description": "entity-description",
    "text_unit_text": "text_unit-text",
    "community_full_content": "community-full_content",
}
"""Embedding -> the end of its table's name in graphrag 1 and 2, after the container's name."""

_CHAT, _EMBEDDING = "default_completion_model", "default_embedding_model"
_RENAMED = {"default_chat_model": _CHAT}
_ASKING = (
    *("local_search", "basic_search", "global_search", "drift_search", "tog_search", "ppr_search"),
    *("extract_graph", "summarize_descriptions", "extract_claims", "community_reports"),
)
_EMBEDDING_SECTIONS = ("local_search", "basic_search", "drift_search", "tog_search", "ppr_search")
_SECTIONS = {
    "entity_extraction": "extract_graph",
    "claim_extraction": "extract_claims",
    **{name: name for name in (*_ASKING, "cluster_graph", "extract_graph_nlp", "snapshots")},
}
"""Section of graphrag 1 or 2 -> section of graphrag 3 with the same settings."""
_KEYS = {
    "local_search": {"top_k_mapped_entities": "top_k_entities", "max_tokens": "max_context_tokens"},
    "global_search": {"max_tokens": "max_context_tokens"},
    "community_reports": {"prompt": "graph_prompt"},
}
"""Section -> old key -> new key."""
_CALL_ARGS = (
    *("temperature", "top_p", "n", "max_tokens", "max_completion_tokens"),
    *("frequency_penalty", "presence_penalty", "reasoning_effort"),
)
_NOT_CARRIED = ("organization", "proxy", "audience", "cognitive_services_endpoint")
_MODEL_TYPES = ("chat", "embedding", "openai", "openai_chat", "openai_embedding")
_AZURE = "azure_"
_STORAGE = ("type", "base_dir", "connection_string", "container_name", "database_name")
_ENV_KEY = "GRAPHRAG_API_KEY"


@dataclass(frozen=True, slots=True)
class OlderSettings:
    """Settings converted to the form of graphrag 3.

    ``version``: the version that they were written for, 1 (for 0.3 to 1) or 2. ``left_out``:
    sentences about keys of models that graphrag 3 lacks and that change which model answers,
    each with the line to write.
    """

    values: Values
    version: int
    left_out: tuple[str, ...]

    @property
    def note(self) -> str:
        """One line about the converted settings and those that could not be converted."""
        note = (
            f"the settings have the form of graphrag {self.version}: models, storage, vectors and "
            "searches are read from them in memory, and the file stays as it is"
        )
        return "; ".join((note, *self.left_out))


def read_older(values: Values, variables: Mapping[str, str] | None = None) -> OlderSettings | None:
    """Convert settings of graphrag 0.3 to 2 into those of graphrag 3; None for any other settings.

    ``variables``: those of the environment and of ``.env``.
    """
    if "completion_models" in values or "embedding_models" in values:
        return None
    if isinstance(values.get("models"), Mapping):
        version, models = 2, dict(_models_of_2(values))
    elif isinstance(values.get("llm"), Mapping) or isinstance(values.get("embeddings"), Mapping):
        version, models = 1, dict(_models_of_1(values))
    else:
        return None
    left_out: list[str] = []
    result: Values = {"completion_models": {}, "embedding_models": {}}
    for name, model in models.items():
        kind = "embedding_models" if _is_embedding(model) else "completion_models"
        cast("Values", result[kind])[name] = _convert_model(name, kind, model, variables, left_out)
    result |= _read_sections(values, models)
    result |= _read_storage(values, version)
    return OlderSettings(result, version, tuple(left_out))


def _section(values: Mapping[str, object], *names: str) -> Values:
    """Return the section at a path of keys, empty if there is none."""
    for name in names:
        part = values.get(name)
        values = cast("Values", part) if isinstance(part, Mapping) else {}
    return dict(values)


def _models_of_2(values: Values) -> Iterator[tuple[str, Values]]:
    models = _section(values, "models")
    for name in models:
        yield _RENAMED.get(name, name), _section(models, name)


def _models_of_1(values: Values) -> Iterator[tuple[str, Values]]:
    chat = _section(values, "llm")
    yield _CHAT, {"type": "openai_chat", **chat}
    key = {"api_key": chat["api_key"]} if chat.get("api_key") else {}
    embedding = {"type": "openai_embedding", **key, **_section(values, "embeddings", "llm")}
    yield _EMBEDDING, embedding
    for section in ("entity_extraction", "summarize_descriptions", "community_reports"):
        if own := _section(values, section, "llm"):
            yield f"{section}_model", {"type": "openai_chat", **chat, **own}


def _is_embedding(model: Values) -> bool:
    return "embedding" in str(model.get("type", ""))


def _convert_model(
    name: str,
    kind: str,
    model: Values,
    variables: Mapping[str, str] | None,
    left_out: list[str],
) -> Values:
    type_name = str(model.get("type", ""))
    is_azure = type_name.startswith(_AZURE)
    provider = "azure" if is_azure else str(model.get("model_provider") or "openai")
    if type_name.removeprefix(_AZURE) not in _MODEL_TYPES:
        left_out.append(
            f"the model {name} is of type {type_name}, which graphrag 3 does not know; name its "
            f"provider: {kind}: {{{name}: {{model_provider: ..., model: {model.get('model')}}}}}"
        )
    left_out += [
        f"{key} of the model {name} is not read; write it as {kind}.{name}.call_args.{key}"
        for key in _NOT_CARRIED
        if model.get(key)
    ]
    converted: Values = {"model_provider": provider, "model": model.get("model") or ""}
    converted |= {key: model[key] for key in ("api_base", "api_version") if model.get(key)}
    key = model.get("api_key") or (variables or {}).get(_ENV_KEY)
    is_managed = "managed" in str(model.get("auth_type", "")) or (is_azure and not key)
    converted["auth_method"] = "azure_managed_identity" if is_managed else "api_key"
    if not is_managed and key:
        converted["api_key"] = key
    if provider == "azure" and model.get("deployment_name"):
        converted["azure_deployment_name"] = model["deployment_name"]
    if kind == "completion_models":
        args = {key: model[key] for key in _CALL_ARGS if model.get(key) is not None}
        converted["call_args"] = args
    retries = model.get("max_retries")
    if isinstance(retries, int) and retries > 0:
        converted["retry"] = {"type": "exponential_backoff", "max_retries": retries}
    limits = {
        f"{unit}_per_period": limit
        for unit in ("requests", "tokens")
        if isinstance(limit := model.get(f"{unit}_per_minute"), int) and limit > 0
    }
    if limits:
        converted["rate_limit"] = {"type": "sliding_window", "period_in_seconds": 60, **limits}
    return converted


def _read_sections(values: Values, models: Mapping[str, Values]) -> Values:
    sections: Values = {}
    for old, new in _SECTIONS.items():
        section = _section(values, old)
        for key, renamed in _KEYS.get(new, {}).items():
            if key in section:
                section.setdefault(renamed, section.pop(key))
        own = section.pop("llm", None) and f"{old}_model"
        if new in _ASKING:
            asked = section.pop("chat_model_id", None) or section.pop("model_id", None) or own
            section.setdefault("completion_model_id", _named(asked, _CHAT, models, False))
        if new in _EMBEDDING_SECTIONS:
            embeds = section.get("embedding_model_id")
            section["embedding_model_id"] = _named(embeds, _EMBEDDING, models, True)
        if section:
            sections[new] = {**_section(sections, new), **section}
    embed_text = _section(values, "embed_text")
    asked = embed_text.pop("model_id", None) or embed_text.get("embedding_model_id")
    sections["embed_text"] = {"embedding_model_id": _named(asked, _EMBEDDING, models, True)}
    return sections


def _named(asked: object, default: str, models: Mapping[str, Values], is_embedding: bool) -> str:
    """Return the model name asked for, else the default one, else the first of its kind."""
    name = _RENAMED.get(str(asked), str(asked)) if asked else default
    if name in models or asked:
        return name
    names: Iterable[str] = (n for n, m in models.items() if _is_embedding(m) == is_embedding)
    return next(iter(names), default)


def _read_storage(values: Values, version: int) -> Values:
    output = _section(values, "output" if version == 2 else "storage")
    if version == 1:
        output = output or _section(values, "output")
    read, storage = _section(values, "input"), _section(values, "input", "storage")
    chunks = _section(values, "chunks")
    encoding = chunks.get("encoding_model") or values.get("encoding_model")
    converted: Values = {
        "input": {
            **{
                key: read[key]
                for key in ("file_pattern", "text_column", "title_column")
                if read.get(key)
            },
            "type": read.get("file_type") or "text",
            "encoding": read.get("encoding") or read.get("file_encoding") or "utf-8",
        },
        "input_storage": _pick_storage(storage or read),
        "output_storage": _pick_storage(output),
        "vector_store": _read_vector_store(values, version),
    }
    sizes = {key: chunks[key] for key in ("size", "overlap") if isinstance(chunks.get(key), int)}
    if sizes:
        named = {"encoding_model": encoding} if encoding else {}
        converted["chunking"] = {"type": "tokens", **sizes, **named}
    return converted


def _pick_storage(section: Values) -> Values:
    """Return the storage settings that graphrag 3 reads; the type is ``file`` by default."""
    picked = {key: section[key] for key in _STORAGE if section.get(key)}
    if url := section.get("storage_account_blob_url"):
        picked["account_url"] = url
    if url := section.get("cosmosdb_account_url"):
        picked["account_url"] = url
    return {**picked, "type": picked.get("type") or "file"}


def _read_vector_store(values: Values, version: int) -> Values:
    if version == 1:
        store = _section(values, "embeddings", "vector_store")
    else:
        stores = _section(values, "vector_store")
        named = _section(values, "embed_text").get("vector_store_id")
        names = [name for name in (named, *stores) if name in stores]
        store = _section(stores, str(names[0])) if names else {}
        if not store and "type" in stores:  # one store, without a name
            store = stores
    container = str(store.get("container_name") or "default")
    kept = ("type", "db_uri", "url", "api_key", "audience", "connection_string", "database_name")
    schemas = {name: {"index_name": f"{container}-{end}"} for name, end in VECTOR_TABLES.items()}
    return {
        "type": "lancedb",
        **{key: store[key] for key in kept if store.get(key)},
        "index_schema": schemas,
    }


_LONE_DOLLAR = re.compile(r"\$(?![{_A-Za-z$])")


def double_lone_dollars(text: str) -> str:
    """Double each lone ``$`` in a settings text of graphrag 0.3 to 1, as graphrag 3 expects.

    A text that has ``completion_models`` or ``models`` is of a later version and returned
    unchanged.
    """
    if re.search(r"^(completion_models|models)\s*:", text, re.MULTILINE):
        return text
    pairs = re.split(r"(\$\$)", text)
    return "".join(p if p == "$$" else _LONE_DOLLAR.sub("$$$$", p) for p in pairs)
