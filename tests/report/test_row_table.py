"""The row table as CSV: texts are texts, numbers are numbers."""

import io

import pandas as pd

from graphrag.eval.report.files import render_rows


def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay():
    table = pd.DataFrame(
        {
            "response": ['=HYPERLINK("http://x")', "-1 is less", "plain", None],
            "score": [-0.5, 1.0, None, 1e-9],
            "n": [-1, 2, 3, 4],
            "mixed": [-2, "@SUM(A1)", "'=x", True],
        }
    )
    text = render_rows(table, ".CSV")
    assert isinstance(text, str)
    read = pd.read_csv(io.StringIO(text))
    assert read["response"].tolist()[:3] == ['\'=HYPERLINK("http://x")', "'-1 is less", "plain"]
    pd.testing.assert_frame_equal(read[["score", "n"]], table[["score", "n"]])
    assert read["mixed"].tolist() == ["-2", "'@SUM(A1)", "''=x", "True"]
    content = render_rows(table.drop(columns="mixed"), ".parquet")
    assert isinstance(content, bytes)
    assert pd.read_parquet(io.BytesIO(content))["response"][0] == '=HYPERLINK("http://x")'
