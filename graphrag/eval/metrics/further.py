"""The scorers by name: rubric, quality, assertions, claims, and those that packages bring."""

from graphrag.eval.metrics.assertions import ASSERTIONS
from graphrag.eval.metrics.claims import CLAIMED
from graphrag.eval.metrics.quality import QUALITY
from graphrag.eval.metrics.rubric import RUBRIC
from graphrag.eval.metrics.scorer import Scorer
from graphrag.eval.records.plug_ins import Registry

_OWN = {scorer.name: scorer for scorer in (RUBRIC, QUALITY, ASSERTIONS, CLAIMED)}
SCORERS = Registry("metrics", Scorer, _OWN)
OWN_SCORERS = tuple(SCORERS)
