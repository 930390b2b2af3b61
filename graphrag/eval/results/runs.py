"""The rows of a run, wherever they are: in the store, in a results file, in a pinned baseline."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.records import (
    DEFAULT_METRICS,
    METRICS,
    EfficiencyMetrics,
    JudgeResult,
    MetricScores,
    QueryResult,
    failed_search_scores,
)
from graphrag.eval.results.labels import label_usages, names_no_model
from graphrag.eval.results.rows import (
    Row,
    check_states,
    digest_reference,
    rows_of,
    with_every_metric,
)
from graphrag.eval.scorers.judge import judgeable
from graphrag.eval.stats.outcomes import State
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import PINNED, baseline_path, find_run, no_such_file, open_store
from graphrag.eval.store.records import SAYS_LITTLE, Run, RunSetup, StoredResponse
from graphrag.query.model_labels import label_names
from graphrag.query.usage import sum_usages

_NO_INDEXES: Mapping[str, Mapping[str, str | int | None]] = {}


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """Where rows come from.

    Attributes
    ----------
    name : str
        Run id, or the file's path.
    run_id, started_at, status : str or None
        None when a file does not say.
    setup : RunSetup
        Sections that are not known are left out.
    asked : str or None
        The label of the embedded models by what was really asked, "" when none of them was;
        None when that is not known, as of a file of an older release.
    indexes : mapping
        Index key -> what is known of it beside its fingerprint, see ``RunDetails``.
    roomy : tuple of str
        The warnings of contexts that held most of a text; none where a run's are not known.
    """

    name: str
    run_id: str | None = None
    started_at: str | None = None
    status: str | None = None
    setup: RunSetup = field(default_factory=lambda: RunSetup({}))
    asked: str | None = None
    indexes: Mapping[str, Mapping[str, str | int | None]] = field(
        default_factory=dict[str, Mapping[str, str | int | None]]
    )
    roomy: tuple[str, ...] = ()

    @property
    def embedded_models(self) -> str | None:
        """The label of the embedded models; where it isn't known who was asked, by the setup."""
        return label_names(_texts(self.setup.root)) if self.asked is None else self.asked or None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _texts(inner)


class RunRows(NamedTuple):
    """The rows of a run and where they come from.

    Attributes
    ----------
    rows : list of Row
    metadata : RunMetadata
    """

    rows: list[Row]
    metadata: RunMetadata

    @property
    def metrics(self) -> tuple[str, ...]:
        """What responses were to be judged on; of a file that does not say, what they were."""
        described = self.metadata.setup.metrics
        if described is not None:
            return tuple(metric for metric in described if metric in METRICS)
        states = {metric: {row.states[metric] for row in self.rows} for metric in METRICS}
        judged = (m for m in METRICS if states[m] - {State.SEARCH_FAILED, State.NOT_JUDGED})
        return tuple(judged) or DEFAULT_METRICS


def read_rows(source: str, store_path: Path) -> RunRows:
    """Read one side of a comparison.

    Parameters
    ----------
    source : str
        A run id or the beginning of one, "latest", "pinned", or the path of an
        eval_results_detailed.json or of a baseline.json.
    store_path : Path
        The eval.db of the output folder.

    Raises
    ------
    UsageError
        If there is no such run or file, or the file holds something else.
    StoreError
        If another process holds the store.
    """
    if source == PINNED:
        return _read_file(baseline_path(store_path), store_path)
    if source.endswith(".json") or Path(source).is_file():
        return _read_file(Path(source), store_path)
    with open_store(store_path) as store:
        run = find_run(store.runs(), source, store_path)
        rows, metadata = stored_rows(store, run), stored_metadata(store, run)
    return RunRows(rows, metadata)


def pinned_run_id(store_path: Path) -> str | None:
    """Return the id of the pinned run; None without one, or when a file without id is pinned."""
    path = baseline_path(store_path)
    return _read_file(path, store_path).metadata.run_id if path.exists() else None


def stored_rows(store: EvaluationStore, run: Run, every_trial: bool = False) -> list[Row]:
    """Return the rows of a run in the store, ordered by method, then by question id.

    Of repeated searches the first is taken, or every one. The document is "" in a run that an older
    release kept without its questions.
    """
    samples = {sample.id: sample for sample in store.samples(run.run_id)}
    unknown = Sample("", "", "", "")
    verdicts = store.verdicts(run.run_id)
    rows = rows_of(
        [
            _stored_result(found, samples.get(found.sample_id, unknown), verdicts.get(unit, {}))
            for unit, found in store.responses(run.run_id, with_texts=False).items()
            if every_trial or found.trial == 0
        ]
    )
    order = run.setup.methods
    return sorted(rows, key=lambda row: (order.index(row.method), _in_numbers(row.question_id)))


def stored_metadata(store: EvaluationStore, run: Run) -> RunMetadata:
    """Return where the rows of a run in the store come from, and who was asked for them."""
    # Evaluators of suites score without a judge, and need no model to answer.
    counts = not run.setup.is_of_suites
    responses = store.responses(run.run_id, with_texts=False).values()
    answered = [(counts and found.failure is None, found.usage) for found in responses]
    usages, verdicts = store.judge_usage(run.run_id), store.verdicts(run.run_id)
    judged = [
        (
            counts and any(v.score is not None for v in verdicts.get(unit, {}).values()),
            sum_usages(usages.get(unit, ())),
        )
        for unit in {**usages, **verdicts}
    ]
    judged += [(False, judgement.usage) for judgement in store.judgements(run.run_id)]
    silent = names_no_model(usage for _, usage in (*answered, *judged))
    asked = None if silent else label_usages(answered, judged) or ""
    told = RunMetadata(run.run_id, run.run_id, run.started_at, run.status, run.setup, asked)
    return replace(told, indexes=run.details.indexes, roomy=_roomy(run.details.warnings))


def _roomy(warnings: object) -> tuple[str, ...]:
    """Return the warnings of contexts that held most of a text; a file may hold anything else."""
    lines = cast("Sequence[object]", warnings) if isinstance(warnings, list | tuple) else ()
    return tuple(line for line in lines if isinstance(line, str) and line.endswith(SAYS_LITTLE))


class _Efficiency(BaseModel):
    latency: float | None
    prompt_tokens: int | None
    output_tokens: int | None


class _Response(BaseModel):
    states: dict[str, State]
    scores: dict[str, Literal[0, 1] | None]
    efficiency: _Efficiency
    failure: dict[str, str] | None

    @model_validator(mode="after")
    def _check_states(self) -> Self:
        scored = {m: self.scores.get(m) for m, s in self.states.items() if s is State.SCORED}
        check_states({m: self.states[m] for m in scored}, scored)
        return self


class _Question(BaseModel):
    id: str
    imdb_key: str
    question: str
    ground_truth: str = ""
    methods: dict[str, _Response]


class _Detailed(BaseModel):
    """The part of eval_results_detailed.json that figures need; the rest is not looked at."""

    metadata: dict[str, Any]
    results: list[_Question]


class PinnedBaseline(BaseModel):
    """What a baseline file holds."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1]
    pinned_at: str
    metadata: RunMetadata
    rows: list[Row] = Field(min_length=1)


def _stored_result(
    found: StoredResponse, sample: Sample, verdicts: Mapping[str, JudgeResult]
) -> QueryResult:
    if found.failure is None:
        scores = MetricScores.of(verdicts)
    else:
        scores = failed_search_scores(judgeable(sample, METRICS))
    return QueryResult(
        imdb_key=sample.imdb_key,
        question=sample.question,
        ground_truth=sample.ground_truth,
        method=found.method,
        response=found.response,
        scores=scores,
        efficiency=EfficiencyMetrics.of(found.latency_s, found.usage),
        sample_id=found.sample_id,
        failure=found.failure,
        usage=found.usage,
        trial=found.trial,
        abstained=found.abstained,
    )


def _in_numbers(question_id: str) -> list[tuple[int, str]]:
    """Return a key that sorts q2 before q10."""
    parts = re.split(r"(\d+)", question_id)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _read_file(path: Path, store_path: Path) -> RunRows:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(values, dict) and "pinned_at" in values:
            pinned = PinnedBaseline.model_validate(values)
            return RunRows(_whole(pinned.rows), pinned.metadata)
        detailed = _Detailed.model_validate(values)
    except FileNotFoundError as error:
        raise no_such_file(path, store_path) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        msg = f"{path} can't be read: {error}."
        raise UsageError(msg) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        msg = (
            f"{path} is not an eval_results_detailed.json or baseline.json of this release "
            f"({where}: {first['msg']}); name the run itself."
        )
        raise UsageError(msg) from error
    return RunRows(
        _whole(_file_rows(detailed)), _file_metadata(path, detailed.metadata, store_path)
    )


def _whole(rows: Iterable[Row]) -> list[Row]:
    return [with_every_metric(row) for row in rows]


def _file_rows(detailed: _Detailed) -> list[Row]:
    return [
        Row(
            question_id=entry.id or entry.question,
            document=entry.imdb_key,
            method=method,
            states=found.states,
            scores={
                metric: found.scores[metric] if state is State.SCORED else None
                for metric, state in found.states.items()
            },
            latency_s=found.efficiency.latency,
            censored=found.failure is not None,
            tokens=EfficiencyMetrics(llm_calls=None, **dict(found.efficiency)).tokens,
            question=entry.question or None,
            reference=digest_reference(entry.ground_truth) if entry.ground_truth else None,
        )
        for entry in detailed.results
        for method, found in entry.methods.items()
    ]


def _file_metadata(path: Path, given: Mapping[str, Any], store_path: Path) -> RunMetadata:
    run_id = given.get("run_id")
    setup = given.get("setup")
    if setup is None:
        setup = {"judge": given["judge"]} if "judge" in given else {}
    complete = given.get("is_complete")
    stored = _stored_run(run_id, store_path)
    return RunMetadata(
        name=str(path),
        run_id=run_id,
        started_at=given.get("timestamp"),
        status=None if complete is None else "finished" if complete else "unfinished",
        setup=RunSetup(setup) if stored is None else stored.setup,
        asked=(given["embedded_models"] or "") if "embedded_models" in given else None,
        indexes=_NO_INDEXES if stored is None or not stored.details else stored.details.indexes,
        roomy=_roomy(given.get("warnings")),
    )


def _stored_run(run_id: str | None, store_path: Path) -> Run | None:
    """Return the run of a file as the store keeps it; None when it can't be looked up."""
    if run_id is None or not store_path.is_file():
        return None
    try:
        with open_store(store_path) as store:
            found = [run for run in store.runs() if run.run_id == run_id]
            return found[0] if found else None
    except StoreError:  # the rows are in the file; only what they can be warned of is lost
        return None
