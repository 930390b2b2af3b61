from .evaluation_results import EvaluationResults, MethodSummary, aggregate_results
from .runs import StoredRun, list_runs

__all__ = ["EvaluationResults", "MethodSummary", "StoredRun", "aggregate_results", "list_runs"]
