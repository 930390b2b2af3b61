"""The same work done by Ray's workers; runs where the extra ``ray`` is installed."""

import signal
from collections import Counter
from os import kill
from pathlib import Path

import pytest
from executors.stored_rows import METHODS, rows_of
from support.clock_evaluation import MakeEvaluation, wait_until
from support.openai_server import Behaviour, LocalServer, offline_reply

from graphrag.eval.errors import ConfigError
from graphrag.eval.runner import on_ray

CONCURRENCY = 4


@pytest.fixture
def ray():
    return pytest.importorskip("ray", reason="the extra ray is not installed")


def ray_workers() -> set[int]:
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::RayWorker"):
                found.add(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def test_ray_gives_what_one_process_gives_whoever_is_killed(
    make_evaluation: MakeEvaluation, server: LocalServer, ray
):
    config = {"methods": METHODS, "concurrency": CONCURRENCY}
    whole = make_evaluation(server.base_url, "whole", **config)
    before = len(server.records)
    assert whole.run("--quiet").exit_code == 0
    asked_once = Counter(record.request_sha256 for record in server.records[before:])

    killed = make_evaluation(server.base_url, "killed", **config)
    server.behaviour = Behaviour(offline_reply(), latency_s=0.05)
    before, others = len(server.records), ray_workers()
    with killed.start("--workers", "2", "--executor", "ray") as process:
        assert wait_until(lambda: len(server.records) >= before + 12, 200), process.output
        kill(min(ray_workers() - others), signal.SIGKILL)
        at_first = len(server.records)
        assert wait_until(lambda: len(server.records) >= at_first + 30, 200), process.output
        process.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert wait_until(lambda: not ray_workers() - others, 60)

    server.behaviour = Behaviour(offline_reply())
    result = killed.run("--resume", "--quiet", "--workers", "2", "--executor", "ray")
    assert result.exit_code == 0, result.output
    assert rows_of(killed) == rows_of(whole)
    again = Counter(record.request_sha256 for record in server.records[before:])
    again.subtract(asked_once)
    assert min(again.values()) == 0
    assert again.total() <= CONCURRENCY // 2 + CONCURRENCY


def test_without_ray_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r'--executor ray needs Ray.*pip install "ray'):
        on_ray._import_ray()


def test_keys_and_what_settings_refer_to_are_handed_over_and_nothing_of_rays_own(tmp_path):
    (tmp_path / "settings.yaml").write_text("api_base: ${MY_BASE}\nmodel: $MODEL_NAME\n")
    environment = {
        "MY_BASE": "http://host",
        "MODEL_NAME": "m",
        "OPENAI_API_KEY": "k",
        "RAY_AUTH_TOKEN": "t",
        "HOME": "/home/user",
    }
    chosen = on_ray.choose_variables(environment, {"a": tmp_path, "gone": tmp_path / "gone"})
    assert sorted(chosen) == ["MODEL_NAME", "MY_BASE", "OPENAI_API_KEY"]
