from .baselines import pin_baseline
from .best import Best
from .budget_curves import EVIDENCE, AreaDifference, BudgetCurves, Curve, CurvePoint, draw_curves
from .compare import (
    BASELINE,
    NEW,
    GateTerms,
    MethodComparison,
    RunComparison,
    compare_runs,
    shared_metrics,
)
from .corrections import CorrectedComparison
from .criteria import CriterionResult, check_criteria
from .detailed_file import list_questions, list_states
from .evaluation_file import evaluation_names
from .figure_changes import FigureChange, compare_figures
from .flips import Flip
from .frames import tidy_frame
from .gate_figures import FigureComparison, Margin, read_gate_figures, read_metric_terms
from .history import StoredRun, describe_run, list_runs, paid_usages, read_usages
from .judge_changes import read_both_labels
from .judge_errors import correct_change, correct_comparisons
from .judge_labels import (
    KeptLabels,
    LabelledQuestion,
    RunLabels,
    Stratum,
    correct_methods,
    group_code,
    hash_values,
    keep_labels,
    question_stratum,
    read_labels,
)
from .labels import label_embedded, label_usages
from .means import (
    AVERAGES,
    MethodSummary,
    cost_of_searches,
    cost_of_verdicts,
    describe_forgotten,
    has_impossible_latency,
    is_judged,
    mean_efficiency,
)
from .pairing import check_samples
from .question_changes import QuestionChange
from .question_figures import QuestionFigures, mean_of, read_question_figures
from .repeats import RepeatAnalysis, analyse_repeats
from .retrieval_file import (
    render_retrieval_report,
    retrieval_pieces,
    retrieval_report,
)
from .rows import FAILED_AS_0, Row, gate_score, paired_score, rows_of, state_of
from .runs import (
    RunRows,
    pinned_run_id,
    read_rows,
    stored_metadata,
    stored_rows,
)
from .sections import Figures, FigureSources, compute_figures
from .setup_changes import list_setup_changes
from .summary import Analysis, Comparison, analyse

__all__ = [
    "AVERAGES",
    "BASELINE",
    "EVIDENCE",
    "FAILED_AS_0",
    "NEW",
    "Analysis",
    "AreaDifference",
    "Best",
    "BudgetCurves",
    "Comparison",
    "CorrectedComparison",
    "CriterionResult",
    "Curve",
    "CurvePoint",
    "FigureChange",
    "FigureComparison",
    "FigureSources",
    "Figures",
    "Flip",
    "GateTerms",
    "KeptLabels",
    "LabelledQuestion",
    "Margin",
    "MethodComparison",
    "MethodSummary",
    "QuestionChange",
    "QuestionFigures",
    "RepeatAnalysis",
    "Row",
    "RunComparison",
    "RunLabels",
    "RunRows",
    "StoredRun",
    "Stratum",
    "analyse",
    "analyse_repeats",
    "check_criteria",
    "check_samples",
    "compare_figures",
    "compare_runs",
    "compute_figures",
    "correct_change",
    "correct_comparisons",
    "correct_methods",
    "cost_of_searches",
    "cost_of_verdicts",
    "describe_forgotten",
    "describe_run",
    "draw_curves",
    "evaluation_names",
    "gate_score",
    "group_code",
    "has_impossible_latency",
    "hash_values",
    "is_judged",
    "keep_labels",
    "label_embedded",
    "label_usages",
    "list_questions",
    "list_runs",
    "list_setup_changes",
    "list_states",
    "mean_efficiency",
    "mean_of",
    "paid_usages",
    "paired_score",
    "pin_baseline",
    "pinned_run_id",
    "question_stratum",
    "read_both_labels",
    "read_gate_figures",
    "read_labels",
    "read_metric_terms",
    "read_question_figures",
    "read_rows",
    "read_usages",
    "render_retrieval_report",
    "retrieval_pieces",
    "retrieval_report",
    "rows_of",
    "shared_metrics",
    "state_of",
    "stored_metadata",
    "stored_rows",
    "tidy_frame",
]
