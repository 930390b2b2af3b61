from .connection import hold_folder
from .contexts import StoredContexts
from .damage import check_pages, damage_error
from .database import EvaluationStore
from .journal import StoreJournal
from .lookup import (
    BASELINE_FILE,
    LATEST,
    ORIGIN_NAMES,
    PINNED,
    baseline_path,
    check_there,
    explain_latest,
    find_run,
    latest_run,
    no_such_file,
    open_store,
)
from .records import CallScope, Judgement, Run, RunDetails, StoredResponse, new_run, now
from .session import Finished, MemorySession, Session, Standing, StoredSession
from .setup import RunSetup
from .sums import SearchCount, VerdictCount
from .whole_files import (
    DETAILED_FILE,
    PAGE_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
    Content,
    replace_files,
    run_folder,
    write_file,
    write_whole,
)

__all__ = [
    "BASELINE_FILE",
    "DETAILED_FILE",
    "LATEST",
    "ORIGIN_NAMES",
    "PAGE_FILE",
    "PINNED",
    "REPORT_FILE",
    "SUMMARY_FILE",
    "CallScope",
    "Content",
    "EvaluationStore",
    "Finished",
    "Judgement",
    "MemorySession",
    "Run",
    "RunDetails",
    "RunSetup",
    "SearchCount",
    "Session",
    "Standing",
    "StoreJournal",
    "StoredContexts",
    "StoredResponse",
    "StoredSession",
    "VerdictCount",
    "baseline_path",
    "check_pages",
    "check_there",
    "damage_error",
    "explain_latest",
    "find_run",
    "hold_folder",
    "latest_run",
    "new_run",
    "no_such_file",
    "now",
    "open_store",
    "replace_files",
    "run_folder",
    "write_file",
    "write_whole",
]
