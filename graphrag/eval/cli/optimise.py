"""What ``graphrag eval optimise`` does, and the warning of projects it was not done to."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from graphrag.command_lines import eval_line_here
from graphrag.config.models.prompt_files import SettingsError
from graphrag.config.project_settings import read_settings
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError, IndexUnavailableError
from graphrag.query.vector_index import (
    SMALL_TABLE,
    OptimisedTable,
    VectorStoreError,
    VectorTable,
    optimise_vectors,
    uses_lancedb,
    vector_state,
)

if TYPE_CHECKING:
    from graphrag.query.index_header import IndexHeader

_EXPLAINED = {
    "indexed": "indexed",
    "left exact": f"left as it is: up to {SMALL_TABLE:,} vectors are compared one by one quickly",
    "already indexed": "left as it is: indexed before",
}


def find_roots(place: Place) -> dict[str, Path]:
    """Return key -> project: those of the configuration, else the root itself.

    Raises
    ------
    ConfigError
        If the configuration can't be read.
    """
    if not place.has_config():
        return {place.root.resolve().name: place.root}
    return EvaluationConfig.from_yaml(
        place.config_path, place.root, allow_outside=True
    ).project_folders()


def run_optimise(place: Place, quiet: bool = False, verbose: bool = False) -> int:
    """Optimise the vectors of the projects of :func:`find_roots` and return the exit code.

    Prints what was done to each table. 0: done; 2: a project has no settings, no vectors, or
    none in LanceDB.
    """
    return explained(lambda: _optimise(find_roots(place), quiet), verbose)


def list_vector_warnings(headers: "Mapping[str, IndexHeader]") -> list[str]:
    """Name the tables of vectors whose searches are slow, or miss some of the vectors.

    Stores other than LanceDB are not looked at. Blocks while the tables are read.
    """
    warnings: list[str] = []
    for key, header in headers.items():
        if not uses_lancedb(header.config):
            continue
        for table in vector_state(header.config):
            if table.needs_optimising:
                warnings.append(
                    f"{key}: {_describe_fault(table)}; times are not comparable until: "
                    f"{eval_line_here('optimise')}"
                )
    return warnings


def _describe_fault(table: VectorTable) -> str:
    if not table.is_complete:
        return f"a search by ids in {table.name} misses vectors, as its index hides some of them"
    return (
        f"{table.unindexed_rows:,} of the {table.rows:,} vectors of {table.name} are not indexed, "
        "so every search compares them one by one"
    )


def _optimise(roots: Mapping[str, Path], quiet: bool) -> int:
    notes = open_console(stderr=True, quiet=quiet)
    shown = Table(title="Vectors", title_justify="left", title_style="bold")
    for heading in ("index", "table"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("vectors", "indexed before", "indexed now", "seconds"):
        shown.add_column(heading, justify="right")
    shown.add_column("what was done", overflow="fold")
    try:
        for key, root in roots.items():
            with working(notes, f"Indexing the vectors of {key}"):
                tables = _optimise_project(key, root)
            for table in tables:
                shown.add_row(*_cells(key, table))
    finally:
        if shown.row_count:
            open_console(quiet=quiet).print(shown)
    return DONE


def _optimise_project(key: str, root: Path) -> tuple[OptimisedTable, ...]:
    try:
        return optimise_vectors(read_settings(root))
    except SettingsError as error:
        raise ConfigError(f"Index {key}: {error}") from error
    except VectorStoreError as error:
        raise IndexUnavailableError(f"Index {key}: {error}.") from error


def _cells(key: str, table: OptimisedTable) -> list[str]:
    before, after = table.before, table.after
    counts = (after.rows, before.indexed_rows, after.indexed_rows)
    return [
        key,
        after.name,
        *(f"{count:,}" for count in counts),
        f"{table.seconds:.1f}",
        _EXPLAINED[table.action],
    ]
