"""The same work done by Ray's workers; runs where the extra ``ray`` is installed."""

import pytest
from executors.stored_rows import METHODS, rows_of
from support.clock_evaluation import MakeEvaluation

ray = pytest.importorskip("ray", reason="needs the extra: pip install 'gtog[ray]'")


def test_ray_gives_what_one_process_gives(make_evaluation: MakeEvaluation):
    alone = make_evaluation(name="alone", methods=METHODS)
    assert alone.run("--quiet").exit_code == 0
    shared = make_evaluation(name="shared", methods=METHODS)
    result = shared.run("--quiet", "--executor", "ray", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert rows_of(shared) == rows_of(alone)
