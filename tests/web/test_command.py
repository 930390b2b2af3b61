"""``graphrag eval view`` as a process: it prints an address, serves it, and ends by Ctrl-C."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from support.viewed_store import keep_run


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for another process")
def test_it_prints_an_address_and_ends_by_ctrl_c(tmp_path):
    run = keep_run(tmp_path, n=2)
    command = [sys.executable, "-m", "graphrag.eval", "view", "--output", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            (address,) = re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S{20,}", said)
            with httpx.Client(follow_redirects=True, timeout=60) as client:
                assert run in client.get(address).text
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, errors.split()[-1]) == (130, "Interrupted.")
    assert errors.count("\n") == 2
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith("eval.db")]


SLOW = """
import asyncio
from graphrag.eval.web.server import Listener, make_server

async def app(scope, receive, send):
    server.should_exit = True
    await asyncio.sleep(30)

listener = Listener.on(0)
server = make_server(app, listener)
print(listener.address, flush=True)
server.run(sockets=[listener.socket])
"""


def test_a_request_that_is_cut_off_at_the_end_prints_no_traceback():
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with pytest.raises(httpx.HTTPError):
            httpx.get(address, follow_redirects=True, timeout=20).raise_for_status()
        assert (process.wait(20), process.stderr and process.stderr.read()) == (0, "")
