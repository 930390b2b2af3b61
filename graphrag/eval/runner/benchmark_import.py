"""Turns the entries of a benchmark into documents of a project and rows of a dataset.

The parser of each format is in ``graphrag.eval.dataset.benchmarks``.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from graphrag.eval.dataset.benchmarks import (
    FORMATS,
    NO_DOCUMENT,
    NOT_IN_DOCUMENT,
    Document,
    Reading,
    Row,
    Support,
    read_entries,
)
from graphrag.eval.dataset.dataset_reader import parse_sample
from graphrag.eval.errors import DatasetError
from graphrag.eval.metrics.quote_matching import QuotableTexts, read_quote
from graphrag.text.accepted_answers import fold_wording, join_answers

_REPEATED = "Questions that are there again, asked once"
_MERGED = "Questions that are there again with another answer, asked once: each answer is accepted"
_CONTRADICTED = "Questions that are there again, with an answer or without one, left out"
_SAME_ID = "Questions with the id of another one, which lose it"
_NO_TEXT = "Passages without text, left out"
_UNUSABLE = "Questions that no run could ask, left out"


class Import:
    """The ``documents`` (file name -> document) and dataset ``rows`` made from a benchmark's files.

    ``Import(name="musique", files=[path], limit=100)`` reads files of a format. ``limit``: most
    questions to take; None: all. ``reading`` has the problems, such as evidence that is in no
    document.
    """

    def __init__(self, name: str, files: Iterable[Path], limit: int | None = None) -> None:
        self.reading = Reading()
        self.documents: dict[str, Document] = {}
        self._by_passage = FORMATS[name].by_passage
        self._names: dict[tuple[str, str], str] = {}
        self._by_title: dict[str, list[str]] = {}
        self._quotable: dict[str, QuotableTexts] = {}
        pending: list[tuple[str, str, Row, list[Support]]] = []
        questions: set[str] = set()
        for where, entry in read_entries(name, files, self.reading):
            if entry.row is not None and "question" not in entry.row:
                self.reading.note(_UNUSABLE, f"{where}: it has no question")
            elif entry.row is not None:
                question = fold_wording(str(entry.row["question"]))
                if len(questions) == limit and question not in questions:
                    continue
                questions.add(question)
                pending.append((where, question, entry.row, [*entry.supports]))
            for problem, text in entry.problems:
                self.reading.note(problem, f"{where}: {text}")
            for document in entry.documents:
                self._add(document, where)
        rows: dict[str, Row] = {}
        ids: set[str] = set()
        for where, question, row, supports in pending:
            for support in supports:
                self._match(support, row, where)
            first = rows.setdefault(question, row)
            if first is not row:
                self._join(first, row, where)
            elif "id" in row and str(row["id"]) in ids:
                self.reading.note(_SAME_ID, f"{where}: {row.pop('id')}")
            elif "id" in row:
                ids.add(str(row["id"]))
        self.rows = [row for row in rows.values() if self._can_be_asked(row)]

    def _join(self, first: Row, row: Row, where: str) -> None:
        """Add the content of a repeated question to its first row, and note the repetition."""
        if len({str(r["answer"]) for r in (first, row) if "answer" in r}) > 1:
            if False in (first.get("answerable"), row.get("answerable")):
                self.reading.note(_CONTRADICTED, where)
            else:
                first["answer"] = join_answers((str(first["answer"]), str(row["answer"])))
                self.reading.note(_MERGED, where)
        elif row.keys() - first.keys():  # assertions may come from a separate file
            first |= {**row, **first}
        else:
            self.reading.note(_REPEATED, where)

    def _can_be_asked(self, row: Row) -> bool:
        try:
            parse_sample({"answer": "", **row}, repr(str(row["question"])[:60]), only_key="-")
        except DatasetError as error:
            self.reading.note(_UNUSABLE, str(error))
            return False
        return True

    def _add(self, document: Document, where: str) -> None:
        key = _key(document)
        if not key[1]:
            self.reading.note(_NO_TEXT, where)
        elif key not in self._names:
            # A name of title and digest: the order of a file may show which passages answer.
            words = re.sub(r"\W+", "_", document.title or document.text[:60])[:40]
            digest = hashlib.blake2b(repr(key).encode(), digest_size=6).hexdigest()
            name = f"{words}_{digest}.txt".lstrip("_")
            self._names[key] = name
            self.documents[name] = document
            self._quotable[name] = QuotableTexts([document.text])
            self._by_title.setdefault(key[0], []).append(name)

    def _match(self, support: Support, row: Row, where: str) -> None:
        """Add the evidence that a row's documents contain, and note the evidence that they lack."""
        document, quote = support
        if isinstance(document, str):
            title, names = document, self._by_title.get(fold_wording(document), [])
        else:
            title, name = document.title, self._names.get(_key(document))
            names = [] if name is None else [name]
        if not names:
            self.reading.note(NO_DOCUMENT, f"{where}: {title!r}")
        elif isinstance(document, str) and quote:
            needle = read_quote(quote)
            names = [name for name in names if self._quotable[name].rows_with(needle)]
            if not names:
                self.reading.note(NOT_IN_DOCUMENT, f"{where}: {quote[:60]!r} in {title!r}")
        lists = {"expected_sources": names} if self._by_passage else {}
        lists |= {"evidence" if names else "unmatched_evidence": [quote]} if quote else {}
        for field, texts in lists.items():
            items = row.get(field)
            if texts:
                row[field] = [*dict.fromkeys([*(items if isinstance(items, list) else ()), *texts])]


def _key(document: Document) -> tuple[str, str]:
    return fold_wording(document.title), " ".join(document.text.split())
