"""Reads and checks suites, their test cases and evaluation.yml, from YAML or JSON."""

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
"""Key in a suite's cases -> the key that components and evaluators read."""

_SLIP = 0.85
"""How similar an unknown key must be to a known one to count as misspelled; others are allowed."""

Form = TypeVar("Form", bound=BaseModel)


class Thresholds(StrictSection):
    """The scores that decide the status of a case, and of a whole suite.

    The status is "passed" from the higher of the two, "warning" between them, "failed" below the
    lower. What counts as passed depends on ``passing`` alone.

    Examples
    --------
    >>> Thresholds(passing=0.6, warning=0.8).passes(score=0.7)
    True
    """

    model_config = ConfigDict(frozen=True)

    passing: float = Field(default=0.6, ge=0, le=1)
    """A score of at least this passes, in [0, 1]."""
    warning: float = Field(default=0.8, ge=0, le=1)
    """In [0, 1]. Above ``passing``: a score that passes, but is below this, passes with a warning.
    Below ``passing``: a score that does not pass, but reaches this, gets only a warning."""

    def passes(self, score: float | None) -> bool:
        """Return whether a score counts as passed; a missing one (None) does not."""
        return score is not None and not is_below(score, self.passing)


class Suite(StrictSection):
    """Test cases that one evaluator scores."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1, pattern=r"^[^/]+$")
    """Without a slash. In a run it begins the ids of its cases and methods."""
    description: str = ""
    evaluator: str = Field(min_length=1)
    """``entity_extraction``, ``query_response``, a metric of the framework, or ``module:Class``."""
    settings: dict[str, object] = Field(default_factory=dict[str, object])
    """Arguments of the evaluator."""
    methods: tuple[str, ...] = ()
    """Methods of eval_config.yaml; every case is evaluated with each. Empty: all of its methods if
    the evaluator needs one, else each case is evaluated once."""
    thresholds: Thresholds = Thresholds()
    cases: tuple[TestCase, ...] = Field(min_length=1)
    """At least one."""

    @model_validator(mode="after")
    def _unique_ids(self) -> "Suite":
        check_ids(self.cases)
        return self


def check_ids(cases: Sequence[TestCase]) -> None:
    """Raise ValueError if two cases have the same id, because runs are compared by the ids."""
    for case_id, n in Counter(case.id for case in cases).items():
        if n > 1:
            raise ValueError(f"two cases have the id {case_id!r}; ids must be unique")


Name = Annotated[str, BeforeValidator(lambda value: next(fields_of(value, "name"), value))]
"""A name, or an object with a name."""


class CaseInput(StrictSection):
    """The input of a case; ``language`` and ``context`` are kept and not used."""

    index: str | None = None
    language: str | None = None
    context: dict[str, object] | None = None
    text: str | None = None
    document: str | None = None
    query: str | None = Field(default=None, min_length=1)


class CaseExpected(StrictSection):
    """The output that a case expects; numbers are read as text."""

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
    """Check the input and the expected output of a case from :func:`framework_case`.

    ``takes`` and ``expects`` are the keys that the evaluator uses, in addition to those that every
    case may have and the time limit. Raises ValueError for any other key, and if the evaluator
    takes a question and the case has none.
    """
    input_keys = {"index", "language", "context", *takes}
    case_input = _read(CaseInput, case.input_data, "input_data", input_keys)
    if "query" in takes and case_input.query is None:
        raise ValueError("input_data.question is missing")
    expected_keys = {*expects, "max_processing_time"} if expects else set[str]()
    return case_input, _read(CaseExpected, case.expected_output, "expected_output", expected_keys)


def read_expected(case: TestCase, keys: Collection[str]) -> CaseExpected:
    """Return the expectations of a case under these keys; other keys are ignored.

    Raises ValueError for a value of the wrong form.
    """
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
    """Return a case with the keys that components and evaluators read (``_OTHER_NAMES``).

    Raises ValueError if the case gives the same thing under two keys.
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
    """Read a suite from a .yaml, .yml or .json file.

    A suite without a name gets the file's. A list of cases counts as a suite too, with the
    thresholds 0.7 and 0.5. ``evaluator`` scores such a list; None: ``entity_extraction`` or
    ``query_response``, if the first case's input has a text or a question. ``unstated`` are the
    thresholds of a suite that states none.

    Raises ConfigError, which names the case and the key, if the file is missing or malformed.
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
        msg = f"The suite {file} must have keys and values, or a list of cases, not {kind}."
        raise ConfigError(msg)
    defaults = {"name": file.stem, **({} if unstated is None else {"thresholds": unstated})}
    return parse_suite({**defaults, **cast("dict[str, object]", values)}, str(file))


def read_test_cases(path: Path | str) -> list[TestCase]:
    """Read test cases from a file with a list of them, or with a suite (.yaml, .yml or .json).

    Raises ConfigError as :func:`read_suite` does; also if the input or the expected output of a
    case is not a mapping, or has a misspelled key.

    Examples
    --------
    >>> [case.id for case in read_test_cases(path="eval/suites/questions.yaml")]
    ['who', 'when']
    """
    cases: list[TestCase] = []
    # The evaluator does not matter here, so that any keys are allowed.
    for case in read_suite(path, evaluator="none").cases:
        try:
            cases.append(framework_case(case))
            _check_keys("input_data", cases[-1].input_data, [*CaseInput.model_fields, "metadata"])
            _check_keys("expected_output", cases[-1].expected_output, CaseExpected.model_fields)
        except ValueError as error:
            raise ConfigError(as_sentence(f"{path}: case {case.id!r}: {error}")) from error
    return cases


def create_entity_extraction_test_cases() -> list[TestCase]:
    """Return three texts in English, German and Spanish, with the names in them.

    Examples
    --------
    >>> len(create_entity_extraction_test_cases())
    3
    """
    return read_test_cases(Path(__file__).with_name("entity_extraction.json"))


def create_query_response_test_cases() -> list[TestCase]:
    """Return three questions on the same texts, with the words that an answer must contain.

    Examples
    --------
    >>> len(create_query_response_test_cases())
    3
    """
    return read_test_cases(Path(__file__).with_name("query_response.json"))


def _check_keys(key: str, values: object, keys: Collection[str]) -> None:
    if not isinstance(values, dict):
        raise ValueError(f"{key} must have keys, not {type(values).__name__}")
    for name in mapping_of(cast("object", values)).keys() - set(keys):
        for meant in get_close_matches(str(name), [*keys, *_OTHER_NAMES], n=1, cutoff=_SLIP):
            raise ValueError(f"{key} has {name!r}; did you mean {meant!r}?")


def read_values_of(file: Path) -> object:
    """Return the content of a YAML or JSON file; raises ConfigError if it is malformed."""
    if file.suffix.lower() not in _ENDINGS:
        msg = f"The suite {file} ends in {file.suffix or 'nothing'}; use .yaml or .json."
        raise ConfigError(msg)
    name, is_json = f"The suite {file}", file.suffix.lower() == ".json"
    return read_written(file, name, f"{name} does not exist.", is_json)


def parse_suite(values: Mapping[str, object], source: str = "the suite") -> Suite:
    """Make a suite of values and check it; raises as :func:`read_suite` does."""
    try:
        return Suite.model_validate(values)
    except ValidationError as error:
        msg = f"{source}: {explain_values(error, values)}"
        raise ConfigError(as_sentence(msg)) from error


def explain_values(error: ValidationError, values: Mapping[str, object] | None = None) -> str:
    """Return the first error of a form with its position; a case is named by its id."""
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
    """Return the suite files that a name means.

    ``target`` is a file, the name of one in the root's ``eval/suites``, or ``all`` for all of these
    in order. Raises ConfigError if there is none.
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
    """The section ``evaluation`` of evaluation.yml, see docs/suites.md; times are in seconds."""

    enabled: bool = True
    test_suites: dict[str, _SuiteEntry] = Field(default_factory=dict[str, _SuiteEntry])
    thresholds: _ScoreThresholds = _ScoreThresholds()
    performance: _TimeLimits = _TimeLimits()
    reporting: _Reporting = _Reporting()


class _File(StrictSection):
    evaluation: EvaluationSettings


@dataclass(frozen=True, slots=True)
class EvaluationFile:
    """The settings of an evaluation.yml; its own paths are relative to the folder of ``path``."""

    path: Path
    settings: EvaluationSettings

    @property
    def files(self) -> dict[str, Path | None]:
        """Name -> file of each enabled suite, None without a file; empty if nothing is enabled."""
        return {
            name: entry.test_cases_file and self.path.parent / entry.test_cases_file
            for name, entry in self.settings.test_suites.items()
            if entry.enabled and self.settings.enabled
        }

    @property
    def results_directory(self) -> Path:
        """The folder for results; raises ConfigError if it is not below the file's folder."""
        reporting = self.settings.reporting
        folder = self.path.parent / reporting.results_directory
        if not reporting.allow_outside:
            setting = f"{self.path}: reporting.results_directory"
            check_below(folder, self.path.parent, setting, "reporting.allow_outside")
        return folder

    def suites(self, indexes: Sequence[str], target: str = "all") -> list[Suite]:
        """Return the enabled suites, or the one named ``target``, as the command runs them.

        A suite without a file has a case for each of the ``indexes``. Raises ConfigError if a file
        can't be read, or there is no index for a suite without a file.
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
                problem = f"the suite {name} measures each index, and none is configured"
                raise ConfigError(f"{self.path}: {problem}.")
            suites.append(parse_suite({**values, "name": name}, str(file or self.path)))
        return suites

    def test_cases(self) -> dict[str, list[TestCase]]:
        """Return name -> cases of the enabled suites, as a framework runs them.

        A suite without a file has one case, ``graph``. Raises ConfigError if a file can't be read.
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

    Raises ConfigError if it is missing or malformed, or has an unknown key; the nearest known key
    is named.
    """
    file = Path(path)
    try:
        return EvaluationFile(file, _File.model_validate(read_values_of(file)).evaluation)
    except ValidationError as error:
        raise ConfigError(as_sentence(f"{file}: {explain_values(error)}")) from error
