"""``graphrag eval compare --plan``: the questions that a wanted difference needs."""

import json
from pathlib import Path

from click.testing import Result
from support.clock_evaluation import ROWS, flat, in_process

from graphrag.eval.stats.power import detectable_difference, questions_needed


def plan(*arguments: str, root: Path) -> Result:
    return in_process("compare", *arguments, "--root", str(root), COLUMNS="200")


def test_more_methods_take_more_questions(tmp_path):
    alone = questions_needed(0.05, 0.2)
    of_three = questions_needed(0.05, 0.2, alpha=0.05 / 3)
    of_four = questions_needed(0.05, 0.2, alpha=0.05 / 6)
    assert len({alone, of_three, of_four}) == 3
    given = ("--plan", "0.05")
    named = plan(*given, "--methods", "tog,local,basic", root=tmp_path).output
    assert f"{of_three:,}" in named
    assert "two-sided at 5 %/3, as it is one of the 3 pairs" in flat(named)
    assert f"{of_four:,}" in plan(*given, "-m", "4", root=tmp_path).output
    assert f"{alone:,}" in plan(*given, root=tmp_path).output
    config = "indexes: {a: a}\nmethods: [tog, local, basic]\n"
    (tmp_path / "eval_config.yaml").write_text(config)
    assert f"{of_three:,}" in plan(*given, root=tmp_path).output


def test_a_question_without_an_answer_shows_no_difference(tmp_path):
    rows = [*ROWS[:4], {"question": "Who wound the clock?", "expected_sources": ["clock.txt"]}]
    (tmp_path / "rows.json").write_text(json.dumps([{**row, "imdb_key": "a"} for row in rows]))
    config = "dataset: {path: rows.json}\nindexes: {a: a}\nmethods: [tog, local]\n"
    (tmp_path / "eval_config.yaml").write_text(config)
    assert "seen with 4 questions" in plan("--plan", "0.2", root=tmp_path).output


def test_what_a_run_shows_is_used(finished):
    for name in ((), ("latest",)):
        result = plan(*name, "--plan", "0.2", root=finished.root)
        assert result.exit_code == 0, result.output
        assert "tog, basic (observed)" in result.output
        assert f"seen with {len(ROWS)} questions" in result.output
        assert "offline baseline models" in flat(result.output)
    seen = detectable_difference(len(ROWS), 0.4)
    assert seen is not None
    assert f"{100 * seen:.1f} points" in result.output
