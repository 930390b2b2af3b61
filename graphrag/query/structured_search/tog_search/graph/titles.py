"""What the document of a text unit is about, by its title or its first heading."""

import re
from collections.abc import Iterable, Mapping

_FILE_NAME = re.compile(r"^\S.*\.[A-Za-z][A-Za-z0-9]{0,4}$")
_MAX_HEADING_CHARS = 120
_SENTENCE_ENDS = (".", "!", "?", "…", ":", ";", ",", "。", "！", "？", "：", "、")  # noqa: RUF001
_MARKUP = "#=*_ \t"


def title_of(title: str, text: str) -> str:
    """Return what a document is about in its own words, "" if it does not say.

    Its title, unless that is the name of a file; else the first line of its text, where that
    is short, does not end as a sentence does, and more follows it.

    Parameters
    ----------
    title : str
        As the documents table has it; empty without one.
    text : str
        The document's beginning.
    """
    if title.strip() and not _FILE_NAME.match(title.strip()):
        return title.strip()
    first, _, rest = text.lstrip("\ufeff").strip().partition("\n")
    heading = first.strip(_MARKUP + "\r")
    is_heading = (
        0 < len(heading) <= _MAX_HEADING_CHARS
        and not heading.endswith(_SENTENCE_ENDS)
        and bool(rest.strip())
    )
    return heading if is_heading else ""


def titles_of_units(units: Iterable[tuple[str, int, str]], titles: Mapping[str, str]) -> list[str]:
    """Return the title of each text unit's document.

    Parameters
    ----------
    units : iterable of tuple
        Document id, human_readable_id and text of each text unit; where it has no document it is
        one of its own.
    titles : mapping of str to str
        Document id -> title.
    """
    documents: list[str] = []
    beginnings: dict[str, tuple[int, str]] = {}
    for row, (document, number, text) in enumerate(units):
        document = document or f"\x00{row}"
        documents.append(document)
        beginning = text[: 2 * _MAX_HEADING_CHARS].lstrip()
        if document not in beginnings or number < beginnings[document][0]:
            beginnings[document] = (number, beginning)
    found = {
        document: title_of(titles.get(document, ""), text)
        for document, (_, text) in beginnings.items()
    }
    return [found[document] for document in documents]
