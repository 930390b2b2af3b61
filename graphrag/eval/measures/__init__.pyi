from .citations import Citation, check_citations, read_citations, strip_citations
from .combined import (
    CombinedInput,
    CombinedSettings,
    combined_score,
    summarize_combined,
)
from .declaration import Group, Measure, MeasureForm
from .discovery import list_forms
from .entities import (
    Extraction,
    MatchScores,
    NameRule,
    Pair,
    graph_connectivity,
    score_entities,
    score_relationships,
)
from .evidence import Evidence, SourceIndex
from .index_columns import texts_of
from .index_view import IndexView, read_index_views
from .loss import (
    GRAPH_STAGES,
    NOT_NEEDED,
    STAGES,
    LossRecord,
    LossSettings,
    Stage,
    trace_loss,
)
from .loss_summary import LossRow, summarize_loss
from .measuring import (
    MeasuredAnswer,
    MethodMeasures,
    measure,
    measure_answer,
    summarize_measures,
)
from .named_text import NamedText
from .paths import check_paths
from .quotes import fold_text, phrase_key
from .ranking import score_retrieval
from .response import Answered, JudgeSource, MeasureInput, MeasureSettings
from .retrieved import RetrievalReader, read_retrieved
from .wording import ANY_WORD, aspect_coverage, keyword_relevance, states_answer, time_score

__all__ = [
    "ANY_WORD",
    "GRAPH_STAGES",
    "NOT_NEEDED",
    "STAGES",
    "Answered",
    "Citation",
    "CombinedInput",
    "CombinedSettings",
    "Evidence",
    "Extraction",
    "Group",
    "IndexView",
    "JudgeSource",
    "LossRecord",
    "LossRow",
    "LossSettings",
    "MatchScores",
    "Measure",
    "MeasureForm",
    "MeasureInput",
    "MeasureSettings",
    "MeasuredAnswer",
    "MethodMeasures",
    "NameRule",
    "NamedText",
    "Pair",
    "RetrievalReader",
    "SourceIndex",
    "Stage",
    "aspect_coverage",
    "check_citations",
    "check_paths",
    "combined_score",
    "fold_text",
    "graph_connectivity",
    "keyword_relevance",
    "list_forms",
    "measure",
    "measure_answer",
    "phrase_key",
    "read_citations",
    "read_index_views",
    "read_retrieved",
    "score_entities",
    "score_relationships",
    "score_retrieval",
    "states_answer",
    "strip_citations",
    "summarize_combined",
    "summarize_loss",
    "summarize_measures",
    "texts_of",
    "time_score",
    "trace_loss",
]
