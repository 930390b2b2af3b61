"""What Think-on-Graph finds for its tokens, against local and basic search, one change a row.

    python benchmarks/tog_economy.py --root FOLDER [--questions KEY ...] [--rows NAME ...]

FOLDER holds an ``eval_config.yaml`` whose questions quote their evidence, and whose indexes are
built; by default the shipped films. Every row is asked every question, in one run, without a judge.
A row is found when the text of a passage that holds the evidence was shown to the model that
answered: that a relationship taken from it was shown does not count. Hit rate is the share of
questions with any of their quotes shown, recall the mean share of the quotes. Both are of questions
whose quotes the documents hold; limits are at 95 % and by question.

Tokens are prompt and output tokens of all calls of a search, embedding left out, as the models
counted them. With the embedded models, what is asked does not hang on the answers, but when a check
says that it has found enough does.
"""

import argparse
import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from graphrag.eval import EvaluationConfig, EvaluationRunner
from graphrag.eval.dataset import Sample, read_samples
from graphrag.eval.measures import IndexView, read_index_views
from graphrag.eval.records import QueryResult
from graphrag.query.index_header import read_header

BEFORE = {"preset": "thorough", "passage_ranking": "paths", "max_scored_edges": None}
ROWS: dict[str, dict[str, Any]] = {
    "basic": {"method": "basic"},
    "local": {"method": "local"},
    "bm25, 8,000 tokens of context": {"method": "bm25", "k": 100, "max_context_tokens": 8000},
    "hybrid, 8,000 tokens of context": {"method": "hybrid", "k": 100, "max_context_tokens": 8000},
    "hybrid, 4,000 tokens of context": {"method": "hybrid", "k": 100, "max_context_tokens": 4000},
    "hybrid, 2,000 tokens of context": {"method": "hybrid", "k": 100, "max_context_tokens": 2000},
    "tog before": {"method": "tog", **BEFORE},
    "thorough": {"method": "tog", "preset": "thorough"},
    "thrifty": {"method": "tog"},
    "  2,000 tokens of context": {"method": "tog", "max_context_tokens": 2000},
    "  4,000 tokens of context": {"method": "tog", "max_context_tokens": 4000},
    "  30,000 tokens of context": {"method": "tog", "max_context_tokens": 30_000},
    "  texts behind paths": {"method": "tog", "passage_ranking": "paths"},
    "  edges by words": {"method": "tog", "prune_strategy": "bm25"},
    "  edges by vectors": {"method": "tog", "prune_strategy": "semantic"},
    "  30 edges by the model": {"method": "tog", "prune_strategy": "llm"},
    "  all edges by the model": {
        "method": "tog",
        "prune_strategy": "llm",
        "max_scored_edges": None,
    },
    "  a check at each depth": {"method": "tog", "check": "each_depth"},
    "  depth 1": {"method": "tog", "depth": 1},
    "  depth 2": {"method": "tog", "depth": 2},
    "  graph share 0.4": {"method": "tog", "graph_share": 0.4},
    "  graph share 0.2": {"method": "tog", "graph_share": 0.2},
}
Z = 1.959964


@dataclass(frozen=True, slots=True)
class Row:
    """One row's questions: share of quotes shown in [0, 1], tokens by phase, and calls."""

    recall: list[float]
    exploring: list[int]
    reasoning: list[int]
    calls: list[int]


def measure(
    results: Sequence[QueryResult], samples: dict[str, Sample], views: dict[str, IndexView]
) -> Row:
    """Measure one method's results; a failed search found nothing."""
    row = Row([], [], [], [])
    for result in results:
        usage = result.usage
        assert usage is not None
        exploring = sum(
            counts.get("exploration", 0)
            for counts in (usage.prompt_tokens_by_phase, usage.output_tokens_by_phase)
        )
        row.exploring.append(exploring)
        row.reasoning.append(usage.prompt_tokens + usage.output_tokens - exploring)
        row.calls.append(usage.llm_calls)
        view = views[result.imdb_key]
        wanted = [e for e in view.evidence_of(samples[result.sample_id]) if e.unit_ids]
        if wanted:
            shown = set(result.retrieved.shown_text_unit_ids if result.retrieved else ())
            row.recall.append(fmean(bool(e.unit_ids & shown) for e in wanted))
    return row


async def run(root: Path, names: Sequence[str], keys: Sequence[str]) -> dict[str, Row]:
    """Ask all questions of the chosen rows."""
    base = EvaluationConfig.from_yaml(root / "eval_config.yaml")
    methods = [{"name": f"r{n}", **ROWS[name]} for n, name in enumerate(names)]
    config = EvaluationConfig(
        dataset=base.dataset,
        indexes=base.indexes,
        output={"save_intermediate": False},
        methods=methods,
        metrics=(),
        root=base.root,
    )
    samples = [s for s in read_samples(root / base.dataset.path) if not keys or s.imdb_key in keys]
    outcome = await EvaluationRunner(config).run_evaluation(samples)
    headers = {key: await read_header(path) for key, path in config.project_folders().items()}
    views = await read_index_views(headers)
    of_sample = {sample.id: sample for sample in samples}
    return {
        name: measure([r for r in outcome if r.method == f"r{n}"], of_sample, views)
        for n, name in enumerate(names)
    }


def wilson(share: float, n: int) -> str:
    """Return a share of n with its 95 % limits (Wilson 1927), in percent."""
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return f"{100 * share:.1f} ({100 * (middle - half):.0f} to {100 * (middle + half):.0f})"


def main() -> None:
    """Read the arguments, ask and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--questions", nargs="*", default=[], help="of these indexes only")
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS))
    given = parser.parse_args()
    found = asyncio.run(run(given.root, given.rows, given.questions))
    print(
        f"{'':32}{'hit rate %':>18}{'recall %':>15}{'exploring':>10}{'reasoning':>10}"
        f"{'tokens':>8}{'calls':>6}"
    )
    for name, row in found.items():
        hits = fmean(share > 0 for share in row.recall)
        spread = Z * 100 * stdev(row.recall) / math.sqrt(len(row.recall))
        tokens = fmean(map(sum, zip(row.exploring, row.reasoning, strict=True)))
        print(
            f"{name:32}{wilson(hits, len(row.recall)):>18}"
            f"{100 * fmean(row.recall):9.1f} ±{spread:4.1f}{fmean(row.exploring):10,.0f}"
            f"{fmean(row.reasoning):10,.0f}{tokens:8,.0f}{fmean(row.calls):6.2f}"
        )


if __name__ == "__main__":
    main()
