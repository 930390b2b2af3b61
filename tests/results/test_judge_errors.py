"""What labels, or their want, do to comparisons between the methods of a run."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.labelled_runs import METHODS, draw, rows_of, write_labels

from graphrag.eval.report.formatting import p_value
from graphrag.eval.report.run import (
    describe_comparisons,
    describe_documents,
    describe_uncorrected,
)
from graphrag.eval.report.run_tables import pairs_table
from graphrag.eval.results.analysis import Analysis, analyse
from graphrag.eval.results.human_labels import Labels, correct_comparisons, read_labels
from graphrag.eval.results.scored_rows import Row
from graphrag.eval.store.atomic_files import run_folder


def analysed(rows: list[Row], labels: Mapping[str, Labels]) -> Analysis:
    return correct_comparisons(analyse(rows, METHODS, ["correctness"]), labels)


def test_a_judge_that_favours_one_method_is_corrected_and_said_to_be(tmp_path):
    seen, truth = draw(360, seed=1, favour=0.5)
    rows = write_labels(tmp_path, "r1", seen, truth, 120)
    plain = analyse(rows, METHODS, ["correctness"])
    (before,) = plain.comparisons
    assert before.verdict == "tog better than basic"
    assert describe_uncorrected(plain) == []

    found = analysed(rows, read_labels(tmp_path, "r1", rows))
    (after,) = found.comparisons
    assert after.corrected is not None
    assert after.result == before.result
    assert (after.corrected.n_labels, after.corrected.judged_alone) == (120, before.verdict)
    decided, family = after.decided
    assert family is not None
    assert abs(decided.difference or 0) < 0.15 < (before.result.difference or 0)
    assert decided.p_holm == decided.p
    assert after.ordered is None
    assert after.verdict.startswith("unknown: no difference shown; the smallest that")
    assert after.verdict.endswith("(corrected by labels on 120 questions)")
    assert "by the judge alone +" in next(describe_comparisons(found))
    assert "low power, by the judge alone)" in next(describe_documents(found))
    ((_, _, difference, limits, _, p, verdict),) = pairs_table(found).rows
    assert difference == decided.difference != after.result.difference
    assert limits == (family.low_simultaneous, family.high_simultaneous)
    assert (p, verdict) == (p_value(decided.p_holm), after.verdict)
    assert describe_uncorrected(found) == []
    kept = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert kept["comparisons"][0]["corrected"]["difference"] == decided.difference


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "Not corrected by labels (tog - basic): 40 labeled responses are too"),
        ('{"run_id": "r1"}', "was written without them; import its sheet again"),
        *((text, "can't be read; import its sheet again")
          for text in ("{", "[]", '{"labels": {"metric": "correctness"}}')),
    ],
)  # fmt: skip
def test_labels_that_can_not_be_used_leave_the_judges_figures_and_it_is_said_why(
    tmp_path, content, said
):
    seen, truth = draw(200, seed=2)
    rows = write_labels(tmp_path, "r1", seen, truth, 40)
    if content is not None:
        path = run_folder(tmp_path, "r1") / "audit_correctness.json"
        path.write_text(content, encoding="utf-8")
    found = analysed(rows, read_labels(tmp_path, "r1", rows))
    (compared,) = found.comparisons
    (plain,) = analyse(rows, METHODS, ["correctness"]).comparisons
    assert replace(compared, corrected=None) == plain
    assert said in describe_uncorrected(found)[0]


def test_labels_of_other_verdicts_are_not_used(tmp_path):
    seen, truth = draw(80, seed=4)
    write_labels(tmp_path, "r1", seen, truth, 80)
    key = next(iter(seen))
    judged_again = rows_of({**seen, key: (1 - (seen[key][0] or 0), seen[key][1])})
    labels = read_labels(tmp_path, "r1", judged_again)
    assert "verdicts have changed" in labels["correctness"]
    assert read_labels(tmp_path, "r2", judged_again) == {}
    assert read_labels(tmp_path, None, judged_again) == {}
