"""Imports every module of the project, in the environment of the Python that runs this."""

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent

names = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "graphrag").rglob("*.py"))
    if path.name != "__main__.py"
]
for name in names:
    import_module(name)
sys.stdout.write(f"{len(names)} modules imported on Python {sys.version.split()[0]}\n")
