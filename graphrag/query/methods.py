"""The search methods by name."""

from typing import Literal, get_args

SearchMethod = Literal["tog", "local", "basic", "global", "drift"]
METHODS: tuple[SearchMethod, ...] = get_args(SearchMethod)
