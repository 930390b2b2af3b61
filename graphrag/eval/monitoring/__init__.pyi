from .collector import MetricPoint, MetricsCollector, MetricSummary

__all__ = ["MetricPoint", "MetricSummary", "MetricsCollector"]
