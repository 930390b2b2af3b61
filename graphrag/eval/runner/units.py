"""What a run consists of: its units of work and the setup that gives its results their meaning."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import cast

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.samples import Sample, fingerprint_samples
from graphrag.eval.scorers.judge import JUDGED_METRICS
from graphrag.eval.scorers.pairwise import PAIRWISE_PROMPT, PAIRWISE_VERSION
from graphrag.eval.scorers.quality import QUALITY_PROMPT, QUALITY_VERSION
from graphrag.eval.scorers.rubric import RUBRIC_PROMPT, RUBRIC_VERSION
from graphrag.eval.store.records import Run, StoredResponse
from graphrag.eval.store.setup import RunSetup


@dataclass(frozen=True, slots=True)
class Unit:
    """One question asked by one method; ``key`` changes with all that changes its meaning.

    ``trial`` counts the repeats of a whole search from 0.
    """

    key: str
    sample: Sample
    method: str
    trial: int = 0


Descriptions = Mapping[str, Mapping[str, Mapping[str, object]]]
"""Index key -> method -> everything that changes what the method answers there."""


def plan_run(
    samples: Sequence[Sample],
    methods: Sequence[str],
    descriptions: Descriptions,
    trials: int = 1,
) -> list[Unit]:
    """Return the units of a run: for each sample every method asked, in order, once a trial."""
    return [
        Unit(
            _key(sample, method, descriptions[sample.imdb_key][method], trial),
            sample,
            method,
            trial,
        )
        for trial in range(trials)
        for sample in samples
        for method in methods
        if is_asked(method, sample)
    ]


def is_asked(method: str, sample: Sample) -> bool:
    """Say whether a method is asked a question: an oracle needs evidence to show."""
    return method != "oracle" or bool(sample.evidence)


def _key(sample: Sample, method: str, description: object, trial: int) -> str:
    again = [trial] if trial else []
    return _hash([sample.id, sample.question, method, description, *again])


def describe_setup(
    config: EvaluationConfig,
    samples: Sequence[Sample],
    descriptions: Descriptions,
    judge: Mapping[str, object],
) -> RunSetup:
    """Return everything that changes what a run's results mean.

    Concurrency, time-outs, folders and the bound of the judge's replies are left out: they change
    how a run goes, not what its results mean.
    """
    sections: dict[str, object] = {
        "dataset": {"fingerprint": fingerprint_samples(samples), "questions": len(samples)},
        "methods": {"order": list(config.methods)},
        **({"trials": config.trials} if config.trials > 1 else {}),
        **_bound(config),
        "indexes": {key: dict(described) for key, described in descriptions.items()},
        "judge": dict(judge),
        "metrics": _describe_metrics(config.metrics),
        **_describe_further(config),
        **({} if config.equal_terms is None else {"equal_terms": config.equal_terms.model_dump()}),
        "releases": {name: version(name) for name in ("graphrag", "gtog")},
    }
    return RunSetup(sections)


def describe_judging(
    origin: Run, config: EvaluationConfig, judge: Mapping[str, object]
) -> RunSetup:
    """Return the setup of a run that judges the responses of another one again."""
    judging = {"judge": dict(judge), "metrics": _describe_metrics(config.metrics)}
    return origin.setup.judged_again(origin.run_id, judging, _describe_further(config))


def _describe_metrics(names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return everything about metrics that changes what a score means."""
    return {
        name: {
            "prompt": _hash(JUDGED_METRICS[name].prompt),
            "version": JUDGED_METRICS[name].version,
        }
        for name in names
    }


def _describe_further(config: EvaluationConfig) -> dict[str, dict[str, dict[str, object]]]:
    """Return everything about the further judges that changes what they say; empty without any."""
    judge = config.judge
    wanted = {
        "rubric": (judge.rubric, RUBRIC_PROMPT, RUBRIC_VERSION),
        "quality": (judge.quality, QUALITY_PROMPT, QUALITY_VERSION),
        "pairwise": (bool(judge.pairwise), PAIRWISE_PROMPT, PAIRWISE_VERSION),
    }
    found: dict[str, dict[str, object]] = {
        kind: {"prompt": _hash(prompt), "version": number}
        for kind, (is_wanted, prompt, number) in wanted.items()
        if is_wanted
    }
    if "pairwise" in found:
        found["pairwise"]["pairs"] = [list(pair) for pair in judge.pairs(config.methods)]
    return {"further": found} if found else {}


def plan_judging(
    samples: Sequence[Sample], methods: Sequence[str], responses: Iterable[StoredResponse]
) -> list[Unit]:
    """Return the units of responses that are there already, in the order of a run.

    Raises
    ------
    KeyError
        If a response is to a question that is not among the samples.
    """
    by_id = {sample.id: (position, sample) for position, sample in enumerate(samples)}
    order = {method: position for position, method in enumerate(methods)}
    found = sorted(responses, key=lambda r: (r.trial, by_id[r.sample_id][0], order[r.method]))
    return [Unit(r.unit, by_id[r.sample_id][1], r.method, r.trial) for r in found]


def list_differences(before: RunSetup, now: RunSetup) -> list[str]:
    """Name what differs between two setups, one line each: ``key: before -> now``."""
    old, new = dict(_flatten(before.root)), dict(_flatten(now.root))
    return [
        f"{key}: {_shown(old, key)} -> {_shown(new, key)}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _flatten(values: Mapping[str, object], where: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(cast("Mapping[str, object]", value), f"{where}{key}.")
        else:
            yield f"{where}{key}", value


def _shown(values: Mapping[str, object], key: str) -> str:
    return json.dumps(values[key]) if key in values else "not set"


def _bound(config: EvaluationConfig) -> dict[str, int]:
    """Return the bound of the responses; nothing at the default, as in runs from before it was."""
    default = EvaluationConfig.model_fields["max_output_tokens"].default
    given = config.max_output_tokens
    return {} if given == default else {"max_output_tokens": given}


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
