"""What a run of suites consists of: its evaluations, and the setup that gives them meaning."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.dataset.samples import Sample, fingerprint_samples
from graphrag.eval.errors import ConfigError, UsageError
from graphrag.eval.runner.headers import read_headers, read_model_settings
from graphrag.eval.runner.judging import describe_judge
from graphrag.eval.runner.methods import MethodSet, describe_method
from graphrag.eval.scorers.judge import Judge
from graphrag.eval.store.records import RunSetup
from graphrag.eval.suite.cases import Suite
from graphrag.eval.suite.evaluation import Evaluator, TestCase
from graphrag.eval.suite.evaluators import is_built_in, make_evaluator, needs_of
from graphrag.eval.suite.extractor import ModelExtractor
from graphrag.query.index_header import IndexHeader


@dataclass(frozen=True, slots=True)
class SuiteUnit:
    """One case, to be evaluated by one method, or by none in a suite without methods."""

    suite: Suite
    case: TestCase
    evaluator: Evaluator
    method: str | None
    index: str | None

    @property
    def sample_id(self) -> str:
        """The question's id in the run; like the label, it is compared with nothing but itself."""
        return f"{self.suite.name}/{self.case.id}"

    @property
    def label(self) -> str:
        """The method's name in the run."""
        return self.suite.name if self.method is None else f"{self.suite.name}/{self.method}"

    @property
    def method_name(self) -> str:
        """The method, or the evaluator's name."""
        return self.method or self.suite.evaluator

    @property
    def key(self) -> str:
        """Unique in the run."""
        return f"{self.sample_id} {self.method_name}"

    @property
    def reads_index(self) -> bool:
        """Whether the index must be built: it is searched or read, or nobody says that it isn't."""
        needs = {*needs_of(self.evaluator)}
        says = hasattr(self.evaluator, "needs")
        return self.method is not None or not says or bool(needs & {"index", "methods"})


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """Everything that a run of suites needs, checked.

    Attributes
    ----------
    config : EvaluationConfig
        With the methods that the suites ask.
    units : tuple of SuiteUnit
    samples : tuple of Sample
        One a case.
    headers : mapping
        Index key -> header of the indexes that the cases name.
    setup : RunSetup
    """

    config: EvaluationConfig
    units: tuple[SuiteUnit, ...]
    samples: tuple[Sample, ...]
    headers: Mapping[str, IndexHeader]
    setup: RunSetup


async def plan_suites(
    suites: Sequence[Suite],
    config: EvaluationConfig,
    evaluators: Mapping[str, Evaluator] | None = None,
    judge: Judge | None = None,
) -> SuitePlan:
    """Check suites against a configuration and say what is to be run.

    Raises
    ------
    UsageError
        If a suite names an evaluator, method or index that is not there, a case can't be
        evaluated, or an index that is needed is not built.
    """
    names = [suite.name for suite in suites]
    if not names:
        raise ConfigError("There is no suite to run.")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"Two suites are called {name!r}; give one another name.")
    units: list[SuiteUnit] = []
    for suite in suites:
        evaluator = make_evaluator(suite, config.root, evaluators)
        units += _units_of(suite, evaluator, config)
    asked = list(dict.fromkeys(unit.method for unit in units if unit.method is not None))
    if asked:
        changes = {"root": config.root, "methods": asked}
        config = parse_config({**config.model_dump(), **changes}, "the suites")
    headers = await _read_headers(units, config)
    samples = tuple({unit.sample_id: _sample(unit) for unit in units}.values())
    setup = _setup(units, samples, config, headers, judge)
    return SuitePlan(config, tuple(units), samples, headers, setup)


def _units_of(suite: Suite, evaluator: Evaluator, config: EvaluationConfig) -> list[SuiteUnit]:
    methods: Sequence[str | None] = suite.methods or (None,)
    if not suite.methods and "methods" in needs_of(evaluator):
        methods = config.methods
    needs_one = is_built_in(evaluator) or "index" in needs_of(evaluator) or methods != (None,)
    keys = list(config.indexes)
    units: list[SuiteUnit] = []
    for case in suite.cases:
        index = keys[0] if case.index is None and len(keys) == 1 else case.index
        what = f"Suite {suite.name}, case {case.id!r}"
        if index is not None and index not in keys:
            msg = f"{what}: no index is configured for {index!r}{nearest(index, keys)}"
            raise ConfigError(as_sentence(msg))
        if index is None and needs_one:
            known = ", ".join(keys) or "the indexes, of which none is configured"
            raise ConfigError(f"{what} names no index; give input_data.index, one of {known}.")
        units += [SuiteUnit(suite, case, evaluator, method, index) for method in methods]
    return units


async def _read_headers(
    units: Sequence[SuiteUnit], config: EvaluationConfig
) -> dict[str, IndexHeader]:
    roots = config.project_folders()
    built = {unit.index for unit in units if unit.reads_index}
    headers: dict[str, IndexHeader] = {}
    problems: list[UsageError] = []
    for key in dict.fromkeys(unit.index for unit in units if unit.index is not None):
        root = {key: roots[key]}
        try:
            headers |= await read_headers(root) if key in built else read_model_settings(root)
        except UsageError as error:
            problems.append(error)
    if problems:
        # All at once, so that mending one does not bring up the next.
        raise type(problems[0])("\n".join(map(str, problems)))
    return headers


def _sample(unit: SuiteUnit) -> Sample:
    case = unit.case
    return Sample(
        id=unit.sample_id,
        imdb_key=unit.index or unit.suite.name,
        question=_text(case.input_data),
        ground_truth=_text(case.expected_output),
        tags={
            "suite": unit.suite.name,
            "name": case.name,
            "description": case.description,
            "metadata": case.metadata,
        },
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _setup(
    units: Sequence[SuiteUnit],
    samples: Sequence[Sample],
    config: EvaluationConfig,
    headers: Mapping[str, IndexHeader],
    judge: Judge | None,
) -> RunSetup:
    """Return everything that changes what the results mean."""
    described = {unit.suite.name: _describe_evaluator(unit) for unit in units}
    judged = any("judge" in needs_of(unit.evaluator) for unit in units)
    methods = MethodSet(config)
    indexes: dict[str, dict[str, Mapping[str, object]]] = {}
    for unit in units:
        if unit.index is not None and unit.label not in indexes.get(unit.index, {}):
            about = _describe_index(unit, methods, headers[unit.index])
            indexes.setdefault(unit.index, {})[unit.label] = about
    sections: dict[str, object] = {
        "suites": described,
        "dataset": {"fingerprint": fingerprint_samples(samples), "questions": len(samples)},
        "methods": {"order": list(dict.fromkeys(unit.label for unit in units))},
        "indexes": indexes,
        "judge": {
            **(describe_judge(config, headers, judge) if judged else {}),
            **{f"suite {name}": _short_hash(each) for name, each in described.items()},
        },
        "metrics": {"correctness": {"suite": "passed"}},
        "releases": {name: version(name) for name in ("graphrag", "gtog")},
    }
    return RunSetup(sections)


def _describe_evaluator(unit: SuiteUnit) -> dict[str, object]:
    suite = unit.suite
    found = describe_method(unit.evaluator)  # pyright: ignore[reportArgumentType]
    own = not found["function"].startswith("graphrag.eval.suite.")
    return {
        "evaluator": suite.evaluator,
        "settings": suite.settings,
        "thresholds": suite.thresholds.model_dump(),
        "version": found["version"],
        **({"source": found["source"]} if own else {}),
    }


def _describe_index(
    unit: SuiteUnit, methods: MethodSet, header: IndexHeader
) -> Mapping[str, object]:
    if unit.method is not None:
        return {"index": header.fingerprint, **methods.describe(unit.method, header)}
    extraction = ModelExtractor(header.config).describe()
    return {"index": header.fingerprint, **extraction} if unit.reads_index else extraction


def _short_hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
