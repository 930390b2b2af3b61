from .query_results import EfficiencyMetrics as EfficiencyMetrics
from .query_results import QueryResult as QueryResult
from .query_results import Retrieved as Retrieved
from .verdicts import Failure as Failure
from .verdicts import JudgeResult as JudgeResult
from .verdicts import MetricScores as MetricScores
