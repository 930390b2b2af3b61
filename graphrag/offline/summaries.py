"""Summaries of descriptions, and reports on communities, put together from their sentences."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from graphrag.offline.requests import Request
from graphrag.text.tables import Record, read_context
from graphrag.text.words import sentences, shorten, terms

_DESCRIPTIONS = re.compile(
    r"^Entities: (?P<names>.*)\nDescription List: (?P<list>\[.*\])[ \t]*$", re.MULTILINE
)
_LIMIT = re.compile(r"length to (\d+) words")
_DEFAULT_WORDS = 500
_REPORT_DATA = re.compile(r"^#* ?Real Data\b", re.MULTILINE)
_MAX_FINDINGS = 6
_MAX_CITED = 5
_MAX_WORDS = 90


def answer_description_summary(request: Request) -> str | None:
    """Join the descriptions' distinct sentences, up to the number of words the prompt allows.

    None where the request lists no descriptions.
    """
    lists = list(_DESCRIPTIONS.finditer(request.user))
    if not lists:
        return None
    limit = _LIMIT.search(request.user[: lists[-1].start()])
    descriptions = map(str, json.loads(lists[-1]["list"]))
    return _join_distinct(descriptions, int(limit.group(1)) if limit else _DEFAULT_WORDS)


def _join_distinct(texts: Iterable[str], max_words: int = _MAX_WORDS) -> str:
    """Join distinct sentences of some texts, in order, up to a number of words.

    Sentences that differ only in case, endings and punctuation are one. Those that no longer fit
    are left out; when already the first does not fit it is cut.
    """
    kept: dict[str, str] = {}
    used = 0
    for sentence in (sentence for text in texts for sentence in sentences(text)):
        length = len(sentence.split())
        if kept and used + length > max_words:
            continue
        key = " ".join(terms(sentence, keep_stop_words=True)) or sentence
        if key not in kept:
            kept[key] = shorten(sentence, max_words)
            used += length
    return " ".join(kept.values())


def answer_community_report(request: Request) -> dict[str, object]:
    """Write a report on a community from the tables in the prompt.

    The title names the two entities with most relationships; each finding is one entity's
    or one source's sentences with the ids of the records they are from. The rating grows with the
    number of relationships: ``min(10, 1 + log2(1 + n))``.
    """
    headings = list(_REPORT_DATA.finditer(request.user))
    data = request.user[headings[-1].end() :] if headings else request.user
    tables: defaultdict[str, list[Record]] = defaultdict(list)
    others: list[Record] = []
    for record in read_context(data, separators=(",", "|")):
        tables[record.table].append(record)
        if record.table in {"Reports", "Sources"}:
            others.append(record)
    edges, entities = tables["Relationships"], tables["Entities"]
    linked = Counter(
        entity.label for entity in entities for edge in edges if entity.label in edge.label
    )
    entities = sorted(entities, key=lambda e: (-linked[e.label], int(e.id)))
    names = [_title(entity.label) for entity in entities]
    first = shorten(others[0].label or others[0].text, 8) if others else ""
    return {
        "title": " and ".join(names[:2]) or first or "Empty community",
        "summary": _summary(names, len(edges), [e.text for e in (entities or others)[:3]]),
        "findings": [
            *(_entity_finding(entity, edges) for entity in entities[:_MAX_FINDINGS]),
            *(_plain_finding(r) for r in others[: _MAX_FINDINGS - min(len(entities), 4)]),
        ],
        "rating": round(min(10.0, 1 + math.log2(1 + len(edges))), 1),
        "rating_explanation": f"The rating follows from the {len(edges)} relationships listed.",
    }


def _summary(names: Sequence[str], n_edges: int, texts: Sequence[str]) -> str:
    listed = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
    head = f"The community links {listed} through {n_edges} relationships. " if names else ""
    return head + _join_distinct(texts)


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
        "summary": shorten(record.label or text, 10),
        "explanation": f"{text} [Data: {record.table} ({record.id})]",
    }


def _title(name: str) -> str:
    return name.title() if name.isupper() else name
