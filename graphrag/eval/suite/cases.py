"""Suites and their test cases, read from YAML or JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from graphrag.config.models.strict_section import StrictSection, as_sentence, nearest
from graphrag.eval.errors import ConfigError

SUITES_FOLDER = Path("eval") / "suites"
_ENDINGS = (".json", ".yaml", ".yml")


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
        A .yaml, .yml or .json file. A suite without a name has that of its file.

    Raises
    ------
    ConfigError
        If the file is missing or malformed; names the case and the key.
    """
    file = Path(path)
    if file.suffix.lower() not in _ENDINGS:
        msg = f"The suite {file} ends in {file.suffix or 'nothing'}; use .yaml or .json."
        raise ConfigError(msg)
    try:
        text = file.read_text(encoding="utf-8-sig")
        values = json.loads(text) if file.suffix.lower() == ".json" else yaml.safe_load(text)
    except FileNotFoundError as error:
        raise ConfigError(f"The suite {file} does not exist.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The suite {file} can't be read: {error}.") from error
    except (yaml.YAMLError, json.JSONDecodeError) as error:
        kind = "JSON" if file.suffix.lower() == ".json" else "YAML"
        msg = f"The suite {file} is not valid {kind}: {' '.join(str(error).split())}"
        raise ConfigError(msg) from error
    if not isinstance(values, dict):
        msg = f"The suite {file} must hold keys and values, not {type(values).__name__}."
        raise ConfigError(msg)
    return parse_suite({"name": file.stem, **cast("dict[str, object]", values)}, str(file))


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
