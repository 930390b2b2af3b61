"""What kind of thing a name names: by the words in it, then by the words around it."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag.offline.lexicon import (
    EVENT_HEADS,
    MOTION,
    OBJECT_HEADS,
    ORGANIZATION_HEADS,
    PLACE_BEFORE,
    PLACE_FIRST,
    PLACE_HEADS,
    PLACE_NAMES,
    SPEECH_AND_ACTION,
    TITLES,
)
from graphrag.offline.names import Mention, Word, name_key

_SAME_TYPE = {
    "PERSON": ("person", "people", "character", "individual"),
    "PLACE": ("place", "geo", "location", "gpe", "city", "country"),
    "ORGANIZATION": ("organization", "organisation", "group", "company"),
    "EVENT": ("event",),
    "OBJECT": ("object", "artifact", "item", "thing", "product"),
}
_HEADS = {
    "PLACE": PLACE_HEADS,
    "ORGANIZATION": ORGANIZATION_HEADS,
    "EVENT": EVENT_HEADS,
    "OBJECT": OBJECT_HEADS,
}
# A name on its own in running text is a person more often than anything else.
_PERSON_BIAS = 0.6


@dataclass(slots=True)
class Evidence:
    """Votes for each kind from the places where a name occurs."""

    person: float = _PERSON_BIAS
    place: float = 0.0
    object: float = 0.0

    def add(self, mention: Mention, words: Sequence[Word]) -> None:
        """Count what stands before and after one mention."""
        if mention.stop < len(words):
            after = words[mention.stop].low
            if after in SPEECH_AND_ACTION:
                self.person += 2.0
            elif after.endswith(("s", "ed")) or after == "who":
                self.person += 0.5
        if words[mention.stop - 1].possessive:
            self.person += 0.5
            return
        before = words[mention.start - 1].low if mention.start else ""
        earlier = words[mention.start - 2].low if mention.start > 1 else ""
        if before == "the":
            self.object += 1.0
            before = earlier
        elif (before == "to" and earlier in MOTION) or (before == "of" and earlier in PLACE_HEADS):
            self.place += 2.0
        if before in SPEECH_AND_ACTION and before not in PLACE_BEFORE:
            self.person += 1.0
        self.place += PLACE_BEFORE.get(before, 0.0)

    def add_speaker(self) -> None:
        """Count a cue line: only persons speak."""
        self.person += 3.0


def kind_by_name(name: str) -> str | None:
    """Tell the kind that the words of a name give away; None when they give nothing away."""
    key = list(name_key(name))
    if key[0] in TITLES:
        return "PERSON"
    if "with" in key:
        return "OBJECT"
    if len(key) > 1 and key[0] in PLACE_FIRST:
        return "PLACE"
    head = key[key.index("of") - 1] if "of" in key[1:] else key[-1]
    for kind, heads in _HEADS.items():
        if head in heads:
            return kind
    return "PLACE" if key[-1] in PLACE_NAMES and "of" not in key else None


def kind_of(name: str, evidence: Evidence) -> str:
    """One of PERSON, PLACE, ORGANIZATION, EVENT, OBJECT."""
    by_name = kind_by_name(name)
    if by_name is not None:
        return by_name
    votes = {"PERSON": evidence.person, "PLACE": evidence.place, "OBJECT": evidence.object}
    return max(votes, key=votes.__getitem__)


def as_requested(kind: str, wanted: Sequence[str]) -> str:
    """Give the caller's own word for a kind, or the kind itself when the caller has none."""
    for name in wanted:
        if name.casefold() in _SAME_TYPE[kind]:
            return name.upper()
    return kind
