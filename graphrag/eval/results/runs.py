"""Reads the rows of stored runs and pinned baselines, and describes runs for the list of runs."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag.config.models.strict_section import explain_first
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.metrics.judge import judgeable
from graphrag.eval.metrics.scorer_registry import SCORERS
from graphrag.eval.results.analysis import latencies_of, may_wait
from graphrag.eval.results.handicaps import Handicap, read_handicaps
from graphrag.eval.results.scored_rows import (
    FAILED_AS_0,
    NOT_KEPT,
    QuestionKey,
    Row,
    digest_reference,
    item_means,
    item_scores,
    many_records,
    mean_known,
    states_and_scores,
    with_every_metric,
)
from graphrag.eval.results.usage import label_usages
from graphrag.eval.stats.latency import quantile_value
from graphrag.eval.stats.outcomes import State
from graphrag.eval.store.atomic_files import REPORT_FILE, SUMMARY_FILE, run_folder
from graphrag.eval.store.database import (
    ORIGIN_NAMES,
    PINNED,
    EvaluationStore,
    baseline_path,
    find_run,
    no_such_file,
    open_store,
)
from graphrag.eval.store.figure_cache import (
    KeptFigures,
    begin_keeping,
    can_keep,
    keep_figures,
    uses_own_code,
)
from graphrag.eval.store.notes import Note, read_notes
from graphrag.eval.store.records import CLAIMS, IndexFacts, Run, RunSetup
from graphrag.eval.store.serialization import models_of, usage_of_models
from graphrag.eval.types.code_digest import digest_code
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS, JUDGED_METRICS, METRICS
from graphrag.eval.types.query_results import QueryResult
from graphrag.eval.types.verdicts import SEARCH_FAILED, JudgeResult
from graphrag.query.client.embedded_labels import label_names
from graphrag.query.client.usage import Usage, sum_usages, sum_usd
from graphrag.text.input_files import read_input

Indexes: TypeAlias = Mapping[str, IndexFacts]
"""Index key -> facts about the index besides its fingerprint, see ``RunDetails``."""
Waiting: TypeAlias = Literal["as is", "unjudged", "left out"]
"""What becomes of an answer that lacks a verdict: it keeps those it has, counts as not judged, or
is left out."""
Values: TypeAlias = Mapping[QuestionKey, float | None]
"""Question -> value, None if it has none."""
ByMethod: TypeAlias = dict[str, dict[str, Values]]
"""Method -> figure -> values."""
Means: TypeAlias = dict[str, dict[str, float | None]]
_Collected: TypeAlias = dict[str, dict[str, dict[QuestionKey, float | None]]]
_BEFORE_METADATA = re.compile(r'\s*\{\s*"format":\s*1,\s*"pinned_at":\s*"[^"]*",\s*"metadata":\s*')
_AFTER_ROWS = re.compile(r"\]\s*\}\s*$")
"""How a baseline.json begins and ends, so that its metadata is read without its many rows."""
_UNJUDGED = (State.SEARCH_FAILED, State.NOT_JUDGED)
_FAILED = JudgeResult(score=0, reason=SEARCH_FAILED)
LINE = "line of the list"
"""The name under which eval.db keeps the entry of a run in the list of runs."""
_SUMS = ("tokens", "cost_usd")  # not known as soon as a part is not


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """The facts about the run that rows are from.

    - ``name``: the run id, or the path of the file.
    - ``asked``: the label of the embedded models that were really asked, "" if none was; None if
      that is not known.
    - ``roomy``: warnings of contexts that contain most of a text.
    - ``search_methods``: see ``RunDetails``. ``conditions``: see :func:`read_handicaps`.

    Facts that a file lacks are None or empty, or missing in ``setup``.
    """

    name: str
    run_id: str | None = None
    started_at: str | None = None
    status: str | None = None
    setup: RunSetup = field(default_factory=lambda: RunSetup({}))
    asked: str | None = None
    indexes: Indexes = field(default_factory=dict[str, IndexFacts])
    roomy: tuple[str, ...] = ()
    search_methods: Mapping[str, str] = field(default_factory=dict[str, str])
    conditions: Mapping[str, tuple[Handicap, ...]] = field(
        default_factory=dict[str, tuple[Handicap, ...]]
    )

    @property
    def embedded_models(self) -> str | None:
        """The label of the embedded models that were asked, by the setup if that is not known."""
        return label_names(_texts(self.setup.root)) if self.asked is None else self.asked or None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _texts(inner)


class RunRows(NamedTuple):
    """The rows of a run, and the facts about it."""

    rows: list[Row]
    metadata: RunMetadata

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to be judged on; those judged on if the metadata names none."""
        described = self.metadata.setup.metrics
        if described is not None:
            return tuple(metric for metric in described if metric in METRICS)
        states = {metric: {row.states[metric] for row in self.rows} for metric in METRICS}
        judged = (m for m in METRICS if states[m].difference(_UNJUDGED))
        return tuple(judged) or DEFAULT_METRICS


def read_rows(source: str, store_path: Path) -> RunRows:
    """Read the rows of one side of a comparison.

    ``source``: a run id or the beginning of one, "latest", "pinned", or the path of a
    baseline.json. ``store_path``: the eval.db of the output folder. Raises UsageError if there is
    no such run or file, or the file has other content; StoreError if another process holds the
    store.
    """
    if source == PINNED:
        return _read_file(baseline_path(store_path), store_path)
    if source.endswith(".json") or Path(source).is_file():
        return _read_file(Path(source), store_path)
    with open_store(store_path) as store:
        run = find_run(store.runs(), source, store_path)
        rows = stored_rows(store, run, waiting="as is" if run.status == "finished" else "unjudged")
        return RunRows(rows, stored_metadata(store, run))


def pinned_run_id(store_path: Path) -> str | None:
    """Return the id of the pinned run; None if none is pinned, or its file names no run."""
    path = baseline_path(store_path)
    if not path.exists():
        return None
    with suppress(OSError, ValueError, AttributeError):  # else it is read in full, and refused
        text = read_input(path).decode()
        if (head := _BEFORE_METADATA.match(text)) and _AFTER_ROWS.search(text, len(text) - 99):
            metadata, _ = json.JSONDecoder().raw_decode(text, head.end())
            return cast("str | None", metadata.get("run_id"))
    return _read_file(path, store_path).metadata.run_id


def stored_rows(
    store: EvaluationStore, run: Run, every_trial: bool = False, waiting: Waiting = "as is"
) -> list[Row]:
    """Return the rows of a run in the store, ordered by method, then by question id.

    ``every_trial``: whether all searches of a question are taken, or the first. ``waiting``: what
    becomes of answers that lack a verdict; the run's own tables leave them out.
    """
    samples = {sample.id: sample for sample in store.samples(run.run_id)}
    verdicts, rows = store.verdicts(run.run_id), list[Row]()
    by_claim = CLAIMS in run.setup.further
    asked = () if run.details.skip_judge or waiting == "as is" else run.setup.metrics or ()
    for outcome in store.outlines(run.run_id).values():
        if outcome.trial and not every_trial:
            continue
        sample = samples.get(outcome.sample_id, NOT_KEPT)
        has_failed, judged = outcome.failure is not None, verdicts.get(outcome.unit, {})
        if has_failed:
            judged = dict.fromkeys(judgeable(sample, METRICS, by_claim), _FAILED)
        elif not judged.keys() >= set(judgeable(sample, asked, by_claim)):
            if waiting == "left out":
                continue
            judged = {}
        rows.append(
            Row(
                outcome.sample_id or sample.question,
                sample.imdb_key,
                outcome.method,
                *states_and_scores(has_failed, outcome.abstained, judged),
                latency_s=outcome.latency_s,
                censored=has_failed,
                tokens=outcome.tokens,
                cost_usd=outcome.usage.cost_usd,
                question=sample.question or None,
                reference=digest_reference(sample.ground_truth),
                trial=outcome.trial,
                answerable=sample.answerable,
            )
        )
    order = run.setup.methods
    return sorted(rows, key=lambda row: (order.index(row.method), _natural_key(row.question_id)))


@lru_cache(maxsize=2**12)  # the methods of a run answer the same questions
def _natural_key(question_id: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts q2 before q10."""
    parts = re.split(r"(\d+)", question_id)
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in parts)


def stored_metadata(store: EvaluationStore, run: Run) -> RunMetadata:
    """Return the facts about a run in the store, and the embedded models that it asked."""
    # Evaluators of suites score without a judge, and need no model to answer.
    counts = not run.setup.is_of_suites
    verdicts = store.verdicts(run.run_id)
    outlines = store.outlines(run.run_id, with_texts=True).values()
    searched = {(counts and o.failure is None, models_of(o.usage)) for o in outlines}
    answered = [(is_answered, usage_of_models(models)) for is_answered, models in searched]
    judging = store.judge_usage(run.run_id)
    judge_models = {
        (
            counts and any(v.score is not None for v in verdicts.get(unit, {}).values()),
            tuple(map(models_of, judging.get(unit, ()))),
        )
        for unit in {*verdicts, *judging}
    }
    judged = [(ruled, sum_usages(map(usage_of_models, models))) for ruled, models in judge_models]
    judged += [(False, judgement.usage) for judgement in store.judgements(run.run_id)]
    is_known = any(usage.models for _, usage in (*answered, *judged))  # else by the setup
    return RunMetadata(
        name=run.run_id,
        run_id=run.run_id,
        started_at=run.started_at,
        status=run.status,
        setup=run.setup,
        asked=label_usages(answered, judged) or "" if is_known else None,
        indexes=run.details.indexes,
        roomy=run.details.roomy,
        search_methods=run.details.search_methods,
        conditions=read_handicaps(outlines, run.details.lacking),
    )


class PinnedBaseline(BaseModel):
    """The content of a baseline.json; fields that only an earlier version knows are ignored."""

    model_config = ConfigDict(extra="ignore")

    format: Literal[1]
    pinned_at: str
    metadata: RunMetadata
    rows: list[Row] = Field(min_length=1)


def _read_file(path: Path, store_path: Path) -> RunRows:
    try:
        pinned = PinnedBaseline.model_validate_json(read_input(path))
    except FileNotFoundError as error:
        raise no_such_file(path, store_path) from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error}.") from error
    except ValidationError as error:
        raise UsageError(
            f"{path} is not a baseline.json, which compare RUN --pin writes "
            f"({explain_first(error)}); name the run itself."
        ) from error
    return RunRows([with_every_metric(row) for row in pinned.rows], pinned.metadata)


def _read_judged(store: EvaluationStore, run: Run) -> tuple[dict[str, list[Row]], ByMethod]:
    """Return method -> rows of its finished answers, and method -> figure -> values by judges."""
    all_rows = stored_rows(store, run, every_trial=True, waiting="left out")
    by_method = {m: [r for r in all_rows if r.method == m] for m in run.setup.methods}
    first = {(row.method, row.question_id): row.key for row in all_rows if not row.trial}
    further = _read_further(store, run, first)
    return by_method, {m: {**_judged(run, rows), **further[m]} for m, rows in by_method.items()}


def _judged(run: Run, rows: list[Row]) -> dict[str, Values]:
    """Return metric -> scores by question; None if only failed searches would be a figure of 0."""
    figures: dict[str, Values] = {}
    for metric in (metric for metric in METRICS if metric in (run.setup.metrics or ())):
        scores = item_scores(rows, metric)
        figures[metric] = dict.fromkeys(scores) if _waits(run, rows, metric) else scores
    return figures


def _waits(run: Run, rows: Sequence[Row], metric: str) -> bool:
    """Return whether there is no verdict, and one is to come or none was asked for."""
    is_open = run.details.skip_judge or may_wait(rows, metric, run.setup.metrics or ())
    return is_open and all(row.states[metric] in _UNJUDGED for row in rows)


def _failed_as_0(run: Run, rows: list[Row]) -> dict[str, Values]:
    figures: dict[str, Values] = {}
    for metric in (metric for metric in METRICS if metric in (run.setup.metrics or ())):
        states = {row.states[metric] for row in rows}
        is_zero = JUDGED_METRICS[metric].zero_if_failed or State.SEARCH_FAILED not in states
        if not (is_zero or _waits(run, rows, metric)):
            figures[f"{metric}{FAILED_AS_0}"] = item_means(
                (row.key, 0 if row.states[metric] is State.SEARCH_FAILED else row.scores[metric])
                for row in rows
            )
    return figures


def _efficiency(rows: list[Row]) -> dict[str, Values]:
    latencies = item_means((r.key, None if r.censored else r.latency_s) for r in rows)
    figures: dict[str, Values] = {"latency_s": latencies}
    for name in _SUMS:
        lost = {row.key for row in rows if getattr(row, name) is None}
        known = ((r.key, None if r.key in lost else getattr(r, name)) for r in rows)
        figures[name] = item_means(known)
    return figures


def _read_further(
    store: EvaluationStore, run: Run, first: Mapping[tuple[str, str], QuestionKey]
) -> ByMethod:
    """Return the values by scorer; ``first``: method and id of finished first answers -> key."""
    judgements = store.judgements(run.run_id)
    responses = store.outlines(run.run_id) if judgements else {}
    units = {
        unit: response
        for unit, response in responses.items()
        if response.trial == 0 and (response.method, response.sample_id) in first
    }
    samples = {sample.id: sample for sample in store.samples(run.run_id)} if units else {}
    kept = {(judgement.kind, judgement.subject): judgement.value for judgement in judgements}
    kinds, further = {kind for kind, _ in kept}, run.setup.further
    named = map(SCORERS.find, dict.fromkeys((*SCORERS, *sorted(further | kinds))))
    scorers = [s for s in named if s is not None and not s.of_pairs and s.name in further | kinds]
    figures: _Collected = {
        method: {f"{scorer.name}.{part}": {} for scorer in scorers for part in scorer.parts}
        for method in run.setup.methods
    }
    for scorer in scorers:
        for unit, response in units.items() if scorer.name in kinds else ():  # yet to come
            sample = samples.get(response.sample_id, NOT_KEPT)
            grading = kept.get((scorer.name, unit))
            value = scorer.grading(sample, response.failure is not None, grading)
            key = first[response.method, response.sample_id]
            for part, number in () if value is None else scorer.numbers(value).items():
                figures[response.method][f"{scorer.name}.{part}"][key] = number
    return cast("ByMethod", figures)


def _retrieval(output_dir: Path, run_id: str) -> ByMethod:
    """Return the measures in the run's retrieval_results.json; empty if it can't be read."""
    path = run_folder(output_dir, run_id) / REPORT_FILE
    figures: _Collected = {}
    try:
        for question in json.loads(path.read_text(encoding="utf-8"))["results"]:
            for method, response in question["methods"].items():
                for name, value in response["measures"].items():
                    key = question["imdb_key"], question["id"]
                    figures.setdefault(method, {}).setdefault(name, {})[key] = value
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # not measured, or cut short
        return {}
    return cast("ByMethod", figures)


def _mean_retrieval(output_dir: Path, run_id: str) -> Means:
    """Return the means of retrieval measures, from the summary file if it has them."""
    path = run_folder(output_dir, run_id) / SUMMARY_FILE
    try:
        measures = json.loads(path.read_text(encoding="utf-8"))["measures"]
        return {
            method: {k: v["estimate"]["mean"] for k, v in summary["measures"].items()}
            for method, summary in measures.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        measured = _retrieval(output_dir, run_id)
        return {
            m: {k: mean_known(_known(v)) for k, v in values.items()}
            for m, values in measured.items()
        }


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run in the list of runs, see :func:`list_runs`.

    - ``n_questions``: planned questions.
    - ``correctness``: method -> mean in [0, 1] over scored responses and failed searches, which
      count 0; None if there are none, if no response has been judged yet, or if the run did not ask
      for it.
    - ``cost_usd``: of searches and judge, repeated calls included; without the searches if the run
      judged another run's responses again. None if a price is not known.
    - ``embedded_models``: the label of the embedded models if they had a part.
    - ``origin``: who began the run.
    - ``means``: method -> metric -> mean of what a judge gave: the run's metrics as its tables show
      them, ``rubric.<dimension>`` in [1, 5], ``quality.<measure>`` and ``assertions.<measure>`` in
      [0, 1], and ``<metric>, failed as 0`` if failed searches make it differ.
    - ``n``: method -> figure -> the number of questions behind it.
    - ``measured``: method -> figure -> mean of what needs no judge: ``latency_s`` of searches that
      answered, ``median_latency_s`` of all, ``tokens``, ``cost_usd``, and the retrieval measures if
      the run's own file has them.
    - ``label``, ``note``: the name that people give the run, and their note on it.
    """

    run_id: str
    started_at: str
    status: str
    n_questions: int
    correctness: dict[str, float | None]
    cost_usd: float | None
    is_pinned: bool
    embedded_models: str | None = None
    origin: str = ORIGIN_NAMES["python"]
    means: Means = field(default_factory=dict[str, dict[str, float | None]])
    n: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    measured: Means = field(default_factory=dict[str, dict[str, float | None]])
    label: str = ""
    note: str = ""

    def with_note(self, note: Note | None) -> "StoredRun":
        """Return the run with people's label and note; None: without them."""
        remark = note or Note()
        return replace(self, label=remark.label, note=remark.note)

    def to_dict(self) -> dict[str, object]:
        """Return the run as JSON-ready values."""
        return asdict(self)


def list_runs(store_path: Path | str) -> list[StoredRun]:
    """Return the runs in an eval.db, the newest first.

    For example, ``list_runs(store_path="output/eval.db")[0].means["tog"]["correctness"]`` is a mean
    of the newest run. Raises UsageError if there is no store, StoreError if another process holds
    it.
    """
    store_path = Path(store_path)
    pinned = pinned_run_id(store_path)
    keep_lines(store_path)
    with many_records(), open_store(store_path) as store:
        notes = read_notes(store_path)
        return [
            describe_run(store, run, run.run_id == pinned).with_note(notes.get(run.run_id))
            for run in store.runs()
        ]


def read_usages(store_path: Path, run_ids: Iterable[str | None]) -> dict[str, Usage]:
    """Return run id -> all that a run took, repeated calls included, for runs in the store.

    Raises StoreError if another process holds it.
    """
    if not store_path.is_file():
        return {}
    ids = set(run_ids)
    with open_store(store_path) as store:
        runs = [run for run in store.runs() if run.run_id in ids]
        return {run.run_id: sum_usages(paid_usages(store, run)) for run in runs}


def keep_lines(store_path: Path, run_id: str | None = None) -> None:
    """Keep the list entry of each finished run, or of one run, if it is not kept yet.

    If nothing can be written, nothing is kept, and the entry is computed from rows each time.
    """
    with open_store(store_path) as store:
        kept = store.kept_figures(LINE, run_id)
        lacking = [
            run.run_id
            for run in store.runs()
            if run_id in (None, run.run_id) and run.status == "finished" and not uses_own_code(run)
            if run.run_id not in kept or kept[run.run_id].key != digest_code()
        ]
    if not lacking or not can_keep(store_path):
        return
    with suppress(StoreError):
        token, lines = begin_keeping(store_path, LINE, lacking), dict[str, KeptFigures]()
        with many_records(), open_store(store_path) as store:
            for run in store.runs():
                if run.run_id in lacking:
                    line = json.dumps(_compute_line(store, run).to_dict())
                    lines[run.run_id] = KeptFigures(digest_code(), line)
        keep_figures(store_path, LINE, token, lines)


def describe_run(store: EvaluationStore, run: Run, is_pinned: bool) -> StoredRun:
    """Return a run's entry in the list of runs, as it is kept or computed from its rows."""
    kept = None if uses_own_code(run) else store.kept_figures(LINE, run.run_id).get(run.run_id)
    if kept is not None and kept.key == digest_code() and run.status == "finished":
        line = StoredRun(**json.loads(kept.value))
    else:
        line = _compute_line(store, run)
    retrieval = _mean_retrieval(store.path.parent, run.run_id)
    measured = {m: {**figures, **retrieval.get(m, {})} for m, figures in line.measured.items()}
    return replace(line, is_pinned=is_pinned, measured=measured)


def _compute_line(store: EvaluationStore, run: Run) -> StoredRun:
    """Compute a run's entry in the list of runs, from its rows alone."""
    rows, judged = _read_judged(store, run)
    scores = {
        method: {k: _known(v) for k, v in (judged[method] | _failed_as_0(run, own)).items()}
        for method, own in rows.items()
    }
    means = {m: {k: mean_known(v) for k, v in figures.items()} for m, figures in scores.items()}
    measured = {
        method: {
            "median_latency_s": quantile_value(latencies_of(own), 0.5),
            **{
                name: None if name in _SUMS and None in v.values() else mean_known(_known(v))
                for name, v in _efficiency(own).items()
            },
        }
        for method, own in rows.items()
    }
    return StoredRun(
        run_id=run.run_id,
        started_at=run.started_at,
        status=run.status,
        n_questions=run.setup.n_questions,
        correctness={method: figures.get("correctness") for method, figures in means.items()},
        cost_usd=sum_usd(usage.cost_usd for usage in paid_usages(store, run)),
        is_pinned=False,
        embedded_models=stored_metadata(store, run).embedded_models,
        origin=ORIGIN_NAMES[run.origin],
        means=means,
        n={m: {k: len(v) for k, v in figures.items()} for m, figures in scores.items()},
        measured=measured,
    )


def _known(values: Values) -> list[float]:
    return [value for value in values.values() if value is not None]


def unfinished_usages(
    store: EvaluationStore, run: Run, results: Iterable[QueryResult]
) -> tuple[Usage, ...]:
    """Return the usages of answers that will go on, and are no results yet.

    They are finished calls, and responses that wait for their verdicts.
    """
    done = {(result.sample_id, result.method, result.trial) for result in results}
    again = run.setup.responses_of is not None
    waiting = {
        response.unit: response.usage
        for response in store.outlines(run.run_id).values()
        if (response.sample_id, response.method, response.trial) not in done
    }
    verdicts = store.judge_usage(run.run_id)
    return (
        *(() if again else waiting.values()),
        *(usage for unit in waiting for usage in verdicts.get(unit, ())),
        *store.unclaimed_usage(run.run_id).values(),
    )


def paid_usages(store: EvaluationStore, run: Run) -> list[Usage]:
    """Return all that a run paid for, including repeated calls and answers that are not finished.

    If the run judged another run's responses again, its searches are left out.
    """
    again = run.setup.responses_of is not None
    return [
        *(() if again else (response.usage for response in store.outlines(run.run_id).values())),
        *(usage for usages in store.judge_usage(run.run_id).values() for usage in usages),
        *store.forgotten_usage(run.run_id),
        *(judged.usage for judged in store.judgements(run.run_id)),
        *store.unclaimed_usage(run.run_id).values(),
    ]
