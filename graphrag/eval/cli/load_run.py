"""Reads the input of a new run: flags, configuration, questions and project folders.

It imports nothing that asks a model, so that a wrong path, name or dataset is reported at once.
"""

from pathlib import Path
from typing import Any, NamedTuple

from graphrag.config.settings_files import SettingsError, find_unbuilt
from graphrag.eval.cli.command import RunFlags, split_names
from graphrag.eval.cli.paths import Paths
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.dataset.dataset_reader import Sample, check_keys, read_dataset
from graphrag.eval.dataset.drafts import REHEARSAL
from graphrag.eval.errors import ConfigError, IndexUnavailableError, name_index
from graphrag.eval.types.metric_definitions import BUILT_IN
from graphrag.eval.types.own_code import load_parts
from graphrag.query.methods import tables_of
from graphrag.text.cli_hints import config_name
from graphrag.text.message_phrases import counted


class RunInput(NamedTuple):
    """A run's configuration with the flags applied, its questions, and the projects they ask.

    ``roots``: name of an index -> folder of its project. ``warnings``: from reading the questions.
    """

    config: EvaluationConfig
    samples: list[Sample]
    roots: dict[str, Path]
    warnings: tuple[str, ...]


def read_input(paths: Paths, flags: RunFlags) -> RunInput:
    """Read the input of a run, and check that its indexes are built unless it is to build them.

    Raises ConfigError, DatasetError or IndexUnavailableError if something is wrong.
    """
    config = change_config(
        paths.read_config(),
        flags.metrics,
        methods=None if flags.methods is None else split_names(flags.methods),
        workers=flags.workers,
        trials=flags.repeat,
    )
    samples, warnings = read_questions(config, flags.imdb_key)
    samples = samples[: flags.limit]
    folders = config.project_folders()
    check_keys(samples, folders)
    used = {sample.imdb_key for sample in samples}
    by_key = {key: folder for key, folder in folders.items() if key in used}
    roots = config.projects(by_key)
    asked = {} if flags.index else config.searches_asked(by_key)
    remedy = "add --index, or build it with"
    for key, root in {**by_key, **roots}.items():
        try:
            needs = {method: tables_of(method) for method in asked.get(key, ())}
            lacking = find_unbuilt(root, needs, remedy=remedy)
        except SettingsError as error:
            raise ConfigError(name_index(key, error)) from error
        if lacking is not None:
            raise IndexUnavailableError(name_index(key, lacking))
    return RunInput(config=config, samples=samples, roots=roots, warnings=warnings)


def read_questions(
    config: EvaluationConfig, imdb_key: str | None = None
) -> tuple[list[Sample], tuple[str, ...]]:
    """Return the questions of the dataset, and the warnings from reading them.

    ``imdb_key``: the index key whose questions are wanted; None: every index. Raises
    ConfigError if no index is configured, or ``imdb_key`` has no question; DatasetError if the
    questions can't be read.
    """
    keys = list(config.indexes)
    if not keys:
        raise ConfigError(f"{config_name()} configures no index; add one under indexes.")
    only_key = keys[0] if len(keys) == 1 else None
    dataset = read_dataset(
        config.dataset_path, only_key, config.dataset.columns, config.dataset.encoding
    )
    samples = dataset.samples
    if imdb_key is not None:
        samples = [sample for sample in samples if sample.imdb_key == imdb_key]
        if not samples:
            msg = f"--imdb-key {imdb_key}: no question is asked of it; use one of {keys}."
            raise ConfigError(msg)
    n = sum(REHEARSAL in sample.values_of("tags") for sample in samples)
    if not n:
        return samples, dataset.warnings
    warning = (
        f"{n:,} of {counted(len(samples), 'question')} {'is' if n == 1 else 'are'} a rehearsal"
    )
    rehearsed = f"{warning}: embedded models drafted them, and their scores say nothing of value"
    return samples, (*dataset.warnings, rehearsed)


def _change_metrics(config: EvaluationConfig, metrics: str) -> dict[str, Any]:
    """Return the settings that ``--metrics`` changes; "none" turns off every judge.

    Thresholds of metrics that are not named are left out.
    """
    names = load_parts("metrics", split_names(metrics), config.root, BUILT_IN)
    judge = {**config.judge.model_dump(), "graded": ()}  # graded ones among the names are put there
    if names == ["none"]:
        names = []
        judge |= dict.fromkeys(("rubric", "quality", "assertions", "pairwise"), False)
    kept = {m: least for m, least in config.thresholds.items() if m in names}
    return {"metrics": names, "thresholds": kept, "judge": judge}


def change_config(
    config: EvaluationConfig,
    metrics: str | None,
    model: str | None = None,
    **settings: object,
) -> EvaluationConfig:
    """Return the configuration with flags applied; None leaves a setting as it is.

    ``model``: the judge's model. ``settings``: other settings by name. Raises ConfigError if a
    value can't be used.
    """
    changes = {} if metrics is None else _change_metrics(config, metrics)
    changes |= {name: value for name, value in settings.items() if value is not None}
    if model is not None:
        changes["judge"] = {**changes.get("judge", config.judge.model_dump()), "model": model}
    if not changes:
        return config
    return parse_config({**config.model_dump(), "root": config.root, **changes}, "the flags")
