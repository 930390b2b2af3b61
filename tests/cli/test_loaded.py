"""What a command loads: nothing that searches, where nothing is searched."""

import json
import os
import subprocess
import sys

import pytest
from support.clock_evaluation import MakeEvaluation
from support.openai_server import Behaviour, LocalServer
from support.projects import server_settings

pytestmark = pytest.mark.slow

_LISTED = """
import json, sys
from graphrag.cli.main import app
try:
    app()
except SystemExit as ended:
    print(json.dumps([ended.code, sorted({"lancedb", "litellm", "openai"} & set(sys.modules))]))
"""


def test_given_answers_that_are_judged_load_no_vector_store(
    make_evaluation: MakeEvaluation, server: LocalServer
):
    server.behaviour = Behaviour(lambda _: '{"reason": "so", "score": 1}')
    evaluation = make_evaluation(methods=["mine"], variants={"mine": {"function": "given:answer"}})
    evaluation.write_settings(server_settings(server.base_url))
    text = "async def answer(question):\n    return 'Idris Vane'\n"
    (evaluation.root / "given.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _LISTED, "eval", "--root", str(evaluation.root), "--quiet"],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [0, []], done.stdout + done.stderr
