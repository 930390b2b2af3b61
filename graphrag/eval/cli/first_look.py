"""What is wrong before a model can be asked, found without the libraries that ask one.

The commands look here first and import the rest then: a path, a name or a data set that is wrong is
told at once. What is found right is read again by the command itself.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from graphrag.eval.cli.location import Place
    from graphrag.eval.config.evaluation import EvaluationConfig
    from graphrag.eval.dataset.samples import Sample


@contextmanager
def starting(quiet: bool = False) -> Generator[None]:
    """Say that the libraries are being loaded, which takes seconds."""
    from graphrag.eval.cli.terminal import open_console, working

    with working(open_console(stderr=True, quiet=quiet), "Starting"):
        yield


def look_at_questions(
    place: "Place",
    methods: str | None = None,
    metrics: str | None = None,
    columns: str | None = None,
    imdb_key: str | None = None,
    verbose: bool = False,
    budgets: str | None = None,
    builds: bool = False,
    limit: int | None = None,
) -> None:
    """Read the configuration, the flags and the questions, and look for the indexes.

    ``builds`` says that an index which is missing is going to be built.

    Raises
    ------
    typer.Exit
        With the exit code of what is wrong, which has been told.
    """

    def look() -> None:
        from graphrag.config.built_tables import find_unbuilt
        from graphrag.eval.config.evaluation import parse_config
        from graphrag.eval.dataset.samples import check_keys

        config = place.read_config()
        changes = named_changes(config, methods, metrics, columns, budgets)
        if changes:
            config = parse_config(
                {**config.model_dump(), "root": config.root, **changes}, "the flags"
            )
        samples, folders = ask_of(config, imdb_key)[0][:limit], config.project_folders()
        check_keys(samples, folders)
        used = {sample.imdb_key for sample in samples}
        find = _find_settings if builds else find_unbuilt
        for key, root in folders.items():
            if key in used:
                _check_project(root, find, f"Index {key}: ")

    _told(look, verbose)


def look_at_project(root: Path, verbose: bool = False) -> None:
    """Look whether a folder is a project that can be validated.

    Raises
    ------
    typer.Exit
        As :func:`look_at_questions`.
    """

    def look() -> None:
        from graphrag.config.built_tables import VALIDATED_TABLES, find_unbuilt

        find = partial(find_unbuilt, names=VALIDATED_TABLES, any_will_do=True)
        _check_project(root, find)

    _told(look, verbose)


def _check_project(root: Path, find: Callable[[Path], object], of: str = "") -> None:
    """Let a project be looked at by what raises SettingsError, or returns what it lacks."""
    from graphrag.config.models.prompt_files import SettingsError
    from graphrag.eval.errors import ConfigError, IndexUnavailableError

    try:
        lacking = find(root)
    except SettingsError as error:
        raise ConfigError(f"{of}{error}") from error
    if lacking is not None:
        raise IndexUnavailableError(f"{of}{lacking}")


def _find_settings(root: Path) -> None:
    from graphrag.config.settings_files import find_settings

    find_settings(root)


def look_for_suites(place: "Place", target: str) -> None:
    """Look whether it is known where the results are, and for the suites that are meant.

    Raises
    ------
    typer.Exit
        As :func:`look_at_questions`.
    """

    def look() -> None:
        from graphrag.eval.suite.cases import EVALUATION_FILE, find_suite_files

        place.store_path()
        if not (place.root / EVALUATION_FILE).is_file():
            find_suite_files(target, place.root)

    _told(look)


def look_at_place(place: "Place", needs: tuple[Path, str] | None = None) -> None:
    """Look whether it is known where the results are, and for a file that is to be read.

    ``needs`` is its path, and what to name.

    Raises
    ------
    typer.Exit
        As :func:`look_at_questions`.
    """

    def look() -> None:
        from graphrag.eval.errors import UsageError

        place.store_path()
        if needs is not None and not needs[0].exists():
            msg = f"{needs[0]} does not exist; name {needs[1]}."
            raise UsageError(msg)

    _told(look)


def look_for_runs(place: "Place", *names: str | None, question: str | None = None) -> None:
    """Look whether the store holds the runs of these names, and whether files of rows are there.

    ``question`` is the id of one that the first of them is to hold.

    Raises
    ------
    typer.Exit
        As :func:`look_at_questions`.
    """

    def look() -> None:
        from graphrag.eval.store.lookup import (
            PINNED,
            baseline_path,
            find_run,
            no_such_file,
            open_store,
        )

        store_path = place.store_path()
        asked = [name for name in names if name is not None]
        files = [Path(name) for name in asked if _is_file(name)]
        files += [baseline_path(store_path)] if PINNED in asked else []
        ids = [name for name in asked if name != PINNED and not _is_file(name)]
        if ids or question is not None:
            with open_store(store_path) as store:
                runs = store.runs()
                for name in ids:
                    find_run(runs, name, store_path)
                if question is not None:
                    run = find_run(runs, str(names[0]), store_path)
                    known = [sample.id for sample in store.samples(run.run_id)]
                    _check_question(run.run_id, known, question)
        for file in files:
            if not file.is_file():
                raise no_such_file(file, store_path)

    _told(look)


def _check_question(run_id: str, known: list[str], question: str) -> None:
    from graphrag.config.models.strict_section import as_sentence, nearest
    from graphrag.eval.errors import UsageError

    if known and question not in known:
        msg = f"Run {run_id} holds no question {question!r}{nearest(question, known)}"
        raise UsageError(as_sentence(msg))


def named_changes(
    config: "EvaluationConfig",
    methods: str | None,
    metrics: str | None,
    columns: str | None,
    budgets: str | None = None,
) -> dict[str, object]:
    """Return what the flags that name things change of a configuration.

    Raises
    ------
    ConfigError
        If columns can't be read.
    """
    from graphrag.eval.cli.options import choose_budgets, choose_metrics
    from graphrag.eval.dataset.columns import parse_columns
    from graphrag.eval.errors import ConfigError

    changes: dict[str, object] = {}
    if methods is not None:
        changes["methods"] = [m.strip() for m in methods.split(",") if m.strip()]
    if budgets is not None:
        changes = {**choose_budgets(config, budgets), **changes}
    if metrics is not None:
        changes |= choose_metrics(config, metrics)
    if columns is not None:
        try:
            named = {**config.dataset.columns, **parse_columns(columns)}
        except ValueError as error:
            raise ConfigError(f"--columns: {error}.") from error
        changes["dataset"] = {**config.dataset.model_dump(), "columns": named}
    return changes


def ask_of(
    config: "EvaluationConfig", imdb_key: str | None = None
) -> "tuple[list[Sample], tuple[str, ...]]":
    """Return the questions, of one index where it is named, and what reading them warns of.

    Raises
    ------
    ConfigError
        If no index is configured, or nothing is asked of the one that is named.
    DatasetError
        If they can't be read.
    """
    from graphrag.command_lines import config_name
    from graphrag.eval.dataset.samples import read_dataset
    from graphrag.eval.errors import ConfigError

    keys = list(config.indexes)
    if not keys:
        msg = f"{config_name()} configures no index; add one under indexes."
        raise ConfigError(msg)
    only_key = keys[0] if len(keys) == 1 else None
    dataset = read_dataset(config.dataset_path, only_key, config.dataset.columns)
    samples = dataset.samples
    if imdb_key is not None:
        samples = [sample for sample in samples if sample.imdb_key == imdb_key]
        if not samples:
            msg = f"--imdb-key {imdb_key}: no question is asked of it; use one of {keys}."
            raise ConfigError(msg)
    return samples, dataset.warnings


def _is_file(name: str) -> bool:
    return name.endswith((".json", ".csv")) or Path(name).is_file()


def _told(look: Callable[[], None], verbose: bool = False) -> None:
    from graphrag.command_lines import has_flag
    from graphrag.eval.cli.terminal import DONE, explained, open_console, working

    notes = open_console(stderr=True, quiet=has_flag("--quiet") or has_flag("--json"))

    def run() -> int:
        with working(notes, "Reading the settings", at_once=False):
            look()
        return DONE

    code = explained(run, verbose)
    if code != DONE:
        raise typer.Exit(code)
