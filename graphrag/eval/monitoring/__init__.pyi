from .collector import MetricPoint, MetricsCollector

__all__ = [
    "MetricPoint",
    "MetricsCollector",
]
