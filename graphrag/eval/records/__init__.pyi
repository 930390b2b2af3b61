from .answers import EfficiencyMetrics as EfficiencyMetrics
from .answers import QueryResult as QueryResult
from .answers import Retrieved as Retrieved
from .verdicts import Failure as Failure
from .verdicts import JudgeResult as JudgeResult
from .verdicts import MetricScores as MetricScores
