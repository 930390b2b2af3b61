"""A day of work in minutes: does a run's memory, or its time for an item, grow with what is done?

``endurance.py [HOURS] [FOLDER]``: a model that answers at once, in place of one that takes 2 s,
is asked by a run of as many items as such a model would answer in 24 hours at 8 places, four calls
an item; the store is on. Prints the memory that Python holds, and the process's, after a tenth
and after all of the items, and their ratio; likewise the seconds for 1,000 items.
"""

import gc
import os
import resource
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.small_runs import SmallRun, noting

CALL_S, PLACES, CALLS = 2.0, 8, 4


def main(hours: float, folder: Path) -> None:
    """Make the run and print the figures."""
    n = int(hours * 3600 / CALL_S * PLACES / CALLS)
    marks = {n * CALLS // 10: "a tenth", n * CALLS - 1: "all"}
    found: dict[str, tuple[float, float, float]] = {}
    begun, asked = time.perf_counter(), 0

    def note(_: str) -> None:
        nonlocal asked
        asked += 1
        if asked in marks:
            gc.collect()
            held = tracemalloc.get_traced_memory()[0] / 1e6
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            seconds = time.perf_counter() - begun
            found[marks[asked]] = (held, pages * resource.getpagesize() / 1e6, seconds)

    tracemalloc.start()
    with noting(note):
        SmallRun(folder, n, PLACES).go()
    print(f"{n:,} items, {n * CALLS:,} calls, standing for {hours:g} h")
    for name, (held, rss, seconds) in found.items():
        print(
            f"{name:8} Python holds {held:7.1f} MB  process {rss:7.1f} MB  after {seconds:7.1f} s"
        )
    early, late = found["a tenth"], found["all"]
    print(f"ratio    Python {late[0] / early[0]:.2f}  process {late[1] / early[1]:.2f}")
    print(f"an item more costs {(late[0] - early[0]) * 1e6 / (0.9 * n):,.0f} bytes")
    pace = (late[2] - early[2]) / 9 / early[2]
    print(f"pace of the later items over that of the first tenth: {pace:.2f}")


if __name__ == "__main__":
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 24.0
    with tempfile.TemporaryDirectory() as made:
        main(hours, Path(sys.argv[2] if len(sys.argv) > 2 else made))
