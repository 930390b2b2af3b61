"""``graphrag eval --early-stop`` between the methods of a run: who watches, and what it saved."""

from collections.abc import Sequence

from graphrag.eval.analysis import MethodRace
from graphrag.eval.config import EvaluationConfig
from graphrag.eval.dataset import Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.results import EvaluationResults
from graphrag.eval.run import RunOutcome, asked_order


def check_race(config: EvaluationConfig) -> None:
    """Refuse what no method could win.

    Raises
    ------
    ConfigError
        If there is one method, or no metric, or methods are asked at several budgets.
    """
    if config.budgets:
        msg = (
            "--early-stop watches for one method that beats every other, and budgets asks each at "
            "several; leave one of the two out."
        )
        raise ConfigError(msg)
    if len(config.methods) < 2:
        msg = (
            "--early-stop needs --baseline to compare with, or two methods or more, one of which "
            f"may win; only {config.methods[0]} is asked."
        )
        raise ConfigError(msg)
    if not config.metrics:
        msg = "--early-stop needs a metric to win on; leave --metrics none out."
        raise ConfigError(msg)


def open_race(config: EvaluationConfig, samples: Sequence[Sample]) -> MethodRace:
    """Return what watches the methods of a run on its first metric."""
    return MethodRace(asked_order(samples, config.methods), config.methods, config.metrics[0])


def describe_saving(results: EvaluationResults, outcome: RunOutcome) -> str:
    """Say what a run that stopped as its winner was certain did not ask.

    Searches are counted. Calls are estimated by the mean of what each method and the judge took
    so far; without the count of a method they are left out.
    """
    race = results.metadata["early_stop"]
    saved = outcome.n_planned - outcome.n_searched
    said = (
        f"Stopped after {race['questions_counted']:,} of {race['questions_planned']:,} questions, "
        f"as {race['winner']} beats every other method: {saved:,} of {outcome.n_planned:,} "
        "searches not made"
    )
    calls = _calls_saved(results, outcome)
    return f"{said}." if calls is None else f"{said}, and about {calls:,} model calls."


def _calls_saved(results: EvaluationResults, outcome: RunOutcome) -> int | None:
    methods = results.metadata["methods"]
    n_each = outcome.n_planned / len(methods)  # an oracle may be asked less
    saved = 0.0
    for method in methods:
        done = [result for result in outcome.results if result.method == method]
        calls = [
            usage.llm_calls
            for result in done
            for usage in (result.usage, result.judge_usage)
            if usage is not None
        ]
        if not done or any(r.usage is None or not r.usage.is_counted for r in done):
            return None
        saved += max(0.0, n_each - len(done)) * sum(calls) / len(done)
    return round(saved)
