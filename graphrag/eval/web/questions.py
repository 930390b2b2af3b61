"""Prepares the questions of a run's page: the list, and the details of each question.

Contexts are large and similar: the same lines of an index's tables are in many of them. Each line
is in the page once, and a context is a list of line numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.citations import cited_sources
from graphrag.eval.report.run_tables import name_cause
from graphrag.eval.results.run_figures import Figures
from graphrag.eval.results.scored_rows import state_of
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.outcomes import State
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import KeptCalls, QueryResult, ReadCalls, ReadWhole
from graphrag.query.client.usage import Usage
from graphrag.text.search_trace import Step, first_read

Json: TypeAlias = dict[str, object]
MOST_CONTEXT_CHARACTERS = 24_000_000
"""The most characters of distinct context lines in a page; later contexts are left out."""


def trace_answers(figures: Figures) -> dict[tuple[str, str], Json]:
    """Return (question's id, method) -> where its evidence was lost, if it was traced.

    ``end`` is the category of the answer, ``lost`` the stage at which its evidence was lost, if it
    was. ``rank`` is the rank of the first expected source, ``share`` the share of sources found;
    None if not measured.
    """
    if not any(record.n_evidence for _, record in figures.traced):
        return {}
    return {
        (measured.sample_id, measured.method): {
            "end": record.end,
            "rank": round(1 / mrr) if (mrr := measured.values.get("mrr")) else None,
            "share": measured.values.get("recall"),
            **({"lost": record.first_break} if record.first_break else {}),
        }
        for measured, record in figures.traced
    }


class _Lines:
    """Numbers the distinct lines of contexts, or pieces of calls, and passes on each new one.

    Only a hash of 64 bits is kept of each. With a million lines, two different ones are taken for
    the same in one of some 30 million pages.
    """

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give = give
        self._numbers: dict[int, int] = {}
        self._n_characters = 0

    def take(self, lines: Sequence[str]) -> list[int] | None:
        """Return the numbers of lines; None if the page would grow too large."""
        hashes = list(map(hash, lines))
        if not self._numbers.keys() >= set(hashes):
            new = {h: line for h, line in zip(hashes, lines, strict=True) if h not in self._numbers}
            size = sum(map(len, new.values()))
            if self._n_characters + size > MOST_CONTEXT_CHARACTERS:
                return None
            self._n_characters += size
            for digest, line in new.items():
                self._numbers[digest] = len(self._numbers)
                self._give(line)
        return list(map(self._numbers.__getitem__, hashes))


def list_questions(
    results: Sequence[QueryResult],
    samples: Iterable[Sample],
    metrics: Sequence[str],
    traces: Mapping[tuple[str, str], Json],
) -> list[Json]:
    """Return the values of each question in the list, JSON-ready.

    ``results`` are of every trial. ``samples``, for tags and evidence, may be empty. ``metrics``:
    see :func:`order_metrics`. ``traces``: see :func:`trace_answers`.
    """
    by_key = {(s.imdb_key, s.id): s for s in samples}
    listed: list[Json] = []
    for answers in by_question(results):
        first = answers[0]
        sample = by_key.get((first.imdb_key, first.sample_id))
        doubts = dict.fromkeys(result.doubt for result in answers if result.doubt)
        listed.append(
            {
                "id": first.sample_id,
                "film": first.imdb_key,
                "question": first.question,
                "truth": first.ground_truth,
                **({"doubt": " ".join(doubts)} if doubts else {}),
                "evidence": list(sample.expected_sources or sample.evidence) if sample else [],
                "tags": _tags(sample) if sample else [],
                "answers": [
                    _answer(result, metrics, traces.get((first.sample_id, result.method), {}))
                    for result in answers
                ],
            }
        )
    return listed


def detail_questions(
    questions: Sequence[Sequence[QueryResult]],
    metrics: Sequence[str],
    read_whole: ReadWhole,
    give_line: Callable[[str], None],
) -> Iterator[list[Json]]:
    """Yield the details of the answers to each question, JSON-ready.

    ``questions`` are from :func:`by_question`, ``metrics`` as in the list. ``read_whole``
    reads the results with their contexts. ``give_line`` is called with each new line of a context;
    the details refer to lines by their numbers.
    """
    full = iter(read_whole(result for answers in questions for result in answers))
    lines = _Lines(give_line)
    for answers in questions:
        yield [_detail(next(full), metrics, lines) for _ in answers]


def list_calls(
    questions: Sequence[Sequence[QueryResult]],
    read_calls: ReadCalls,
    give_piece: Callable[[str], None],
) -> Iterator[list[Sequence[Json]]]:
    """Yield the model calls behind the answers to each question.

    A text is a list of the numbers of its pieces, or False if the page would grow too large.
    """
    kept = iter(read_calls(result for answers in questions for result in answers))
    pieces = _Lines(give_piece)
    for answers in questions:
        yield [[_calls(calls, pieces) for calls in next(kept)] for _ in answers]


def _calls(calls: KeptCalls, pieces: _Lines) -> Json:
    def numbers(text: Sequence[str]) -> list[int] | bool:
        taken = pieces.take(text)
        return False if taken is None else taken

    return {
        "work": calls["work"],
        "exchanges": [
            {
                **exchange,
                "sent": [(role, numbers(text)) for role, text in exchange["sent"]],
                "settings": numbers(exchange["settings"]),
                "reply": None if exchange["reply"] is None else numbers(exchange["reply"]),
            }
            for exchange in calls["exchanges"]
        ],
    }


def order_metrics(results: Sequence[QueryResult], metrics: Sequence[str]) -> list[str]:
    """Return the metrics that were asked for, in their order, then others that were judged."""
    verdicts = [result.scores for result in results if result.failure is None]
    judged = [
        metric
        for metric in METRICS
        if metric in metrics or any(scores.get(metric).score is not None for scores in verdicts)
    ]
    judged.sort(key=lambda name: list(metrics).index(name) if name in metrics else len(metrics))
    return judged


def by_question(results: Sequence[QueryResult]) -> list[list[QueryResult]]:
    """Return the results of each question, by trial; questions with a doubted row are first."""
    by_key = grouped(((r.imdb_key, r.sample_id, r.question), r) for r in results)
    questions = [sorted(answers, key=lambda result: result.trial) for answers in by_key.values()]
    return sorted(questions, key=lambda answers: not any(result.doubt for result in answers))


def _tags(sample: Sample) -> list[str]:
    """Return the texts by which the question can be filtered, its own tags first."""
    columns = (column for column in sample.tags if column != "tags")
    others = (f"{column} = {v}" for column in columns for v in sample.values_of(column))
    answerable = () if sample.answerable else ("not answerable",)
    return [*sample.values_of("tags"), *others, *answerable]


def _answer(result: QueryResult, metrics: Sequence[str], trace: Json) -> Json:
    values: Json = {
        "method": result.method,
        "states": [_state(result, metric) for metric in metrics],
        "response": result.response,
        "latency": result.efficiency.latency,
        "tokens": result.efficiency.tokens,
        "cost": None if result.usage is None else result.usage.cost_usd,
    }
    if result.trial:
        values["trial"] = result.trial
    if result.abstained and result.failure is None:
        values["declined"] = True
    failures = (*([result.failure] if result.failure else ()), *result.scores.failures.values())
    if failures:
        values["causes"] = list(dict.fromkeys(map(name_cause, failures)))
    if not result.trial:
        values |= trace
    return values


def _state(result: QueryResult, metric: str) -> int | str:
    """Return 1, 0, or why there is no score."""
    score, state = result.scores.get(metric).score, state_of(result, metric)
    return score if state is State.SCORED and score is not None else state.value


def _detail(result: QueryResult, metrics: Sequence[str], lines: _Lines) -> Json:
    values: Json = {
        "reasons": [result.scores.get(metric).reason for metric in metrics],
        "context": lines.take(result.context_text.split("\n")) if result.context_text else [],
        **({"unknown": True} if result.context_text is None else {}),
        "phases": _phases(result.usage),
        "judge": _total(result.judge_usage),
    }
    if result.grades:
        values["grades"] = {name: dict(grade) for name, grade in result.grades.items()}
    if result.retrieved is not None and result.retrieved.walk:
        values["way"] = _way(result.retrieved.walk.steps, result.response)
    return values


def _way(steps: Sequence[Step], response: str) -> list[Json]:
    read = first_read(steps, cited_sources(response))
    return [
        {
            **{name: getattr(step, name) for name in step.__slots__},
            "cited": [number for number, call in read if call == step.call],
        }
        for step in steps
    ]


def _phases(usage: Usage | None) -> list[list[str | int]]:
    """Return name, calls, prompt and output tokens of each phase; empty if not counted."""
    if usage is None or not usage.is_counted:
        return []
    parts: tuple[Mapping[str, int], ...] = (
        usage.llm_calls_by_phase,
        usage.prompt_tokens_by_phase,
        usage.output_tokens_by_phase,
    )
    names = dict.fromkeys(name for part in parts for name in part)
    return [[name, *(part.get(name, 0) for part in parts)] for name in names]


def _total(usage: Usage | None) -> list[float | None] | None:
    if usage is None or not usage.is_counted:
        return None
    return [usage.llm_calls, usage.prompt_tokens, usage.output_tokens, usage.cost_usd]
