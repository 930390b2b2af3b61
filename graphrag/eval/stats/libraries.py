"""scipy, loaded on first use: it takes a second, and has no types."""

from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def scipy_stats() -> Any:
    """Return ``scipy.stats``, loaded on first use: it takes a second, and has no types."""
    return import_module("scipy.stats")


def scipy_special() -> Any:
    """Return ``scipy.special``, loaded on first use."""
    return import_module("scipy.special")
