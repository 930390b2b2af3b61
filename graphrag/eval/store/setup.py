"""What gives a run's results their meaning, as the store keeps it."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, cast

from pydantic import RootModel


class RunSetup(RootModel[dict[str, object]], frozen=True):
    """Everything that changes what a run's results mean, JSON-ready, in named sections.

    Two runs are alike when their setups are equal, sections that only another release knows
    included, so it is kept as it was made: ``root`` is what the store holds. Older releases and
    results files lack some sections.
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
    def trials(self) -> int:
        """How often every search is made."""
        return self._sections.get("trials", 1)

    @property
    def metrics(self) -> tuple[str, ...] | None:
        """What responses are judged on; None when it does not say."""
        described = self._sections.get("metrics")
        return None if described is None else tuple(described)

    @property
    def further(self) -> frozenset[str]:
        """The further judges that are asked: "rubric", "quality", "pairwise"."""
        return frozenset(self._sections.get("further", {}))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The methods that are held against each other."""
        compared = self._sections.get("further", {}).get("pairwise", {})
        return tuple((a, b) for a, b in compared.get("pairs", ()))

    @property
    def indexes(self) -> "Mapping[str, Mapping[str, _Described]]":
        """Index key -> method -> everything that changes what the method answers there."""
        return self._sections["indexes"]

    @property
    def judge_model(self) -> str | None:
        """The judge's model as ``provider/model``; None when it has none."""
        return self._sections["judge"].get("model")

    @property
    def responses_of(self) -> str | None:
        """The run whose responses are judged again, None of any other run."""
        return self._sections.get("responses_of")

    @property
    def is_of_suites(self) -> bool:
        """Whether evaluators of suites score the responses."""
        return "suites" in self.root

    def list_models(self, role: str | None = None) -> list[str]:
        """Return the methods' models, sorted; of one role, as "completion", or of all."""
        given = [
            described.get("models", {})
            for by_method in self.indexes.values()
            for described in by_method.values()
        ]
        return sorted(
            {m["model"] for models in given for name, m in models.items() if role in (None, name)}
        )

    def fingerprints(self, methods: Sequence[str]) -> dict[str, str | None]:
        """Return index key -> fingerprint of the index that these methods searched.

        None when none of them says.
        """
        return {
            key: next((d["index"] for m in methods if "index" in (d := by.get(m, {}))), None)
            for key, by in self.indexes.items()
        }

    def judged_again(
        self, run_id: str, judging: Mapping[str, object], further: Mapping[str, object]
    ) -> "RunSetup":
        """Return the setup of a run that judges the responses of this one, ``run_id``, again.

        ``judging`` takes the place of sections of that name, ``further`` that of all that further
        judges were asked.
        """
        kept = {name: section for name, section in self.root.items() if name != "further"}
        return RunSetup({**kept, **judging, **further, "responses_of": run_id})

    @property
    def _sections(self) -> "_Sections":
        return cast("_Sections", self.root)


class _Model(TypedDict):
    model: str


class _Described(TypedDict, total=False):
    """What is read of a method's description on an index."""

    index: str
    models: dict[str, _Model]


class _Dataset(TypedDict):
    questions: int


class _Methods(TypedDict):
    order: list[str]


class _Judge(TypedDict, total=False):
    model: str | None


class _Further(TypedDict, total=False):
    pairs: list[list[str]]


class _OfEveryRun(TypedDict):
    dataset: _Dataset
    methods: _Methods
    indexes: dict[str, dict[str, _Described]]
    judge: _Judge


class _Sections(_OfEveryRun, total=False):
    """What is read of a setup."""

    trials: int
    metrics: dict[str, object]
    further: dict[str, _Further]
    responses_of: str
