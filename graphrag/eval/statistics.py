"""Every figure of an evaluation, and how sure it is: pure functions over plain records.

None means "undefined" and NaN is never returned. Each function names its formula or the library
function that it calls. Nothing here reads, writes or runs anything:

>>> from graphrag.eval.statistics import mean_binary
>>> round(mean_binary([1, 1, 0, None]).mean, 3)
0.667

Means, their intervals, and the two estimands are in ``estimates``, states and counts in
``outcomes``, comparisons in ``paired`` and ``power``, latency and money in ``latency``, repeats in
``variance``; ``gate``, ``agreement`` and ``correction`` stand beside this module.
"""

from graphrag.eval.estimates import (
    DocumentMean,
    DocumentView,
    Estimate,
    ScaleEstimate,
    by_document,
    cluster_se,
    mean_binary,
    mean_binary_stratified,
    mean_scale,
)
from graphrag.eval.latency import (
    BootstrapEstimate,
    CostPerCorrect,
    Latency,
    LatencyQuantile,
    Tradeoff,
    bootstrap_median,
    bootstrap_ratio,
    cost_per_correct,
    latency_quantile,
    pareto_set,
)
from graphrag.eval.outcomes import Outcome, Outcomes, State, summarize_outcomes
from graphrag.eval.paired import (
    Pair,
    PairedDifference,
    ScaleDifference,
    bonett_price,
    holm,
    paired_binary,
    paired_scale,
    verdict_in_words,
)
from graphrag.eval.power import detectable_difference, mcnemar_power, questions_needed
from graphrag.eval.variance import (
    OrderedPreferences,
    Repeats,
    VarianceComponents,
    combine_orders,
    summarize_repeats,
    variance_components,
)

__all__ = [
    "BootstrapEstimate",
    "CostPerCorrect",
    "DocumentMean",
    "DocumentView",
    "Estimate",
    "Latency",
    "LatencyQuantile",
    "OrderedPreferences",
    "Outcome",
    "Outcomes",
    "Pair",
    "PairedDifference",
    "Repeats",
    "ScaleDifference",
    "ScaleEstimate",
    "State",
    "Tradeoff",
    "VarianceComponents",
    "bonett_price",
    "bootstrap_median",
    "bootstrap_ratio",
    "by_document",
    "cluster_se",
    "combine_orders",
    "cost_per_correct",
    "detectable_difference",
    "holm",
    "latency_quantile",
    "mcnemar_power",
    "mean_binary",
    "mean_binary_stratified",
    "mean_scale",
    "paired_binary",
    "paired_scale",
    "pareto_set",
    "questions_needed",
    "summarize_outcomes",
    "summarize_repeats",
    "variance_components",
    "verdict_in_words",
]
