"""The metrics that there are: one for each file of this folder that declares one."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from graphrag.eval import judged
from graphrag.eval.judged.declaration import DEFAULT_METRICS, JudgedMetric

_OWN = ("declaration", "discovery")


def _find() -> Iterator[JudgedMetric]:
    for module in iter_modules(judged.__path__):
        if module.name in _OWN:
            continue
        metric: JudgedMetric = import_module(f"{judged.__name__}.{module.name}").METRIC
        if metric.name != module.name:
            msg = f"{module.name}.py declares the metric {metric.name}; name both alike"
            raise ValueError(msg)
        yield metric


_found = {metric.name: metric for metric in _find()}
METRICS: tuple[str, ...] = (*DEFAULT_METRICS, *sorted(_found.keys() - set(DEFAULT_METRICS)))
JUDGED_METRICS: dict[str, JudgedMetric] = {name: _found[name] for name in METRICS}
"""Name -> metric, those that are judged by default first."""
