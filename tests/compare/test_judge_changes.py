"""The gate, and the comparison of two runs, by labels of both."""

import json
from pathlib import Path

import pytest
from support.labelled_runs import Verdicts, draw, write_labels

from graphrag.eval.compare.changes import read_both_labels
from graphrag.eval.compare.compare import GateTerms, RunComparison, compare_runs
from graphrag.eval.report.comparison import list_notes, render_json
from graphrag.eval.results.runs import RunMetadata, RunRows
from graphrag.eval.stats.gates import GateOutcome
from graphrag.eval.store.records import RunSetup

FAIR, TRUTH = draw(360, seed=6)


def unfair(share: int) -> Verdicts:
    """Return a judge's verdicts that take every so many right answer of tog for wrong."""
    return {
        key: (0 if number % share == 0 else seen[0], seen[1])
        for number, (key, seen) in enumerate(TRUTH.items())
    }


def compared(
    folder: Path,
    new: Verdicts,
    labels: tuple[int, int],
    judge: str = "openai/gpt-4o",
    truth: Verdicts = TRUTH,
) -> RunComparison:
    """Compare a run that is right as the baseline with it; ``labels`` are those of either."""
    sides = [
        RunRows(
            write_labels(folder, name, verdicts, right, n, seed=seed),
            RunMetadata(name, name, setup=RunSetup({"judge": {"model": judge}})),
        )
        for seed, (name, verdicts, right, n) in enumerate(
            (("new", new, truth, labels[0]), ("old", FAIR, TRUTH, labels[1]))
        )
    ]
    for side, n in zip(sides, labels, strict=True):
        if n == 0:
            (folder / "runs" / side.metadata.name / "audit_correctness.json").unlink()
    terms = GateTerms(labels=read_both_labels(*sides, folder))
    return compare_runs(*sides, methods=["tog"], metrics=["correctness"], margin=0.15, terms=terms)


def test_a_judge_that_turns_against_the_new_run_fails_it_only_without_labels(tmp_path):
    plain = compared(tmp_path / "a", unfair(7), (0, 0))
    assert plain.outcome is GateOutcome.FAIL
    (item,) = plain.items
    assert (item.corrected, item.corrected_difference) == (None, None)

    comparison = compared(tmp_path / "b", unfair(7), (160, 160))
    (item,) = comparison.items
    assert item.decision.outcome is GateOutcome.PASS
    assert "ruled out at 95 % confidence, corrected by 320 labels" in str(item.decision.reason)
    assert item.decision.bound == "labels of both runs"
    assert item.decision.lower_bound is not None
    assert item.corrected is not None
    assert item.decision.lower_bound == pytest.approx(item.corrected.limits(0.9)[0])
    assert item.decision.p == item.corrected.p_below
    assert item.difference.difference == plain.items[0].difference.difference
    assert item.verdict.startswith("no difference shown")
    assert list_notes(comparison)[-1].startswith(
        "tog, correctness: corrected by 320 labels; by the judge alone -"
    )
    kept = json.loads(render_json(comparison))
    assert kept["items"][0]["corrected"]["n_labels"] == 320


def test_a_loss_that_the_judge_does_not_see_passes_only_without_labels(tmp_path):
    lost = {k: (int(a and n % 4 > 0), b) for n, (k, (a, b)) in enumerate(TRUTH.items())}
    assert compared(tmp_path / "a", FAIR, (0, 0), truth=lost).outcome is GateOutcome.PASS
    found = compared(tmp_path / "b", FAIR, (200, 200), truth=lost)
    assert found.outcome is GateOutcome.FAIL
    assert "worse, corrected by 210 labels (p " in str(found.items[0].decision.reason)
    assert found.items[0].difference.difference == 0


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ((160, 0), "the baseline has no labels"),
        ((0, 160), "the new run has no labels"),
        ((160, 40), "baseline: 40 labeled responses are too few for a correction"),
    ],
)
def test_labels_that_do_not_suffice_change_nothing_and_it_is_said_why(tmp_path, labels, said):
    comparison = compared(tmp_path, unfair(7), labels)
    assert comparison.outcome is GateOutcome.FAIL
    assert "labels" not in str(comparison.items[0].decision.reason)
    why = list_notes(comparison)[-1]
    assert why.startswith(f"tog, correctness: not corrected by labels: {said}")
