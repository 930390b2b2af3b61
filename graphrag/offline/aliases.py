"""Bring the short and the long forms of a name together, within one text."""

from collections import Counter
from collections.abc import Iterable

from graphrag.offline.entity_types import kind_by_name
from graphrag.offline.lexicon import PARTICLES, TITLES
from graphrag.offline.names import core_words, name_key


def resolve_aliases(names: Iterable[str]) -> dict[str, str]:
    """Map every name to the fullest form of it that the text has.

    A short form follows a longer one only when the text has just one longer one that
    fits: "Jones" stays itself beside both "Indiana Jones" and "Henry Jones".

    Parameters
    ----------
    names : Iterable[str]
        Mentions of one text, with repetitions.

    Returns
    -------
    dict[str, str]
        Each distinct name and the name it stands for, often itself.
    """
    counts = Counter(names)
    spelled: dict[tuple[str, ...], str] = {}
    for name in sorted(counts, key=lambda n: (n.isupper(), -counts[n], n)):
        spelled.setdefault(name_key(name), name)
    longer = {key: _longer_form(key, spelled) for key in spelled}
    found: dict[str, str] = {}
    for name in counts:
        key = name_key(name)
        for _ in spelled:
            if longer[key] is None:
                break
            key = longer[key] or key
        found[name] = spelled[key]
    return found


def _longer_form(
    key: tuple[str, ...], spelled: dict[tuple[str, ...], str]
) -> tuple[str, ...] | None:
    if len(core_words(" ".join(key))) > 2:
        return None
    fitting = [other for other in spelled if _is_short_for(key, other)]
    # Of a chain "Jones", "Dr. Jones", "Dr. Henry Jones" the last speaks for all.
    tops = [key for key in fitting if not any(_is_short_for(key, other) for other in fitting)]
    return tops[0] if len(tops) == 1 else None


def _is_short_for(short: tuple[str, ...], full: tuple[str, ...]) -> bool:
    if len(short) >= len(full) or not set(short) - TITLES <= set(full):
        return False
    if short[0] in TITLES and len(short) == 1:
        return full[0] == short[0]
    if kind_by_name(" ".join(full)) not in {None, "PERSON"}:
        return False
    core, full_core = core_words(" ".join(short)), core_words(" ".join(full))
    if not set(core) <= set(full_core):
        return False
    if len(core) == 1 and core[0] not in {full_core[0], full_core[-1]}:
        return False
    named_after_place = bool(set(full) & PARTICLES) and core[0] != full_core[0]
    if named_after_place:
        return False
    if short[0] in TITLES:
        return full[0] == short[0] or core[0] == full_core[0]
    return True
