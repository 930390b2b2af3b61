"""Plans the units of a run, and describes its setup: all that changes what its results mean."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample, fingerprint_samples
from graphrag.eval.metrics.claims import CLAIMS_VERSION, RULING_PROMPT, SPLIT_PROMPT
from graphrag.eval.metrics.scorer_registry import SCORERS, list_further, list_pairs
from graphrag.eval.runner.judging import FAITHFULNESS
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.store.records import (
    Run,
    RunDetails,
    RunSetup,
    StoredResponse,
    Unit,
)
from graphrag.eval.types.metric_definitions import (
    JUDGED_METRICS,
    REFUSAL,
    describe_own,
)
from graphrag.query.index.header import IndexHeader

if TYPE_CHECKING:
    from graphrag.eval.runner.telemetry import Telemetry


Descriptions = Mapping[str, Mapping[str, Mapping[str, object]]]
"""Index key -> method -> everything that changes what the method answers there."""


def plan_run(
    samples: Sequence[Sample], methods: Sequence[str], descriptions: Descriptions, trials: int = 1
) -> list[Unit]:
    """Return the units of a run: for each trial and sample, every method asked, in order."""

    def key(sample: Sample, method: str, trial: int) -> str:
        described = descriptions[sample.imdb_key][method]
        return _hash([sample.id, sample.question, method, described, *([trial] if trial else [])])

    return [
        Unit(key=key(sample, method, trial), sample=sample, method=method, trial=trial)
        for trial in range(trials)
        for sample in samples
        for method in methods
        if is_asked(method, sample)
    ]


def is_asked(method: str, sample: Sample) -> bool:
    """Return whether a method is asked a question: an oracle needs evidence to show."""
    return method != "oracle" or bool(sample.evidence)


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
    max_tokens = config.max_output_tokens
    default = EvaluationConfig.model_fields["max_output_tokens"].default
    sections: dict[str, object] = {
        "dataset": {"fingerprint": fingerprint_samples(samples), "questions": len(samples)},
        "methods": {"order": list(config.methods)},
        **({"trials": config.trials} if config.trials > 1 else {}),
        **({} if max_tokens == default else {"max_output_tokens": max_tokens}),
        "indexes": {key: dict(described) for key, described in descriptions.items()},
        "judge": dict(judge),
        "metrics": _describe_metrics(config),
        **_describe_further(config, samples),
        **({} if config.equal_terms is None else {"equal_terms": config.equal_terms.model_dump()}),
        "releases": {name: version(name) for name in ("graphrag", "gtog")},
    }
    return RunSetup(sections)


def describe_judging(
    origin: Run, config: EvaluationConfig, samples: Sequence[Sample], judge: Mapping[str, object]
) -> RunSetup:
    """Return the setup of a run that judges the responses of another run again."""
    sections = {
        **{name: section for name, section in origin.setup.root.items() if name != "further"},
        "judge": dict(judge),
        "metrics": _describe_metrics(config),
        **_describe_further(config, samples),
        "responses_of": origin.run_id,
    }
    return RunSetup(sections)


def _describe_metrics(config: EvaluationConfig) -> dict[str, dict[str, object]]:
    metrics = {name: JUDGED_METRICS[name] for name in config.metrics}
    descriptions: dict[str, dict[str, object]] = {
        name: {"prompt": _hash(m.prompt), "version": m.version, **describe_own(name)}
        for name, m in metrics.items()
    }
    if "correctness" in descriptions:
        descriptions["correctness"]["refusal"] = _hash(REFUSAL.prompt)
    if config.judges_claims:
        prompt = _hash([SPLIT_PROMPT, RULING_PROMPT])
        descriptions[FAITHFULNESS] = {"prompt": prompt, "version": CLAIMS_VERSION, "by": "claim"}
    return descriptions


def _describe_further(
    config: EvaluationConfig, samples: Sequence[Sample]
) -> dict[str, dict[str, dict[str, object]]]:
    names = list_further(config, samples)
    descriptions: dict[str, dict[str, object]] = {name: _describe_scorer(name) for name in names}
    pairs = grouped((scorer.name, [a, b]) for scorer, a, b in list_pairs(config))
    descriptions |= {name: {**_describe_scorer(name), "pairs": p} for name, p in pairs.items()}
    return {"further": descriptions} if descriptions else {}


def _describe_scorer(name: str) -> dict[str, object]:
    scorer, own = SCORERS[name], describe_own(name)
    description: dict[str, object] = {"prompt": _hash(scorer.prompt), "version": scorer.version}
    return {**description, "limits": list(scorer.limits), **own} if own else description


def plan_judging(
    samples: Sequence[Sample], methods: Sequence[str], responses: Iterable[StoredResponse]
) -> list[Unit]:
    """Return the units of responses that exist already, in the order of a run.

    Raises KeyError if a response belongs to a question that is not among the samples.
    """
    by_id = {sample.id: (position, sample) for position, sample in enumerate(samples)}
    order = {method: position for position, method in enumerate(methods)}
    ordered = sorted(responses, key=lambda r: (r.trial, by_id[r.sample_id][0], order[r.method]))
    return [
        Unit(key=r.unit, sample=by_id[r.sample_id][1], method=r.method, trial=r.trial)
        for r in ordered
    ]


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything that a run needs, checked.

    - ``setup``: see :func:`describe_setup`.
    - ``headers``: index name -> header of each index that is asked.
    - ``judging``: index key -> header of each index that names the judge.
    - ``judge``: the model that judges, if one is asked.
    - ``origin``: the run whose responses are judged again; None if searches are made.
    """

    setup: RunSetup
    samples: Sequence[Sample]
    details: RunDetails
    config: EvaluationConfig
    units: Sequence[Unit]
    headers: Mapping[str, IndexHeader] = field(default_factory=dict[str, IndexHeader])
    judging: Mapping[str, IndexHeader] = field(default_factory=dict[str, IndexHeader])
    judge: str | None = None
    origin: Run | None = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run goes, apart from its configuration.

    ``resume``: continue an earlier run. ``retry_errors``: also ask its failures again.
    """

    resume: bool = False
    retry_errors: bool = False
    skip_judge: bool = False
    max_cost_usd: float | None = None
    address: str | None = None
    telemetry: "Telemetry | None" = None

    @property
    def flags(self) -> str:
        """The flags given to continue an earlier run, as typed; "" if none."""
        typed = {"--resume": self.resume, "--retry-errors": self.retry_errors}
        return " and ".join(flag for flag, is_typed in typed.items() if is_typed)
