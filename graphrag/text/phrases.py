"""Phrases that messages are made of."""


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number and its noun: 1 call, 2 calls."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"
