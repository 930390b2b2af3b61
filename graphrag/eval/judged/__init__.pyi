from .declaration import DEFAULT_METRICS, JudgedMetric
from .discovery import JUDGED_METRICS, METRICS

__all__ = ["DEFAULT_METRICS", "JUDGED_METRICS", "METRICS", "JudgedMetric"]
