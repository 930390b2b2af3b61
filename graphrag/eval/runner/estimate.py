"""What a run will ask: reckoned from the budgets, or measured in earlier runs."""

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
    found = {method: Measured() for method in setup.methods}
    for run in store.runs():
        methods = [method for method in found if _is_alike(run, setup, method)]
        if not methods or run.setup.responses_of is not None:
            continue
        unit_methods: dict[str, str] = {}
        for unit, response in store.responses(run.run_id, with_texts=False).items():
            if response.method in methods and response.failure is None:
                unit_methods[unit] = response.method
                if response.usage.is_counted:
                    found[response.method].searches.append(response.usage)
        if all(run.setup.root.get(name) == setup.root.get(name) for name in _JUDGING):
            for unit, usage in _judgings_of_measured(store, run.run_id).items():
                if unit in unit_methods:
                    found[unit_methods[unit]].judgings.append(usage)
    return found


def _judgings_of_measured(store: EvaluationStore, run_id: str) -> dict[str, Usage]:
    """Return unit -> what its verdicts, rubric and quality took together."""
    usages = {unit: list(each) for unit, each in store.judge_usage(run_id).items()}
    for judged in store.judgements(run_id):
        if judged.subject in usages and not judged.kind.startswith("pairwise:"):
            usages[judged.subject].append(judged.usage)
    return {unit: sum_usages(each) for unit, each in usages.items()}


def _is_alike(run: Run, setup: RunSetup, method: str) -> bool:
    """Say whether a method had the same settings in a run, on an index of both."""
    if run.setup.is_of_suites or method not in run.setup.methods:
        return False
    if any(run.setup.root.get(name) != setup.root.get(name) for name in _SEARCHING):
        return False
    keys = run.setup.indexes.keys() & setup.indexes.keys()
    return bool(keys) and all(
        _settings(run.setup.indexes[key].get(method)) == _settings(setup.indexes[key][method])
        for key in keys
    )


def _settings(described: Mapping[str, object] | None) -> dict[str, object] | None:
    """Return a method's description without the content of the index."""
    return None if described is None else {k: v for k, v in described.items() if k != "index"}


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

    Attributes
    ----------
    bytes_a_token : int
        Of UTF-8.
    as_table, as_json : float
        How much longer a context gets when quotes in its cells are doubled, and a text when its
        quotes and line breaks are escaped.
    answer : int or None
        Tokens of an answer; None: as many as it may have.
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

    Attributes
    ----------
    searches, judge_calls : int
        Upper bounds.
    completion_calls, embedding_calls : int or None
        Of the searches, upper bounds. None when a method's settings set no bound: global
        and DRIFT search ask once for each part of the index or follow-up, a method of one's own as
        often as it likes.
    prompt_tokens : int or None
        All prompt tokens if every context and answer is as long as its setting allows, rather too
        many than too few: what a text takes is known to its model's tokenizer alone. None when
        the settings of a method set no bound.
    search_prompt_tokens : int or None
        Those of the searches among them.
    answer_tokens : int or None
        Output tokens of the searches if every reply is as long as an answer may be; None as
        the prompt tokens are.
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
    found = [(unit, _search(unit, config, headers, methods, reckoning)) for unit in units]
    known = [search for _, search in found if search is not None]
    is_bounded = len(known) == len(units)
    tokens = [search.prompt for search in known]
    n_searched = sum(tokens)
    pairs = config.judge.pairs(config.methods) if n_metrics else ()
    n_compared = len({unit.sample.id for unit in units}) * 2  # both orders
    if n_metrics:
        tokens += [
            n for unit, each in found if each for n in _judgings(unit, each, config, reckoning)
        ]
        tokens += _comparisons(found, pairs, reckoning)
    verdicts = (judgeable(unit.sample, config.metrics) for unit in units if n_metrics)
    n_verdicts = sum(map(len, verdicts))
    further = config.judge.rubric + config.judge.quality if n_metrics else 0
    return Estimate(
        len(units),
        sum(search.completions for search in known) if is_bounded else None,
        sum(search.embeddings for search in known) if is_bounded else None,
        n_verdicts * config.judge.repeats + len(units) * further + n_compared * len(pairs),
        sum(tokens) if is_bounded else None,
        n_searched if is_bounded else None,
        sum(search.completions * search.answer for search in known) if is_bounded else None,
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
    found: Sequence[tuple[Unit, _Search | None]],
    pairs: Sequence[tuple[str, str]],
    reckoning: Reckoning,
) -> Iterator[int]:
    """Yield the prompt tokens of holding the methods against each other, in both orders."""
    answers = {
        (unit.sample.id, unit.method): search.answer for unit, search in found if search is not None
    }
    for sample in {unit.sample.id: unit.sample for unit, _ in found}.values():
        for pair in pairs:
            read = sum(answers.get((sample.id, method), 0) for method in pair)
            read += reckoning.count(sample.question)
            yield 2 * _judging(PAIRWISE_PROMPT, read, reckoning)


def _judging(prompt: str, n_read: int, reckoning: Reckoning) -> int:
    return reckoning.count(prompt) + _AROUND + int(n_read * reckoning.as_json)
