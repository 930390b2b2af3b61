"""Answers indexing prompts by rules: entities and relationships, summaries, community reports."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from graphrag.embedded.names import (
    Evidence,
    as_requested,
    find_mentions,
    kind_of,
    name_key,
    quiet_emphasis,
    resolve_aliases,
    split_words,
)
from graphrag.embedded.requests import Request
from graphrag.text.context_tables import Record, read_context
from graphrag.text.sentences import first_words, sentences
from graphrag.text.stems import terms

_COMPLETE, _FIELD, _RECORD = "<|COMPLETE|>", "<|>", "##"
_MAX_SENTENCE_WORDS = 45
_MAX_DESCRIPTION_SENTENCES = 3
_MAX_EDGE_SENTENCES = 2
_MAX_WEIGHT = 10
_MAX_CUE_WORDS = 4
_MAX_HEADING_WORDS = 12

_HEADING_START = re.compile(r"(?:scene|chapter|act|part)\s+[\divxlc]+\b", re.IGNORECASE)
_SLUG = re.compile(r"^(?:INT|EXT|I/E|CUT|FADE|DISSOLVE|CLOSE|ANGLE|INSERT|MONTAGE|THE END|TITLE)\b")
_PARENTHESIS = re.compile(r"\([^()\n]*\)")
_REAL_DATA = re.compile(
    r"-Real Data-\s*#*\s*(?:entity_types:\s*(?P<kinds>[^\n]*)\n)?\s*text:\s*", re.IGNORECASE
)
_DESCRIPTIONS = re.compile(
    r"^Entities: (?P<names>.*)\nDescription List: (?P<list>\[.*\])[ \t]*$", re.MULTILINE
)
_LIMIT = re.compile(r"length to (\d+) words")
_DEFAULT_WORDS = 500
_REPORT_DATA = re.compile(r"^#* ?Real Data\b", re.MULTILINE)
_MAX_FINDINGS = 6
_MAX_CITED = 5
_MAX_WORDS = 90
_TAIL = re.compile(r"\n#{6,}\s*\noutput:\s*\Z", re.IGNORECASE)


@dataclass(slots=True)
class Entity:
    """A thing that a text names, under the fullest name that the text has for it."""

    name: str
    kind: str = "PERSON"
    sentences: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Relationship:
    """Two entities that share `count` sentences."""

    source: str
    target: str
    count: int = 0
    sentences: list[str] = field(default_factory=list[str])


def answer_extraction(request: Request) -> str | None:
    """Extract the graph of the text after the last ``-Real Data-`` heading of a prompt.

    Gleaning adds nothing: a prompt for more entities gets the end mark, and the question whether to
    go on gets "N". None if the request does not ask for a graph.
    """
    prompt, user = request.user, request.user.strip()
    if _REAL_DATA.search(request.first_user) is None:
        return None
    if user.startswith("MANY entities"):
        return _COMPLETE
    if "Y or N" in user and user != request.first_user.strip():
        return "N"
    headings = list(_REAL_DATA.finditer(prompt))
    if not headings:
        return None
    heading = headings[-1]
    kinds = [kind.strip(" []\"'") for kind in (heading["kinds"] or "").split(",")]
    entities, relationships = extract_graph(_TAIL.sub("", prompt[heading.end() :]))
    records = [
        _record(
            ("entity", entity.name.upper(), as_requested(entity.kind, kinds)),
            _short_first(entity.sentences, _MAX_DESCRIPTION_SENTENCES),
        )
        for entity in entities
    ]
    records += [
        _record(
            ("relationship", edge.source.upper(), edge.target.upper()),
            _short_first(edge.sentences, _MAX_EDGE_SENTENCES),
            str(min(edge.count, _MAX_WEIGHT)),
        )
        for edge in relationships
    ]
    return f"\n{_RECORD}\n".join([*records, _COMPLETE])


def extract_graph(text: str) -> tuple[list[Entity], list[Relationship]]:
    """Extract entities and relationships from one chunk of text, prose or a script.

    A name is an entity; two entities named in the same sentence are related. A sentence with k
    entities gives the k - 1 adjacent pairs and the pairs with its first entity: at most 2k - 3
    pairs. Text without capital letters gives nothing.
    """
    cued = _read_sentences(text)
    lines = [split_words(sentence) for sentence, _ in cued]
    speakers = [_speaker(cue) for _, cue in cued]
    names = [name for name in speakers if name]
    if names or sum(w.text.isupper() for line in lines for w in line if len(w.text) > 4) > 2:
        lines = quiet_emphasis(lines, names)
    mentions = find_mentions(lines)
    fullest = resolve_aliases([m.name for one in mentions for m in one] + names)
    entities: dict[str, Entity] = {}
    edges: dict[tuple[str, str], Relationship] = {}
    evidence: defaultdict[str, Evidence] = defaultdict(Evidence)
    for (sentence, _), speaker, words, hits in zip(cued, speakers, lines, mentions, strict=True):
        if speaker:
            evidence[fullest[speaker]].person += 3.0  # only persons speak
            sentence = f"{fullest[speaker]}: {sentence}"
        for mention in hits:
            evidence[fullest[mention.name]].add(mention, words)
        named = [speaker] if speaker else []
        named += [mention.name for mention in hits]
        _relate(sentence, list(dict.fromkeys(fullest[name] for name in named)), entities, edges)
    for entity in entities.values():
        entity.kind = kind_of(entity.name, evidence[entity.name])
    # A short form stays a node of its own, tied to the full one: another chunk may know only the
    # short form, and without the tie the two would never meet.
    for short, full_name in fullest.items():
        if full_name not in entities or name_key(short) == name_key(full_name):
            continue
        if short not in entities:
            tie = [f"{full_name} is also called {short}."]
            entities[short] = Entity(short, kind_of(short, evidence[full_name]), tie)
            edges[short, full_name] = Relationship(
                source=short, target=full_name, count=2, sentences=tie
            )
    return list(entities.values()), list(edges.values())


def _speaker(cue: str | None) -> str | None:
    if cue is None:
        return None
    mentions = find_mentions([[*split_words("It is"), *split_words(" " + cue)]])[0]
    return mentions[0].name if mentions else None


def _relate(
    sentence: str,
    names: Sequence[str],
    entities: dict[str, Entity],
    edges: dict[tuple[str, str], Relationship],
) -> None:
    for name in names:
        entities.setdefault(name, Entity(name)).sentences.append(sentence)
    with_first = [(names[0], other) for other in names[2:]]
    for source, target in dict.fromkeys([*pairwise(names), *with_first]):
        edge = edges.get((target, source)) or edges.setdefault(
            (source, target), Relationship(source=source, target=target)
        )
        edge.count += 1
        edge.sentences.append(sentence)


def _short_first(texts: Sequence[str], limit: int) -> str:
    fitting = [s for s in dict.fromkeys(texts) if len(s.split()) <= _MAX_SENTENCE_WORDS]
    # A chunk is cut anywhere: its first and last sentence may be halves.
    fitting = [s for s in fitting if not s[0].islower() and not s[-1].isalnum()] or fitting
    return " ".join(fitting[:limit] or [first_words(texts[0], _MAX_SENTENCE_WORDS)])


def _record(names: tuple[str, str, str], *rest: str) -> str:
    kind, *texts = names
    return "(" + _FIELD.join([f'"{kind}"', *map(_strip_separators, [*texts, *rest])]) + ")"


def _strip_separators(text: str) -> str:
    """Return a text on one line, without the separators of the output notation."""
    text = " ".join(text.split())
    for separator, replacement in (("#", ""), ("<|", "<"), ("|>", ">")):
        while separator in text:
            text = text.replace(separator, replacement)
    return text


def _read_sentences(text: str) -> list[tuple[str, str | None]]:
    """Return the sentences of prose or a script, each with the speaker named right above it."""
    cued: list[tuple[str, str | None]] = []
    block: list[str] = []
    speaker: str | None = None

    def close() -> None:
        nonlocal speaker
        prose = sentences("\n".join(block))
        block.clear()
        if speaker is None and len(prose) == 1 and is_heading(prose[0]):
            return
        for sentence in prose:
            cued.append((sentence, speaker))
            speaker = None

    for line in map(str.strip, text.splitlines()):
        if not line:
            close()
        elif _SLUG.match(line) or _HEADING_START.match(line):
            close()
            speaker = None
        elif _is_cue(line):
            close()
            speaker = _PARENTHESIS.sub("", line).strip().title()
        else:
            bare = _PARENTHESIS.sub("", line).strip() if line[0] == "(" else line
            if bare:
                block.append(bare)
    close()
    return cued


def _is_cue(line: str) -> bool:
    bare = _PARENTHESIS.sub("", line).strip()
    if not bare or bare[-1] in "!?,;:-" or bare[0] in "\"“'(":
        return False
    return (
        bare.isupper()
        and len(bare.split()) <= _MAX_CUE_WORDS
        and sum(letter.isalpha() for letter in bare) > 1
        and not any(letter.isdigit() for letter in bare)
    )


def is_heading(sentence: str) -> bool:
    """Say whether a line reads like a heading: short, no full stop, mostly capitalized."""
    if _HEADING_START.match(sentence):
        return True
    parts = sentence.split()
    if len(parts) > _MAX_HEADING_WORDS or sentence[-1] in '.!?…"”\u2019。\uff01\uff1f,;':
        return False
    return sum(part[0].isupper() for part in parts) * 2 >= len(parts)


def answer_description_summary(request: Request) -> str | None:
    """Join the descriptions' distinct sentences, up to the number of words that the prompt allows.

    None if the request lists no descriptions.
    """
    lists = list(_DESCRIPTIONS.finditer(request.user))
    if not lists:
        return None
    limit = _LIMIT.search(request.user[: lists[-1].start()])
    descriptions = map(str, json.loads(lists[-1]["list"]))
    return _join_distinct(descriptions, int(limit.group(1)) if limit else _DEFAULT_WORDS)


def _join_distinct(texts: Iterable[str], max_words: int = _MAX_WORDS) -> str:
    """Join distinct sentences up to a number of words; case and word endings don't count.

    Only the first sentence is cut to fit.
    """
    kept: dict[str, str] = {}
    used = 0
    for sentence in (sentence for text in texts for sentence in sentences(text)):
        length = len(sentence.split())
        if kept and used + length > max_words:
            continue
        key = " ".join(terms(sentence, keep_stop_words=True)) or sentence
        if key not in kept:
            kept[key] = first_words(sentence, max_words)
            used += length
    return " ".join(kept.values())


def answer_community_report(request: Request) -> dict[str, object]:
    """Write a community report from the tables in the prompt.

    The title names the two entities with most relationships. Each finding is one entity's or one
    source's sentences, with the ids of their records. The rating grows with the number of
    relationships: ``min(10, 1 + log2(1 + n))``.
    """
    headings = list(_REPORT_DATA.finditer(request.user))
    data = request.user[headings[-1].end() :] if headings else request.user
    records = read_context(data, separators=(",", "|"))
    edges = [record for record in records if record.table == "Relationships"]
    entities = [record for record in records if record.table == "Entities"]
    others = [record for record in records if record.table in {"Reports", "Sources"}]
    linked = Counter(
        entity.label for entity in entities for edge in edges if entity.label in edge.label
    )
    entities = sorted(entities, key=lambda e: (-linked[e.label], int(e.id)))
    names = [_title(entity.label) for entity in entities]
    first = first_words(others[0].label or others[0].text, 8) if others else ""
    summary = _join_distinct(record.text for record in (entities or others)[:3])
    if names:
        phrase = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
        summary = f"The community links {phrase} through {len(edges)} relationships. {summary}"
    return {
        "title": " and ".join(names[:2]) or first or "Empty community",
        "summary": summary,
        "findings": [
            *(_entity_finding(entity, edges) for entity in entities[:_MAX_FINDINGS]),
            *(_plain_finding(r) for r in others[: _MAX_FINDINGS - min(len(entities), 4)]),
        ],
        "rating": round(min(10.0, 1 + math.log2(1 + len(edges))), 1),
        "rating_explanation": f"The rating follows from the {len(edges)} relationships listed.",
    }


def _entity_finding(entity: Record, edges: Sequence[Record]) -> dict[str, str]:
    own = [edge for edge in edges if entity.label in edge.label]
    cited = f"Entities ({entity.id})"
    if own:
        ids = ", ".join(edge.id for edge in own[:_MAX_CITED])
        cited += f"; Relationships ({ids}{', +more' if len(own) > _MAX_CITED else ''})"
    text = _join_distinct([entity.text, *(edge.text for edge in own[:_MAX_CITED])])
    return {"summary": _title(entity.label), "explanation": f"{text} [Data: {cited}]"}


def _plain_finding(record: Record) -> dict[str, str]:
    text = _join_distinct([record.text])
    return {
        "summary": first_words(record.label or text, 10),
        "explanation": f"{text} [Data: {record.table} ({record.id})]",
    }


def _title(name: str) -> str:
    return name.title() if name.isupper() else name
