"""What the embedded models say when they can't answer, and what they are called."""

from collections.abc import Iterable
from difflib import get_close_matches

OFFLINE_LABEL = "offline baseline models"
"""How outputs that used the embedded models are labelled."""

NOT_FOUND = "I could not find this in the provided context."
"""The abstention: the whole answer when no sentence of the context fits the question."""


class OfflineModelError(ValueError):
    """A request or a setting that the embedded models don't support."""


def refuse_unknown_fields(model: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse settings that nothing would read.

    Parameters
    ----------
    model : str
        What the settings belong to, for the message.
    given : Iterable[str]
        Field names found in the settings.
    known : Iterable[str]
        Field names that are read.

    Raises
    ------
    OfflineModelError
        On the first unknown name, naming the nearest known one.
    """
    names = sorted(known)
    for name in sorted(given):
        if name in names:
            continue
        near = get_close_matches(name, names, n=1, cutoff=0.6)
        advice = f"did you mean `{near[0]}`?" if near else f"it may have only: {', '.join(names)}."
        raise OfflineModelError(f"{model} has no setting `{name}`; {advice}")
