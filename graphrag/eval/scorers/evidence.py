"""Where a sample's evidence stands in an index: quotes, documents and text units looked up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Literal

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.scorers.index_columns import texts_of
from graphrag.eval.scorers.quotes import JoinedTexts, QuotableTexts, Quote, fold_text, read_quote

if TYPE_CHECKING:
    import pandas as pd

MIN_PART = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """One expected source of a sample, looked up in an index.

    Attributes
    ----------
    text : str
        As the sample gives it.
    kind : {"document", "text_unit", "quote", "source"}
        Source: an expected one that is nothing that the index holds.
    unit_ids : frozenset of str
        The text units that hold it; empty when none does.
    in_source : bool or None
        Whether a document holds it; None for a quote that no text unit holds, of an index
        whose documents are not given.

    Notes
    -----
    A quote whose parts stand in one document, but in no text unit together, is an Evidence for
    each part.
    """

    text: str
    kind: Literal["document", "text_unit", "quote", "source"]
    unit_ids: frozenset[str]
    in_source: bool | None

    @property
    def is_held(self) -> bool:
        """Whether the text that is known holds it."""
        return bool(self.unit_ids) or self.in_source is True

    @property
    def counts(self) -> bool:
        """Whether a search is held to it: a quote that no text holds is a fault of the label."""
        return self.is_held or self.kind == "source"


class SourceIndex:
    """Finds evidence in the text of one index; texts are normalised once.

    Parameters
    ----------
    text_units : pandas.DataFrame or None
        ``id``, ``human_readable_id``, ``text``, ``document_id``; None: there are none.
    documents : pandas.DataFrame or None
        ``id``, ``title``, ``text``. Without them a source can't be named by its title.
    min_part : float
        The part of a quote's characters, in (0, 1], that a text unit at whose border the quote is
        cut must hold to count for it.

    Raises
    ------
    ValueError
        If `min_part` is outside (0, 1].
    """

    def __init__(
        self,
        text_units: "pd.DataFrame | None",
        documents: "pd.DataFrame | None" = None,
        min_part: float = MIN_PART,
    ) -> None:
        if not 0 < min_part <= 1:
            msg = f"min_part must lie in (0, 1], not {min_part}"
            raise ValueError(msg)
        self._min_part = min_part
        self._ids = texts_of(text_units, "id")
        unit_texts = texts_of(text_units, "text")
        self._units = QuotableTexts(unit_texts)
        self._by_name: dict[str, str] = {}
        for short, unit in zip(texts_of(text_units, "human_readable_id"), self._ids, strict=True):
            self._by_name.setdefault(short, unit)
        self._by_name.update((unit, unit) for unit in self._ids)
        of_document: dict[str, set[str]] = {}
        for document, unit in zip(texts_of(text_units, "document_id"), self._ids, strict=True):
            of_document.setdefault(document, set()).add(unit)
        self._documents = {name: frozenset(units) for name, units in of_document.items()}
        self._has_documents = documents is not None
        if documents is None:  # their units one after the other stand for them
            by_document: dict[str, list[str]] = {}
            for document, text in zip(texts_of(text_units, "document_id"), unit_texts, strict=True):
                by_document.setdefault(document, []).append(text)
            self._source = QuotableTexts(["\n".join(texts) for texts in by_document.values()])
        else:
            named = zip(texts_of(documents, "id"), texts_of(documents, "title"), strict=True)
            for document, title in named:
                units = frozenset(of_document.get(document, ()))
                self._documents[document] = units
                known = self._documents.get(fold_text(title), frozenset())
                self._documents[fold_text(title)] = known | units
            self._source = QuotableTexts(texts_of(documents, "text"))

    def evidence_of(self, sample: Sample) -> tuple[Evidence, ...]:
        """Return a sample's expected sources, or else its evidence quotes, looked up.

        An entry of ``expected_sources`` is the title or id of a document, the id or
        human_readable_id of a text unit, or else a quote. One that is none of these is a source
        that the index lacks, unless the sample gives it as a quote too. Empty when the sample names
        none.
        """
        if sample.expected_sources:
            quotes = {fold_text(quote) for quote in sample.evidence}
            return tuple(
                found
                if found.is_held or fold_text(entry) in quotes
                else replace(found, kind="source", in_source=False)
                for entry in sample.expected_sources
                if entry.strip()
                for found in self._look_up(entry)
            )
        return tuple(
            found for entry in sample.evidence if fold_text(entry) for found in self._quote(entry)
        )

    def units_of(self, document: str) -> frozenset[str] | None:
        """Return the ids of a document's text units; None when no document has the title or id."""
        return self._documents.get(document, self._documents.get(fold_text(document)))

    def units_with(self, quote: str) -> frozenset[str]:
        """Return the ids of the text units that hold a quote.

        Those that hold it as it is; when there are none, its words; else its parts, one after
        the other (:class:`Quote`); else those at whose border it is cut and that hold at least
        ``min_part`` of its characters, and those that lie inside it.
        """
        return self._units_with(read_quote(quote))

    def _units_with(self, quote: Quote) -> frozenset[str]:
        exact = self._units.rows_with_exactly(quote)
        if exact:
            return frozenset(self._ids[row] for row in exact)
        # What no document holds need not be looked for word by word, and at every border.
        if self._has_documents and not self._source.rows_with(quote):
            return frozenset()
        whole = self._units.rows_with(quote)
        if whole:
            return frozenset(self._ids[row] for row in whole)
        for form in quote.folded:
            if self._may_stand(form, self._source.folded):
                cut = frozenset(self._holding_part(form, self._units.folded))
                if cut:
                    return cut
        if quote.words and self._may_stand(quote.words, self._source.words):
            return frozenset(self._holding_part(quote.words, self._units.words))
        return frozenset()

    def _may_stand(self, wanted: str, source: JoinedTexts) -> bool:
        return not self._has_documents or next(source.rows_with(wanted), None) is not None

    def _look_up(self, entry: str) -> list[Evidence]:
        name = entry.strip()
        units = self.units_of(name)
        if units is not None:
            return [Evidence(entry, "document", units, in_source=True)]
        if name in self._by_name:
            unit = frozenset({self._by_name[name]})
            return [Evidence(entry, "text_unit", unit, in_source=True)]
        return self._quote(entry)

    def _quote(self, entry: str) -> list[Evidence]:
        quote = read_quote(entry)
        units = self._units_with(quote)
        if units:
            return [Evidence(entry, "quote", units, in_source=True)]
        if not self._source.rows_with(quote):
            unknown = None if not self._has_documents else False
            return [Evidence(entry, "quote", units, in_source=unknown)]
        if len(quote.parts) < 2:
            return [Evidence(entry, "quote", units, in_source=True)]
        return [
            Evidence(part, "quote", self._units_with(read_quote(part)), in_source=True)
            for part in quote.parts
        ]

    def _holding_part(self, wanted: str, texts: JoinedTexts) -> Iterable[str]:
        # The blank at which a quote is cut is in neither part.
        least = max(1, ceil(self._min_part * (len(wanted) - 1)))
        return (self._ids[row] for row in texts.rows_cutting(wanted, least))


def first_ranks(items: Sequence[Evidence], ranked: Sequence[str]) -> list[int | None]:
    """Return the rank, from 1, at which each item is first found; None when it is not."""
    rank_of: dict[str, int] = {}
    for rank, unit in enumerate(dict.fromkeys(ranked), 1):
        rank_of[unit] = rank
    found = [[rank_of[unit] for unit in item.unit_ids if unit in rank_of] for item in items]
    return [min(ranks) if ranks else None for ranks in found]
