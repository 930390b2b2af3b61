"""What a run will ask: reckoned from the budgets, or measured in earlier runs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import CONTROLS
from graphrag.eval.runner.checks import answer_bound
from graphrag.eval.runner.methods import MethodSet, answering_config
from graphrag.eval.scorers.judge import JUDGED_METRICS, judgeable
from graphrag.eval.scorers.pairwise import PAIRWISE_PROMPT
from graphrag.eval.scorers.quality import QUALITY_PROMPT
from graphrag.eval.scorers.rubric import RUBRIC_PROMPT
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, RunSetup, Unit
from graphrag.query.index_header import IndexHeader
from graphrag.query.methods import AGENTIC_ROUNDS, LEAST_SCORING, SCORING_SHARE, embeds
from graphrag.query.output import own_bound
from graphrag.query.usage import Usage, sum_usages

_SEARCHING = ("max_output_tokens", "equal_terms")
_JUDGING = ("judge", "metrics", "further")


@dataclass(slots=True)
class Measured:
    """What was measured of one method: a usage for each answer, and for each that was judged."""

    searches: list[Usage] = field(default_factory=list[Usage])
    judgings: list[Usage] = field(default_factory=list[Usage])


def mean_tokens(usages: list[Usage]) -> float:
    """Return the mean prompt tokens of completions; raises StatisticsError without any."""
    return fmean(usage.prompt_tokens for usage in usages)


def mean_usd(usages: list[Usage]) -> float | None:
    """Return the mean US dollars; None as soon as one is not known."""
    known = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
    return fmean(known) if len(known) == len(usages) else None


def read_measured(store: EvaluationStore, setup: RunSetup) -> dict[str, Measured]:
    """Return method -> what its earlier answers took, under the settings of a setup.

    The content of the index and the questions may have been others. Failed searches are left out,
    and so are the comparisons of two methods.
    """
    measured = {method: Measured() for method in setup.methods}
    for run in store.runs():
        methods = [method for method in measured if _is_alike(run, setup, method)]
        if not methods or run.setup.responses_of is not None:
            continue
        unit_methods: dict[str, str] = {}
        for unit, response in store.responses(run.run_id, with_texts=False).items():
            if response.method in methods and response.failure is None:
                unit_methods[unit] = response.method
                if response.usage.is_counted:
                    measured[response.method].searches.append(response.usage)
        if all(run.setup.root.get(name) == setup.root.get(name) for name in _JUDGING):
            further = defaultdict[str, list[Usage]](list)
            for judgement in store.judgements(run.run_id):
                if not judgement.kind.startswith("pairwise:"):
                    further[judgement.subject].append(judgement.usage)
            for unit, usages in store.judge_usage(run.run_id).items():
                if unit in unit_methods:
                    whole = sum_usages([*usages, *further[unit]])
                    measured[unit_methods[unit]].judgings.append(whole)
    return measured


def _is_alike(run: Run, setup: RunSetup, method: str) -> bool:
    """Say whether a method had the same settings in a run, on an index of both."""
    if run.setup.is_of_suites or method not in run.setup.methods:
        return False
    if any(run.setup.root.get(name) != setup.root.get(name) for name in _SEARCHING):
        return False

    def settings(of: RunSetup, key: str) -> dict[str, object] | None:
        described = of.indexes[key].get(method)
        return None if described is None else {**described, "index": None}

    keys = run.setup.indexes.keys() & setup.indexes.keys()
    return bool(keys) and all(settings(run.setup, key) == settings(setup, key) for key in keys)


_INSTRUCTIONS = 1_000
"""Tokens of a search's own instructions: the built-in ones take 400 to 700."""
TYPICAL_ANSWER = 300
"""Tokens of an answer of some paragraphs."""
_AROUND = 250
"""Tokens of a call beside its texts: the message's form, and the shape of a judge's reply."""
_RUBRIC_LISTS = 1_000
"""Tokens of the names, ids and keys in what the rubric's judge reads, beside the context."""


@dataclass(frozen=True, slots=True)
class Reckoning:
    """How texts are reckoned in tokens.

    ``bytes_a_token``: of UTF-8. ``as_table``, ``as_json``: how much longer a context gets when
    quotes in its cells are doubled, and a text when its quotes and line breaks are escaped.
    ``answer``: tokens of an answer; None: as many as it may have.
    """

    bytes_a_token: int
    as_table: float
    as_json: float
    answer: int | None = None

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return len(text.encode()) // self.bytes_a_token + 1


MOST = Reckoning(2, 1.1, 1.5)
"""More tokens than a text takes: tokenizers give a token to three or four bytes."""
TYPICAL = Reckoning(4, 1.0, 1.1, TYPICAL_ANSWER)
"""About what it takes where every context fills its budget."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will ask, from its settings alone; retries are left out.

    What a method's settings set no bound for is None: global and DRIFT search ask once for each
    part of the index or follow-up, a method of one's own as often as it likes. What a text takes
    is known to its model's tokenizer alone, so that tokens are rather too many than too few.

    Attributes
    ----------
    searches, judge_calls : int
        Upper bounds.
    completion_calls, embedding_calls : int or None
        Of the searches, upper bounds.
    prompt_tokens, search_prompt_tokens : int or None
        Of all calls, and of the searches' among them, if every context and answer is as long as
        its setting allows.
    answer_tokens : int or None
        Output tokens of the searches if every reply is as long as an answer may be.
    """

    searches: int
    completion_calls: int | None
    embedding_calls: int | None
    judge_calls: int
    prompt_tokens: int | None
    search_prompt_tokens: int | None = None
    answer_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """One search: its calls, the tokens of their prompts, of the context and of an answer."""

    completions: int
    embeddings: int
    prompt: int
    context: int
    answer: int


def estimate(
    config: EvaluationConfig,
    units: Sequence[Unit],
    headers: Mapping[str, IndexHeader],
    methods: MethodSet,
    n_metrics: int,
    reckoning: Reckoning = MOST,
) -> Estimate:
    """Reckon what a run will ask; without verdicts where ``n_metrics`` is 0."""
    searches = [_search(unit, config, headers, methods, reckoning) for unit in units]
    known = [(u, s) for u, s in zip(units, searches, strict=True) if s is not None]
    is_bounded = len(known) == len(units)
    n_searched = sum(search.prompt for _, search in known)
    n_judged = n_verdicts = n_further = n_compared = 0
    if n_metrics:
        pairs = config.judge.pairs(config.methods)
        answers = {(unit.sample.id, unit.method): search.answer for unit, search in known}
        n_judged = sum(n for each in known for n in _judgings(*each, config, reckoning))
        n_judged += sum(_comparisons(units, answers, pairs, reckoning))
        n_verdicts = sum(len(judgeable(unit.sample, config.metrics)) for unit in units)
        n_further = len(units) * (config.judge.rubric + config.judge.quality)
        n_compared = len({unit.sample.id for unit in units}) * 2 * len(pairs)  # both orders

    def bounded(n: int) -> int | None:
        return n if is_bounded else None

    return Estimate(
        len(units),
        bounded(sum(search.completions for _, search in known)),
        bounded(sum(search.embeddings for _, search in known)),
        n_verdicts * config.judge.repeats + n_further + n_compared,
        bounded(n_searched + n_judged),
        bounded(n_searched),
        bounded(sum(search.completions * search.answer for _, search in known)),
    )


def _search(
    unit: Unit,
    config: EvaluationConfig,
    headers: Mapping[str, IndexHeader],
    methods: MethodSet,
    reckoning: Reckoning,
) -> _Search | None:
    """Return what a search asks and gives; None when its settings don't say."""
    if methods.function(unit.method) is not None:
        return None
    header, question = headers[unit.sample.imdb_key], reckoning.count(unit.sample.question)
    if unit.method in CONTROLS:
        own = own_bound(answering_config(header))
        answer = config.max_output_tokens if own is None else own.tokens
        quotes = unit.sample.evidence if unit.method == "oracle" else ()
        context = sum(reckoning.count(quote) + 10 for quote in quotes)
        answer = min(answer, reckoning.answer or answer)
        return _Search(1, 0, _INSTRUCTIONS + _AROUND + question + context, context, answer)
    method, varied = methods.search_method(unit.method), methods.header(unit.method, header)
    section: Any = varied.section(method)
    if method in ("global", "drift"):
        return None
    context = int(section.max_context_tokens * reckoning.as_table)
    files = varied.prompt_files(method).values()
    instructions = max(
        _INSTRUCTIONS, sum(file.stat().st_size // reckoning.bytes_a_token for file in files)
    )
    calls = AGENTIC_ROUNDS if method == "agentic" else 1
    prompt = calls * (instructions + _AROUND + question + context)
    n_embedded = calls if embeds(method) else 0
    if method == "tog" and section.mode == "explore":
        depth, read = int(section.depth), max(LEAST_SCORING, context // SCORING_SHARE)
        calls, prompt = 1 + depth, prompt + depth * (instructions + _AROUND + question + read)
    answer = answer_bound(unit.method, methods, header, config.max_output_tokens)
    answer = min(answer, reckoning.answer or answer)
    return _Search(calls, n_embedded, prompt, context, answer)


def _judgings(
    unit: Unit, search: _Search, config: EvaluationConfig, reckoning: Reckoning
) -> Iterator[int]:
    """Yield the prompt tokens of each verdict, rubric and quality of a response."""
    sample = unit.sample
    material = {
        "question": reckoning.count(sample.question),
        "ground_truth": reckoning.count(sample.ground_truth),
        "predicted": search.answer,
        "answer": search.answer,
        "context": search.context,
    }
    for name in judgeable(sample, config.metrics):
        metric = JUDGED_METRICS[name]
        read = sum(material[field] for field in metric.fields)
        yield config.judge.repeats * _judging(metric.prompt, read, reckoning)
    read = material["question"] + search.answer + search.context
    if config.judge.rubric:
        yield _judging(RUBRIC_PROMPT, read + _RUBRIC_LISTS, reckoning)
    if config.judge.quality:
        yield _judging(QUALITY_PROMPT, read + material["ground_truth"], reckoning)


def _comparisons(
    units: Sequence[Unit],
    answers: Mapping[tuple[str, str], int],
    pairs: Sequence[tuple[str, str]],
    reckoning: Reckoning,
) -> Iterator[int]:
    """Yield the prompt tokens of holding the methods against each other, in both orders."""
    for sample in {unit.sample.id: unit.sample for unit in units}.values():
        for pair in pairs:
            read = sum(answers.get((sample.id, method), 0) for method in pair)
            read += reckoning.count(sample.question)
            yield 2 * _judging(PAIRWISE_PROMPT, read, reckoning)


def _judging(prompt: str, n_read: int, reckoning: Reckoning) -> int:
    return reckoning.count(prompt) + _AROUND + int(n_read * reckoning.as_json)
