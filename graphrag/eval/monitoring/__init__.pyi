from .alarm import check_webhook, describe_alarm, post_alarm
from .collector import MetricPoint, MetricsCollector, MetricSummary
from .watch import (
    BASELINE_RUNS,
    LEVEL,
    MetricKey,
    NextRound,
    RoundNote,
    WatchedFigure,
    WatchState,
    baseline_name,
    describe_figure,
    describe_power,
    plan_baseline_run,
    plan_round,
    read_watch,
)

__all__ = [
    "BASELINE_RUNS",
    "LEVEL",
    "MetricKey",
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
    "describe_power",
    "plan_baseline_run",
    "plan_round",
    "post_alarm",
    "read_watch",
]
