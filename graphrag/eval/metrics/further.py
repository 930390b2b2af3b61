"""The scorers by name: those that are built in, and those that packages bring."""

from collections.abc import Iterable
from itertools import combinations

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.metrics.assertions import ASSERTIONS
from graphrag.eval.metrics.claims import CLAIMED
from graphrag.eval.metrics.pairwise import PAIRWISE
from graphrag.eval.metrics.quality import QUALITY
from graphrag.eval.metrics.rubric import RUBRIC
from graphrag.eval.metrics.scorer import Scorer
from graphrag.eval.records.plug_ins import Registry

_OWN = {scorer.name: scorer for scorer in (RUBRIC, QUALITY, ASSERTIONS, CLAIMED, PAIRWISE)}
SCORERS = Registry("metrics", Scorer, _OWN)
OWN_SCORERS = tuple(SCORERS)


def list_further(config: EvaluationConfig, samples: Iterable[Sample]) -> list[str]:
    """Return the further judges that are asked about single responses to some of the samples."""
    asked = [*samples]
    scorers = ((name, SCORERS.find(name)) for name in config.judge.scorers)
    return [
        name
        for name, scorer in scorers
        if scorer is not None and not scorer.of_pairs and any(map(scorer.asks, asked))
    ]


def list_pairs(config: EvaluationConfig) -> list[tuple[Scorer, str, str]]:
    """Return the judges of two responses that are asked, each with every pair of methods."""
    names = [*[PAIRWISE.name] * bool(config.judge.pairwise), *config.judge.graded]
    scorers = [s for s in map(SCORERS.find, names) if s is not None and s.of_pairs]
    pairs = config.judge.pairs(config.methods) or tuple(combinations(config.methods, 2))
    return [(scorer, a, b) for scorer in scorers for a, b in pairs]
