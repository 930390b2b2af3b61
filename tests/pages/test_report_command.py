"""``graphrag eval report``: the page of a run that is in the store."""

from pathlib import Path

from support.clock_evaluation import MakeEvaluation

DONE, USAGE = 0, 2


def test_a_run_writes_its_page_and_report_writes_it_again(
    make_evaluation: MakeEvaluation, tmp_path: Path
):
    evaluation = make_evaluation()
    shown = evaluation.run("--limit", "1")
    assert shown.exit_code == DONE, shown.output
    top = evaluation.output / "report.html"
    assert f"Report:   {top}" in shown.output
    (own,) = evaluation.output.glob("runs/*/report.html")
    written = own.read_text("utf-8")
    assert written == top.read_text("utf-8")
    assert "Ask the same again" in written
    assert "--limit 1" in written
    own.unlink()
    again = evaluation.run("report")
    assert again.exit_code == DONE, again.output
    assert own.read_text("utf-8") == written
    assert evaluation.run("-q", "--limit", "1").exit_code == DONE
    older = own.parent.name
    against = evaluation.run("report", "--compare", older, "--to", str(tmp_path / "a.html"))
    assert against.exit_code == DONE, against.output
    assert f"Against <bdi>{older}</bdi>" in (tmp_path / "a.html").read_text("utf-8")
    missing = evaluation.run("report", "no-such-run")
    assert missing.exit_code == USAGE
    assert "no-such-run" in missing.output
