"""The scorers by name: rubric, quality, assertions, claims, and those that packages bring."""

from graphrag.eval.scorers.assertions import ASSERTIONS
from graphrag.eval.scorers.claims import CLAIMED
from graphrag.eval.scorers.quality import QUALITY
from graphrag.eval.scorers.rubric import RUBRIC
from graphrag.eval.scorers.scorer import Scorers

SCORERS = Scorers((scorer.name, scorer) for scorer in (RUBRIC, QUALITY, ASSERTIONS, CLAIMED))
OWN_SCORERS = tuple(SCORERS)
