"""Defines the stored records of a run: its setup and details, responses, further judgments."""

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
from graphrag.text.message_phrases import counted


class RunSetup(RootModel[dict[str, object]], frozen=True):
    """Everything that changes what a run's results mean, in named JSON-ready sections.

    Two runs are alike if their setups are equal, including sections that only another release
    knows. A setup (``root``) is therefore kept exactly as it was made. Results files lack some
    sections.
    """

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in their order."""
        return tuple(self._sections["methods"]["order"])

    @property
    def n_questions(self) -> int:
        """The number of planned questions."""
        return self._sections["dataset"]["questions"]

    @property
    def metrics(self) -> tuple[str, ...] | None:
        """The metrics that responses are judged on; None if the setup names none."""
        described = self._sections.get("metrics")
        return None if described is None else tuple(described)

    @property
    def further(self) -> frozenset[str]:
        """The further judges that are asked, see :class:`Judgement`; those of pairs by scorer."""
        asked = frozenset(self._sections.get("further", {}))
        by_claim = "by" in self._sections.get("metrics", {}).get("faithfulness", {})
        return asked | {CLAIMS} if by_claim else asked

    @property
    def indexes(self) -> "Mapping[str, Mapping[str, _Described]]":
        """Index key -> method -> everything that changes what the method answers there."""
        return self._sections["indexes"]

    @property
    def responses_of(self) -> str | None:
        """The run whose responses are judged again; None if the run makes its own."""
        return self._sections.get("responses_of")

    @property
    def is_of_suites(self) -> bool:
        """Whether evaluators of test suites score the responses."""
        return "suites" in self.root

    def completion_models(self) -> list[str]:
        """Return the models that write the methods' responses, sorted."""
        described = [index for by_method in self.indexes.values() for index in by_method.values()]
        models = [index.get("models", {}).get("completion") for index in described]
        return sorted({model["model"] for model in models if model is not None})

    def fingerprints(self, methods: Sequence[str]) -> dict[str, str | None]:
        """Return name -> fingerprint of each index that these methods searched.

        None if none of them names it.
        """
        by_index = self.searched(methods)
        return {name: next(iter(fingerprints), None) for name, fingerprints in by_index.items()}

    def index_of(self, key: str, method: str) -> str:
        """Return the name of the index that a method asks for a key: the key if it has no other."""
        return self.indexes.get(key, {}).get(method, {}).get("project", key)

    def searched(self, methods: Sequence[str] | None = None) -> dict[str, set[str]]:
        """Return name -> known fingerprints of the indexes that methods searched.

        ``methods``: None: all. A key names its own index, asked or not, unless every method
        that asks for it has another index.
        """
        by_index: dict[str, set[str]] = {}
        for key, by_method in self.indexes.items():
            asking = [m for m in by_method if methods is None or m in methods]
            for name in dict.fromkeys(self.index_of(key, m) for m in asking) or [key]:
                facts = [by_method[m] for m in asking if self.index_of(key, m) == name]
                by_index[name] = {v for fact in facts if (v := fact.get("index")) is not None}
        return by_index

    def flat(self) -> dict[str, object]:
        """Return ``section.key`` -> value, for everything in the setup."""
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
    """Return key -> ``key: before -> after``, for each key in which two setups differ."""
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
"""Who began a run: graphrag eval, its judge or suite, or a program of the user's own. ``monitor``,
gone with 2.0.0, is found in kept runs only."""
CLAIMS = "claims"
"""The kind of judgments that contain the claims of a response."""
DOUBT = "doubt"
"""The kind of judgments on why a question's row is doubted, by metric."""
IndexFacts: TypeAlias = Mapping[str, str | int | None]
"""Name of a setting or a count of an index -> its value; unknown ones are left out."""
EMBEDDING_MODEL = "embedding model"
"""The name, among the facts of an index, of the model that made its vectors."""


@dataclass(frozen=True, slots=True)
class RunDetails:
    """The facts in a run's tables and files besides its setup, so that they can be made again.

    - ``n_units``: planned responses.
    - ``config``: the EvaluationConfig, JSON-ready, with ``root`` as an absolute path; the latest
      one if the run was resumed.
    - ``models``: the models that may have been asked.
    - ``warnings``: what makes the figures weaker than they look; ``roomy``: those on contexts with
      so much room that they contain most of a text.
    - ``skip_judge``: whether responses were collected without verdicts.
    - ``search_methods``: method name -> the search method behind it.
    - ``report``: the report of a finished run of suites, JSON-ready; None otherwise.
    - ``command``: the command line that asks the same again; "" if there was none.
    - ``indexes``: index key -> what its index was built with and how much it contains, for people.
    - ``index_costs``: index key -> what the index that is searched took to build, if known.
    - ``lacking``: method -> pairs of what it has to do without on all questions, and why.
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
        """Return the details that :meth:`to_dict` returned as values."""
        details = _DETAILS.validate_python(values)
        if "roomy" in values:
            return details
        ending = "this comparison says little about retrieval"  # as 1.0.0 ended them
        return replace(details, roomy=tuple(w for w in details.warnings if w.endswith(ending)))


_DETAILS = TypeAdapter(RunDetails)


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation run; ``finished_at`` is None if it is unfinished."""

    run_id: str
    started_at: str
    finished_at: str | None
    status: Status
    setup: RunSetup
    details: RunDetails

    @property
    def origin(self) -> Origin:
        """Who began the run."""
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
    """A piece of work that model calls belong to: the search of a unit, or a judging of it.

    ``work``: "search", "judge" for the verdicts, or the kind of a :class:`Judgement`. ``unit``: the
    key of the :class:`Unit`.
    """

    work: str
    unit: str

    @property
    def stored(self) -> str:
        """The scope as the store writes it."""
        return f"{self.work} {self.unit}"

    @classmethod
    def of_search(cls, unit: str) -> "CallScope":
        """Return the scope of a unit's search."""
        return cls("search", unit)

    @classmethod
    def of_verdicts(cls, unit: str) -> "CallScope":
        """Return the scope of the verdicts on a unit."""
        return cls("judge", unit)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as it was recorded.

    - ``unit``: the key of its :class:`Unit`.
    - ``context_text``, ``retrieved``: None if the method does not report its context, or what it
      retrieved.
    - ``failure``: None unless the search failed.
    - ``trial``: which repeat of the whole search it is, from 0.
    - ``abstained``: whether the method says that it gives no answer.
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
        """A note on what the search had to do without, and why; "" if nothing."""
        return "" if self.retrieved is None else self.retrieved.note

    @property
    def tokens(self) -> int | None:
        """Prompt and output tokens; None if calls are not counted."""
        usage = self.usage
        return usage.prompt_tokens + usage.output_tokens if usage.is_counted else None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgment of a further judge, beyond the verdicts.

    - ``subject``: the unit that was judged; in a comparison of two methods, the first one's.
    - ``kind``: the name of a scorer, such as "rubric"; for a scorer of pairs "pairwise:A:B"; or
      "claims" or "doubt", which are details of a verdict that has their failure and usage.
    - ``value``: the judge's record, JSON-ready.
    - ``failed``: whether a part is unscored because the judge failed.
    """

    subject: str
    kind: str
    value: dict[str, object]
    failed: bool
    usage: Usage

    @property
    def cause(self) -> str:
        """Why the judge gave nothing at all; "" if it gave something."""
        failure = self.value.get("failure") if len(self.value) == 1 else None
        return str(cast("dict[str, object]", failure)["message"]) if failure else ""


@dataclass(frozen=True, slots=True)
class Unit:
    """One question asked by one method in one trial.

    ``key``: changes with everything that changes the unit's meaning. ``trial``: which repeat of the
    whole search it is, from 0.
    """

    key: str
    sample: Sample
    method: str
    trial: int = 0


def list_details(unit: str, verdicts: Mapping[str, JudgeResult]) -> list[Judgement]:
    """Return, as judgments, the claims that verdicts on a unit follow from, and the doubts."""
    details = [(CLAIMS, dict(v.claims)) for v in verdicts.values() if v.claims is not None]
    doubts: dict[str, object] = {name: v.doubt for name, v in verdicts.items() if v.doubt}
    details += [(DOUBT, doubts)] if doubts else []
    return [
        Judgement(subject=unit, kind=kind, value=value, failed=False, usage=Usage())
        for kind, value in details
    ]


def pair_kind(scorer: str, first: str, second: str) -> str:
    """Return the kind of the judgments by which a scorer compares two methods."""
    return f"{scorer}:{first}:{second}"
