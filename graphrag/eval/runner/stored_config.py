"""Reads the configuration of a stored run, and finds indexes that are still as it searched them."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from graphrag.config.project_settings import ProjectConfig, read_settings
from graphrag.config.settings_files import SettingsError
from graphrag.config.table_files import IndexNotBuiltError
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.config.gone_keys import take_out_gone
from graphrag.eval.store.records import Run, RunSetup
from graphrag.eval.types.metric_definitions import METRICS, is_graded
from graphrag.eval.types.own_code import declared_taken, find_part
from graphrag.query.index.tables import check_tables, fingerprint_tables, open_tables


def read_stored_config(run: Run, root: Path | None) -> EvaluationConfig:
    """Return the configuration that a run was made with, or continued with.

    ``root``: the folder that the indexes are relative to; None: the folder at the time of the run.
    Raises ConfigError if the configuration can't be read.
    """
    details = run.details
    kept, _ = take_out_gone(details.config)
    values = {**_drop_missing_parts(kept), **({} if root is None else {"root": root})}
    methods = cast("list[str]", details.config["methods"])
    with declared_taken():
        return parse_config(values, f"the settings of run {run.run_id}", methods)


def _drop_missing_parts(config: Mapping[str, object]) -> dict[str, object]:
    """Return a run's settings without judges and measures that no longer exist.

    Pairs of methods that the run does not have are dropped, too: version 1.0.0 stored such pairs.
    """
    measures = cast("Mapping[str, list[str]]", config["measures"])
    # Versions before 1.0.0 had no further measures.
    further = [m for m in measures.get("further", ()) if find_part("measures", m) is not None]
    metrics = [metric for metric in cast("list[str]", config["metrics"]) if metric in METRICS]
    judge = cast("Mapping[str, object]", config["judge"])
    if isinstance(pairs := judge.get("pairwise"), list):
        methods = {*cast("list[str]", config["methods"])}
        kept = [pair for pair in cast("list[list[str]]", pairs) if methods.issuperset(pair)]
        judge = {**judge, "pairwise": kept}
    # Versions before 1.0.0 had no graded judges.
    graded = [name for name in cast("list[str]", judge.get("graded", ())) if is_graded(name)]
    thresholds = cast("Mapping[str, float]", config.get("thresholds", {}))
    return {
        **config,
        "metrics": metrics,
        "measures": {**measures, "further": further},
        "judge": {**judge, "graded": graded},
        "thresholds": {m: v for m, v in thresholds.items() if m in (*metrics, *graded)},
    }


async def find_searched(
    roots: Mapping[str, Path], setup: RunSetup
) -> tuple[dict[str, ProjectConfig], dict[str, str]]:
    """Return name -> settings of the indexes that are still as a run searched them, and all states.

    The states map each index that the run searched to its fingerprint, or to why it can't be
    measured. ``roots``: project folders as configured now. ``setup``: the run's.
    """
    same: dict[str, ProjectConfig] = {}
    states: dict[str, str] = {}
    for name, searched in setup.searched().items():
        states[name] = "is not the one that was searched any more"
        if name not in roots:
            continue
        try:
            config = read_settings(roots[name])
            tables = await open_tables(config)
            await asyncio.to_thread(check_tables, tables, config, roots[name], ())
            fingerprint = await fingerprint_tables(config)
        except (SettingsError, IndexNotBuiltError) as error:
            states[name] = f"can't be read any more ({error})"
            continue
        if searched <= {fingerprint}:
            same[name], states[name] = config, fingerprint
    return same, states
