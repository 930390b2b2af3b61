from .alarm import check_webhook, describe_alarm, post_alarm
from .collector import MetricPoint, MetricsCollector, MetricSummary
from .watch import (
    LEVEL,
    NextRound,
    RoundNote,
    WatchedFigure,
    WatchState,
    baseline_name,
    describe_figure,
    plan_round,
    read_watch,
)

__all__ = [
    "LEVEL",
    "MetricPoint",
    "MetricSummary",
    "MetricsCollector",
    "NextRound",
    "RoundNote",
    "WatchState",
    "WatchedFigure",
    "baseline_name",
    "check_webhook",
    "describe_alarm",
    "describe_figure",
    "plan_round",
    "post_alarm",
    "read_watch",
]
