"""How much evidence each search method shows, of the questions of one project.

    python benchmarks/evidence.py PROJECT QUESTIONS [--imdb-key KEY] [--methods tog bm25 ...]

PROJECT is a GraphRAG project with the embedded models; its index is built where it is missing.
QUESTIONS is a JSON list of rows with ``question`` and either ``evidence`` (quotes of the texts),
``context`` (quotes that end in marks such as [3]), or only ``answer``: then a text unit counts that
holds every content word of the answer that is not in the question, where at most a tenth of the
text units do. Questions without such text units are left out; those that can't be answered too.

Methods, budgets and columns are those of multi_hop.py; a piece of evidence is a quote. It is shown
as far as its words stand in the context: of a quote the share of its words that stand there in runs
of five or more, or as the whole quote, whatever text units or passages they came in. Ranks are of
text units.
"""

import argparse
import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from multi_hop import Asked, Case, add_methods, show

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.metrics.evidence import quote_key
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.runner.index_building import build_index, is_built
from graphrag.query.graph_index import GraphIndex
from graphrag.text.stems import terms

MARK = re.compile(r"\[\d+\][\s,.]*")
Row = Mapping[str, object]


RUN = 5
"""Words of a quote that tell in a row that they were taken from it."""


@dataclass(frozen=True, slots=True)
class Quoted(Case):
    """A question and the quotes that are its evidence, beside the text units that hold them."""

    quotes: tuple[str, ...] = ()

    def recall(self, asked: Asked, k: int | None = None) -> float:
        """Return the mean share of the quotes' words that stand in the whole context."""
        if k is not None or not self.quotes:
            return Case.recall(self, asked, k)
        context = quote_key(asked.context)
        return sum(share_shown(quote, context) for quote in self.quotes) / len(self.quotes)


def share_shown(quote: str, context: str) -> float:
    """Return the share of a quote's words that stand in a context, in runs of five or more."""
    words = quote_key(quote).split()
    n = min(RUN, len(words))
    shown: set[int] = set()
    for start in range(len(words) - n + 1):
        if f" {' '.join(words[start : start + n])} " in context:
            shown.update(range(start, start + n))
    return len(shown) / len(words) if words else 0.0


def quotes_of(row: Row) -> tuple[str, ...]:
    """Return a row's quotes."""
    if evidence := row.get("evidence"):
        return (evidence,) if isinstance(evidence, str) else tuple(map(str, evidence))  # pyright: ignore
    return tuple(filter(None, map(str.strip, MARK.split(str(row.get("context") or "")))))


def cases_of(rows: Sequence[Row], view: IndexView) -> tuple[list[Case], int]:
    """Return the questions with known evidence, and of how many it is quoted."""
    words = {unit: set(terms(text)) for unit, text in view.texts.items()}
    quoted: list[Case] = []
    answered: list[Case] = []
    for row in rows:
        question = str(row["question"])
        if row.get("answerable", True) is False:
            continue
        if quotes := quotes_of(row):
            sample = Sample("", "", question, "", evidence=quotes)
            found = tuple(frozenset(e.unit_ids) for e in view.evidence_of(sample) if e.unit_ids)
            held = tuple(quote for quote in quotes if view.sources.units_with(quote))
            quoted += [Quoted(question, found, held)] if found else []
            continue
        told = set(terms(str(row["answer"]))) - set(terms(question))
        units = frozenset(unit for unit, said in words.items() if told and told <= said)
        answered += [Case(question, (units,))] if 0 < len(units) <= len(words) / 10 else []
    return quoted + answered, len(quoted)


async def main(given: argparse.Namespace) -> None:
    """Build or open the index, ask, and print."""
    if not is_built(given.project):
        print(f"index built in {await build_index(given.project, lambda _: None):.0f} s")
    index = await GraphIndex.open(given.project)
    view = IndexView(index.tables)
    rows = json.loads(given.questions.read_text(encoding="utf-8"))
    rows = [row for row in rows if given.imdb_key in (None, row.get("imdb_key"))]
    cases, n_quoted = cases_of(rows, view)
    print(
        f"{given.project}: {len(view.texts):,} text units; {len(cases)} of {len(rows)} questions,"
        f" {n_quoted} of them with quotes\n",
        flush=True,
    )
    await show(index, given.methods, sorted(given.budgets), cases)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("project", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--imdb-key", help="the rows with this key only")
    add_methods(parser)
    asyncio.run(main(parser.parse_args()))
