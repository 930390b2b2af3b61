"""Suites and their test cases, read from YAML or JSON."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from graphrag.config.models.strict_section import StrictSection, as_sentence, nearest
from graphrag.config.safe_yaml import read_yaml
from graphrag.eval.errors import ConfigError
from graphrag.eval.suite.evaluation import TestCase

SUITES_FOLDER = Path("eval") / "suites"
_ENDINGS = (".json", ".yaml", ".yml")
_EVALUATORS = {
    "text": "entity_extraction",
    "query": "query_response",
    "question": "query_response",
}
LISTED_THRESHOLDS = {"passing": 0.7, "warning": 0.5}
"""Of a suite that is a list of cases."""

_FRAMEWORK_NAMES = {"question": "query", "time_limit_s": "max_processing_time"}
"""Keys of a suite's cases -> those that a framework's components and evaluators look at."""

_LOOKED_AT = {
    "input_data": ("query", "question", "text", "document", "context", "metadata", "language"),
    "expected_output": ("entities", "keywords", "aspects", "max_processing_time", "time_limit_s"),
}
_SLIP = 0.85
"""How like a known key another one is that is taken for a slip of the pen; keys are free else."""


class Thresholds(StrictSection):
    """What a score must reach, of a case and of the whole suite alike.

    From the higher of the two on the status is "passed", between them "warning", below the lower
    "failed". What counts as passed hangs on ``passing`` alone.

    Attributes
    ----------
    passing : float
        At least this much passes, in [0, 1].
    warning : float
        Above ``passing``: what passes with less does so with a warning. Below: what does not
        pass, but has this much, fails with no more than a warning. In [0, 1].
    """

    model_config = ConfigDict(frozen=True)

    passing: float = Field(default=0.6, ge=0, le=1)
    warning: float = Field(default=0.8, ge=0, le=1)

    def passes(self, score: float | None) -> bool:
        """Whether a score counts as passed; one that is missing doesn't."""
        return score is not None and score >= self.passing


class SuiteCase(StrictSection):
    """One test case.

    Attributes
    ----------
    id : str
        Unique in its suite.
    name, description : str
        Free text in any language.
    input_data, expected_output : object
        What the suite's evaluator takes. The key ``index`` of ``input_data`` names an index of
        eval_config.yaml.
    metadata : dict
        Free; it is kept with the run.
    """

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    name: str = ""
    description: str = ""
    input_data: Any = None
    expected_output: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("id", mode="before")
    @classmethod
    def _number_as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @property
    def title(self) -> str:
        """The name, or the id of a case without one."""
        return self.name or self.id

    @property
    def index(self) -> str | None:
        """The index that the case names."""
        if not isinstance(self.input_data, Mapping):
            return None
        found = cast("Mapping[str, object]", self.input_data).get("index")
        return None if found is None else str(found)


class Suite(StrictSection):
    """Test cases that one evaluator scores.

    Attributes
    ----------
    name : str
        Without a slash; stands before the ids of its cases and methods in a run.
    description : str
    evaluator : str
        ``entity_extraction``, ``query_response``, ``module:Class``, or a name registered in
        Python.
    settings : dict
        What the evaluator is made with.
    methods : tuple of str
        Every case is evaluated with each of these methods of eval_config.yaml. Empty: its
        methods when the evaluator needs one, else once.
    thresholds : Thresholds
    cases : tuple of SuiteCase
        At least one.
    """

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1, pattern=r"^[^/]+$")
    description: str = ""
    evaluator: str = Field(min_length=1)
    settings: dict[str, object] = Field(default_factory=dict[str, object])
    methods: tuple[str, ...] = ()
    thresholds: Thresholds = Thresholds()
    cases: tuple[SuiteCase, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unique_ids(self) -> "Suite":
        seen: set[str] = set()
        for case in self.cases:
            if case.id in seen:
                msg = f"two cases have the id {case.id!r}; ids must be unique"
                raise ValueError(msg)
            seen.add(case.id)
        return self


def read_suite(path: Path | str) -> Suite:
    """Read a suite.

    Parameters
    ----------
    path : Path or str
        A .yaml, .yml or .json file. A suite without a name has that of its file. A list of
        cases is a suite too, scored by ``entity_extraction`` or ``query_response`` as the first
        case's input has a text or a question, at the thresholds 0.7 and 0.5.

    Raises
    ------
    ConfigError
        If the file is missing or malformed; names the case and the key.
    """
    file = Path(path)
    values = read_values_of(file)
    if isinstance(values, list):
        cases = cast("list[Any]", values)
        values = cast("object", {"cases": cases, **_listed(cases, file)})
    if not isinstance(values, dict):
        kind = type(values).__name__
        msg = f"The suite {file} must hold keys and values, or a list of cases, not {kind}."
        raise ConfigError(msg)
    return parse_suite({"name": file.stem, **cast("dict[str, Any]", values)}, str(file))


def read_test_cases(path: Path | str) -> list[TestCase]:
    """Read test cases from a list of them, or those of a suite.

    Parameters
    ----------
    path : Path or str
        A .yaml, .yml or .json file.

    Raises
    ------
    ConfigError
        As :func:`read_suite`; also if the input or expected output of a case is no mapping, or
        has a key that is one that is looked at, misspelt.
    """
    file = Path(path)
    values = read_values_of(file)
    if isinstance(values, list):
        # What evaluates the cases does not matter here, so that any keys do.
        values = cast("object", {"evaluator": "none", "cases": cast("list[Any]", values)})
    if not isinstance(values, dict):
        msg = f"{file} must hold a list of test cases, or a suite, not {type(values).__name__}."
        raise ConfigError(msg)
    suite = parse_suite({"name": file.stem, **cast("dict[str, Any]", values)}, str(file))
    return [_test_case(case, file) for case in suite.cases]


def _test_case(case: SuiteCase, file: Path) -> TestCase:
    given: dict[str, dict[str, Any]] = {}
    for key in ("input_data", "expected_output"):
        value: Any = getattr(case, key)
        if value is not None and not isinstance(value, dict):
            msg = f"{file}: case {case.id!r}: {key} must hold keys, not {type(value).__name__}."
            raise ConfigError(msg)
        held = dict(cast("dict[str, Any]", value or {}))
        for name in held.keys() - set(_LOOKED_AT[key]):
            meant = get_close_matches(str(name), _LOOKED_AT[key], n=1, cutoff=_SLIP)
            if meant:
                msg = f"{file}: case {case.id!r}: {key} has {name!r}; did you mean {meant[0]!r}?"
                raise ConfigError(msg)
        for name, known in _FRAMEWORK_NAMES.items():
            if name in held and known not in held:
                held[known] = held.pop(name)
        given[key] = held
    return TestCase(case.id, case.title, case.description, **given, metadata=dict(case.metadata))


def _listed(cases: list[Any], file: Path) -> dict[str, Any]:
    """Return what a suite has beside its cases, by the first of them."""
    first: Any = cases[0] if cases else None
    given: Any = (
        cast("dict[str, Any]", first).get("input_data") if isinstance(first, dict) else None
    )
    for key, evaluator in _EVALUATORS.items():
        if isinstance(given, dict) and key in given:
            return {"evaluator": evaluator, "thresholds": LISTED_THRESHOLDS}
    msg = f"{file}: input_data of the first case has none of {', '.join(_EVALUATORS)}."
    raise ConfigError(msg)


def states_thresholds(path: Path) -> bool:
    """Whether the file of a suite gives thresholds of its own."""
    values = read_values_of(path)
    return isinstance(values, dict) and "thresholds" in values


def read_values_of(file: Path) -> object:
    """Return what a YAML or JSON file holds; a ConfigError says what is wrong with it."""
    if file.suffix.lower() not in _ENDINGS:
        msg = f"The suite {file} ends in {file.suffix or 'nothing'}; use .yaml or .json."
        raise ConfigError(msg)
    try:
        text = file.read_text(encoding="utf-8-sig")
        values = json.loads(text) if file.suffix.lower() == ".json" else read_yaml(text)
    except FileNotFoundError as error:
        raise ConfigError(f"The suite {file} does not exist.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The suite {file} can't be read: {error}.") from error
    except (yaml.YAMLError, json.JSONDecodeError, RecursionError) as error:
        kind = "JSON" if file.suffix.lower() == ".json" else "YAML"
        msg = f"The suite {file} is not valid {kind}: {' '.join(str(error).split())}"
        raise ConfigError(msg) from error
    return values


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
    if values is not None and len(where) > 1 and where[0] == "cases":
        where[:2] = [f"case {_case_id(values, int(where[1]))}"]
    problem = first["msg"].removeprefix("Value error, ")
    problem = "is missing" if first["type"] == "missing" else problem
    return f"{'.'.join(map(str, where))}: {problem}" if where else problem


def find_suite_files(target: str, root: Path) -> list[Path]:
    """Return the suite files that are meant.

    Parameters
    ----------
    target : str
        A file, the name of a file in the root's ``eval/suites``, or ``all`` for each file there,
        in the order of their names.
    root : Path

    Raises
    ------
    ConfigError
        If there is none.
    """
    folder = root / SUITES_FOLDER
    known = sorted(path for path in folder.glob("*") if path.suffix.lower() in _ENDINGS)
    if target == "all":
        if not known:
            raise ConfigError(f"There is no suite in {folder}; name a file.")
        return known
    named = [path for path in known if path.stem == target]
    found = [path for path in (Path(target), root / target, *named) if path.is_file()]
    if not found:
        names = [path.stem for path in known]
        hint = nearest(Path(target).stem, names)
        msg = f"There is no suite {target}{hint or '; name a file, or all'}"
        raise ConfigError(as_sentence(msg))
    return found[:1]


def _case_id(values: Mapping[str, object], position: int) -> str:
    case = cast("Sequence[object]", values["cases"])[position]
    named = cast("Mapping[str, object]", case).get("id") if isinstance(case, Mapping) else None
    return f"number {position + 1}" if named is None else repr(named)
