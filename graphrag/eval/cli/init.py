"""Defines ``graphrag eval init``, which writes a configuration and questions, or a full project.

The embedded models of --offline are rules and word vectors that come with gtog.
"""

import json
import re
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from graphrag.eval.cli.command import DRAFT_FILE, DraftFlags, Quiet, option
from graphrag.eval.cli.interrupts import run_coroutine
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, starting
from graphrag.eval.errors import ConfigError, StoreError, UsageError
from graphrag.text.cli_hints import eval_line, release_line
from graphrag.text.console import open_console, say
from graphrag.text.encodings import check_encoding
from graphrag.text.message_phrases import counted, join_names

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig

_METHODS = ("tog", "ppr", "bm25", "local", "basic")
_LEAST_TOKENS, _MOST_TOKENS = 600, 4000
_BYTES_A_TOKEN = 4
_N_DRAFTED = 24
_HERE = files("graphrag.eval.cli")
SETTINGS = _HERE.joinpath("offline_settings.yaml").read_text("utf-8")
CONFIG_TEMPLATE = _HERE.joinpath("eval_config.yaml.in").read_text("utf-8")
DATASET_TEMPLATE = "id,question,answer,evidence,tags"


def init(
    paths: Paths,
    input: Annotated[Path | None, option("Copy the texts of this folder.", "--input")] = None,
    encoding: Annotated[
        str | None, option("Encoding of the texts, such as gbk; UTF-8 needs none.", "--encoding")
    ] = None,
    offline: Annotated[
        bool, option("Make and build a project with the embedded models.", "--offline")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Write a configuration and a dataset template next to a project.

    With --offline it makes the project, too: it builds the index with the embedded models and has
    them draft questions, so that it runs at once, without a key. With --input it copies the texts
    of a folder into the project first.
    """
    root, dataset = paths.root, Path("eval") / "questions.csv"
    if root.exists() and not root.is_dir():
        raise UsageError(f"--root {root} is a file; name a folder for the project.")
    if encoding is not None:
        _check_encoding(encoding, has_input=input is not None)
    texts = {} if input is None else _read(input, root, encoding)
    has_settings = _check_settings(root, offline)
    for name, text in texts.items():
        write_template(root / "input" / name, text)
    if texts:
        say(f"{counted(len(texts), 'text')} in {root / 'input'}.", quiet=quiet)
    if offline:
        if not has_settings:
            write_template(root / "settings.yaml", SETTINGS)
        dataset = _build(root, quiet) or dataset
    messages, path = write_config(root, dataset), root / dataset
    try:
        path = root / Paths(root).read_config().dataset.path
    except ConfigError as error:  # of a configuration that was there
        messages.append(f"Warning: {error}")
    if path == root / dataset and dataset != DRAFT_FILE:
        messages.append(write_template(path, f"{DATASET_TEMPLATE}\n"))
    for message in (*messages, f"Next: {_next_step(root, path, offline)}"):
        say(message, quiet=quiet)
    return DONE


def _check_encoding(encoding: str, has_input: bool) -> None:
    """Raise UsageError for an unknown encoding, and for one that is given without --input."""
    try:
        check_encoding(encoding)
    except ValueError as error:
        raise UsageError(f"--encoding: {error}.") from error
    if not has_input:
        raise UsageError("--encoding is that of the texts of --input; name their folder.")


def _check_settings(root: Path, offline: bool) -> bool:
    """Return whether a project has settings.

    Raises ConfigError if it has none and --offline is not given, and if it has some that name other
    models than the embedded ones and --offline is given.
    """
    from graphrag.config.settings_files import SettingsError, find_settings

    try:
        settings = find_settings(root)
    except SettingsError as error:
        if offline:
            return False
        how = eval_line("init", "--offline", "--root", root)
        msg = f"{str(error).rstrip('.')}; or, with the embedded models: {how}"
        if _has_tables(root / "output"):
            where = f"{root / 'output'} has an index, and {root} no settings.yaml to say"
            init = release_line("init", "--root", root)
            msg = (
                f"{where} which models answer; write one with: {init}, name the embedding "
                f"model that made the index in it; or, with the embedded models: {how}"
            )
        raise ConfigError(msg) from error
    if offline and not _asks_embedded_models(root):
        msg = f"{settings} is there and names its own models; leave --offline out"
        raise ConfigError(f"{msg}, or name another --root.")
    return True


def _next_step(root: Path, dataset: Path, offline: bool) -> str:
    """Return the next step, as a clause that ends with a command."""
    is_built = _is_built(root)
    if offline and not is_built and not any((root / "input").rglob("*.txt")):
        line = eval_line("init", "--offline", "--root", root)
        return f"put your texts into {root / 'input'}, as .txt, then: {line}"
    flags = [] if is_built or _is_of_older(root) else ["--index"]
    line = eval_line("--root", root, *flags)
    if (
        not dataset.is_file()
        or dataset.read_text("utf-8-sig", "replace").strip() == DATASET_TEMPLATE
    ):
        return f"put questions into {dataset}, then: {line}"
    return line


def _has_tables(output: Path, kind: str = "parquet") -> bool:
    """Return whether a folder contains a table of an index."""
    from graphrag.config.table_files import SEARCHED_TABLES, find_table_files

    return bool(find_table_files(output, SEARCHED_TABLES, kind))


def _is_of_older(root: Path) -> bool:
    """Return whether settings are of an earlier graphrag, from which no index is built."""
    from graphrag.config.project_settings import older_version
    from graphrag.config.settings_files import SettingsError

    try:
        return older_version(root) is not None
    except SettingsError:
        return False


def _asks_embedded_models(root: Path) -> bool:
    """Return whether all models in a project's settings are embedded ones."""
    from graphrag.config.project_settings import read_settings
    from graphrag.config.settings_files import SettingsError

    try:
        config = read_settings(root)
    except SettingsError:
        return False
    models = [*config.completion_models.values(), *config.embedding_models.values()]
    return bool(models) and all(model.type == "offline" for model in models)


def _read(folder: Path, root: Path, encoding: str | None) -> dict[str, str]:
    """Return name -> text of the files to copy into a project's input; print which are left out.

    Raises UsageError if the folder contains the project, or the project has other texts.
    """
    from graphrag.eval.dataset.files import read_texts

    to = root / "input"
    if folder.resolve() != to.resolve() and root.resolve().is_relative_to(folder.resolve()):
        msg = f"--input {folder} contains the project's folder {root} as well"
        raise UsageError(f"{msg}; name a --root outside of it.")
    texts = read_texts(folder, encoding)
    for path in to.rglob("*") if folder.resolve() != to.resolve() else ():
        name = path.relative_to(to).as_posix()
        if path.is_file() and texts.documents.get(name) != path.read_text("utf-8", "replace"):
            msg = f"{path} is there and would be mixed with the texts of {folder}"
            raise UsageError(f"{msg}; nothing is written. Name another --root.")
    for warning in texts.warnings:
        say(f"Warning: {warning}", stderr=True)
    if left_out := texts.left_out:
        name, why = next(iter(left_out.items()))
        such = f"such as {name} ({why})" if len(left_out) > 1 else f"{name} ({why})"
        say(f"Left out {counted(len(left_out), 'file')}, {such}.", stderr=True)
    return dict(texts.documents)


def _build(root: Path, quiet: bool) -> Path | None:
    """Build an index and draft questions with the embedded models; return the dataset, if any.

    Without texts nothing is built. An index that is there stays as it is.
    """
    is_there = _is_built(root)
    if not is_there and not any((root / "input").rglob("*.txt")):
        return None
    with starting(quiet):
        from graphrag.eval.cli.draft_questions import draft_questions
        from graphrag.eval.cli.evaluate import build_missing
    notes, missing = open_console(stderr=True, quiet=quiet), {root.resolve().name: root}
    warn = partial(notes.print, "Warning:")
    if not is_there:
        run_coroutine(build_missing(missing, notes, warn))
    draft_questions(Paths(root), DraftFlags(n=_N_DRAFTED, quiet=True))
    return DRAFT_FILE if (root / DRAFT_FILE).exists() else None


def _choose_budget(config: "GraphRagConfig", counts: Sequence[int]) -> int:
    """Return a context budget: a quarter of a project's tokens, rounded to hundreds, at most 4000.

    It is enough for two text units or for all text, and is at least 600. ``counts``: tokens of
    the text units; if none are built, the sizes of the input files count. Without any text it is
    4000.
    """
    if counts:
        return _part_of(sum(counts), max(counts))
    ending = "txt" if config.input.type == "text" else config.input.type
    try:
        is_read = re.compile(config.input.file_pattern or rf"\.{ending}$").search
        paths = Path(str(config.input_storage.base_dir)).rglob("*")
        read = [path for path in paths if is_read(str(path)) and path.is_file()]
        sizes = [path.stat().st_size / _BYTES_A_TOKEN for path in read]
    except (OSError, re.error):
        sizes = []
    if not any(sizes):
        return _MOST_TOKENS
    # No text unit is longer than its document.
    return _part_of(sum(sizes), min(config.chunking.size, max(sizes)))


def _part_of(total: float, longest: float) -> int:
    budget = max(min(total / 4, _MOST_TOKENS), min(2 * longest, total), _LEAST_TOKENS)
    return int(round(budget, -2))


def _look_at(root: Path) -> tuple[list[str], int, list[str]]:
    """Return the methods that can search a project, a context budget that suits it, and notes."""
    from graphrag.config.project_settings import UnsetVariableError, older_note
    from graphrag.eval.metrics.index_view import IndexView
    from graphrag.eval.runner.indexes import read_model_settings
    from graphrag.query.index.header import find_lacks

    key, notes = root.resolve().name, list[str]()
    try:
        try:
            header = read_model_settings({key: root})[key]
        except ConfigError as error:
            if not isinstance(error.__cause__, UnsetVariableError):
                raise
            notes.append(f"Warning: {error}")
            header = read_model_settings({key: root}, assume_set=True)[key]
    except ConfigError as error:
        return [*_METHODS], _MOST_TOKENS, [*notes, f"Warning: {error}"]
    if note := older_note(root):
        notes.append(f"Note: {note}.")
    output, kind = Path(header.config.output_storage.base_dir or ""), header.config.table_provider
    if not _is_built(root) and not _has_tables(output, kind.type):
        return [*_METHODS], _choose_budget(header.config, ()), notes
    lacks = run_coroutine(find_lacks(header.config, root, _METHODS))
    by_lack: dict[str, list[str]] = {}
    for method, lack in lacks.items():
        by_lack.setdefault(lack, []).append(method)
    if len(lacks) == len(_METHODS):
        notes.append(
            f"Warning: no method can search the index as it is: {'; '.join(by_lack)}. "
            f"eval_config.yaml names {join_names(_METHODS)}, which a complete index serves."
        )
        return [*_METHODS], _choose_budget(header.config, ()), notes
    for lack, names in by_lack.items():
        verb = "is" if len(names) == 1 else "are"
        notes.append(f"Warning: {join_names(names)} {verb} left out: {lack}.")
    methods = [name for name in _METHODS if name not in lacks]
    view = run_coroutine(IndexView.open(header, ("text_units",)))
    return methods, _choose_budget(header.config, view.token_counts() or ()), notes


def _is_built(root: Path) -> bool:
    """Return whether a project has text units, which every search needs."""
    from graphrag.config.settings_files import find_unbuilt

    return find_unbuilt(root, {"": ("text_units",)}) is None


def write_config(root: Path, dataset: Path) -> list[str]:
    """Write a project's configuration unless it has one; return the lines to print about it."""
    name = root.resolve().name
    key = name if re.fullmatch(r"[A-Za-z_][\w.-]*", name) else json.dumps(name)  # 2024 is a number
    methods, budget, warnings = _look_at(root)
    config = CONFIG_TEMPLATE.format(
        dataset=dataset.as_posix(),
        key=key,
        project=".",
        methods=", ".join(methods),
        budget=budget,
    )
    file = root / "eval_config.yaml"
    return [*([] if file.exists() else warnings), write_template(file, config)]


def write_template(path: Path, content: str) -> str:
    """Write a file unless it exists; return a sentence on that. May raise StoreError."""
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        if isinstance(error, FileExistsError) and path.is_file():  # not where its folder is to be
            return f"{path} exists and is left as it is."
        raise StoreError(f"{path} can't be written: {error.strerror}.") from error
    return f"Wrote {path}."
