"""What one question's view draws of a search that walked the graph."""

from graphrag.eval.judged import METRICS
from graphrag.eval.metrics import JudgeResult, MetricScores
from graphrag.eval.records import EfficiencyMetrics, Hop, QueryResult, Retrieved, Walk
from graphrag.eval.web.questions import detail_questions

WALK = Walk(("ADA", "BEN"), (0,), ((1, 0, 1, "7", True, 0.9, "walked"),), (), (("Sources (0)",),))
PATHS = ((Hop(1, "ADA", "BEN", "r7", True, 0.9),),)


def detail(method: str, paths: tuple[tuple[Hop, ...], ...]) -> dict[str, object]:
    told = Retrieved(method, ("u0", "u1"), 2, paths=paths, walk=WALK)
    scores = MetricScores(**dict.fromkeys(METRICS, JudgeResult(1, "")))
    result = QueryResult(
        "isle", "Who?", method, "Ben.", scores, EfficiencyMetrics(1, 1, 1, 1), retrieved=told
    )
    ((values,),) = detail_questions([result], METRICS, iter, lambda _: None)
    return values


def test_of_ppr_only_what_its_prompt_held_is_drawn():
    assert "walk" in detail("tog", ()), "a model scored these edges"
    without = detail("ppr", ())
    assert not {"walk", "paths"} & without.keys()
    assert without["texts"] == (
        "Its prompt held no path or relationship, only 2 texts: ranks 1 to 2 by what reaches a "
        "text from the question's words and names; nearest entities: ADA."
    )
    held = detail("ppr", PATHS)
    assert not {"walk", "texts"} & held.keys()
    assert held["paths"] == [[[1, "ADA", "BEN", True, 0.9]]]
