"""What is printed goes through whatever a terminal or file can show."""

import os
import subprocess
import sys

import pytest

TEXT = "\u706f \u0161 \u03a9 done"
PRINTED = f"""
import sys
from graphrag.cli.query_command import _shown_stdout
from graphrag.text.console import open_console, say
with _shown_stdout():
    print({TEXT!r})
say({TEXT!r})
open_console(stderr=True).print({TEXT!r})
"""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "gbk"])
def test_what_a_stream_has_no_character_for_is_replaced(encoding):
    env = {**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"}
    done = subprocess.run([sys.executable, "-c", PRINTED], env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    expected = TEXT.encode(encoding, "replace")
    assert done.stdout.splitlines() == [expected, expected]
    assert done.stderr.rstrip() in (expected, TEXT.encode(encoding, "backslashreplace"))
