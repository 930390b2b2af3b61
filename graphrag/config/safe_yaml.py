"""YAML files are data: no tag makes an object of a class, no alias makes much of little."""

from typing import Any, cast

import yaml

_MOST_BY_ALIASES = 100_000
"""Values that the aliases of one file may stand for, beside those that are written out."""


def read_yaml(text: str) -> object:
    """Return what a text holds: mappings, lists, texts, numbers, dates.

    Raises
    ------
    yaml.YAMLError
        If it is no YAML, has a tag of Python's, an alias of what it stands in, aliases that stand
        for more than 100,000 values, a number or date that there is not, or is nested too deeply.
    """
    loader = yaml.SafeLoader(text)
    try:
        node: Any = loader.get_single_node()
        if node is None:
            return None
        sizes: dict[int, int] = {}
        if _size(node, sizes) - len(sizes) > _MOST_BY_ALIASES:
            msg = f"its aliases stand for more than {_MOST_BY_ALIASES:,} values"
            raise yaml.YAMLError(msg)
        return cast("object", loader.construct_document(node))
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise yaml.YAMLError(msg) from error
    except ValueError as error:  # an integer of thousands of digits, the 30th of February
        raise yaml.YAMLError(str(error)) from error
    finally:
        loader.dispose()


def _size(node: Any, sizes: dict[int, int]) -> int:
    """Return how many values a node stands for, aliases written out."""
    known = sizes.get(id(node))
    if known is not None:
        if known == 0:
            msg = "an alias stands for what it is part of"
            raise yaml.YAMLError(msg)
        return known
    sizes[id(node)] = 0
    parts: list[Any] = []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in cast("list[tuple[Any, Any]]", node.value) for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        parts = cast("list[Any]", node.value)
    sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]
