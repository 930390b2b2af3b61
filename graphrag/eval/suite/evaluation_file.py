"""evaluation.yml: which suites an evaluation consists of, their limits, where results go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from graphrag.config.models.strict_section import StrictSection, as_sentence
from graphrag.eval.config import check_below
from graphrag.eval.errors import ConfigError
from graphrag.eval.suite.cases import (
    Suite,
    Thresholds,
    explain_values,
    parse_suite,
    read_suite,
    read_test_cases,
    read_values_of,
)
from graphrag.eval.suite.evaluation import TestCase, mapping_of

EVALUATION_FILE = "evaluation.yml"
_LIMITS = {"max_processing_time", "time_limit_s"}


class _Section(StrictSection):
    model_config = ConfigDict(frozen=True)


class SuiteEntry(_Section):
    """A suite that is named; one without a file measures the whole graph."""

    enabled: bool = True
    test_cases_file: Path | None = None


class ScoreThresholds(_Section):
    """As ``Thresholds``, for suites that give none of their own."""

    passing_score: float = Field(default=0.7, ge=0, le=1)
    warning_score: float = Field(default=0.5, ge=0, le=1)


class TimeLimits(_Section):
    """Seconds of questions, and of texts, whose case gives no limit of its own."""

    max_query_time: float = Field(default=5.0, gt=0)
    max_extraction_time: float = Field(default=2.0, gt=0)


class Reporting(_Section):
    """What the command writes, where, and whether it looks for a fall against the pinned run."""

    save_detailed_results: bool = True
    results_directory: Path = Path("evaluation_results")
    allow_outside: bool = False
    compare_with_baseline: bool = True


class EvaluationSettings(_Section):
    """What stands below ``evaluation``."""

    enabled: bool = True
    test_suites: dict[str, SuiteEntry] = Field(default_factory=dict[str, SuiteEntry])
    thresholds: ScoreThresholds = ScoreThresholds()
    performance: TimeLimits = TimeLimits()
    reporting: Reporting = Reporting()


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

    def suites(self, indexes: Sequence[str]) -> list[Suite]:
        """Return the enabled suites as the command runs them.

        One without a file has a case for each of the ``indexes``. Raises ConfigError if a file
        can't be read, or there is no index for a suite without one.
        """
        given = self.settings.thresholds
        own = Thresholds(passing=given.passing_score, warning=given.warning_score)
        return [
            self._graph_suite(name, own, indexes)
            if file is None
            else self._read_suite(name, own, file)
            for name, file in self.files.items()
        ]

    def test_cases(self) -> dict[str, list[TestCase]]:
        """Return name -> cases of the enabled suites, as a framework runs them.

        One without a file has a case ``graph``. Raises ConfigError if a file can't be read.
        """
        return {
            name: [TestCase("graph", "graph", "", {}, {})]
            if file is None
            else [self._limited(case) for case in read_test_cases(file)]
            for name, file in self.files.items()
        }

    def _graph_suite(self, name: str, own: Thresholds, indexes: Sequence[str]) -> Suite:
        if not indexes:
            msg = f"{self.path}: the suite {name} measures each index, and none is configured."
            raise ConfigError(msg)
        cases = [
            {"id": f"graph_{key}" if len(indexes) > 1 else "graph", "input_data": {"index": key}}
            for key in indexes
        ]
        values = {"evaluator": "graph_connectivity", "thresholds": own, "cases": cases}
        return parse_suite({"name": name, **values}, str(self.path))

    def _read_suite(self, name: str, own: Thresholds, file: Path) -> Suite:
        suite = read_suite(file, own)
        cases = suite.cases
        if suite.evaluator in ("entity_extraction", "query_response"):
            cases = tuple(self._limited(case) for case in cases)
        return parse_suite({**dict(suite), "name": name, "cases": cases}, str(file))

    def _limited(self, case: TestCase) -> TestCase:
        given, expected = mapping_of(case.input_data), case.expected_output
        limit = None
        if given.keys() & {"query", "question"}:
            limit = self.settings.performance.max_query_time
        elif "text" in given:
            limit = self.settings.performance.max_extraction_time
        if limit is None or not isinstance(expected, Mapping) or _LIMITS & expected.keys():
            return case
        return replace(case, expected_output={"max_processing_time": limit, **expected})


def read_evaluation_file(path: Path | str) -> EvaluationFile:
    """Read an evaluation.yml.

    Raises
    ------
    ConfigError
        If it is missing, malformed, or has an unknown key; the nearest known one is named.
    """
    file = Path(path)
    try:
        return EvaluationFile(file, _File.model_validate(read_values_of(file)).evaluation)
    except ValidationError as error:
        raise ConfigError(as_sentence(f"{file}: {explain_values(error)}")) from error
