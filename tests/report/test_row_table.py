"""The row table as CSV: texts are texts, numbers are numbers."""

import io

import pandas as pd

from graphrag.eval.report.row_table import render_rows, tabulate_rows
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores
from graphrag.query.client.usage import Usage


def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay():
    table = pd.DataFrame(
        {
            "response": ['=HYPERLINK("http://x")', "-1 is less", "plain", None],
            "score": [-0.5, 1.0, None, 1e-9],
            "n": [-1, 2, 3, 4],
            "mixed": [-2, "@SUM(A1)", "'=x", True],
        }
    )
    text = render_rows(table)
    assert isinstance(text, str)
    read = pd.read_csv(io.StringIO(text))
    assert read["response"].tolist()[:3] == ['\'=HYPERLINK("http://x")', "'-1 is less", "plain"]
    pd.testing.assert_frame_equal(read[["score", "n"]], table[["score", "n"]])
    assert read["mixed"].tolist() == ["-2", "'@SUM(A1)", "''=x", "True"]


def test_a_count_is_whole_where_another_is_missing():
    unread = MetricScores(JudgeResult(None, "", Failure("judge", "unreadable", "x")))
    right = MetricScores(JudgeResult(1, "said"))
    took, unknown = EfficiencyMetrics(1.5, 1, 1190, 12), EfficiencyMetrics(2.0, None, None, None)
    results = aggregate_results(
        [
            QueryResult("a", "Who?", "tog", "x", right, took, judge_usage=Usage(llm_calls=4)),
            QueryResult("a", "What?", "tog", "x", unread, unknown),
        ]
    )
    text = render_rows(tabulate_rows(results, {"results": []}))
    read = pd.read_csv(io.StringIO(str(text)), dtype=str, keep_default_na=False)
    names = ["llm_calls", "prompt_tokens", "output_tokens", "judge_llm_calls", "correctness"]
    assert read[names].to_numpy().tolist() == [["1", "1190", "12", "4", "1"], [""] * 5]
    assert read["latency"].tolist() == ["1.5", "2.0"]
