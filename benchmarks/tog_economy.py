"""What Think-on-Graph finds for its tokens, against local and basic search, one change a row.

    python benchmarks/tog_economy.py --root FOLDER [--questions KEY ...] [--rows NAME ...]

FOLDER holds an ``eval_config.yaml`` whose questions quote their evidence, and whose indexes are
built; by default the shipped films. Every row is asked every question, without a judge.
A row is found when the text of a passage that holds the evidence was shown to the model that
answered: that a relationship taken from it was shown does not count. Hit rate is the share of
questions with any of their quotes shown, recall the mean share of the quotes. Both are of questions
whose quotes the documents hold; limits are at 95 % and by question.

Tokens are prompt and output tokens of all calls of a search, embedding left out, as the models
counted them. Begins alike is the part of the prompt tokens with which a call begins as an earlier
call of its search began, where these are 1,024 or more, in steps of 128: what a provider that keeps
prefixes in steps of that size could have read from its cache. It is counted here from what was
sent, and reported by nobody: whether a provider does it, and at what price, is not measured. With
the embedded models, what is asked does not hang on the answers, but when a check says that it has
found enough does.
"""

import argparse
import asyncio
import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from graphrag.eval import EvaluationConfig, EvaluationRunner
from graphrag.eval.dataset import Sample, read_samples
from graphrag.eval.measures import IndexView, read_index_views
from graphrag.eval.records import QueryResult
from graphrag.query.index_header import read_header
from graphrag.query.models import CountedCompletion
from graphrag.query.usage import CallLog, current_scope

# A prompt of one's own is shown each edge as an object with all of its fields.
OBJECTS = {
    "relation_scoring_prompt": str(Path(__file__).resolve().with_name("edge_objects_prompt.txt"))
}
BEFORE = {
    "preset": "thorough",
    "passage_ranking": "paths",
    "max_scored_edges": None,
    "stop_when_unimproved": False,
    **OBJECTS,
}
THOROUGH = {"method": "tog", "preset": "thorough"}
ALL_STARTS = {"start_ranking": ["descriptions", "texts", "words"]}
ROWS: dict[str, dict[str, Any]] = {
    "basic": {"method": "basic"},
    "local": {"method": "local"},
    "bm25, 8,000 tokens of context": {"method": "bm25", "k": 100, "max_context_tokens": 8000},
    "hybrid, 8,000 tokens of context": {"method": "hybrid", "k": 100, "max_context_tokens": 8000},
    "hybrid, 4,000 tokens of context": {"method": "hybrid", "k": 100, "max_context_tokens": 4000},
    "hybrid, 2,000 tokens of context": {"method": "hybrid", "k": 100, "max_context_tokens": 2000},
    "tog before": {"method": "tog", **BEFORE},
    "thorough": THOROUGH,
    "thorough, each walk to its end": {**THOROUGH, "stop_when_unimproved": False},
    "thorough, edges as objects": {**THOROUGH, **OBJECTS},
    "thorough, texts behind paths": {**THOROUGH, "passage_ranking": "paths"},
    "thorough, so, walks to the end": {
        **THOROUGH,
        "passage_ranking": "paths",
        "stop_when_unimproved": False,
    },
    "thorough, so, starts by all": {**THOROUGH, "passage_ranking": "paths", **ALL_STARTS},
    "thrifty": {"method": "tog"},
    "  2,000 tokens of context": {"method": "tog", "max_context_tokens": 2000},
    "  4,000 tokens of context": {"method": "tog", "max_context_tokens": 4000},
    "  30,000 tokens of context": {"method": "tog", "max_context_tokens": 30_000},
    "  texts behind paths": {"method": "tog", "passage_ranking": "paths"},
    "  edges by words": {"method": "tog", "prune_strategy": "bm25"},
    "  edges by vectors": {"method": "tog", "prune_strategy": "semantic"},
    "  30 edges by the model": {"method": "tog", "prune_strategy": "llm"},
    "  the same, edges as objects": {"method": "tog", "prune_strategy": "llm", **OBJECTS},
    "  the same, stop if unimproved": {
        "method": "tog",
        "prune_strategy": "llm",
        "stop_when_unimproved": True,
    },
    "  all edges by the model": {
        "method": "tog",
        "prune_strategy": "llm",
        "max_scored_edges": None,
    },
    "  a check at each depth": {"method": "tog", "check": "each_depth"},
    "  starts by texts' vectors, too": {
        "method": "tog",
        "start_ranking": ["descriptions", "texts"],
    },
    "  starts by words, too": {"method": "tog", "start_ranking": ["descriptions", "words"]},
    "  starts by all three": {"method": "tog", **ALL_STARTS},
    "  depth 1": {"method": "tog", "depth": 1},
    "  depth 2": {"method": "tog", "depth": 2},
    "  graph share 0.4": {"method": "tog", "graph_share": 0.4},
    "  graph share 0.2": {"method": "tog", "graph_share": 0.2},
}
Z = 1.959964
LEAST_PREFIX, PREFIX_STEP = 1024, 128


@dataclass(frozen=True, slots=True)
class Row:
    """One row's questions: share of quotes shown in [0, 1], tokens by phase, and calls.

    ``alike`` is the share in [0, 1] of all prompt tokens with which calls begin alike; None where
    no call went through a counted model.
    """

    recall: list[float]
    exploring: list[int]
    reasoning: list[int]
    calls: list[int]
    alike: float | None = None


class Prefixes:
    """How the calls of each search begin, as tokens of the model that was asked."""

    def __init__(self) -> None:
        self._searches: dict[int, tuple[CallLog, list[list[int]]]] = {}
        self._n_tokens = self._n_alike = 0

    @property
    def share(self) -> float | None:
        """Tokens with which calls begin alike, by all prompt tokens; None without a call."""
        return self._n_alike / self._n_tokens if self._n_tokens else None

    def add(self, scope: CallLog, tokens: list[int]) -> None:
        """Hold a call against the earlier ones of its search."""
        _, earlier = self._searches.setdefault(id(scope), (scope, []))
        alike = max((_count_alike(tokens, other) for other in earlier), default=0)
        self._n_tokens += len(tokens)
        self._n_alike += alike // PREFIX_STEP * PREFIX_STEP if alike >= LEAST_PREFIX else 0
        earlier.append(tokens)

    @contextmanager
    def watching(self) -> Generator[None]:
        """Add every completion that is asked for meanwhile."""
        ask = CountedCompletion.completion_async

        async def asked(model: CountedCompletion, /, **kwargs: Any) -> Any:
            scope = current_scope()
            if scope is not None:
                said = "".join(f"{m['role']}\n{m['content']}\n" for m in kwargs["messages"])
                self.add(scope, model.tokenizer.encode(said))
            return await ask(model, **kwargs)

        CountedCompletion.completion_async = asked
        try:
            yield
        finally:
            CountedCompletion.completion_async = ask


def _count_alike(first: Sequence[int], second: Sequence[int]) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))


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


async def run(root: Path, name: str, keys: Sequence[str]) -> Row:
    """Ask all questions of one row."""
    base = EvaluationConfig.from_yaml(root / "eval_config.yaml")
    config = EvaluationConfig(
        dataset=base.dataset,
        indexes=base.indexes,
        output={"save_intermediate": False},
        methods=[{"name": "row", **ROWS[name]}],
        metrics=(),
        root=base.root,
    )
    samples = [s for s in read_samples(root / base.dataset.path) if not keys or s.imdb_key in keys]
    prefixes = Prefixes()
    with prefixes.watching():
        outcome = await EvaluationRunner(config).run_evaluation(samples)
    headers = {key: await read_header(path) for key, path in config.project_folders().items()}
    views = await read_index_views(headers)
    row = measure(outcome, {sample.id: sample for sample in samples}, views)
    return replace(row, alike=prefixes.share)


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
    asyncio.run(show(parser.parse_args()))


async def show(given: argparse.Namespace) -> None:
    """Ask row by row, and print each when it is done."""
    print(
        f"{'':32}{'hit rate %':>18}{'recall %':>15}{'exploring':>10}{'reasoning':>10}"
        f"{'tokens':>8}{'calls':>6}{'begins alike %':>16}"
    )
    for name in given.rows:
        row = await run(given.root, name, given.questions)
        hits = fmean(share > 0 for share in row.recall)
        spread = Z * 100 * stdev(row.recall) / math.sqrt(len(row.recall))
        tokens = fmean(map(sum, zip(row.exploring, row.reasoning, strict=True)))
        alike = "-" if row.alike is None else f"{100 * row.alike:.1f}"
        print(
            f"{name:32}{wilson(hits, len(row.recall)):>18}"
            f"{100 * fmean(row.recall):9.1f} ±{spread:4.1f}{fmean(row.exploring):10,.0f}"
            f"{fmean(row.reasoning):10,.0f}{tokens:8,.0f}{fmean(row.calls):6.2f}{alike:>16}",
            flush=True,
        )


if __name__ == "__main__":
    main()
