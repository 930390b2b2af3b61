"""Defines ``graphrag eval validate``, which checks built indexes and can index their vectors."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from graphrag.eval.cli.command import Quiet, Verbose, option
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, FAILED, starting, working
from graphrag.eval.errors import ConfigError, IndexUnavailableError, StoreError, UsageError
from graphrag.eval.report.table import Line, Part, Table, show
from graphrag.eval.store.atomic_files import write_file
from graphrag.eval.validation.report import Metric, PipelineValidationReport, format_metric
from graphrag.text.console import open_console, say
from graphrag.text.message_phrases import counted


def validate(
    paths: Paths,
    fix: Annotated[
        bool,
        option(
            "First index the vectors, of every project of the configuration, so that every "
            "search method looks them up fast.",
            "--fix",
        ),
    ] = False,
    questions: Annotated[
        bool, option("Check only the configuration and its questions.", "--questions")
    ] = False,
    json: Annotated[Path | None, option("Also write the report to this file.")] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> int:
    """Check the built indexes; --fix also indexes their vectors.

    Checks the project in --root or, in a folder that has a configuration and no project, every
    index that the configuration names; then the indexes that only variants use. Shows several side
    by side. Exit code 100: a check failed. --questions needs no index and reads no model's
    settings.
    """
    from graphrag.config.settings_files import find_unbuilt
    from graphrag.config.table_files import VALIDATED_TABLES

    if questions:
        if fix or json:
            msg = "--questions writes nothing; give the other options in a command of their own."
            raise UsageError(msg)
        return check_questions(paths, quiet)

    roots = find_roots(paths, prefer_config=fix, of_variants=json is None)
    if len(roots) > 1 and json:
        msg = "Several projects are checked; name one by --root for --json."
        raise UsageError(msg)
    for root in roots.values():
        if (lacking := find_unbuilt(root, {"": VALIDATED_TABLES}, any_will_do=True)) is not None:
            raise IndexUnavailableError(lacking)
    with starting(quiet):
        from graphrag.eval.validation.validators import validate_index

    if fix:
        index_vectors(roots, quiet)
    is_sound = True
    metrics: dict[str, Mapping[str, Metric]] = {}
    for name, root in roots.items():
        with working(open_console(stderr=True, quiet=quiet), f"Checking the index of {root}"):
            report = validate_index(root)
        metrics[name] = report.metrics()
        try:
            if json is not None:
                write_file(json, report.to_json() + "\n")
        except StoreError as error:
            raise UsageError(str(error)) from error
        answer = Line(report.summary, "green" if report.overall_passed else "bold red")
        details = [] if quiet else [*list_phases(report), *_list_languages(root)]
        show(open_console(), [answer, *details])
        is_sound = is_sound and report.overall_passed
    if len(metrics) > 1 and not quiet:
        show(open_console(), [compare_indexes(metrics)])
    return DONE if is_sound else FAILED


def _list_languages(root: Path) -> Iterator[Part]:
    """Yield a line with the languages of an index's texts, if its settings can be read."""
    from graphrag.config.project_settings import read_settings
    from graphrag.config.settings_files import SettingsError
    from graphrag.query.index.header import index_languages, open_tables
    from graphrag.query.index.text_languages import describe_languages

    try:
        config = read_settings(root)
    except SettingsError:
        return
    tables = asyncio.run(open_tables(config, ("text_units",)))
    languages = index_languages(config, tables)
    yield Line(describe_languages(languages, are_named=bool(config.languages)))


def list_phases(report: PipelineValidationReport) -> Iterator[Part]:
    """Yield a table, a line of metrics, and the warnings of each phase of a report."""
    for phase in report.phases:
        yield Table(
            title=phase.name,
            columns=[("check", "text"), ("result", "text"), ("finding", "text")],
            rows=[
                [
                    check.name,
                    check.status,
                    ": ".join(filter(None, (check.message, ", ".join(map(_trim, check.examples))))),
                ]
                for check in phase.checks
            ],
        )
        metrics = (f"{name} {format_metric(value)}" for name, value in phase.metrics.items())
        yield Line(", ".join(metrics))
        yield from (Line(f"Warning: {warning}", "yellow") for warning in phase.warnings)


_COMPARED = {
    "units": "chunks_count",
    "entities": "entities_count",
    "relationships": "relationships_count",
    "coverage": "coverage_ratio",
    "connectivity": "connectivity",
    "vectors": "text_unit_text_vectors",
}


def compare_indexes(metrics: Mapping[str, Mapping[str, Metric]]) -> Table:
    """Return a table of the contents of each index, side by side.

    ``metrics``: name of an index -> the metrics of its report.
    """
    return Table(
        title="The indexes side by side",
        columns=[("index", "text"), *((heading, "count") for heading in _COMPARED)],
        rows=[
            [name, *(format_metric(values.get(metric)) for metric in _COMPARED.values())]
            for name, values in metrics.items()
        ],
        note="units: text units; vectors: theirs; coverage: share of each document's text in its "
        "text units; connectivity: joined pairs of entities for each entity.",
    )


def _trim(name: str) -> str:
    """Cut an id, which may be a hash of 128 digits; the JSON file has it in full."""
    return name if len(name) <= 40 else f"{name[:36]}..."


def check_questions(paths: Paths, quiet: bool = False) -> int:
    """Read the configuration and its questions as a run would; print how many questions there are.

    Returns the exit code 0. Raises ConfigError or DatasetError if something is wrong.
    """
    from graphrag.eval.cli.load_run import read_questions
    from graphrag.eval.dataset.dataset_reader import check_keys

    config = paths.read_config(writes=False)
    samples, warnings = read_questions(config)
    check_keys(samples, config.project_folders())
    for warning in warnings:
        say(f"Warning: {warning}", "yellow", stderr=True, quiet=quiet)
    say(f"{paths.config_path} and its {counted(len(samples), 'question')} are valid.", quiet=quiet)
    return DONE


def find_roots(
    paths: Paths, prefer_config: bool = True, of_variants: bool = False
) -> dict[str, Path]:
    """Return key -> project folder of the indexes that a command works on.

    They are the indexes of the configuration; without one, the root itself. ``prefer_config``: if
    False, a root that is a project is taken alone unless --config is given. ``of_variants``: also
    return the projects that only variants use, by the names of their indexes. Raises ConfigError if
    the configuration can't be read, or configures no index.
    """
    from graphrag.config.settings_files import is_project
    from graphrag.eval.config.evaluation import EvaluationConfig

    own, is_own = {paths.root.resolve().name: paths.root}, is_project(paths.root)
    is_alone = is_own and paths.config is None and not prefer_config
    if not paths.has_config() or (is_alone and not of_variants):
        return own
    config = EvaluationConfig.from_yaml(paths.config_path, paths.root, allow_outside=True)
    if not config.indexes and not is_own:
        raise ConfigError(f"{paths.config_path} configures no index; name a project by --root.")
    more = config.own_projects() if of_variants else {}
    first = own if is_alone else config.project_folders()
    return {**first, **more} or own


def index_vectors(roots: Mapping[str, Path], quiet: bool = False) -> None:
    """Index the vectors of projects in LanceDB, and print the result for each table.

    Raises ConfigError or IndexUnavailableError if a project has no settings, no vectors, or vectors
    in another store.
    """
    from graphrag.eval.runner.indexes import read_model_settings
    from graphrag.query.index.vector_index import SMALL_TABLE, optimise_vectors
    from graphrag.query.index.vector_tables import VectorStoreError

    explained = {
        "indexed": "indexed",
        "left exact": f"left as they are, as up to {SMALL_TABLE:,} are compared one by one quickly",
        "already indexed": "left as they are, as they were indexed before",
    }
    for key, root in roots.items():
        try:
            with working(open_console(stderr=True, quiet=quiet), f"Indexing the vectors of {key}"):
                tables = optimise_vectors(read_model_settings({key: root})[key].config)
        except VectorStoreError as error:
            raise IndexUnavailableError(f"Index {key}: {error}.") from error
        for table in tables:
            before, after = table.before.indexed_rows, table.after.indexed_rows
            size = f"{key}, {table.after.name}: {table.after.rows:,} vectors"
            how = f"in {table.seconds:.1f} s: {explained[table.action]}."
            say(f"{size}, {before:,} indexed before, {after:,} now, {how}", quiet=quiet)
