"""BM25's recall on a set whose figure is published, beside that figure.

    python benchmarks/published.py FILE...

FILE is {"passages": ["title\\ntext", ...], "questions": [{"q": text, "gold": [places of
passages]}, ...]}; or FILE... are the questions and the corpus as HippoRAG's repository has them
(musique.json musique_corpus.json), or any that `graphrag eval import` reads as such. A name with
musique, 2wiki or hotpot in it tells the set.

Recall@k is the mean share of a question's gold passages among the k that the project's own BM25
ranks first. The published figures are BM25's in HippoRAG (Gutierrez et al., NeurIPS 2024), of
1,000 questions of each set over all their passages: of fewer passages recall is higher.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from graphrag.eval.runner.benchmark_import import Import
from graphrag.text.ranking import WordIndex

FULL = 1_000
TOLERANCE = 4.0
PUBLISHED = {
    "2wiki": ("2wikimultihopqa", 51.8, 61.9),
    "musique": ("musique", 32.3, 41.2),
    "hotpot": ("hotpotqa", 55.4, 72.2),
}


def read(files: list[Path], format: str) -> tuple[list[str], list[tuple[str, set[int]]]]:
    """Return the passages, and each question with the places of those that answer it."""
    whole = json.loads(files[0].read_text("utf-8")) if files[0].suffix == ".json" else None
    if isinstance(whole, dict) and "passages" in whole:
        return whole["passages"], [(row["q"], {*row["gold"]}) for row in whole["questions"]]
    result = Import(format, files)
    for problem, places in result.reading.problems.items():
        print(f"{problem}: {len(places):,} ({places[0]})")
    at = {name: place for place, name in enumerate(result.documents)}
    rows = [cast("Mapping[str, Any]", row) for row in result.rows]
    cases = [(str(row["question"]), row.get("expected_sources", [])) for row in rows]
    passages = [f"{each.title}\n{each.text}" for each in result.documents.values()]
    return passages, [(q, {at[name] for name in names}) for q, names in cases if names]


def main(files: list[Path]) -> None:
    """Rank, and print."""
    named = [figures for word, figures in PUBLISHED.items() if word in files[0].name.lower()]
    if not named:
        raise SystemExit(f"The name of the file tells no set: {', '.join(PUBLISHED)}.")
    format, *published = named[0]
    passages, cases = read(files, format)
    index = WordIndex.of(passages)
    ranked = [[place for place, _ in index.best(question, 5)] for question, _ in cases]
    print(f"{format}: {len(cases):,} questions, {len(passages):,} passages; published of {FULL:,}")
    print("|  | BM25 here % | published % | difference |\n|---|---:|---:|---:|")
    for k, figure in zip((2, 5), published, strict=True):
        shares = [
            len(gold & {*best[:k]}) / len(gold)
            for best, (_, gold) in zip(ranked, cases, strict=True)
        ]
        here = 100 * sum(shares) / len(shares)
        print(f"| recall@{k} | {here:.1f} | {figure} | {here - figure:+.1f} |")
        if len(cases) == FULL and abs(here - figure) > TOLERANCE:
            raise SystemExit(f"recall@{k} is more than {TOLERANCE} points from what is published.")
    if len(cases) != FULL:
        print(f"This is not the full set of {FULL:,} questions: the figures can't be compared.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    main(parser.parse_args().files)
