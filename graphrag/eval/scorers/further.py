"""The scorers by name: rubric, quality, assertions, claims, and those that packages bring."""

from graphrag.eval.records.plug_ins import Registry
from graphrag.eval.scorers.assertions import ASSERTIONS
from graphrag.eval.scorers.claims import CLAIMED
from graphrag.eval.scorers.quality import QUALITY
from graphrag.eval.scorers.rubric import RUBRIC
from graphrag.eval.scorers.scorer import Scorer

_OWN = {scorer.name: scorer for scorer in (RUBRIC, QUALITY, ASSERTIONS, CLAIMED)}
SCORERS = Registry("metrics", Scorer, _OWN)
OWN_SCORERS = tuple(SCORERS)
