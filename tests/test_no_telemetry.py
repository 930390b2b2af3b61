"""Nothing leaves but the calls to your models: what a whole day of commands connects to."""

import json
import os
import shutil
import subprocess

import pytest
from support.clock_evaluation import ROWS
from support.commands import each, ends

# Told by the interpreter itself, whichever library asks; all but one address is refused.
CLOSED = """
import json, os, sys
def look(event, given):
    if event in ("socket.connect", "socket.sendto"):
        place = given[1]
    elif event == "socket.getaddrinfo":
        place = given[:2]
    else:
        return
    if isinstance(place, tuple):
        place = [str(place[0]), int(place[1] or 0)]
        with open(os.environ["CONTACTS"], "a") as file:
            file.write(json.dumps(place) + "\\n")
        if place[1] != int(os.environ["OPEN_PORT"]):
            raise OSError(f"the network is closed: {place}")
sys.addaudithook(look)
"""


@pytest.mark.slow
def test_with_the_network_closed_but_for_the_models_everything_works(
    make_evaluation, server, tmp_path
):
    evaluation = make_evaluation(server.base_url, methods=["tog", "local", "basic"])
    evaluation.write_rows(ROWS[:2])
    hook, contacts = tmp_path / "hook", tmp_path / "contacts"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(CLOSED, encoding="utf-8")
    variables = {k: v for k, v in os.environ.items() if not k.endswith("_proxy")}
    variables |= {
        "PYTHONPATH": str(hook),
        "CONTACTS": str(contacts),
        "OPEN_PORT": str(server.port),
        "TMPDIR": str(tmp_path),  # what was fetched once is kept below it
    }
    # Sees what libraries do that are not written in Python, where the system lets it.
    # The kernel picks what is traced; stopped at every other call too, all takes a third longer.
    watch = ["strace", "-f", "--seccomp-bpf", "-qq"]
    watch += ["-e", "trace=connect,sendto", "-e", "signal=none"]
    can_watch = (
        shutil.which("strace") is not None
        and subprocess.run([*watch, "true"], check=False, capture_output=True).returncode == 0
    )

    here = ("--root", evaluation.root)
    day = each(
        ("eval", *here),
        ("eval", "compare", "latest", "--pin", *here),
        ("eval", *here),
        ("eval", "show", "latest", "--full", *here),
        ("eval", "compare", "latest", *here),
        ("eval", "view", "--export", tmp_path / "runs.html", *here),
    )
    before = [*watch, "-o", str(tmp_path / "traced")] if can_watch else []
    done = subprocess.run(
        [*before, *day], env=variables, capture_output=True, text=True, check=False
    )
    for end in ends(done):
        said = str(end)  # whole, as pytest shortens a tuple
        assert end[0] in (0, 3), said  # 3: too few questions
        assert "Traceback" not in said
    assert (tmp_path / "runs.html").exists()
    places = {tuple(json.loads(line)) for line in contacts.read_text().splitlines()}
    assert places == {("127.0.0.1", server.port)}
    below = (tmp_path / "traced").read_text().splitlines() if can_watch else []
    reached = [line for line in below if "AF_INET" in line]
    assert all(f"htons({server.port})" in line for line in reached), reached
    assert reached or not can_watch
