"""evaluation.yml: which suites an evaluation consists of, their limits, where results go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ConfigDict, Field, ValidationError

from graphrag.config.models.strict_section import StrictSection, as_sentence
from graphrag.eval.config import check_below
from graphrag.eval.errors import ConfigError
from graphrag.eval.suite.cases import (
    Suite,
    explain_values,
    parse_suite,
    read_suite,
    read_test_cases,
    read_values_of,
    states_thresholds,
)
from graphrag.eval.suite.evaluation import TestCase

EVALUATION_FILE = "evaluation.yml"
_GRAPH_CASE = "graph"
_LIMIT = "max_processing_time"


class SuiteEntry(StrictSection):
    """A suite that is named.

    Attributes
    ----------
    enabled : bool
    test_cases_file : Path or None
        From the folder of evaluation.yml; None: a case ``graph``, which is measured whole.
    """

    model_config = ConfigDict(frozen=True)

    enabled: bool = True
    test_cases_file: Path | None = None


class ScoreThresholds(StrictSection):
    """As ``Thresholds``, for suites that give none of their own."""

    model_config = ConfigDict(frozen=True)

    passing_score: float = Field(default=0.7, ge=0, le=1)
    warning_score: float = Field(default=0.5, ge=0, le=1)


class TimeLimits(StrictSection):
    """Seconds of questions, and of texts, whose case gives no limit of its own."""

    model_config = ConfigDict(frozen=True)

    max_query_time: float = Field(default=5.0, gt=0)
    max_extraction_time: float = Field(default=2.0, gt=0)


class Reporting(StrictSection):
    """What the command writes, and where.

    Attributes
    ----------
    save_detailed_results : bool
        Whether suite_results.json has the cases.
    results_directory : Path
        From the folder of evaluation.yml, and below it unless ``allow_outside`` is set.
    allow_outside : bool
    compare_with_baseline : bool
        Whether parts of the scores are held against the pinned run, if there is one.
    """

    model_config = ConfigDict(frozen=True)

    save_detailed_results: bool = True
    results_directory: Path = Path("evaluation_results")
    allow_outside: bool = False
    compare_with_baseline: bool = True


class _Sections(StrictSection):
    model_config = ConfigDict(frozen=True)

    enabled: bool = True
    test_suites: dict[str, SuiteEntry] = Field(default_factory=dict[str, SuiteEntry])
    thresholds: ScoreThresholds = ScoreThresholds()
    performance: TimeLimits = TimeLimits()
    reporting: Reporting = Reporting()


class _File(StrictSection):
    evaluation: _Sections


@dataclass(frozen=True, slots=True)
class EvaluationFile:
    """What evaluation.yml says, paths resolved.

    Attributes
    ----------
    path : Path
    enabled : bool
    files : mapping
        Name -> file of each enabled suite; None of one without a file. Empty when the whole
        evaluation is not enabled.
    thresholds, performance, reporting
        The sections.
    """

    path: Path
    enabled: bool
    files: Mapping[str, Path | None]
    thresholds: ScoreThresholds
    performance: TimeLimits
    reporting: Reporting

    @property
    def results_directory(self) -> Path:
        """Where results go; raises ConfigError if that is not below the file's folder."""
        folder = self.path.parent / self.reporting.results_directory
        if not self.reporting.allow_outside:
            setting = f"{self.path}: reporting.results_directory"
            check_below(folder, self.path.parent, setting, "reporting.allow_outside")
        return folder

    def suites(self, indexes: Sequence[str]) -> list[Suite]:
        """Return the enabled suites as the command runs them.

        Parameters
        ----------
        indexes : sequence of str
            The configured ones: a suite without a file has a case for each.

        Raises
        ------
        ConfigError
            If a file can't be read, or no index is configured for a suite without one.
        """
        return [self._suite(name, file, indexes) for name, file in self.files.items()]

    def test_cases(self) -> dict[str, list[TestCase]]:
        """Return name -> cases of the enabled suites, as a framework runs them.

        Raises
        ------
        ConfigError
            If a file can't be read.
        """
        return {
            name: [TestCase(_GRAPH_CASE, _GRAPH_CASE, "", {}, {})]
            if file is None
            else [self._limited_case(case) for case in read_test_cases(file)]
            for name, file in self.files.items()
        }

    def _suite(self, name: str, file: Path | None, indexes: Sequence[str]) -> Suite:
        own = {
            "passing": self.thresholds.passing_score,
            "warning": self.thresholds.warning_score,
        }
        if file is None:
            if not indexes:
                msg = f"{self.path}: the suite {name} measures each index, and none is configured."
                raise ConfigError(msg)
            ids = [_GRAPH_CASE] if len(indexes) == 1 else [f"{_GRAPH_CASE}_{k}" for k in indexes]
            cases = [
                {"id": case_id, "input_data": {"index": key}}
                for case_id, key in zip(ids, indexes, strict=True)
            ]
            measured = {"evaluator": "graph_connectivity", "thresholds": own, "cases": cases}
            return parse_suite({"name": name, **measured}, str(self.path))
        suite = read_suite(file)
        values: dict[str, Any] = {**suite.model_dump(), "name": name}
        if not states_thresholds(file):
            values["thresholds"] = own
        if suite.evaluator in ("entity_extraction", "query_response"):
            values["cases"] = [self._limited_values(case) for case in values["cases"]]
        return parse_suite(values, str(file))

    def _limited_case(self, case: TestCase) -> TestCase:
        limit = self._limit(case.input_data)
        if limit is not None and "time_limit_s" not in case.expected_output:
            case.expected_output.setdefault(_LIMIT, limit)
        return case

    def _limited_values(self, case: dict[str, Any]) -> dict[str, Any]:
        expected, limit = case["expected_output"], self._limit(case["input_data"])
        if not isinstance(expected, Mapping) or limit is None or "time_limit_s" in expected:
            return case
        return {**case, "expected_output": {_LIMIT: limit, **cast("dict[str, Any]", expected)}}

    def _limit(self, given: object) -> float | None:
        if not isinstance(given, Mapping):
            return None
        if "query" in given or "question" in given:
            return self.performance.max_query_time
        return self.performance.max_extraction_time if "text" in given else None


def read_evaluation_file(path: Path | str) -> EvaluationFile:
    """Read an evaluation.yml.

    Raises
    ------
    ConfigError
        If it is missing, malformed, or has an unknown key; the nearest known one is named.
    """
    file = Path(path)
    values = read_values_of(file)
    try:
        sections = _File.model_validate(values).evaluation
    except ValidationError as error:
        raise ConfigError(as_sentence(f"{file}: {explain_values(error)}")) from error
    files = {
        name: None if entry.test_cases_file is None else file.parent / entry.test_cases_file
        for name, entry in sections.test_suites.items()
        if entry.enabled and sections.enabled
    }
    return EvaluationFile(
        path=file,
        enabled=sections.enabled,
        files=files,
        thresholds=sections.thresholds,
        performance=sections.performance,
        reporting=sections.reporting,
    )
