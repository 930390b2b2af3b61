"""Find the entities and relationships of a text by rules, in the notation graphrag reads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from graphrag.offline.aliases import resolve_aliases
from graphrag.offline.entity_types import Evidence, as_requested, kind_of
from graphrag.offline.names import (
    Mention,
    Word,
    find_mentions,
    name_key,
    quiet_emphasis,
    split_words,
)
from graphrag.offline.segments import Sentence, read_sentences
from graphrag.text.words import shorten

COMPLETE = "<|COMPLETE|>"
_FIELD, _RECORD = "<|>", "##"
_MAX_SENTENCE_WORDS = 45
_MAX_DESCRIPTION_SENTENCES = 3
_MAX_EDGE_SENTENCES = 2
_MAX_WEIGHT = 10


@dataclass(slots=True)
class Entity:
    """A thing that the text names, under the fullest name the text has for it."""

    name: str
    kind: str = "PERSON"
    sentences: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Relationship:
    """Two entities that share sentences; `count` of them."""

    source: str
    target: str
    count: int = 0
    sentences: list[str] = field(default_factory=list[str])


def extract_graph(text: str) -> tuple[list[Entity], list[Relationship]]:
    """Entities and relationships of one chunk of text.

    A name is an entity; two entities named in the same sentence are related. A sentence with
    k entities gives the k - 1 adjacent pairs and the pairs with its first entity: at most
    2k - 3.

    Parameters
    ----------
    text : str
        Prose or a script; anything without capital letters gives nothing.
    """
    read = read_sentences(text)
    words = [split_words(sentence.text) for sentence in read]
    speakers = [_speaker(sentence) for sentence in read]
    if (
        any(speakers)
        or sum(w.text.isupper() for line in words for w in line if len(w.text) > 4) > 2
    ):
        words = quiet_emphasis(words, [name for name in speakers if name])
    mentions = find_mentions(words)
    fullest = resolve_aliases(
        [m.name for found in mentions for m in found] + [name for name in speakers if name]
    )
    entities: dict[str, Entity] = {}
    relationships: dict[tuple[str, str], Relationship] = {}
    evidence: dict[str, Evidence] = {}
    for sentence, speaker, line, found in zip(read, speakers, words, mentions, strict=True):
        names = _names_in(speaker, line, found, fullest, evidence)
        plain = f"{fullest[speaker]}: {sentence.text}" if speaker else sentence.text
        _add(plain, names, entities, relationships)
    for entity in entities.values():
        entity.kind = kind_of(entity.name, evidence[entity.name])
    _link_short_forms(fullest, entities, relationships, evidence)
    return list(entities.values()), list(relationships.values())


def _speaker(sentence: Sentence) -> str | None:
    if sentence.speaker is None:
        return None
    found = find_mentions([[*split_words("It is"), *split_words(" " + sentence.speaker)]])[0]
    return found[0].name if found else None


def _names_in(
    speaker: str | None,
    words: Sequence[Word],
    found: Sequence[Mention],
    fullest: dict[str, str],
    evidence: dict[str, Evidence],
) -> list[str]:
    names: list[str] = []
    if speaker:
        names.append(fullest[speaker])
        evidence.setdefault(fullest[speaker], Evidence()).add_speaker()
    for mention in found:
        name = fullest[mention.name]
        evidence.setdefault(name, Evidence()).add(mention, words)
        names.append(name)
    return names


def _add(
    sentence: str,
    names: Sequence[str],
    entities: dict[str, Entity],
    relationships: dict[tuple[str, str], Relationship],
) -> None:
    distinct = list(dict.fromkeys(names))
    for name in distinct:
        entities.setdefault(name, Entity(name)).sentences.append(sentence)
    adjacent = list(pairwise(distinct))
    with_first = [(distinct[0], other) for other in distinct[2:]]
    for source, target in dict.fromkeys(adjacent + with_first):
        known = relationships.get((target, source)) or relationships.setdefault(
            (source, target), Relationship(source, target)
        )
        known.count += 1
        known.sentences.append(sentence)


def _link_short_forms(
    fullest: dict[str, str],
    entities: dict[str, Entity],
    relationships: dict[tuple[str, str], Relationship],
    evidence: dict[str, Evidence],
) -> None:
    """Keep the short form as a node of its own, tied to the full one.

    Another chunk may know only the short form; without the tie the two would never meet.
    """
    for short, full in fullest.items():
        if short == full or full not in entities or name_key(short) == name_key(full):
            continue
        sentence = f"{full} is also called {short}."
        if short not in entities:
            entities[short] = Entity(short, kind_of(short, evidence[full]), [sentence])
            relationships[short, full] = Relationship(short, full, 2, [sentence])


def _short_first(found: Sequence[str], limit: int) -> str:
    fitting = [s for s in dict.fromkeys(found) if len(s.split()) <= _MAX_SENTENCE_WORDS]
    # A chunk is cut anywhere: its first and last sentence may be halves.
    fitting = [s for s in fitting if not s[0].islower() and not s[-1].isalnum()] or fitting
    chosen = fitting[:limit] or [shorten(found[0], _MAX_SENTENCE_WORDS)]
    return " ".join(chosen)


def plain(text: str) -> str:
    """Give a text without the notation's separators, on one line."""
    text = " ".join(text.split())
    for separator, put in (("#", ""), ("<|", "<"), ("|>", ">")):
        while separator in text:
            text = text.replace(separator, put)
    return text


def render_graph(
    entities: Sequence[Entity], relationships: Sequence[Relationship], kinds: Sequence[str]
) -> str:
    """Write a graph in graphrag's notation, ``<|COMPLETE|>`` included.

    Parameters
    ----------
    entities, relationships : Sequence
        From `extract_graph`.
    kinds : Sequence[str]
        The entity types that the prompt asks for; a kind is written in the prompt's own
        word for it, where it has one.
    """
    records = [
        _record(
            "entity",
            entity.name,
            as_requested(entity.kind, kinds),
            _short_first(entity.sentences, _MAX_DESCRIPTION_SENTENCES),
        )
        for entity in entities
    ]
    records += [
        _record(
            "relationship",
            edge.source,
            edge.target,
            _short_first(edge.sentences, _MAX_EDGE_SENTENCES),
            str(min(edge.count, _MAX_WEIGHT)),
        )
        for edge in relationships
    ]
    return f"\n{_RECORD}\n".join([*records, COMPLETE])


def _record(kind: str, first: str, second: str, *rest: str) -> str:
    named = [first.upper(), second.upper()]
    return "(" + _FIELD.join([f'"{kind}"', *map(plain, [*named, *rest])]) + ")"


_REAL_DATA = re.compile(
    r"-Real Data-\s*#*\s*(?:entity_types:\s*(?P<kinds>[^\n]*)\n)?\s*text:\s*", re.IGNORECASE
)
_TAIL = re.compile(r"\n#{6,}\s*\noutput:\s*\Z", re.IGNORECASE)


def is_extraction(prompt: str) -> bool:
    """Whether a prompt asks for the entities and relationships of a text."""
    return "-Real Data-" in prompt and _REAL_DATA.search(prompt) is not None


def answer_extraction(prompt: str) -> str:
    """Write the graph of the text that follows the last ``-Real Data-`` heading of the prompt."""
    heading = list(_REAL_DATA.finditer(prompt))[-1]
    kinds = [kind.strip(" []\"'") for kind in (heading["kinds"] or "").split(",")]
    text = _TAIL.sub("", prompt[heading.end() :])
    return render_graph(*extract_graph(text), kinds)
