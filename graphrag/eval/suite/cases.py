"""Suites and their test cases, and evaluation.yml, read from YAML or JSON."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from graphrag.config.models.strict_section import StrictSection, as_sentence, name_problem, nearest
from graphrag.eval.config.evaluation import check_below, read_written
from graphrag.eval.errors import ConfigError
from graphrag.eval.suite.types import TestCase, mapping_of
from graphrag.text.float_compare import is_below
from graphrag.text.json_records import fields_of

EVALUATION_FILE = "evaluation.yml"
SUITES_FOLDER = Path("eval") / "suites"
_ENDINGS = (".json", ".yaml", ".yml")
_EVALUATORS = {"text": "entity_extraction", "query": "query_response", "question": "query_response"}
_OTHER_NAMES = {"question": "query", "time_limit_s": "max_processing_time"}
"""Keys of a suite's cases -> those that components and evaluators look at."""

_SLIP = 0.85
"""How like a known key another one is that is taken for a slip of the pen; keys are free else."""

Form = TypeVar("Form", bound=BaseModel)


class Thresholds(StrictSection):
    """What a score must reach, of a case and of the whole suite alike.

    From the higher of the two on the status is "passed", between them "warning", below the lower
    "failed". What counts as passed hangs on ``passing`` alone.
    """

    model_config = ConfigDict(frozen=True)

    passing: float = Field(default=0.6, ge=0, le=1)
    """At least this much passes, in [0, 1]."""
    warning: float = Field(default=0.8, ge=0, le=1)
    """Above ``passing``: what passes with less does so with a warning. Below: what does not pass,
    but has this much, fails with no more than a warning. In [0, 1]."""

    def passes(self, score: float | None) -> bool:
        """Whether a score counts as passed; one that is missing doesn't."""
        return score is not None and not is_below(score, self.passing)


class Suite(StrictSection):
    """Test cases that one evaluator scores."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1, pattern=r"^[^/]+$")
    """Without a slash; stands before the ids of its cases and methods in a run."""
    description: str = ""
    evaluator: str = Field(min_length=1)
    """``entity_extraction``, ``query_response``, a metric of the framework, or ``module:Class``."""
    settings: dict[str, object] = Field(default_factory=dict[str, object])
    """What the evaluator is made with."""
    methods: tuple[str, ...] = ()
    """Every case is evaluated with each of these methods of eval_config.yaml. Empty: its methods
    when the evaluator needs one, else once."""
    thresholds: Thresholds = Thresholds()
    cases: tuple[TestCase, ...] = Field(min_length=1)
    """At least one."""

    @model_validator(mode="after")
    def _unique_ids(self) -> "Suite":
        check_ids(self.cases)
        return self


def check_ids(cases: Sequence[TestCase]) -> None:
    """Raise ValueError if two cases have the same id, by which runs are compared."""
    for case_id, n in Counter(case.id for case in cases).items():
        if n > 1:
            raise ValueError(f"two cases have the id {case_id!r}; ids must be unique")


Name = Annotated[str, BeforeValidator(lambda value: next(fields_of(value, "name"), value))]
"""A name, or what has one."""


class CaseInput(StrictSection):
    """What a case may give; ``language`` and ``context`` are only kept."""

    index: str | None = None
    language: str | None = None
    context: dict[str, object] | None = None
    text: str | None = None
    document: str | None = None
    query: str | None = Field(default=None, min_length=1)


class CaseExpected(StrictSection):
    """What may be expected of a case; a number stands for its text."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    answer: str | None = None
    keywords: list[str] = Field(default_factory=list[str])
    aspects: list[str] = Field(default_factory=list[str])
    entities: list[Name] | None = None
    relationships: list[tuple[str, str]] | None = None
    aliases: dict[str, str] = Field(default_factory=dict[str, str])
    max_processing_time: float | None = Field(default=None, gt=0)


def check_case(
    case: TestCase, takes: Collection[str], expects: Collection[str]
) -> tuple[CaseInput, CaseExpected]:
    """Check what a :func:`framework_case` holds for an evaluator that takes and expects so much.

    ``takes`` and ``expects`` are keys beside those that every case may give, and the time limit.
    ValueError if it holds anything else, or no question where one is taken.
    """
    input_keys = {"index", "language", "context", *takes}
    case_input = _read(CaseInput, case.input_data, "input_data", input_keys)
    if "query" in takes and case_input.query is None:
        raise ValueError("input_data.question is missing")
    expected_keys = {*expects, "max_processing_time"} if expects else set[str]()
    return case_input, _read(CaseExpected, case.expected_output, "expected_output", expected_keys)


def read_expected(case: TestCase, keys: Collection[str]) -> CaseExpected:
    """Return what a case expects under these keys, whatever else it holds; ValueError as above."""
    values = mapping_of(case.expected_output)
    named = {key: values[key] for key in keys if values.get(key) is not None}
    return _read(CaseExpected, named, "expected_output", keys)


def _read(form: type[Form], values: object, where: str, keys: Collection[str]) -> Form:
    try:
        section = form.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"{where}: {explain_values(error)}") from error
    for key in sorted(section.model_fields_set - {*keys}):
        raise ValueError(f"{where}: {key} is nothing that this evaluator looks at")
    return section


def framework_case(case: TestCase) -> TestCase:
    """Return a case under the names that components and evaluators look at.

    ValueError if it gives the same thing under two names.
    """
    case_input, expected = map(_renamed, (case.input_data, case.expected_output))
    return replace(case, name=case.title, input_data=case_input, expected_output=expected)


def _renamed(values: object) -> object:
    if values is not None and not isinstance(values, Mapping):
        return values
    mapping = dict(mapping_of(cast("object", values)))
    for other, name in _OTHER_NAMES.items():
        if mapping.get(other) is not None and mapping.get(name) is not None:
            raise ValueError(f"give {other} or {name}, not both")
        if other in mapping:
            mapping[name] = mapping.pop(other)
    return mapping


def read_suite(
    path: Path | str, unstated: Thresholds | None = None, evaluator: str | None = None
) -> Suite:
    """Read a suite of a .yaml, .yml or .json file.

    One without a name has that of its file. A list of cases is a suite too, at the thresholds 0.7
    and 0.5, scored by ``evaluator``; None: by ``entity_extraction`` or ``query_response`` as the
    first case's input has a text or a question. ``unstated`` are the thresholds of a suite that
    states none.

    ConfigError if the file is missing or malformed; names the case and the key.
    """
    file = Path(path)
    values = read_values_of(file)
    if isinstance(values, list):
        cases = cast("list[object]", values)
        unstated = unstated or Thresholds(passing=0.7, warning=0.5)
        inputs = mapping_of(mapping_of(cases[0] if cases else None).get("input_data"))
        evaluator = evaluator or next((_EVALUATORS[k] for k in _EVALUATORS if k in inputs), None)
        if evaluator is None:
            kinds = ", ".join(_EVALUATORS)
            raise ConfigError(f"{file}: input_data of the first case has none of {kinds}.")
        values = {"evaluator": evaluator, "cases": cases}
    if not isinstance(values, dict):
        kind = type(values).__name__
        msg = f"The suite {file} must hold keys and values, or a list of cases, not {kind}."
        raise ConfigError(msg)
    defaults = {"name": file.stem, **({} if unstated is None else {"thresholds": unstated})}
    return parse_suite({**defaults, **cast("dict[str, object]", values)}, str(file))


def read_test_cases(path: Path | str) -> list[TestCase]:
    """Read test cases from a list of them, or those of a suite (.yaml, .yml or .json).

    ConfigError as :func:`read_suite`; also if the input or expected output of a case is no mapping,
    or has a key that is one that is looked at, misspelled.
    """
    cases: list[TestCase] = []
    # What evaluates the cases does not matter here, so that any keys do.
    for case in read_suite(path, evaluator="none").cases:
        try:
            cases.append(framework_case(case))
            _check_keys("input_data", cases[-1].input_data, [*CaseInput.model_fields, "metadata"])
            _check_keys("expected_output", cases[-1].expected_output, CaseExpected.model_fields)
        except ValueError as error:
            raise ConfigError(as_sentence(f"{path}: case {case.id!r}: {error}")) from error
    return cases


def create_entity_extraction_test_cases() -> list[TestCase]:
    """Return three texts, English, German and Spanish, with the names that stand in them."""
    return read_test_cases(Path(__file__).with_name("entity_extraction.json"))


def create_query_response_test_cases() -> list[TestCase]:
    """Return three questions on the same texts, with the words that an answer must hold."""
    return read_test_cases(Path(__file__).with_name("query_response.json"))


def _check_keys(key: str, values: object, keys: Collection[str]) -> None:
    if not isinstance(values, dict):
        raise ValueError(f"{key} must hold keys, not {type(values).__name__}")
    for name in mapping_of(cast("object", values)).keys() - set(keys):
        for meant in get_close_matches(str(name), [*keys, *_OTHER_NAMES], n=1, cutoff=_SLIP):
            raise ValueError(f"{key} has {name!r}; did you mean {meant!r}?")


def read_values_of(file: Path) -> object:
    """Return what a YAML or JSON file holds; a ConfigError says what is wrong with it."""
    if file.suffix.lower() not in _ENDINGS:
        msg = f"The suite {file} ends in {file.suffix or 'nothing'}; use .yaml or .json."
        raise ConfigError(msg)
    name, is_json = f"The suite {file}", file.suffix.lower() == ".json"
    return read_written(file, name, f"{name} does not exist.", is_json)


def parse_suite(values: Mapping[str, object], source: str = "the suite") -> Suite:
    """Check values and make a suite of them; same errors as :func:`read_suite`."""
    try:
        return Suite.model_validate(values)
    except ValidationError as error:
        msg = f"{source}: {explain_values(error, values)}"
        raise ConfigError(as_sentence(msg)) from error


def explain_values(error: ValidationError, values: Mapping[str, object] | None = None) -> str:
    """Return where the first error of a form is, and what it is; a case is named by its id."""
    first = error.errors()[0]
    where = list(first["loc"])
    problem = name_problem(first)
    if first["type"] == "missing":
        problem = "is missing"
    elif first["type"] == "unexpected_keyword_argument":  # of a case
        key, names = str(where.pop()), [field.name for field in fields(TestCase)]
        problem = f"unknown key {key!r}{nearest(key, names)}"
    if values is not None and len(where) > 1 and where[0] == "cases":
        number = int(where[1])
        case_id = mapping_of(cast("Sequence[object]", values["cases"])[number]).get("id")
        where[:2] = [f"case {f'number {number + 1}' if case_id is None else repr(case_id)}"]
    return f"{'.'.join(map(str, where))}: {problem}" if where else problem


def find_suite_files(target: str, root: Path) -> list[Path]:
    """Return the suite files that are meant.

    ``target`` is a file, the name of one in the root's ``eval/suites``, or ``all`` for each file
    there, by name. ConfigError if there is none.
    """
    folder = root / SUITES_FOLDER
    suites = sorted(path for path in folder.glob("*") if path.suffix.lower() in _ENDINGS)
    if target == "all":
        if not suites:
            raise ConfigError(f"There is no suite in {folder}; name a file.")
        return suites
    matches = [path for path in suites if path.stem == target]
    files = [path for path in (Path(target), root / target, *matches) if path.is_file()]
    if not files:
        hint = nearest(Path(target).stem, [path.stem for path in suites])
        msg = f"There is no suite {target}{hint or '; name a file, or all'}"
        raise ConfigError(as_sentence(msg))
    return files[:1]


class _SuiteEntry(StrictSection):
    enabled: bool = True
    test_cases_file: Path | None = None


class _ScoreThresholds(StrictSection):
    passing_score: float = Field(default=0.7, ge=0, le=1)
    warning_score: float = Field(default=0.5, ge=0, le=1)


class _TimeLimits(StrictSection):
    max_query_time: float = Field(default=5.0, gt=0)
    max_extraction_time: float = Field(default=2.0, gt=0)


class _Reporting(StrictSection):
    save_detailed_results: bool = True
    results_directory: Path = Path("evaluation_results")
    allow_outside: bool = False
    compare_with_baseline: bool = True


class EvaluationSettings(StrictSection):
    """What stands below ``evaluation``, see docs/suites.md; times are seconds."""

    enabled: bool = True
    test_suites: dict[str, _SuiteEntry] = Field(default_factory=dict[str, _SuiteEntry])
    thresholds: _ScoreThresholds = _ScoreThresholds()
    performance: _TimeLimits = _TimeLimits()
    reporting: _Reporting = _Reporting()


class _File(StrictSection):
    evaluation: EvaluationSettings


@dataclass(frozen=True, slots=True)
class EvaluationFile:
    """What an evaluation.yml says, and the path from whose folder its own paths are."""

    path: Path
    settings: EvaluationSettings

    @property
    def files(self) -> dict[str, Path | None]:
        """Name -> file of each enabled suite; None of one without, empty if nothing is enabled."""
        return {
            name: entry.test_cases_file and self.path.parent / entry.test_cases_file
            for name, entry in self.settings.test_suites.items()
            if entry.enabled and self.settings.enabled
        }

    @property
    def results_directory(self) -> Path:
        """Where results go; raises ConfigError if that is not below the file's folder."""
        reporting = self.settings.reporting
        folder = self.path.parent / reporting.results_directory
        if not reporting.allow_outside:
            setting = f"{self.path}: reporting.results_directory"
            check_below(folder, self.path.parent, setting, "reporting.allow_outside")
        return folder

    def suites(self, indexes: Sequence[str], target: str = "all") -> list[Suite]:
        """Return the enabled suites, or the one that is meant, as the command runs them.

        One without a file has a case for each of the ``indexes``. Raises ConfigError if a file
        can't be read, or there is no index for a suite without one.
        """
        scores = self.settings.thresholds
        bounds = Thresholds(passing=scores.passing_score, warning=scores.warning_score)
        suites: list[Suite] = []
        for name, file in self.files.items():
            if target not in ("all", name):
                continue
            if file is not None:
                suite = read_suite(file, bounds)
                is_limited = suite.evaluator in _EVALUATORS.values()
                cases = [self._limited(case) if is_limited else case for case in suite.cases]
                values = {**dict(suite), "cases": cases}
            elif indexes:
                ids = {key: f"graph_{key}" if len(indexes) > 1 else "graph" for key in indexes}
                cases = [TestCase(ids[key], input_data={"index": key}) for key in indexes]
                values = {"evaluator": "graph_connectivity", "thresholds": bounds, "cases": cases}
            else:
                what = f"the suite {name} measures each index, and none is configured"
                raise ConfigError(f"{self.path}: {what}.")
            suites.append(parse_suite({**values, "name": name}, str(file or self.path)))
        return suites

    def test_cases(self) -> dict[str, list[TestCase]]:
        """Return name -> cases of the enabled suites, as a framework runs them.

        One without a file has a case ``graph``. Raises ConfigError if a file can't be read.
        """
        return {
            name: [
                TestCase(
                    id="graph", name="graph", description="", input_data={}, expected_output={}
                )
            ]
            if file is None
            else [self._limited(case) for case in read_test_cases(file)]
            for name, file in self.files.items()
        }

    def _limited(self, case: TestCase) -> TestCase:
        inputs, expected = mapping_of(case.input_data).keys(), case.expected_output
        times = self.settings.performance
        has_limit = {"max_processing_time", "time_limit_s"} & mapping_of(expected).keys()
        if has_limit or not isinstance(expected, Mapping) or not inputs & _EVALUATORS.keys():
            return case
        asks = inputs & {"query", "question"}
        limit = times.max_query_time if asks else times.max_extraction_time
        return replace(case, expected_output={"max_processing_time": limit, **expected})


def read_evaluation_file(path: Path | str) -> EvaluationFile:
    """Read an evaluation.yml.

    ConfigError if it is missing, malformed, or has an unknown key; the nearest known one is named.
    """
    file = Path(path)
    try:
        return EvaluationFile(file, _File.model_validate(read_values_of(file)).evaluation)
    except ValidationError as error:
        raise ConfigError(as_sentence(f"{file}: {explain_values(error)}")) from error
