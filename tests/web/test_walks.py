"""What one question's view says of the way of a graph search."""

from graphrag.eval.metrics import JudgeResult, MetricScores
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult, Retrieved, Walk
from graphrag.eval.web.questions import detail_questions
from graphrag.text.search_trace import Step


def detail(walk: Walk | None) -> dict[str, object]:
    told = Retrieved("tog", ("u0", "u1"), 2, walk=walk)
    scores = MetricScores(**dict.fromkeys(METRICS, JudgeResult(1, "")))
    spent = EfficiencyMetrics(1, 1, 1, 1)
    response = "Ben. [Data: Relationships (1); Sources (2, 3, 9)]"
    result = QueryResult("isle", "Who?", "tog", response, scores, spent, retrieved=told)
    ((values,),) = detail_questions([[result]], METRICS, iter, lambda _: None)
    return values


def test_a_cited_text_stands_with_the_call_that_read_it_first():
    steps = (
        Step(1, ("1", "2"), 5, ("2",), ("A -> B",), ("Ben",), "who Ben is"),
        Step(2, ("2", "3")),
    )
    first, second = detail(Walk(steps))["way"]  # pyright: ignore[reportGeneralTypeIssues]
    assert (first["cited"], second["cited"]) == (["2"], ["3"])
    assert (first["looked_up"], first["missing"], first["n_rows"]) == (("Ben",), "who Ben is", 5)


def test_a_walk_that_1_0_0_stored_is_read_and_not_drawn():
    stored = {"entities": ["ADA"], "starts": [0], "edges": [], "rounds": [], "rests_on": []}
    told = Retrieved.from_dict({"method": "tog", "walk": stored})
    assert told.walk == Walk()
    assert "way" not in detail(told.walk)
