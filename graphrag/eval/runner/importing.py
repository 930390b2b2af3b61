"""From the entries of a benchmark to a project's documents and a dataset's rows."""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from graphrag.eval.dataset.benchmarks import (
    NO_DOCUMENT,
    NOT_IN_DOCUMENT,
    Document,
    Entry,
    Reading,
    Row,
    Support,
)
from graphrag.eval.dataset.samples import fold_wording, parse_samples
from graphrag.eval.errors import DatasetError
from graphrag.eval.scorers.evidence import QuotableTexts, read_quote

_REPEATED = "Questions that are there again, asked once"
_CONTRADICTED = "Questions that are there again with another answer, left out"
_SAME_ID = "Questions with the id of another one, which lose it"
_NO_TEXT = "Passages without text, left out"
_UNUSABLE = "Questions that no run could ask, left out"


class Imported(NamedTuple):
    """What is to be written: file name -> document, and the rows of the dataset."""

    documents: dict[str, Document]
    rows: list[Row]


def collect(
    entries: Iterable[tuple[str, Entry]], by_passage: bool, limit: int | None, reading: Reading
) -> Imported:
    """Return the documents, each once, and the first `limit` questions (None: all).

    ``by_passage``: a row's sources are whole documents, else it has quotes alone. What can't be
    matched is noted in ``reading``.
    """
    corpus = _Corpus()
    asked: list[tuple[str, Row, Entry]] = []
    for where, entry in entries:
        if entry.row is not None and len(asked) == limit:
            continue
        for problem, what in entry.problems:
            reading.note(problem, f"{where}: {what}")
        if entry.row is not None:
            asked.append((where, entry.row, entry))
        for document in entry.documents:
            if not corpus.add(document):
                reading.note(_NO_TEXT, where)
    rows: dict[str, Row] = {}
    ids: set[str] = set()
    for where, row, entry in asked:
        for support in entry.supports:
            _match(support, row, corpus, by_passage, where, reading)
        before = rows.setdefault(fold_wording(str(row["question"])), row)
        if before is not row:
            same = len({str(each["answer"]) for each in (before, row) if "answer" in each}) < 2
            if same and row.keys() - before.keys():  # assertions may be in a file of their own
                before |= {**row, **before}
            else:
                reading.note(_REPEATED if same else _CONTRADICTED, where)
        elif str(row.get("id")) in ids:
            reading.note(_SAME_ID, f"{where}: {row.pop('id')}")
        ids |= {str(row["id"])} if "id" in row else set()
    return Imported(corpus.documents, [row for row in rows.values() if _is_usable(row, reading)])


class _Corpus:
    """The documents, by file name and by title."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._by_title: dict[str, list[str]] = {}
        self._quotable: dict[str, QuotableTexts] = {}

    def add(self, document: Document) -> bool:
        """Add a document unless it is there; return False if it has no text."""
        key = _key(document)
        if key[1] and key not in self._names:
            # By title and digest, as the order of a file may tell which passages answer.
            words = re.sub(r"\W+", "_", document.title or document.text[:60])[:40]
            digest = hashlib.blake2b(repr(key).encode(), digest_size=6).hexdigest()
            name = f"{words}_{digest}.txt".lstrip("_")
            self._names[key] = name
            self.documents[name] = document
            self._by_title.setdefault(key[0], []).append(name)
        return bool(key[1])

    def named(self, document: Document | str) -> list[str]:
        """Return the names of the documents that are meant; none if there is none."""
        if isinstance(document, str):
            return self._by_title.get(fold_wording(document), [])
        return [name for name in (self._names.get(_key(document)),) if name is not None]

    def holds(self, name: str, quote: str) -> bool:
        """Whether a document holds a quote, as runs look for it."""
        texts = self._quotable.setdefault(name, QuotableTexts([self.documents[name].text]))
        return bool(texts.rows_with(read_quote(quote)))


def _key(document: Document) -> tuple[str, str]:
    return fold_wording(document.title), " ".join(document.text.split())


def _match(
    support: Support, row: Row, corpus: _Corpus, by_passage: bool, where: str, reading: Reading
) -> None:
    """Add what a row is to find, so far as the documents hold it; note what they lack."""
    document, quote = support
    names = corpus.named(document)
    title = document if isinstance(document, str) else document.title
    if not names:
        reading.note(NO_DOCUMENT, f"{where}: {title!r}")
    elif isinstance(document, str) and quote:
        names = [name for name in names if corpus.holds(name, quote)]
        if not names:
            reading.note(NOT_IN_DOCUMENT, f"{where}: {quote[:60]!r} in {title!r}")
    found = {"expected_sources": names} if by_passage else {}
    found |= {"evidence" if names else "unmatched_evidence": [quote]} if quote else {}
    for field, texts in found.items():
        known = row.get(field)
        row[field] = [*dict.fromkeys([*(known if isinstance(known, list) else ()), *texts])]


def _is_usable(row: Row, reading: Reading) -> bool:
    """Whether a run can ask a row; else it is noted why not."""
    try:
        stand_in = "-" if row.get("assertions") else ""
        parse_samples([{"answer": stand_in, **row}], only_key="-", source="its row")
    except DatasetError as error:
        reading.note(_UNUSABLE, f"{str(row['question'])[:60]!r}: {error}")
        return False
    return True
