"""A setup is kept as it was made, and read whatever release it is of."""

import json
import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunSetup

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FULL = {
    "dataset": {"fingerprint": "f", "questions": 3},
    "methods": {"order": ["tog", "basic"]},
    "indexes": {
        "film": {
            "tog": {"models": {"completion": {"model": "a/b"}, "embedding": {"model": "a/e"}}},
            "basic": {"index": "built", "models": {"completion": {"model": "a/a"}}},
        }
    },
    "judge": {"model": "a/j"},
    "metrics": {"relevance": {}, "correctness": {}},
    "further": {"rubric": {}, "pairwise": {"pairs": [["tog", "basic"]]}},
    "releases": {"gtog": "1"},
}


@settings(max_examples=10, deadline=None)
@given(sections=st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_the_store_holds_a_setup_byte_for_byte_and_in_its_order(sections: dict[str, object]):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "eval.db"
        with EvaluationStore(path) as store:
            run = store.add_run(RunSetup(sections))
            (kept,) = store.runs()
        assert kept.setup == run.setup
        assert json.dumps(kept.setup.root) == json.dumps(sections)
        database = sqlite3.connect(path)
        assert database.execute("SELECT setup FROM runs").fetchall() == [(json.dumps(sections),)]
        database.close()


def test_sections_are_read_by_name():
    setup = RunSetup(FULL)
    assert (setup.n_questions, setup.methods) == (3, ("tog", "basic"))
    assert setup.metrics == ("relevance", "correctness")
    assert setup.further == {"rubric", "pairwise"}
    assert setup.judge_model == "a/j"
    assert setup.list_models() == ["a/a", "a/b", "a/e"]
    assert setup.list_models("completion") == ["a/a", "a/b"]
    assert setup.fingerprints(["tog", "basic"]) == {"film": "built"}
    assert setup.fingerprints(["tog"]) == {"film": None}


def test_judging_again_changes_who_judges_and_nothing_else():
    again = RunSetup(FULL).judged_again("r1", {"judge": {"model": "a/k"}}, {})
    kept = {name: section for name, section in FULL.items() if name not in ("judge", "further")}
    assert again.root == {**kept, "judge": {"model": "a/k"}, "responses_of": "r1"}
    assert list(again.root)[:4] == ["dataset", "methods", "indexes", "judge"]  # as it is printed
    assert (again.responses_of, again.judge_model) == ("r1", "a/k")
