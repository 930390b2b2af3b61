"""Imports every module of the project in the process of the tests, which imports the rest once."""

from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_module_can_be_imported() -> None:
    """Import all but what runs when it is imported."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((ROOT / "graphrag").rglob("*.py"))
        if path.name != "__main__.py"
    ]
    assert len(names) > 100
    for name in names:
        import_module(name)
