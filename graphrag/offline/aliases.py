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
    forms = _Forms(spelled)
    longer = {key: _longer_form(key, forms) for key in spelled}
    found: dict[str, str] = {}
    for name in counts:
        key = name_key(name)
        for _ in spelled:
            if longer[key] is None:
                break
            key = longer[key] or key
        found[name] = spelled[key]
    return found


class _Forms:
    """The forms of a text's names, found by the words in them."""

    def __init__(self, keys: Iterable[tuple[str, ...]]) -> None:
        self._with_word: dict[str, list[tuple[str, ...]]] = {}
        for key in keys:
            for word in dict.fromkeys(key):
                self._with_word.setdefault(word, []).append(key)

    def longer_than(self, key: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the forms that a form is short for, in their order."""
        telling = [word for word in key if word not in TITLES] or key[:1]
        if not telling:
            return []
        shared = min((self._with_word[word] for word in telling), key=len)
        return [other for other in shared if _is_short_for(key, other)]


def _longer_form(key: tuple[str, ...], forms: _Forms) -> tuple[str, ...] | None:
    if len(core_words(" ".join(key))) > 2:
        return None
    fitting = forms.longer_than(key)
    # Of a chain "Jones", "Dr. Jones", "Dr. Henry Jones" the last speaks for all.
    tops = (one for one in fitting if not any(_is_short_for(one, other) for other in fitting))
    first, second = next(tops, None), next(tops, None)
    return first if second is None else None


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
