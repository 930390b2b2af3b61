from .answered import Answer, read_answer, record_response
from .bounds import (
    check_asked,
    describe_timeout,
    judge_bound,
    judge_time,
    needs_new_run,
    open_limit,
    search_bound,
    search_failure,
    search_time,
)
from .budget_warnings import SAYS_LITTLE, list_budget_warnings, list_judge_limit_warnings, list_once
from .controls import ask_control, response_type
from .data_warnings import list_data_warnings
from .estimation import MOST, TYPICAL, TYPICAL_ANSWER, Estimate, Reckoning, estimate
from .event_loop import open_loop, run_coroutine
from .executor import Executor
from .headers import (
    describe_indexes,
    find_project,
    own_header,
    read_headers,
    read_model_settings,
    read_settings_of,
)
from .index_building import build_index, is_built, unfinished_folder
from .index_facts import EMBEDDING_MODEL, IndexFacts, read_index_facts
from .input_files import describe_unbuilt, list_input_warnings
from .judge_choice import (
    check_judge,
    check_judge_model,
    describe_judge,
    judge_model,
    list_judge_name_warnings,
    open_answering,
    open_judge,
)
from .judgements import FurtherJudges, FurtherWork, asks_judge, is_wanted, pair_kind
from .measured import Measured, mean_tokens, mean_usd, read_measured
from .methods import Method, MethodAnswer, MethodSet, ask_method, describe_method, load_method
from .pool import run_bounded
from .preflight import (
    check_output,
    check_prices,
    list_judge_warnings,
    list_setting_warnings,
)
from .progress import (
    CallbackProgress,
    NotebookProgress,
    Progress,
    ProgressCallback,
    Tally,
    Unwatched,
    watching,
)
from .queue import RunOutcome, RunRequest, Stop, Work
from .resume import ChosenRun, ResumeOptions, RunPlan, choose_run
from .searched_views import describe_unmeasured, read_searched_views
from .stored_outcome import ReadRun, read_run
from .success import AVERAGES, check_success
from .units import (
    Unit,
    describe_judging,
    describe_setup,
    is_asked,
    list_differences,
    plan_judging,
    plan_run,
)
from .verdicts import ask_verdicts, judgeable

__all__ = [
    "AVERAGES",
    "EMBEDDING_MODEL",
    "MOST",
    "SAYS_LITTLE",
    "TYPICAL",
    "TYPICAL_ANSWER",
    "Answer",
    "CallbackProgress",
    "ChosenRun",
    "Estimate",
    "Executor",
    "FurtherJudges",
    "FurtherWork",
    "IndexFacts",
    "Measured",
    "Method",
    "MethodAnswer",
    "MethodSet",
    "NotebookProgress",
    "Progress",
    "ProgressCallback",
    "ReadRun",
    "Reckoning",
    "ResumeOptions",
    "RunOutcome",
    "RunPlan",
    "RunRequest",
    "Stop",
    "Tally",
    "Unit",
    "Unwatched",
    "Work",
    "ask_control",
    "ask_method",
    "ask_verdicts",
    "asks_judge",
    "build_index",
    "check_asked",
    "check_judge",
    "check_judge_model",
    "check_output",
    "check_prices",
    "check_success",
    "choose_run",
    "describe_indexes",
    "describe_judge",
    "describe_judging",
    "describe_method",
    "describe_setup",
    "describe_timeout",
    "describe_unbuilt",
    "describe_unmeasured",
    "estimate",
    "find_project",
    "is_asked",
    "is_built",
    "is_wanted",
    "judge_bound",
    "judge_model",
    "judge_time",
    "judgeable",
    "list_budget_warnings",
    "list_data_warnings",
    "list_differences",
    "list_input_warnings",
    "list_judge_limit_warnings",
    "list_judge_name_warnings",
    "list_judge_warnings",
    "list_once",
    "list_setting_warnings",
    "load_method",
    "mean_tokens",
    "mean_usd",
    "needs_new_run",
    "open_answering",
    "open_judge",
    "open_limit",
    "open_loop",
    "own_header",
    "pair_kind",
    "plan_judging",
    "plan_run",
    "read_answer",
    "read_headers",
    "read_index_facts",
    "read_measured",
    "read_model_settings",
    "read_run",
    "read_searched_views",
    "read_settings_of",
    "record_response",
    "response_type",
    "run_bounded",
    "run_coroutine",
    "search_bound",
    "search_failure",
    "search_time",
    "unfinished_folder",
    "watching",
]
