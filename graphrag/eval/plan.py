"""What a run consists of: its units of work and the setup that gives its results their meaning."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, cast

from graphrag.eval.config import EvaluationConfig
from graphrag.eval.dataset import Sample, fingerprint_samples
from graphrag.eval.metrics.judge import JUDGED_METRICS


@dataclass(frozen=True, slots=True)
class Unit:
    """One question asked by one method; ``key`` changes with all that changes its meaning."""

    key: str
    sample: Sample
    method: str


Descriptions = Mapping[str, Mapping[str, Any]]
"""Index key -> method -> everything that changes what the method answers there."""


def plan_run(
    samples: Sequence[Sample], methods: Sequence[str], descriptions: Descriptions
) -> list[Unit]:
    """Return the units of a run: for each sample every method, in order."""
    return [
        Unit(
            _hash([sample.id, sample.question, method, descriptions[sample.imdb_key][method]]),
            sample,
            method,
        )
        for sample in samples
        for method in methods
    ]


def describe_setup(
    config: EvaluationConfig,
    samples: Sequence[Sample],
    descriptions: Descriptions,
    judge: Mapping[str, Any],
) -> dict[str, Any]:
    """Return everything that changes what a run's results mean, JSON-ready.

    Concurrency, time-outs and folders are left out: they change how a run goes, not what its
    results mean.
    """
    return {
        "dataset": {"fingerprint": fingerprint_samples(samples), "questions": len(samples)},
        "methods": {"order": list(config.methods)},
        "indexes": {key: dict(described) for key, described in descriptions.items()},
        "judge": dict(judge),
        "metrics": {
            name: {
                "prompt": _hash(JUDGED_METRICS[name].prompt),
                "version": JUDGED_METRICS[name].version,
            }
            for name in config.metrics
        },
        "releases": {name: version(name) for name in ("graphrag", "gtog")},
    }


def list_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name what differs between two setups, one line each: ``key: before -> now``."""
    old, new = dict(_flatten(before)), dict(_flatten(now))
    return [
        f"{key}: {_shown(old, key)} -> {_shown(new, key)}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _flatten(values: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(cast("Mapping[str, Any]", value), f"{where}{key}.")
        else:
            yield f"{where}{key}", value


def _shown(values: Mapping[str, Any], key: str) -> str:
    return json.dumps(values[key]) if key in values else "not set"


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
