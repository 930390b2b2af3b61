"""Builds a missing index in a folder of its own, and moves it into place once it is complete.

So an interruption never leaves half an index.
"""

import asyncio
import hashlib
import json
import logging
import re
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from graphrag.config.enums import NounPhraseExtractorType
from graphrag.config.project_settings import ProjectConfig, older_version, read_settings
from graphrag.config.settings_files import SettingsError, check_index_prompts, find_settings
from graphrag.config.table_files import SEARCHED_TABLES, find_table_files
from graphrag.eval.errors import ConfigError, IndexBuildError
from graphrag.eval.store.index_costs import COST_FILE, IndexCost, sum_steps
from graphrag.query.client.call_errors import describe_error
from graphrag.query.client.usage import phase
from graphrag.query.index.tables import fingerprint_tables, open_tables
from graphrag.query.index.vector_index import optimise_vectors
from graphrag.query.index.vector_tables import VectorStoreError, uses_lancedb
from graphrag.text.cli_hints import release_line
from graphrag.text.held_files import move
from graphrag.text.message_phrases import counted, join_names

NOUN_PHRASES = "extract_graph_nlp"
"""The workflow that makes a graph of noun phrases, without a model."""
_CORPORA = (
    *(("corpora", "brown"), ("corpora", "treebank"), ("tokenizers", "punkt")),
    *(("tokenizers", "punkt_tab"), ("taggers", "averaged_perceptron_tagger_eng")),
)
"""NLTK data that the release's extraction by patterns loads: (folder, name)."""
OnStep = Callable[[str], None]
"""Receives the name of the workflow that begins."""
OnProgress = Callable[[int, int], None]
"""Receives the number of items done, and of all items, in a part of a workflow."""
_OTHER_LENGTH = re.compile(r"has dimension (\d+), but index .* configured with vector_size \d+")

_NO_ENTITIES, _NO_RELATIONSHIPS = "No entities detected", "No relationships detected"
_TWO_WAYS = (
    "the embedded model found no name in its texts, as it knows names by their capital letters "
    "alone. Name a language model in completion_models of its settings.yaml; or do without a "
    "graph: add the line 'workflows: [load_input_documents, create_base_text_units, "
    "create_final_documents]' there, run graphrag index, and ask bm25"
)


@contextmanager
def _failed_requests() -> Generator[list[str]]:
    """Collect why requests failed: the release goes on without them, or hides the cause."""
    causes: list[str] = []

    def keep(_: logging.LogRecord) -> bool:
        if error := sys.exception():  # a record that had a key in it has no exception of its own
            causes.append(describe_error(error))
        return False

    handler, logger = logging.Handler(logging.ERROR), logging.getLogger("graphrag_llm")
    handler.addFilter(keep)
    logger.addHandler(handler)
    try:
        yield causes
    finally:
        logger.removeHandler(handler)


def is_built(root: Path) -> bool:
    """Return whether a project's output folder has every table of an index."""
    config = _read(root)
    output, kind = Path(str(config.output_storage.base_dir)), config.table_provider.type
    return len(find_table_files(output, SEARCHED_TABLES, kind)) == len(SEARCHED_TABLES)


def check_form(key: str, root: Path) -> None:
    """Raise ConfigError for settings of graphrag 0.3 to 2: they are only converted in part."""
    version = older_version(root)
    if version is not None:
        raise ConfigError(
            f"Index {key} lacks tables, and can't be built from settings of graphrag {version}, of "
            "whose indexing only a part is known here. Leave --index out to ask what its tables "
            f"serve; or write settings of graphrag 3 with: {release_line('init', '--root')} NEW, "
            f"copy the models of {find_settings(root)} and the texts there, and name NEW in indexes"
        )


def check_language(root: Path) -> None:
    """Raise ConfigError if a graph of noun phrases needs language data that is not installed.

    The release would try to download it, and build an index without a graph. The error says what is
    missing and how to get it.
    """
    config = _read(root)
    if NOUN_PHRASES not in (config.workflows or ()):
        return
    analyzer = config.extract_graph_nlp.text_analyzer
    if analyzer.extractor_type == NounPhraseExtractorType.RegexEnglish:
        if missing := _missing_corpora():
            raise ConfigError(
                f"Index {root} can't be built: its fast extraction needs {join_names(missing)} of "
                f"NLTK; get them with: {sys.executable} -m nltk.downloader {' '.join(missing)}; or "
                "set extract_graph_nlp.text_analyzer.extractor_type to syntactic_parser, and "
                "model_name there to a spaCy model that you have."
            )
        return
    from spacy.util import is_package

    model = str(analyzer.model_name)
    if not is_package(model) and not Path(model).exists():
        raise ConfigError(
            f"Index {root} can't be built: its fast extraction needs the spaCy model {model}; get "
            f"it with: {sys.executable} -m spacy download {model}"
        )


def _missing_corpora() -> list[str]:
    import nltk

    find = cast("Callable[[str], object]", nltk.data.find)
    missing: list[str] = []
    for folder, name in _CORPORA:
        try:
            find(f"{folder}/{name}")
        except LookupError:
            missing.append(name)
    return missing


def unfinished_folder(root: Path) -> Path:
    """Return the folder next to the output folder in which a project's index is built."""
    output = Path(str(_read(root).output_storage.base_dir))
    return output.with_name(f"{output.name}.building")


@contextmanager
def held_for_building(root: Path) -> Generator[None]:
    """Keep every other process from building a project's index within the block.

    It would pay for the same index. Raises IndexBuildError if another process is building it, or if
    the lock can't be written next to the output folder.
    """
    from filelock import FileLock, Timeout

    path = _lock_of(unfinished_folder(root))
    lock = FileLock(path, timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        msg = f"Another process is building the index of {root}; wait for it, then run this again"
        raise IndexBuildError(msg) from error
    except OSError as error:
        raise _not_writable(root, error) from error
    try:
        yield
    finally:
        _remove(path)  # before the release: another process could take it in between
        lock.release()


def remove_unfinished(folder: Path) -> None:
    """Remove the files of an unfinished build, just before the process ends."""
    shutil.rmtree(folder, ignore_errors=True)
    _remove(_lock_of(folder))


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _remove(lock: Path) -> None:
    with suppress(OSError):  # some systems can't remove a lock that is held
        lock.unlink()


def _not_writable(root: Path, error: OSError) -> IndexBuildError:
    return IndexBuildError(
        f"Building the index of {root} failed: {error}; name a folder that you can write "
        "in output_storage.base_dir of its settings.yaml"
    )


async def build_index(
    root: Path,
    on_step: OnStep,
    on_progress: OnProgress | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> float:
    """Build a project's index by the standard method and return the seconds it took.

    The index is built in a folder next to the output folder and moved there when it is complete; an
    incomplete output folder is kept under another name. The files of an unfinished build are
    removed, but replies of models are in the project's cache, so that the next build does not pay
    for them again. Vectors are indexed if there are enough of them. The cost is stored with the
    tables.

    ``warn`` receives a line if requests failed and were passed over. Raises ConfigError if the
    settings can't be used, and IndexBuildError, which names the workflow and the cause, if one
    failed.
    """
    started = time.perf_counter()
    config = _read(root)
    check_language(root)
    try:
        check_index_prompts(config)
    except SettingsError as error:
        raise ConfigError(f"Index {root}: {error}") from error
    output, building = Path(str(config.output_storage.base_dir)), unfinished_folder(root)
    shutil.rmtree(building, ignore_errors=True)
    redirected = _redirect(config, output, building)
    from graphrag.query.client.indexing_replies import count_replies, watch_replies

    counting = count_replies(redirected)
    seconds: dict[str, float] = {}

    def begin(step: str) -> None:
        on_step(step)
        seconds[step] = time.perf_counter()

    try:
        with watch_replies() as replies, _failed_requests() as causes:
            try:
                await _run(counting or redirected, root, begin, on_progress)
            except IndexBuildError as error:
                if not causes:
                    raise
                msg = (
                    f"{str(error).rstrip('.')}; the last request that failed: "
                    f"{causes[-1].rstrip('.')}. Check model, api_base and api_key in "
                    f"{find_settings(root)}, then begin again; replies that came are kept"
                )
                raise IndexBuildError(msg) from error
        if causes:
            warn(
                f"{counted(len(causes), 'request')} failed while the index of {root} was built, "
                f"e.g. {causes[-1]}; it lacks what they were to give. To build it again, delete "
                f"{output}; replies that came are in the project's cache"
            )
        if _has_vectors(redirected):
            begin("optimise_vectors")
            await asyncio.to_thread(optimise_vectors, redirected)
        ends = [*list(seconds.values())[1:], time.perf_counter()]
        cost = IndexCost(
            fingerprint=await fingerprint_tables(redirected),
            seconds={k: end - begun for (k, begun), end in zip(seconds.items(), ends, strict=True)},
            documents=await _digest_documents(redirected),
            steps=None if counting is None else sum_steps(replies),
        )
        (building / COST_FILE).write_text(json.dumps(cost.to_dict(), indent=2), encoding="utf-8")
    except BaseException as error:
        shutil.rmtree(building, ignore_errors=True)
        if isinstance(error, VectorStoreError):
            msg = f"Building the index of {root} failed in optimise_vectors: {error}"
            raise IndexBuildError(msg) from error
        if isinstance(error, OSError):
            raise _not_writable(root, error) from error
        raise
    _put_in_place(building, output)
    return time.perf_counter() - started


async def _run(
    config: ProjectConfig, root: Path, on_step: OnStep, on_progress: OnProgress | None
) -> None:
    """Run the workflows without the release's profiler, which traces every allocation."""
    from graphrag_cache import create_cache
    from graphrag_storage import create_storage
    from graphrag_storage.tables.table_provider_factory import create_table_provider

    from graphrag.callbacks.noop_workflow_callbacks import NoopWorkflowCallbacks
    from graphrag.index.run.utils import create_run_context
    from graphrag.index.workflows.factory import PipelineFactory  # seconds, the first time
    from graphrag.logger.progress import Progress

    class Watched(NoopWorkflowCallbacks):
        def progress(self, progress: Progress) -> None:
            if on_progress is not None and progress.total_items:
                on_progress(progress.completed_items or 0, progress.total_items)

    output = create_storage(config.output_storage)
    context = create_run_context(
        input_storage=create_storage(config.input_storage),
        output_storage=output,
        output_table_provider=create_table_provider(config.table_provider, output),
        cache=create_cache(config.cache),
        callbacks=Watched(),
    )
    for name, workflow in PipelineFactory.create_pipeline(config).run():
        on_step(name)
        try:
            with phase(name):
                result = await workflow(config, context)
        except Exception as error:
            cause = " ".join(str(error).split()) or type(error).__name__
            if match := _OTHER_LENGTH.search(cause):
                cause += f"; set vector_store.vector_size in its settings.yaml to {match[1]}"
            msg = f"Building the index of {root} failed in {name}: {cause}"
            if _NO_ENTITIES in cause and _extracts_by_rules(config):
                msg = f"The index of {root} can't be built: {_TWO_WAYS}"
            if _NO_RELATIONSHIPS in cause and _extracts_by_rules(config):
                msg = f"{msg.rstrip('.')}. No sentence of these texts has two names; add texts."
            raise IndexBuildError(msg) from error
        if result.stop:
            break


def _extracts_by_rules(config: ProjectConfig) -> bool:
    model = config.completion_models.get(config.extract_graph.completion_model_id)
    return model is not None and model.type == "offline"


async def _digest_documents(config: ProjectConfig) -> str | None:
    """Return a digest of an index's texts that does not depend on their order and names."""
    tables = await open_tables(config, ("documents",))
    frame = tables.columns("documents", ["text"]) if tables.has("documents") else None
    if frame is None:
        return None
    texts = cast("list[object]", frame["text"].tolist())
    digests = sorted(hashlib.sha256(str(text).encode()).digest() for text in texts)
    return hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()


def _has_vectors(config: ProjectConfig) -> bool:
    return uses_lancedb(config) and Path(str(config.vector_store.db_uri)).is_dir()


def _put_in_place(building: Path, output: Path) -> None:
    try:
        if output.exists():
            move(output, output.with_name(f"{output.name}.incomplete-{int(time.time())}"))
        move(building, output)
    except OSError as error:
        raise IndexBuildError(
            f"The index is built in {building}, and can't be moved to {output}: {error.strerror}; "
            "close what has files of it open, and rename the folder"
        ) from error


def _redirect(config: ProjectConfig, output: Path, building: Path) -> ProjectConfig:
    changes = {"output_storage": {"base_dir": str(building)}}
    vectors = Path(str(config.vector_store.db_uri))
    if vectors.is_relative_to(output):
        changes["vector_store"] = {"db_uri": str(building / vectors.relative_to(output))}
    return config.model_copy(
        update={
            name: getattr(config, name).model_copy(update=change)
            for name, change in changes.items()
        }
    )


def _read(root: Path) -> ProjectConfig:
    try:
        return read_settings(root)
    except SettingsError as error:
        raise ConfigError(str(error)) from error
