"""What the store keeps of a run: the run and its setup, its responses, its further judgments."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple, Required, TypeAlias, TypedDict, cast

from pydantic import RootModel, TypeAdapter

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.store.index_costs import IndexCost
from graphrag.eval.types.query_results import Retrieved
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.usage import Usage
from graphrag.text.phrases import counted


class RunSetup(RootModel[dict[str, object]], frozen=True):
    """Everything that changes what a run's results mean, JSON-ready, in named sections.

    Two runs are alike when their setups are equal, sections that only another release knows
    included, so it is kept as it was made: ``root`` is what the store holds. Results files lack
    some sections.
    """

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods in their order."""
        return tuple(self._sections["methods"]["order"])

    @property
    def n_questions(self) -> int:
        """Questions planned."""
        return self._sections["dataset"]["questions"]

    @property
    def metrics(self) -> tuple[str, ...] | None:
        """What responses are judged on; None when it does not say."""
        described = self._sections.get("metrics")
        return None if described is None else tuple(described)

    @property
    def further(self) -> frozenset[str]:
        """The further judges that are asked: see :class:`Judgement`; all pairs by their scorer."""
        asked = frozenset(self._sections.get("further", {}))
        by_claim = "by" in self._sections.get("metrics", {}).get("faithfulness", {})
        return asked | {CLAIMS} if by_claim else asked

    @property
    def indexes(self) -> "Mapping[str, Mapping[str, _Described]]":
        """Index key -> method -> everything that changes what the method answers there."""
        return self._sections["indexes"]

    @property
    def responses_of(self) -> str | None:
        """The run whose responses are judged again, None of any other run."""
        return self._sections.get("responses_of")

    @property
    def is_of_suites(self) -> bool:
        """Whether evaluators of suites score the responses."""
        return "suites" in self.root

    def completion_models(self) -> list[str]:
        """Return the models that write the methods' responses, sorted."""
        described = [index for by_method in self.indexes.values() for index in by_method.values()]
        models = [index.get("models", {}).get("completion") for index in described]
        return sorted({model["model"] for model in models if model is not None})

    def fingerprints(self, methods: Sequence[str]) -> dict[str, str | None]:
        """Return name -> fingerprint of each index that these methods searched.

        None when none of them says.
        """
        by_index = self.searched(methods)
        return {name: next(iter(fingerprints), None) for name, fingerprints in by_index.items()}

    def index_of(self, key: str, method: str) -> str:
        """Return the name of the index that a method asks about a key: the key, if no other."""
        return self.indexes.get(key, {}).get(method, {}).get("project", key)

    def searched(self, methods: Sequence[str] | None = None) -> dict[str, set[str]]:
        """Return name -> fingerprints, as far as they are told, of the indexes that were searched.

        ``methods``: by these; None: by any. A key stands for its own index, asked or not, unless
        methods that have others alone ask about it.
        """
        by_index: dict[str, set[str]] = {}
        for key, by_method in self.indexes.items():
            asking = [m for m in by_method if methods is None or m in methods]
            for name in dict.fromkeys(self.index_of(key, m) for m in asking) or [key]:
                facts = [by_method[m] for m in asking if self.index_of(key, m) == name]
                by_index[name] = {v for fact in facts if (v := fact.get("index")) is not None}
        return by_index

    def flat(self) -> dict[str, object]:
        """Return ``section.key`` -> value of all that it says."""
        return dict(_flatten(self.root))

    @property
    def _sections(self) -> "_Sections":
        return cast("_Sections", self.root)


class _Described(TypedDict, total=False):
    index: str | None
    project: str
    models: dict[str, dict[str, str]]


class _Sections(TypedDict, total=False):
    dataset: Required[dict[str, int]]
    methods: Required[dict[str, list[str]]]
    indexes: Required[dict[str, dict[str, _Described]]]
    judge: Required[dict[str, str | None]]
    metrics: dict[str, dict[str, object]]
    further: dict[str, dict[str, object]]
    responses_of: str


def list_differences(before: RunSetup, after: RunSetup) -> dict[str, str]:
    """Return each key in which two setups differ -> ``key: before -> after``."""
    old, new = before.flat(), after.flat()
    return {
        key: f"{key}: {_format_value(old, key)} -> {_format_value(new, key)}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    }


def _flatten(values: Mapping[str, object], where: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(cast("Mapping[str, object]", value), f"{where}{key}.")
        else:
            yield f"{where}{key}", value


def _format_value(values: Mapping[str, object], key: str) -> str:
    return json.dumps(values[key]) if key in values else "not set"


Status = Literal["unfinished", "finished"]
Origin = Literal["command", "judge", "suite", "monitor", "python"]
"""Who began a run: graphrag eval, its judge or suite, or a program of the user's own.

``monitor``, gone with 2.0.0, is that of kept runs alone.
"""
CLAIMS = "claims"
"""The kind of the judgments that hold the claims of a response."""
DOUBT = "doubt"
"""The kind of those that say why a question's row is doubted, by metric."""
IndexFacts: TypeAlias = Mapping[str, str | int | None]
"""Name of a setting or a count of an index -> its value; what is not known is left out."""
EMBEDDING_MODEL = "embedding model"
"""The name, among what a run's details say of an index, of the model that made its vectors."""


@dataclass(frozen=True, slots=True)
class RunDetails:
    """What a run's tables and files say beside its setup, so that they can be made again.

    - ``n_units``: responses planned.
    - ``config``: the EvaluationConfig, JSON-ready, with ``root`` as an absolute path; of a run that
      was resumed, the latest one.
    - ``models``: the models that may have been asked.
    - ``warnings``: what makes the figures weaker than they look; ``roomy``: those of contexts that
      hold most of a text.
    - ``skip_judge``: whether responses were collected without verdicts.
    - ``search_methods``: method name -> the search method behind it.
    - ``report``: what a run of suites came to, JSON-ready; None of other runs and of an unfinished
      one.
    - ``command``: the command line that asks the same again; "" where there was none.
    - ``indexes``: index key -> what its index was built with and how much it holds, for people.
    - ``index_costs``: index key -> what the index that is searched took to build, where known.
    - ``lacking``: method -> what it has to do without on all questions, and why, each a pair.
    """

    origin: Origin
    n_units: int
    config: Mapping[str, object]
    models: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    roomy: tuple[str, ...] = ()
    skip_judge: bool = False
    search_methods: Mapping[str, str] = field(default_factory=dict[str, str])
    report: Mapping[str, object] | None = None
    command: str = ""
    indexes: Mapping[str, IndexFacts] = field(default_factory=dict[str, IndexFacts])
    index_costs: Mapping[str, IndexCost] = field(default_factory=dict[str, IndexCost])
    lacking: Mapping[str, tuple[tuple[str, str], ...]] = field(
        default_factory=dict[str, tuple[tuple[str, str], ...]]
    )

    def to_dict(self) -> dict[str, object]:
        """Return the details as JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "RunDetails":
        """Make them of what :meth:`to_dict` returned."""
        details = _DETAILS.validate_python(values)
        if "roomy" in values:
            return details
        said_little = "this comparison says little about retrieval"  # as 1.0.0 ended them
        return replace(details, roomy=tuple(w for w in details.warnings if w.endswith(said_little)))


_DETAILS = TypeAdapter(RunDetails)


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation run; ``finished_at`` is None of an unfinished one."""

    run_id: str
    started_at: str
    finished_at: str | None
    status: Status
    setup: RunSetup
    details: RunDetails

    @property
    def origin(self) -> Origin:
        """Who began it."""
        return self.details.origin

    def describe(self) -> str:
        """Return id, date and number of questions for a sentence."""
        started = self.started_at[:16].replace("T", " ")
        questions = counted(self.setup.n_questions, "question")
        return f"{self.run_id} ({started} UTC, {questions}, {self.status})"


def now() -> str:
    """Return the time in UTC, to the millisecond, as the store writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class CallScope(NamedTuple):
    """The piece of work that model calls are part of.

    ``work``: "search", "judge" for the verdicts, or the kind of a :class:`Judgement`. ``unit``: the
    unit that is searched or judged.
    """

    work: str
    unit: str

    @property
    def stored(self) -> str:
        """Its form in the store."""
        return f"{self.work} {self.unit}"

    @classmethod
    def of_search(cls, unit: str) -> "CallScope":
        """Return that of a unit's search."""
        return cls("search", unit)

    @classmethod
    def of_verdicts(cls, unit: str) -> "CallScope":
        """Return that of the verdicts on a unit."""
        return cls("judge", unit)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as it was recorded; ``failure`` is set when the search failed.

    ``trial`` counts the repeats of a whole search from 0. ``retrieved`` is None for a method that
    does not say what it retrieved, as ``context_text`` is for one that does not tell its text.
    ``abstained``: the method says that it gives no answer.
    """

    unit: str
    sample_id: str
    method: str
    response: str
    context_text: str | None
    latency_s: float | None
    usage: Usage
    failure: Failure | None = None
    trial: int = 0
    retrieved: Retrieved | None = None
    abstained: bool = False

    @property
    def lacked(self) -> str:
        """What the search had to do without, and why; "" if nothing."""
        return "" if self.retrieved is None else self.retrieved.note

    @property
    def tokens(self) -> int | None:
        """Prompt and output tokens; None where calls are not counted."""
        usage = self.usage
        return usage.prompt_tokens + usage.output_tokens if usage.is_counted else None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a further judge said, beyond the verdicts.

    ``subject``: the unit that was judged, or for a comparison of two methods the first one's.
    ``kind``: the name of a scorer, as "rubric", of one of pairs "pairwise:A:B", or "claims" or
    "doubt", which come with a verdict that has their failure and their usage. ``value``: the
    judge's record, JSON-ready. ``failed``: whether something in it is unscored because the judge
    failed.
    """

    subject: str
    kind: str
    value: dict[str, object]
    failed: bool
    usage: Usage

    @property
    def cause(self) -> str:
        """Why nothing was said at all; "" where something was."""
        failure = self.value.get("failure") if len(self.value) == 1 else None
        return str(cast("dict[str, object]", failure)["message"]) if failure else ""


@dataclass(frozen=True, slots=True)
class Unit:
    """One question asked by one method; ``key`` changes with all that changes its meaning.

    ``trial`` counts the repeats of a whole search from 0.
    """

    key: str
    sample: Sample
    method: str
    trial: int = 0


def list_details(unit: str, verdicts: Mapping[str, JudgeResult]) -> list[Judgement]:
    """Return what verdicts on a unit follow from claim by claim, and what the judge doubts."""
    details = [(CLAIMS, dict(v.claims)) for v in verdicts.values() if v.claims is not None]
    doubts: dict[str, object] = {name: v.doubt for name, v in verdicts.items() if v.doubt}
    details += [(DOUBT, doubts)] if doubts else []
    return [
        Judgement(subject=unit, kind=kind, value=value, failed=False, usage=Usage())
        for kind, value in details
    ]


def pair_kind(scorer: str, first: str, second: str) -> str:
    """Return the kind of the judgments by which a scorer holds two methods against each other."""
    return f"{scorer}:{first}:{second}"
