"""What a run's calls may take, tokens and seconds, and what is said when that is not enough."""

from graphrag.command_lines import config_name
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import AllowanceStop, ServiceDownStop
from graphrag.eval.records import Failure
from graphrag.query.calls import CONTEXT_IS_FULL, CutOffReplyError
from graphrag.query.limits import CallLimit, CallTime
from graphrag.query.spending import AllowanceSpentError, Spending
from graphrag.query.usage import CallLog, OutputBound

_OF_JUDGE = "judge.max_output_tokens"
_LEAST_S = 60.0
_SO_RAISE = "of its replies were cut off, so raise"


def search_bound(config: EvaluationConfig) -> OutputBound:
    """Return the bound of the methods' replies."""
    return OutputBound(config.max_output_tokens, f"max_output_tokens in {config_name()}")


def judge_bound(config: EvaluationConfig) -> OutputBound:
    """Return the bound of the judge's replies."""
    setting = f"{_OF_JUDGE} in {config_name()}"
    return OutputBound(config.judge.max_output_tokens, setting)


def search_time(config: EvaluationConfig) -> CallTime:
    """Return what one request of a search may take."""
    given = config.request_timeout_s
    seconds = max(_LEAST_S, config.timeout_s / 2) if given is None else given
    return CallTime(seconds, f"request_timeout_s in {config_name()}")


def judge_time(config: EvaluationConfig) -> CallTime:
    """Return what one request to the judge may take."""
    own = config.judge.timeout_s
    seconds = search_time(config).seconds if own is None else own
    return CallTime(seconds, f"judge.timeout_s in {config_name()}")


def open_limit(
    config: EvaluationConfig, after_others: bool = False, spending: Spending | None = None
) -> CallLimit:
    """Return the limit that all calls of a run keep together; see ``CallLimit``."""
    return CallLimit(
        config.concurrency, config.patience_s, after_others=after_others, spending=spending
    )


def check_asked(log: CallLog) -> None:
    """Stop the run where what was to be asked was not: its service is down, or money is short.

    Raises
    ------
    ServiceDownStop, AllowanceStop
        Then nothing is recorded of the search or the judging.
    """
    if log.not_asked is not None:
        is_spent = isinstance(log.not_asked, AllowanceSpentError)
        stop = AllowanceStop if is_spent else ServiceDownStop
        raise stop(str(log.not_asked)) from log.not_asked


def search_failure(message: str, cause: BaseException | None, log: CallLog) -> Failure:
    """Return the failure of a search that raised.

    Parameters
    ----------
    message : str
        One sentence.
    cause : BaseException or None
        What the search's engine raised.
    log : CallLog
        The search's calls; replies of it that were cut off may be why it could not answer.
    """
    if isinstance(cause, CutOffReplyError):
        return Failure("search", "cut_off", message)
    n_cut = log.usage().cut_replies
    if n_cut and log.bound is not None:
        message += f"; {n_cut} {_SO_RAISE} {log.bound.setting}"
    return Failure("search", "error", message)


def needs_new_run(failure: Failure) -> bool:
    """Say whether a failure names a setting that counts into a run's setup.

    Time-outs and the bound of the judge's replies don't: with these changed, a run goes on.
    """
    if CONTEXT_IS_FULL in failure.message or _SO_RAISE in failure.message:
        return True
    return failure.kind == "cut_off" and _OF_JUDGE not in failure.message


def describe_timeout(seconds: float, log: CallLog) -> str:
    """Say that a search gave no response within so many seconds of its own, and what was slow."""
    given = f"no response within {seconds:g} s"
    if log.waited_s >= 0.1:
        given += f", {log.waited_s:.1f} s of waiting for its turn not counted"
    calls = log.attempts
    if not calls:
        return f"{given}, and no model was asked"
    slowest = max(calls, key=lambda attempt: attempt.latency_s)
    # Calls of one search may go on at the same time: their sum says nothing.
    number = "1 call was made and"
    if len(calls) > 1:
        number = f"{len(calls)} calls were made, the slowest"
    return (
        f"{given}: {number} took {slowest.latency_s:.1f} s ({slowest.phase}); "
        "raise timeout_s or lower concurrency"
    )
