"""Validating one built index."""

from pathlib import Path

from graphrag.config.project_settings import read_settings
from graphrag.config.settings_files import SettingsError
from graphrag.eval.errors import IndexUnavailableError
from graphrag.eval.validation.checks import check_documents, check_entities, check_relationships
from graphrag.eval.validation.graph import check_graph, read_edges
from graphrag.eval.validation.report import PipelineValidationReport, Thresholds
from graphrag.eval.validation.tables import arrow, open_tables
from graphrag.eval.validation.vectors import check_vectors


def validate_index(
    root: Path | str, thresholds: Thresholds | None = None
) -> PipelineValidationReport:
    """Check a built index phase by phase, without asking a model.

    A plain function: it can be called from a notebook, and inside a running event loop (which it
    then blocks). ``root`` is the project folder. IndexUnavailableError if the settings or a table
    can't be read, or no table is there.
    """
    limits = thresholds or Thresholds()
    try:
        config = read_settings(root)
        tables = open_tables(config, Path(root))
        edges = read_edges(tables)
        phases = (
            check_documents(tables, limits),
            check_entities(tables, limits),
            check_relationships(tables, edges, limits),
            check_graph(tables, edges, limits),
            check_vectors(config, limits),
        )
    except SettingsError as error:
        raise IndexUnavailableError(str(error)) from error
    except (arrow.ArrowException, OSError) as error:
        cause = " ".join(str(error).split())
        msg = f"A table of {root} can't be read ({cause}); build the index anew."
        raise IndexUnavailableError(msg) from error
    return PipelineValidationReport(str(root), phases)
