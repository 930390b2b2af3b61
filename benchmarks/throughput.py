"""How near a run comes to what its model service allows: given answers judged, and full searches.

A service on this machine answers after a fixed time, from a process of its own. Against it, each
in a process of its own and in turn:

- ``bare``: aiohttp alone, the same number of requests of the same size. What this machine allows.
- ``litellm``: litellm alone.
- ``judged-litellm``, ``judged-direct``: ``EvaluationRunner`` has given answers judged on four
  metrics, its store on, under the settings that ``graphrag init`` writes: with a ``type: litellm``,
  or as they are, so that the judge is asked directly.
- ``searched-litellm``, ``searched-direct``: questions asked of a small index by local, basic and
  ToG search, and judged.

Efficiency is ``ceil(calls / C) * latency / wall``: of the run, from its first question to its last
verdict, and of the whole process, with imports and preparation; ``first s`` is from the process's
start to its first call. Searches make calls that wait for
each other, so theirs is below 1 whatever the software does. ``/bare`` is the ratio to the bare
client's in the same round; at latency 0 it is the ratio of calls per second. CPU is what one call
costs after the preparation.

Modules are compiled once beforehand, as an installer compiles them: what is measured of the whole
process is a second start.

With ``--others`` the same number of judgements by other evaluation libraries besides, each in an
environment that uv makes for it, kept until the end: see ``other_client.py``. One that can't be
installed or gives up is left out, and said why. Not all bound calls: pydantic-evals and deepeval
bound cases, so that they get C / 4 of these.

The machine must be idle for the figures to mean anything; the ratios suffer least.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

HERE = Path(__file__).parent
OTHERS = {
    "autoevals": ["autoevals", "openai"],
    "pydantic-evals": ["pydantic-evals", "pydantic-ai-slim[openai]"],
    "inspect-ai": ["inspect-ai", "openai"],
    "deepeval": ["deepeval"],
    "ragas": ["ragas", "langchain-community<0.4"],  # it imports what later ones lack
}
WAYS = ("bare", "litellm", "judged-litellm", "judged-direct", "searched-litellm", "searched-direct")


@dataclass(frozen=True, slots=True)
class Measured:
    """One process: seconds, megabytes, and the calls that the service saw.

    ``first_s`` is from the start of the process to its first call.
    """

    calls: int
    first_s: float
    wall_s: float
    process_s: float
    cpu_s: float
    peak_mb: float


@contextmanager
def service(latency_s: float) -> Generator[str]:
    """Run the service; yields its address."""
    command = [sys.executable, HERE / "throughput_server.py", str(latency_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


def count_calls(url: str) -> tuple[int, float | None]:
    """Return how many calls the service has had, and when the first came in since last asked."""
    with urlopen(url.replace("/v1", "/calls")) as reply:
        calls, first_at = json.loads(reply.read())
        return calls, first_at


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a client: what it imports is compiled once, into this folder.

    Where PYTHONPYCACHEPREFIX is set, it is compiled there already; if empty, beside the modules.
    """
    given = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), **given}


def other_python(library: str, index: Path) -> Path:
    """Return the Python of a library's environment."""
    return index.parent / library / "bin" / "python"


def install(index: Path) -> list[str]:
    """Make the environments of the other libraries; return those that are there."""
    ready: list[str] = []
    for library, packages in OTHERS.items():
        python = other_python(library, index)
        try:
            for command in (
                ["uv", "venv", "-q", "--python", "3.11", python.parent.parent],
                ["uv", "pip", "install", "-q", "--python", python, *packages],
            ):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
            code = f"import importlib.metadata as m; print(m.version({library!r}))"
            found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{library}: left out: {reason(error)}")
            continue
        print(f"{library} {found.stdout.strip()}")
        ready.append(library)
    return ready


def reason(error: Exception) -> str:
    """Return the last line of what a process said, or what kept it from running."""
    said = str(getattr(error, "stderr", None) or error)
    return said.strip().splitlines()[-1]


def measure(way: str, url: str, concurrency: int, calls: int, index: Path) -> Measured:
    """Run one client."""
    with TemporaryDirectory() as folder:
        python, client = Path(sys.executable), HERE / "throughput_client.py"
        if way in OTHERS:
            python, client = other_python(way, index), HERE / "other_client.py"
        else:
            shutil.copytree(index, folder, dirs_exist_ok=True)
        (before, _), started, began = count_calls(url), time.perf_counter(), time.monotonic()
        done = subprocess.run(
            [
                python,
                "-P",  # the files beside it are no packages
                "-W",
                "ignore",
                client,
                way,
                url,
                str(concurrency),
                str(calls),
                folder,
            ],
            check=True,
            capture_output=True,
            text=True,
            env=environment(index.parent),
            cwd=folder,
            timeout=600,
        )
        process_s = time.perf_counter() - started
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    after, first_at = count_calls(url)
    first_s = (first_at or began) - began
    made = after - before
    return Measured(
        calls=made,
        first_s=first_s,
        wall_s=found["wall"],
        process_s=process_s,
        cpu_s=found["cpu"],
        peak_mb=found["peak_mb"],
    )


def show(ways: Sequence[str], concurrency: int, latency_s: float, calls: int, index: Path) -> None:
    """Run the ways in turn, and print a table."""
    print(f"\nC = {concurrency}, {1000 * latency_s:g} ms")
    print(
        f"{'':18}{'calls':>7}{'first s':>8}{'wall s':>8}{'run':>7}{'/bare':>7}{'process':>9}"
        f"{'CPU ms':>8}{'/bare':>7}{'MB':>6}"
    )
    bare: Measured | None = None
    with service(latency_s) as url:
        for way in ways:
            found = measure(way, url, concurrency, calls, index)
            bare = bare or found
            least_s = math.ceil(found.calls / concurrency) * latency_s
            ratio = (found.calls / found.wall_s) / (bare.calls / bare.wall_s)
            run = f"{least_s / found.wall_s:7.2f}" if latency_s else f"{'-':>7}"
            process = f"{least_s / found.process_s:9.2f}" if latency_s else f"{'-':>9}"
            cpu, of_bare = found.cpu_s / found.calls, bare.cpu_s / bare.calls
            print(
                f"{way:18}{found.calls:7}{found.first_s:8.2f}{found.wall_s:8.2f}{run}{ratio:7.2f}{process}"
                f"{1000 * cpu:8.2f}{cpu / of_bare:7.1f}{found.peak_mb:6.0f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every way, C and latency")
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, help="the bare client comes first anyway"
    )
    parser.add_argument("-C", dest="concurrency", nargs="+", type=int, help="calls in flight")
    parser.add_argument("--latency-ms", nargs="+", type=float)
    parser.add_argument("--calls", type=int, default=800, help="of each, but searches make more")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--others", action="store_true", help="other evaluation libraries besides")
    given = parser.parse_args()
    ways = given.ways or (WAYS if given.full else ("bare", "judged-direct"))
    ways = ("bare", *(way for way in ways if way != "bare"))
    with TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        index.mkdir()
        subprocess.run(
            [sys.executable, "-P", "-W", "ignore", HERE / "throughput_client.py", "build", index],
            check=True,
            capture_output=True,
        )
        with service(0.0) as url:
            for way in () if "PYTHONPYCACHEPREFIX" in os.environ else ways:
                measure(way, url, 8, 24, index)
            for library in install(index) if given.others else ():
                try:  # compiles it, and tells whether it runs at all
                    measure(library, url, 8, 24, index)
                    ways = (*ways, library)
                except subprocess.SubprocessError as error:
                    print(f"{library}: left out: {reason(error)}")
        for _ in range(given.rounds):
            for concurrency in given.concurrency or ((8, 32, 128) if given.full else (32, 128)):
                for latency_ms in given.latency_ms or ((0, 50, 200) if given.full else (200,)):
                    show(ways, concurrency, latency_ms / 1000, given.calls, index)


if __name__ == "__main__":
    main()
