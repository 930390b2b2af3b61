"""Whether questions belong to their documents, and what their evidence is worth."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.scorers.evidence import Evidence, phrase_key
from graphrag.eval.scorers.index_view import IndexView

if TYPE_CHECKING:
    from graphrag.query.index_header import IndexHeader

_NAME = re.compile(r"(?<=[a-z,;] )([^\W\d_a-z]\w+)")
_FEWEST_NAMES = 3
_NAMES_BELOW = 0.35
_FEWEST_QUOTES = 3
_HALF = 0.5
_SHOWN = 80
_MOST_UNITS = 5_000
"""The most text units that are read word by word; of more, every second, third, ..."""


@dataclass(frozen=True, slots=True)
class _Quoted:
    """The evidence of the questions of one index, looked up in one index."""

    n_questions: int
    n_items: int
    lacking: list[tuple[Sample, Evidence]]

    @property
    def n_held(self) -> int:
        return self.n_items - len(self.lacking)

    @property
    def share(self) -> float | None:
        """Of what is held; None of too few to tell."""
        return self.n_held / self.n_items if self.n_items >= _FEWEST_QUOTES else None


async def list_data_warnings(
    samples: Sequence[Sample], headers: "Mapping[str, IndexHeader]"
) -> list[str]:
    """Warn of evidence that the texts do not hold, and of questions about something else.

    ``headers`` are those of every index that is asked. An index is opened for each look and not
    kept, as all together may be large.

    Notes
    -----
    Questions seem to belong elsewhere, by the first of two signs that says anything: at least half
    of three or more quotes stand in another index's text and less than half in their own; less than
    35 % of three or more names (capitalised words that begin no sentence) occur in the index.
    """
    asked = {key: [s for s in samples if s.imdb_key == key] for key in headers}
    quoted = {key: await _look_up(asked[key], headers[key]) for key in headers}
    warnings = _describe_lacking([found for found in quoted.values() if found is not None])
    for key, found in quoted.items():
        share = None if found is None else found.share
        if share is not None and share >= _HALF:
            continue
        line = None
        if found is not None and share is not None:
            line = await _quoted_elsewhere(key, found, asked[key], headers)
        line = line or await _names_missing(key, asked[key], headers[key])
        warnings += [] if line is None else [line]
    return warnings


async def _look_up(samples: Sequence[Sample], header: "IndexHeader") -> _Quoted | None:
    """Look the evidence of samples up, None without any."""
    quoting = [sample for sample in samples if sample.expected_sources or sample.evidence]
    if not quoting:
        return None
    view = await IndexView.open(header, ("text_units", "documents"))
    if not view.has_text:
        return None
    items = [(sample, item) for sample in quoting for item in view.evidence_of(sample)]
    lacking = [(sample, item) for sample, item in items if not item.is_held]
    return _Quoted(len(quoting), len(items), lacking) if items else None


def _describe_lacking(found: Sequence[_Quoted]) -> list[str]:
    """Return a line for quotes, and one for sources, that their own texts do not hold."""
    n_questions = sum(quoted.n_questions for quoted in found)
    warnings: list[str] = []
    for is_source, what, then in (
        (
            False,
            "quote what their document does not hold",
            "these quotes are left out of the retrieval figures and of where answers were lost",
        ),
        (
            True,
            "expect a source that their index does not hold",
            "no search can have found these, and they count so",
        ),
    ):
        every = [each for quoted in found for each in quoted.lacking]
        lacking = [(s, item.text) for s, item in every if (item.kind == "source") is is_source]
        if lacking:
            asked = {(sample.imdb_key, sample.id): None for sample, _ in lacking}
            per_key = Counter(key for key, _ in asked)
            counts = ", ".join(f"{key} {n}" for key, n in per_key.items())
            where = "" if len(found) == 1 else f" ({counts})"
            sample, text = lacking[0]
            shown = " ".join(text.split())
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
            warnings.append(
                f"{len(asked)} of {n_questions} questions with evidence {what}{where}, e.g. "
                f"{sample.name}: {shown!r}; {then}"
            )
    return warnings


async def _quoted_elsewhere(
    key: str, own: _Quoted, samples: Sequence[Sample], headers: "Mapping[str, IndexHeader]"
) -> str | None:
    for other, header in headers.items():
        found = await _look_up(samples, header) if other != key else None
        if found is not None and (found.share or 0) >= _HALF:
            return (
                f"{key}: of the quotes in its questions {own.n_held} of {own.n_items} stand in its "
                f"own text, and {found.n_held} of {found.n_items} in that of {other}; are the "
                "documents swapped?"
            )
    return None


async def _names_missing(key: str, samples: Sequence[Sample], header: "IndexHeader") -> str | None:
    names = {
        word
        for sample in samples
        for name in _NAME.findall(f"{sample.question} , {sample.ground_truth}")
        for word in phrase_key(name).split()
    }
    if len(names) < _FEWEST_NAMES:
        return None
    entities = (await IndexView.open(header, ("entities",))).entities
    found = names & {word for entity in entities for word in phrase_key(entity.title).split()}
    if len(found) < _NAMES_BELOW * len(names):
        texts = list((await IndexView.open(header, ("text_units",))).texts.values())
        every = -(-len(texts) // _MOST_UNITS) or 1
        found |= names & {word for text in texts[::every] for word in phrase_key(text).split()}
    if len(found) >= _NAMES_BELOW * len(names):
        return None
    return (
        f"{key}: only {len(found)} of the {len(names)} names in its {len(samples)} questions occur "
        "in the index; are the documents swapped?"
    )
