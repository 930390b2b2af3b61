"""How what a command takes grows with an index: two sizes, a factor of ten apart, no model asked.

    python benchmarks/scale.py                               2,000 and 20,000 text units
    python benchmarks/scale.py --text-units 10000 100000 --documents-of 1
    python benchmarks/scale.py --steps validate "draft --n 10"  some of the steps

Each step is a command in a process of its own, on a synthetic index of 100 text units (what
starting takes) and on both sizes; there is a question for every ten text units. Seconds are of the
processor, threads and children included; memory is the peak of the process. The slope is the
exponent of growth: 0 for a step that takes the same on both, 1 for one that takes ten times as
much. Exit code 1 where a slope is over 1.2: that step does work for pairs of things. What takes
little more than starting (a quarter of it, or half a second) on the larger size has no slope, and
on the smaller one counts as that little, as starting itself varies by it.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

TINY = 100
MOST_SLOPE = 1.2
LEAST_S = 0.5
ENDS = (0, 3)
"""Exit codes: done, or done with less than was asked, as a draft of few questions is."""
QUESTION = ("--limit", "1", "--skip-judge", "--output")
STEPS: dict[str, tuple[str, ...]] = {
    "validate": ("eval", "validate"),
    "dry run, 200 questions": ("eval", "--dry-run", "--limit", "200"),
    "bm25, first question": ("eval", "--methods", "bm25", *QUESTION, "bm25"),
    "bm25, next process": ("eval", "--methods", "bm25", *QUESTION, "bm25_again"),
    "ppr, first question": ("eval", "--methods", "ppr", *QUESTION, "ppr"),
    "ppr, next process": ("eval", "--methods", "ppr", *QUESTION, "ppr_again"),
    "tog, next process": ("eval", "--methods", "tog", *QUESTION, "tog"),
    "hybrid, next process": ("eval", "--methods", "hybrid", *QUESTION, "hybrid"),
    "basic, one question": ("eval", "--methods", "basic", *QUESTION, "basic"),
    "local, one question": ("eval", "--methods", "local", *QUESTION, "local"),
    "local, 20 questions": (
        *("eval", "--methods", "local", "--limit", "20", "--skip-judge"),
        *("--output", "local_20"),
    ),
    "10 questions x 6 methods": ("eval", "--limit", "10", "--output", "all"),
    "every question by bm25": ("eval", "--methods", "bm25", "--output", "every"),
    "that run shown again": ("eval", "show", "latest", "--output", "every"),
    "the list of runs": ("eval", "show", "--output", "every"),
    "draft --n 10": ("eval", "draft", "--n", "10", "--output", "drafted.json"),
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a process took: processor seconds, and peak memory in MB."""

    cpu_s: float
    peak_mb: float


def run(command: Sequence[str], folder: Path) -> Taken:
    """Run a command to its end; RuntimeError, with what it printed, where it failed.

    This process must stay small: Linux counts its peak as that of those that it starts.
    """
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, cwd=folder, stdout=printed, stderr=printed)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in ENDS:
            printed.seek(0)
            told = printed.read().decode(errors="replace")[-3000:]
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {told}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Taken(used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 1e6)


def find_slope(start: Taken, small: Taken, large: Taken) -> float | None:
    """Return the exponent of growth over a factor of ten; None where there is too little of it."""
    little = max(LEAST_S, start.cpu_s / 4)
    more = large.cpu_s - start.cpu_s
    if more < little:
        return None
    return math.log10(more / max(small.cpu_s - start.cpu_s, little))


def print_table(found: dict[str, list[Taken]], sizes: Iterable[int]) -> None:
    """Print the seconds, the peaks and the slope of each step."""
    _, small, large = sizes
    print(f"| text units | starting, s | {small:,}: s | MB | {large:,}: s | MB | slope |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for step, (start, less, more) in found.items():
        slope = find_slope(start, less, more)
        told = "" if slope is None else f"{slope:.2f}"
        print(
            f"| {step} | {start.cpu_s:.1f} | {less.cpu_s:.1f} | {less.peak_mb:,.0f} "
            f"| {more.cpu_s:.1f} | {more.peak_mb:,.0f} | {told} |"
        )


def main() -> int:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text-units", type=int, nargs=2, default=[2_000, 20_000])
    parser.add_argument("--documents-of", type=int, default=20, help="text units a document has")
    parser.add_argument("--steps", nargs="*", choices=STEPS, default=list(STEPS))
    parser.add_argument("--folder", type=Path, help="keep the projects here")
    parser.add_argument("--json", type=Path, help="file to write")
    options = parser.parse_args()
    sizes = [TINY, *options.text_units]
    writer = str(Path(__file__).with_name("synthetic_index.py"))
    graphrag = str(Path(sys.executable).with_name("graphrag"))
    found: dict[str, list[Taken]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            folder = options.folder or Path(temporary)
            root = (folder / f"{size}_by_{options.documents_of}").resolve()
            documents = str(size // options.documents_of)
            run([sys.executable, writer, str(root), str(size), documents], folder)
            for step in options.steps:
                taken = run([graphrag, *STEPS[step]], root)
                found.setdefault(step, []).append(taken)
                print(f"{size:,} {step}: {taken.cpu_s:.1f} s, {taken.peak_mb:,.0f} MB", flush=True)
    print_table(found, sizes)
    if options.json is not None:
        told = {step: [[t.cpu_s, t.peak_mb] for t in taken] for step, taken in found.items()}
        options.json.write_text(json.dumps({"text_units": sizes, "steps": told}, indent=2) + "\n")
    slopes = {step: find_slope(*taken) for step, taken in found.items()}
    steep = [step for step, slope in slopes.items() if slope is not None and slope > MOST_SLOPE]
    if steep:
        print(f"Grows faster than the index: {', '.join(steep)}", file=sys.stderr)
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
