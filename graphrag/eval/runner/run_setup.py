"""What a run consists of, what its results mean, which run is resumed, and what one came to."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample, fingerprint_samples
from graphrag.eval.errors import ResumeError
from graphrag.eval.metrics.claims import CLAIMS_VERSION, RULING_PROMPT, SPLIT_PROMPT
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.scorer_registry import SCORERS, list_further, list_pairs
from graphrag.eval.runner.indexes import read_searched_views
from graphrag.eval.runner.judging import FAITHFULNESS, with_judged
from graphrag.eval.runner.scheduler import RunOutcome, Work
from graphrag.eval.runner.stored_config import read_stored_config
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.store.atomic_files import PAGE_FILE, run_folder
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import (
    Run,
    RunDetails,
    RunSetup,
    StoredResponse,
    Unit,
    list_differences,
)
from graphrag.eval.store.session import StoredSession
from graphrag.eval.store.sqlite import check_pages, damage_error
from graphrag.eval.types.metric_definitions import (
    BUILT_IN,
    JUDGED_METRICS,
    REFUSAL,
    describe_own,
)
from graphrag.eval.types.own_code import find_part
from graphrag.query.client.usage import Usage
from graphrag.query.index.header import IndexHeader
from graphrag.text.cli_hints import config_name, eval_line_here
from graphrag.text.phrases import counted, join_names

if TYPE_CHECKING:
    from graphrag.eval.runner.telemetry import Telemetry

Descriptions = Mapping[str, Mapping[str, Mapping[str, object]]]
"""Index key -> method -> everything that changes what the method answers there."""


def plan_run(
    samples: Sequence[Sample], methods: Sequence[str], descriptions: Descriptions, trials: int = 1
) -> list[Unit]:
    """Return the units of a run: for each sample every method asked, in order, once a trial."""

    def key(sample: Sample, method: str, trial: int) -> str:
        described = descriptions[sample.imdb_key][method]
        return _hash([sample.id, sample.question, method, described, *([trial] if trial else [])])

    return [
        Unit(key(sample, method, trial), sample, method, trial)
        for trial in range(trials)
        for sample in samples
        for method in methods
        if is_asked(method, sample)
    ]


def is_asked(method: str, sample: Sample) -> bool:
    """Say whether a method is asked a question: an oracle needs evidence to show."""
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
    """Return the setup of a run that judges the responses of another one again."""
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
    """Return the units of responses that are there already, in the order of a run.

    Raises KeyError if a response is to a question that is not among the samples.
    """
    by_id = {sample.id: (position, sample) for position, sample in enumerate(samples)}
    order = {method: position for position, method in enumerate(methods)}
    ordered = sorted(responses, key=lambda r: (r.trial, by_id[r.sample_id][0], order[r.method]))
    return [Unit(r.unit, by_id[r.sample_id][1], r.method, r.trial) for r in ordered]


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything that a run needs, checked; ``setup`` as in :func:`describe_setup`.

    ``headers``: by the names of the indexes that are asked; ``judging``: by key, those that name
    the judge. ``judge`` is the model that is asked, if one is; ``origin`` the run whose responses
    are judged again, None where searches are made.
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
    """How a run goes, beside its configuration.

    ``resume``: whether an earlier run is continued; ``retry_errors``: and what failed in it asked
    again.
    """

    resume: bool = False
    retry_errors: bool = False
    skip_judge: bool = False
    max_cost_usd: float | None = None
    address: str | None = None
    telemetry: "Telemetry | None" = None

    @property
    def flags(self) -> str:
        """The flags that ask for an earlier run, as they are typed; "" without one."""
        typed = {"--resume": self.resume, "--retry-errors": self.retry_errors}
        return " and ".join(flag for flag, is_typed in typed.items() if is_typed)


def choose_run(
    store: EvaluationStore,
    plan: RunPlan,
    options: RunOptions,
    note: Callable[[str], None],
    warn: Callable[[str], None],
) -> Run:
    """Begin a run or take the newest one of the same setup that has something left to do.

    Where none has, it is the newest finished one, but of suites: of that nothing is asked, and its
    files are written. One that is taken stays finished, any other is unfinished. ``note`` and
    ``warn`` are told what a person is to know of the choice. Raises ResumeError if a run is to be
    resumed and there is none, or it was set up differently; StoreError if the store that holds it
    is damaged.
    """
    # No run of 1.x's monitor goes on: it asked a sample, against a baseline of its own.
    runs = [run for run in store.runs() if run.origin != "monitor"]
    if not options.flags:
        if any(run.status == "unfinished" and run.setup == plan.setup for run in runs):
            warn("an unfinished run of this configuration exists; --resume continues it")
        return store.add_run(plan.setup, plan.samples, plan.details)
    check_pages(store.path)  # the rest of the run is built on what is there
    alike = [run for run in runs if run.setup == plan.setup]
    left = [run for run in alike if options.retry_errors or run.status == "unfinished"]
    finished: list[Run] = []
    if not (options.retry_errors or plan.details.skip_judge or plan.details.origin == "suite"):
        finished = [r for r in alike if r.status == "finished" and r.origin == plan.details.origin]
    if not left and not finished:
        raise ResumeError(_explain_refusal(store, runs, plan, options))
    # One that a program of the user's own began can go on too, if there is no other.
    same = min(left or finished, key=lambda run: run.origin != plan.details.origin)
    folders = [(run, run_folder(store.path.parent, run.run_id)) for run in finished]
    unwritten = [run for run, path in folders if not (path / PAGE_FILE).exists()]  # it comes last
    if unwritten and runs.index(unwritten[0]) < runs.index(same):
        same = unwritten[0]  # as one that is unfinished was given up for it
    is_left = same in left
    if is_left:
        in_flight = store.reopen_run(same.run_id)
        calls = f"{counted(in_flight, 'call')} {'was' if in_flight == 1 else 'were'}"
        note(
            f"Resuming run {same.run_id}: {_count_stored(store, same, plan.details, options)}; "
            f"{calls} in flight when it stopped and may be asked again."
        )
    else:
        note(
            f"Run {same.run_id} is finished: nothing is asked, its files are written from what "
            "is kept."
        )
        newer = [r for r in runs[: runs.index(same)] if r.origin == plan.details.origin]
        if open_ := [run.run_id for run in newer if run.status == "unfinished"]:
            warn(f"run {open_[0]} is unfinished; to continue it, repeat the flags it began with")
    if len(store.samples(same.run_id)) < len(plan.samples):  # one that SQLite recovered lost some
        store.keep_samples(same.run_id, plan.samples)
    store.keep_details(same.run_id, plan.details)
    status = "unfinished" if is_left else same.status
    return replace(same, status=status, details=plan.details)


def _count_stored(
    store: EvaluationStore, run: Run, details: RunDetails, options: RunOptions
) -> str:
    """Say how many responses are there, and how many of them the run begins to count with."""
    responses = store.outlines(run.run_id)
    text = f"{len(responses)} of {details.n_units} responses are there"
    failed = {unit for unit, response in responses.items() if response.failure is not None}
    if failed and options.retry_errors:
        text += f", {len(failed)} failed and asked again"
    if details.skip_judge or details.origin == "suite":  # which has its own scores
        return text
    verdicts = store.verdicts(run.run_id)
    metrics = cast("list[str]", details.config["metrics"])
    judged_units = [unit for unit in responses if all(m in verdicts.get(unit, {}) for m in metrics)]
    return f"{text}, {len(judged_units)} of them judged"


def _explain_refusal(
    store: EvaluationStore, runs: Sequence[Run], plan: RunPlan, options: RunOptions
) -> str:
    path = store.path
    own = [run for run in runs if run.origin == plan.details.origin]
    tried = [*own, *runs]
    if not options.retry_errors:
        tried = [run for run in tried if run.status == "unfinished"] or own
    last = next(iter(tried), None)
    if last is None:
        return f"There is no unfinished run in {path} to resume; leave {options.flags} out."
    lines = list_differences(last.setup, plan.setup)
    if of_dataset := [key for key in lines if key.startswith("dataset.")]:
        changed = _describe_questions(store.samples(last.run_id), plan.samples)
        lines = {key: line for key, line in lines.items() if key not in of_dataset}
        lines["dataset"] = f"dataset: {changed}"
    for name in (others := _list_other_indexes(last.setup, plan.setup)):
        digest = re.compile(rf"indexes\.{re.escape(name)}\..*\.(index|vectors)")
        lines = {key: line for key, line in lines.items() if not digest.fullmatch(key)}
        lines[f"index {name}"] = f"index {name} is another one than was searched"
    # An added method alone gives many lines about the indexes; digests of prompts, and how words
    # are told apart, tell the least.
    late, last_of = ("indexes.", "releases."), (".prompt", ".refusal")
    ordered = sorted(
        lines,
        key=lambda key: (key.endswith(last_of) or ".words." in key, key.startswith(late)),
    )
    differences = [lines[key] for key in ordered]
    summary = "; ".join(differences[:8])
    more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
    refused = "its failures can't be asked again" if options.retry_errors else "it can't be resumed"
    anew = f"leave {options.flags} out to begin a new run, which asks everything again"
    if not options.retry_errors and last.status == "finished":
        but = f", and was set up differently: {summary}{more}" if differences else ""
        return (
            f"There is no unfinished run in {path} to resume. The last run ({last.run_id}) is "
            f"finished{but}. See it with: {eval_line_here('show', last.run_id)}; or {anew}."
        )
    has_answers = bool(store.outlines(last.run_id))
    remedy = _name_remedy(last, plan, others) if has_answers else "It has no answer yet"
    return (
        f"The last run ({last.run_id}) was set up differently, so {refused}: {summary}{more}. "
        f"{remedy}{', or' if has_answers else ';'} {anew}."
    )


def _list_other_indexes(before: RunSetup, now: RunSetup) -> list[str]:
    """Return the keys whose index is not the one that was searched, such as one built again."""
    return [
        key
        for key, methods in before.indexes.items()
        if any(
            description.get("index") != now.indexes[key][method].get("index")
            for method, description in methods.items()
            if method in now.indexes.get(key, {})
        )
    ]


def _describe_questions(before: Sequence[Sample], now: Sequence[Sample]) -> str:
    """Say which questions of two data sets differ."""
    old, new = ({sample.id: sample for sample in samples} for samples in (before, now))
    changed = {
        "changed": [
            new[key].name
            for key in old
            if key in new and fingerprint_samples([old[key]]) != fingerprint_samples([new[key]])
        ],
        "gone": [old[key].name for key in old if key not in new],
        "new": [new[key].name for key in new if key not in old],
    }
    parts = [
        f"{counted(len(names), 'question')} {'is' if len(names) == 1 else 'are'} {how} "
        f"({join_names(names, most=3)})"
        for how, names in changed.items()
        if names
    ]
    return join_names(parts) or "the questions are in another order"


def _name_remedy(last: Run, plan: RunPlan, other_indexes: Sequence[str]) -> str:
    """Say what makes use of a run that was set up differently."""
    old, new = last.setup.flat(), plan.setup.flat()
    judged = ("metrics.", "further.")
    earlier = [key for key in old if key.startswith(judged) and key.endswith(".version")]
    if any(key.rpartition(".")[2] in ToGSearchConfig.replaced for key in old.keys() - new.keys()):
        why = "It has settings of 1.0.0 that are gone"
    elif any(old[key] != new.get(key, old[key]) for key in earlier):
        why = "Its judge had the prompts of an earlier version"
    elif other_indexes:
        why = "An index that was built again can't be had back"
    elif old.get("releases.gtog") != new.get("releases.gtog"):
        why = "Another version began it"
    else:
        return "Undo the change"
    use, done = ("show", "See") if last.setup.is_of_suites else ("judge", "Judge")
    line = eval_line_here(use, last.run_id)
    return f"{why}. {done} what it answered with: {line}"


@dataclass(frozen=True, slots=True)
class RunDescription:
    """What a run came to, and what its files and its end say about it.

    ``views`` are of the indexes, for the measures that need no model; ``states``: whether each is
    as it was searched, see :func:`find_searched`. ``recorded_at`` says when the latest result was
    kept (ISO 8601; None: now). ``forgotten`` is the usage of failed searches that
    were asked again and of calls that are part of nothing kept, ``unfinished`` of what is no
    result yet, and goes on; ``unread`` says what can't be read any more, a line each.
    """

    run: Run
    config: EvaluationConfig
    samples: Sequence[Sample]
    outcome: RunOutcome
    recorded_at: str | None
    is_stored: bool
    forgotten: Sequence[Usage]
    unfinished: Sequence[Usage]
    views: Mapping[str, IndexView] = field(default_factory=dict[str, IndexView])
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    unread: Sequence[str] = ()

    @classmethod
    def of_stored(
        cls,
        store: EvaluationStore,
        run: Run,
        config: EvaluationConfig,
        samples: Sequence[Sample],
        outcome: RunOutcome,
    ) -> "RunDescription":
        """Return that of a run in a store, which came to this by now."""
        from graphrag.eval.results.runs import unfinished_usages  # numpy: no run needs it

        counted = {(judgement.kind, judgement.subject) for _, judgement in outcome.judged}
        every = store.judgements(run.run_id)  # some, as of another release, count for nothing now
        left = [each.usage for each in every if (each.kind, each.subject) not in counted]
        return cls(
            run,
            config,
            samples,
            outcome,
            recorded_at=store.recorded_at(run.run_id),
            is_stored=store.is_kept,
            forgotten=[*store.forgotten_usage(run.run_id), *left],
            unfinished=unfinished_usages(store, run, outcome.results),
        )

    async def with_views(self) -> "RunDescription":
        """Return it with the indexes that are as they were searched, and a line for any other."""
        roots = self.config.projects()
        views, states, unread = await read_searched_views(roots, self.run.setup)
        unread += _list_unknown(self.run)
        return replace(self, views=views, states=states, unread=unread)


def _list_unknown(run: Run) -> list[str]:
    """Say which judges and measures of one's own a run has figures of that can't be shown."""
    sections = cast("Mapping[str, Mapping[str, Mapping[str, object]]]", run.setup.root)
    described = {**sections.get("metrics", {}), **sections.get("further", {})}
    places = {
        name: about.get("object") or about.get("package")
        for name, about in described.items()
        if name not in BUILT_IN and find_part("metrics", name) is None
    }
    measures = cast("Mapping[str, list[str]]", run.details.config.get("measures", {}))
    further = measures.get("further", ())
    places |= {name: None for name in further if find_part("measures", name) is None}
    return [
        f"What {name}{f' ({place})' if place else ''} says is left out: it is code of your own; "
        f"name it in {config_name()} as module:object to see it."
        for name, place in places.items()
    ]


def read_run(store: EvaluationStore, run: Run, root: Path | None) -> RunDescription:
    """Read the results of a run that is not of suites, in outline; nothing is asked.

    ``root`` is the folder that the indexes are relative to; None: where it was when the run was
    made. Raises ConfigError if the settings of the run can't be read; StoreError if the store is
    damaged.
    """
    details, samples = run.details, store.samples(run.run_id)
    config = read_stored_config(run, root)
    responses = store.outlines(run.run_id, with_texts=True)
    try:
        units = plan_judging(samples, config.methods, responses.values())
    except KeyError as error:
        raise damage_error(store.path, f"run {run.run_id} lacks the question {error}") from error
    session = StoredSession(store, run.run_id)
    work = Work(config, units, session, details.skip_judge)
    outcome = with_judged(work.read_outcome(), config, work)
    is_whole = len(outcome.results) == details.n_units
    is_collected = details.skip_judge and is_whole
    has_ended = run.status == "finished" or is_collected
    stopped = None if has_ended else "unfinished"
    outcome = replace(outcome, n_planned=details.n_units, stopped=stopped)
    return RunDescription.of_stored(store, run, config, samples, outcome)
