"""What the project adds to every start of the interpreter, to ``graphrag --help`` and to
``import graphrag.api``.

Run it with the Python of an environment in which the project is installed. For the first two it
makes two bare environments that see the packages of this one; the only difference between them is
the line that starts the overlay. For the last, what nltk finds matters as well: the other
environment gets the release alone, from a package index. The runs of two alternate.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from uv import find_uv_bin  # pyright: ignore

_API = "import graphrag.api"
_MEMORY = f"{_API}, resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
_HELP = "import sys; from graphrag.cli.main import app; sys.argv = ['graphrag', '--help']; app()"


def make_environment(folder: Path, lines: Sequence[str]) -> Path:
    """Make an environment with these start-up lines and return its interpreter."""
    venv.create(folder, symlinks=os.name != "nt")
    variables = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", variables))
    (site / "startup.pth").write_text("\n".join(lines) + "\n")
    return Path(sysconfig.get_path("scripts", "venv", variables)) / Path(sys.executable).name


def time_start(python: Path, code: str) -> float:
    """Return the seconds from the start to the end of one process."""
    begin = time.perf_counter()  # no timeout below: waiting with one polls in steps of 16 ms
    subprocess.run([python, "-I", "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def make_released(folder: Path) -> Path:
    """Make an environment with nothing but the release and return its interpreter."""
    run = [find_uv_bin(), "--quiet"]
    subprocess.run([*run, "venv", "--python", sys.executable, folder], check=True)
    wanted = f"graphrag=={version('graphrag')}"
    install = [*run, "pip", "install", "--compile-bytecode", "--python", folder, wanted]
    subprocess.run(install, check=True)
    return next(folder.glob("[bS]*/python*"))


def show_memory(without: Path, ours: Path) -> None:
    """Print the largest resident size of an import in both, in megabytes (on Linux)."""
    sizes = [
        int(subprocess.run([python, "-I", "-c", _MEMORY], check=True, capture_output=True).stdout)
        for python in (without, ours)
    ]
    base, with_us = (size / 1024 for size in sizes)
    print(f"{_API}: {base:.0f} MB without, {with_us:.0f} MB with the project installed")


def compare(name: str, code: str, without: Path, with_overlay: Path, repeats: int) -> None:
    """Time the code in both environments in turn and print the medians."""
    times: dict[Path, list[float]] = {without: [], with_overlay: []}
    for turn in range(repeats + 1):
        pair = (without, with_overlay) if turn % 2 else (with_overlay, without)
        for python in pair:
            seconds = time_start(python, code)
            if turn:  # the first run of each only warms the caches
                times[python].append(seconds)
    base, ours = median(times[without]) * 1000, median(times[with_overlay]) * 1000
    print(
        f"{name}: {base:.2f} ms without, {ours:.2f} ms with the overlay: "
        f"{ours - base:+.2f} ms, x{ours / base:.3f} (medians of {repeats} runs each)"
    )


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--starts", type=int, default=300, help="runs of `python -c pass`")
    parser.add_argument("--helps", type=int, default=15, help="runs of `graphrag --help`")
    parser.add_argument("--imports", type=int, default=7, help=f"runs of `{_API}`; 0: none")
    options = parser.parse_args()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no fetch at import
    found = find_spec("graphrag_overlay")
    if found is None or found.origin is None:
        raise SystemExit("The project is not installed here: graphrag_overlay was not found.")
    seen = list(dict.fromkeys([sysconfig.get_path("purelib"), str(Path(found.origin).parent)]))
    with TemporaryDirectory() as folder:
        without = make_environment(Path(folder) / "without", seen)
        line = "import graphrag_overlay; graphrag_overlay.start()"
        ours = make_environment(Path(folder) / "with", [*seen, line])
        compare("python -c pass", "pass", without, ours, options.starts)
        compare("graphrag --help", _HELP, without, ours, options.helps)
        if not options.imports:
            return
        released = make_released(Path(folder) / "released")
        compare(_API, _API, released, Path(sys.executable), options.imports)
        if os.name != "nt":
            show_memory(released, Path(sys.executable))


if __name__ == "__main__":
    main()
