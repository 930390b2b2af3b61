from .audit import Audit, AuditItem, JudgeAgreement, analyse_audit, draw_items
from .audited_run import read_audited_run
from .labelling import Mark, MarkChange, MarkConflict, keep_mark, read_marks
from .page import LabelKeeper, render_page
from .ratings import RatedAnswer, Rating, join_ratings, read_ratings
from .satisfaction import RatingAgreement, RatingsReport, judge_beside_users, report_ratings
from .sheet import read_sheet, write_sheet

__all__ = [
    "Audit",
    "AuditItem",
    "JudgeAgreement",
    "LabelKeeper",
    "Mark",
    "MarkChange",
    "MarkConflict",
    "RatedAnswer",
    "Rating",
    "RatingAgreement",
    "RatingsReport",
    "analyse_audit",
    "draw_items",
    "join_ratings",
    "judge_beside_users",
    "keep_mark",
    "read_audited_run",
    "read_marks",
    "read_ratings",
    "read_sheet",
    "render_page",
    "report_ratings",
    "write_sheet",
]
