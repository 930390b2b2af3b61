"""Summaries of descriptions, and reports on communities, put together from their sentences."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable

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
_FINDING_WORDS = 90
_SUMMARY_WORDS = 90


def is_description_summary(prompt: str) -> bool:
    """Whether a prompt asks to merge descriptions of one entity or relationship."""
    return _DESCRIPTIONS.search(prompt) is not None


def answer_description_summary(prompt: str) -> str:
    """Join the descriptions' distinct sentences, up to the number of words the prompt allows."""
    match = list(_DESCRIPTIONS.finditer(prompt))[-1]
    descriptions = json.loads(match["list"])
    limit = _LIMIT.search(prompt[: match.start()])
    return join_distinct(map(str, descriptions), int(limit.group(1)) if limit else _DEFAULT_WORDS)


def join_distinct(texts: Iterable[str], max_words: int) -> str:
    """Distinct sentences of some texts, in order, up to a number of words.

    Parameters
    ----------
    texts : Iterable[str]
        What to join; sentences that differ only in case, endings and punctuation are one.
    max_words : int
        Most words (>= 1). Sentences that no longer fit are left out; when already the
        first does not fit it is cut.
    """
    kept: dict[str, str] = {}
    used = 0
    for sentence in (sentence for text in texts for sentence in sentences(text)):
        length = len(sentence.split())
        if kept and used + length > max_words:
            continue
        key = " ".join(terms(sentence, keep_stop_words=True)) or sentence
        if key in kept:
            continue
        kept[key] = shorten(sentence, max_words)
        used += length
    return " ".join(kept.values())


def answer_community_report(prompt: str) -> dict[str, object]:
    """Write a report on a community from the tables in the prompt.

    The title names the two entities with most relationships; each finding is one entity's
    or one source's sentences with the ids of the records they are from. The rating grows with the
    number of relationships: ``min(10, 1 + log2(1 + n))``.
    """
    headings = list(_REPORT_DATA.finditer(prompt))
    data = prompt[headings[-1].end() :] if headings else prompt
    records = read_context(data, separators=(",", "|"))
    tables: dict[str, list[Record]] = {}
    for record in records:
        tables.setdefault(record.table, []).append(record)
    edges = tables.get("Relationships", [])
    entities = tables.get("Entities", [])
    linked = Counter(
        entity.label for entity in entities for edge in edges if entity.label in edge.label
    )
    entities = sorted(entities, key=lambda e: (-linked[e.label], int(e.id)))
    others = [r for r in records if r.table in {"Reports", "Sources"}]
    rating = round(min(10.0, 1 + math.log2(1 + len(edges))), 1)
    names = [_title(entity.label) for entity in entities]
    return {
        "title": " and ".join(names[:2]) or _first_words(others) or "Empty community",
        "summary": _summary(names, len(edges), [e.text for e in (entities or others)[:3]]),
        "findings": [
            *(_entity_finding(entity, edges) for entity in entities[:_MAX_FINDINGS]),
            *(_plain_finding(r) for r in others[: _MAX_FINDINGS - min(len(entities), 4)]),
        ],
        "rating": rating,
        "rating_explanation": f"The rating follows from the {len(edges)} relationships listed.",
    }


def _summary(names: list[str], n_edges: int, texts: list[str]) -> str:
    head = ""
    if names:
        listed = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
        head = f"The community links {listed} through {n_edges} relationships. "
    return head + join_distinct(texts, _SUMMARY_WORDS)


def _entity_finding(entity: Record, edges: list[Record]) -> dict[str, str]:
    own = [edge for edge in edges if entity.label in edge.label]
    cited = f"Entities ({entity.id})"
    if own:
        ids = ", ".join(edge.id for edge in own[:_MAX_CITED])
        cited += f"; Relationships ({ids}{', +more' if len(own) > _MAX_CITED else ''})"
    text = join_distinct([entity.text, *(edge.text for edge in own[:_MAX_CITED])], _FINDING_WORDS)
    return {"summary": _title(entity.label), "explanation": f"{text} [Data: {cited}]"}


def _plain_finding(record: Record) -> dict[str, str]:
    text = join_distinct([record.text], _FINDING_WORDS)
    return {
        "summary": shorten(record.label or text, 10),
        "explanation": f"{text} [Data: {record.table} ({record.id})]",
    }


def _first_words(records: list[Record]) -> str:
    return shorten(records[0].label or records[0].text, 8) if records else ""


def _title(name: str) -> str:
    return name.title() if name.isupper() else name
