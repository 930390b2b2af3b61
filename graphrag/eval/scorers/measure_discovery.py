"""The measures that there are: those that the files of the folder ``declared`` declare."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from graphrag.eval.scorers import declared
from graphrag.eval.scorers.measure_declaration import GROUPS, Measure, MeasureForm


@cache
def list_forms(cutoffs: tuple[int, ...]) -> tuple[MeasureForm, ...]:
    """Return every measure: group by group, each over everything before those at k.

    Raises
    ------
    ValueError
        If two files declare the same measure.
    """
    found = list(_declared())
    names = [measure.name for measure in found]
    if twice := {name for name in names if names.count(name) > 1}:
        msg = f"measures declared twice: {', '.join(sorted(twice))}; each needs a name of its own"
        raise ValueError(msg)
    return tuple(
        form
        for group in GROUPS
        for form in _forms([each for each in found if each.group == group], cutoffs)
    )


def _forms(measures: list[Measure], cutoffs: tuple[int, ...]) -> Iterator[MeasureForm]:
    yield from map(MeasureForm, measures)
    for k in dict.fromkeys(cutoffs):
        yield from (MeasureForm(each, k) for each in measures if each.compute_at is not None)


def _declared() -> Iterator[Measure]:
    for module in iter_modules(declared.__path__):
        yield from import_module(f"{declared.__name__}.{module.name}").MEASURES
