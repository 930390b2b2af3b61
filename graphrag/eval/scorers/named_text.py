"""Names looked for in a text as whole words."""

import re

from graphrag.eval.scorers.quotes import fold_text, phrase_key

_POSSESSIVE = re.compile(r"(?<=\w)['\u2018\u2019\u02bc]s\b", re.IGNORECASE)


class NamedText:
    """A text in which names are looked for as whole words; it is normalised once.

    Case, punctuation, white space and a possessive ``'s`` do not count; other names (aliases)
    are not known. A name without letters or digits, such as an emoji, is looked for as it stands.
    """

    __slots__ = ("_folded", "_key")

    def __init__(self, text: str) -> None:
        self._key = name_key(text)
        self._folded = fold_text(text)

    def __contains__(self, name: str) -> bool:
        """Whether the name stands in the text; a blank name never does."""
        key = name_key(name)
        if key:
            return key in self._key
        folded = fold_text(name)
        return bool(folded) and folded in self._folded

    @property
    def words(self) -> list[str]:
        """The normalised words, in order."""
        return self._key.split()


def name_key(text: str) -> str:
    """Return :func:`phrase_key` of a text without its possessive endings."""
    return phrase_key(_POSSESSIVE.sub("", text))
