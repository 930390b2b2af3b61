"""Estimates the calls, tokens and dollars of each method of a run, for ``--dry-run``.

There are two estimates. The most that a run can take follows from the settings, retries left out.
Where the settings set no bound it is None, shown as "open": global and DRIFT search ask once for
each part of the index or follow-up, a user's own method as often as it likes. Only a model's
tokenizer knows how many tokens a text has, so the most assumes rather too many than too few. The
expected estimate assumes contexts as long as the texts of the index allow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, NamedTuple

from rich.console import Console

from graphrag.eval.config.sections import CONTROLS
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.claims import RULING_PROMPT, SPLIT_PROMPT
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.judge import JUDGED_METRICS, judgeable
from graphrag.eval.metrics.scorer import Scorer
from graphrag.eval.metrics.scorer_registry import SCORERS, list_further, list_pairs
from graphrag.eval.report.formatting import in_brackets, number
from graphrag.eval.report.run import describe_index_costs
from graphrag.eval.report.table import METHOD, Line, Table, show
from graphrag.eval.runner.custom_methods import MethodSet, answering_config
from graphrag.eval.runner.judging import FAITHFULNESS
from graphrag.eval.runner.preflight import answer_bound
from graphrag.eval.runner.run_setup import RunPlan
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.store.records import Unit
from graphrag.query.client.call_errors import asked_tier
from graphrag.query.client.model_prices import is_offline, list_prices, model_price
from graphrag.query.client.structured_output import own_bound
from graphrag.query.client.usage import sum_known
from graphrag.query.index.header import IndexHeader, model_name
from graphrag.query.methods import AGENTIC_ROUNDS, GRAPH_METHODS, count_passages
from graphrag.text.message_phrases import counted, join_names

_UNBOUND = "not bounded by the settings"
_OF_GRAPH, _OF_LOCAL = 6, 3
"""How many times smaller the graph's rows in a context are than all text of the index: with methods
on the graph, and with local search."""
_LOCAL_FILLS = 0.6
_AROUND_A_TEXT = 10
"""Tokens of a quote or an assertion in a list, in addition to its words."""
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Reckoning:
    """Assumptions for estimating tokens: how long texts, prompts and answers are.

    - ``bytes_a_token``: bytes of UTF-8 in a token.
    - ``as_table``: how many times longer a context gets when quotes in its cells are doubled.
    - ``as_json``: how many times longer a text gets when its quotes and line breaks are escaped.
    - ``around``: tokens of a call besides its texts: the form of the message, and the shape of a
      judge's reply.
    - ``instructions``, ``of_graph``, ``step``: tokens of the built-in instructions of a search, of
      a search on the graph, and of a call of ToG that may go on.
    - ``answer``, ``reply``: tokens of an answer and of a judge's reply; None: as many as the
      settings allow.
    """

    bytes_a_token: int
    as_table: float
    as_json: float
    around: int
    instructions: int
    of_graph: int
    step: int
    answer: int | None = None
    reply: int | None = None

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of a text."""
        return len(text.encode()) // self.bytes_a_token + 1

    def judging(self, prompt: str, n_read: int) -> int:
        """Return the prompt tokens of a verdict; ``n_read``: tokens of the texts it reads."""
        return self.count(prompt) + self.around + int(n_read * self.as_json)

    def field_tokens(
        self, sample: Sample, answer: int, context: int, other: int = 0
    ) -> dict[str, int]:
        """Return field -> tokens of the texts that a judge may read of a response.

        ``other``: tokens of the second answer, for a judge that compares two.
        """
        return {
            "question": self.count(sample.question),
            "ground_truth": self.count(sample.ground_truth),
            "predicted": answer,
            "answer": answer,
            "other": other,
            "context": context,
            "assertions": sum(self.count(a.text) + _AROUND_A_TEXT for a in sample.assertions),
        }


MOST = Reckoning(
    bytes_a_token=2,
    as_table=1.1,
    as_json=1.5,
    around=250,
    instructions=1_000,
    of_graph=1_000,
    step=1_000,
)
"""An upper bound: it puts two bytes into a token, and tokenizers put three or four."""
LIKELY = Reckoning(
    bytes_a_token=4,
    as_table=1.0,
    as_json=1.06,
    around=10,
    instructions=620,
    of_graph=340,
    step=560,
    answer=100,
    reply=50,
)
"""Expected: contexts as long as the texts allow, and answers of a short paragraph."""


class _Search(NamedTuple):
    """The calls and tokens of one search."""

    completions: int = 0
    embeddings: int = 0
    prompt: int = 0
    context: int = 0
    answer: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """The calls and tokens of a method's searches and of the verdicts on them; None: no bound.

    ``completions`` and ``embeddings`` are calls of the searches. ``searched`` and ``judged`` are
    prompt tokens of the searches and of the judge, ``answered`` and ``ruled`` their output tokens.
    ``context``: tokens of the longest context.
    """

    searches: int
    judge_calls: int
    ruled: int
    completions: int | None = None
    embeddings: int | None = None
    searched: int | None = None
    judged: int | None = None
    answered: int | None = None
    context: int = 0

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens of searches and verdicts; None if one of them has no bound."""
        return sum_known([self.searched, self.judged])


@dataclass(frozen=True, slots=True)
class DryRun:
    """An estimate of a planned run, by one set of assumptions (``reckoning``).

    ``units_of``: index -> tokens of its text units, the largest first. A context on an index named
    there is as long as these texts allow, on any other index as long as the settings allow.
    """

    plan: RunPlan
    methods: MethodSet
    reckoning: Reckoning
    units_of: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    _contexts: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def figures(self) -> dict[str, Figures]:
        """Return method -> its calls and tokens, without comparisons of two methods."""
        by_method = grouped((unit.method, unit) for unit in self.plan.units)
        return {name: self._reckon(units) for name, units in by_method.items()}

    @property
    def tiers(self) -> dict[str, str | None]:
        """Model -> the service tier that the settings ask for."""
        configs = [header.config for header in self.plan.headers.values()]
        models = [model for config in configs for model in config.completion_models.values()]
        return {model_name(model): asked_tier(model) for model in models}

    def comparisons(self) -> tuple[int, int]:
        """Return the calls and prompt tokens of the judges that compare two methods."""
        config, units, reckoning = self.plan.config, self.plan.units, self.reckoning
        pairs = list_pairs(config) if self.plan.judge is not None else ()
        answers = {
            (unit.sample.id, unit.method): (search.answer, search.context)
            for unit in (units if pairs else ())
            if (search := self._search(unit)) is not None
        }
        samples = {unit.sample.id: unit.sample for unit in units}.values()
        n_calls = n_tokens = 0
        for (scorer, a, b), sample in product(pairs, samples):
            if scorer.asks(sample):
                other, _ = answers.get((sample.id, b), (0, 0))
                read = reckoning.field_tokens(sample, *answers.get((sample.id, a), (0, 0)), other)
                n_calls += scorer.n_calls
                n_tokens += self._judging(scorer, read)
        return n_calls, n_tokens

    def dollars(self, method: str, figures: Figures) -> float | None:
        """Return the US dollars that a method's tokens cost.

        None if a price or the number of tokens is not known. Embeddings, and judges that compare
        two methods, are not included.
        """
        methods, judge = self.methods, self.plan.judge
        answering = {
            methods.models(name, header).get("completion")
            for name, header in methods.pairs(self.plan.headers)
            if name == method
        }
        models, tiers = [*answering, *([] if judge is None else [judge])], self.tiers
        prices = [model_price(m, figures.context, tiers.get(m)) for m in models if m]
        rates = [price for price in prices if price is not None]
        if len(rates) < len(models):
            return None
        if not any(price.prompt_usd or price.output_usd for price in rates):
            return 0.0  # however much is asked
        searched, judged, answered = figures.searched, figures.judged, figures.answered
        if searched is None or judged is None or answered is None:
            return None
        by = rates[: len(answering)]
        dearest = max((searched * p.prompt_usd + answered * p.output_usd for p in by), default=0.0)
        of_judge = (judged * p.prompt_usd + figures.ruled * p.output_usd for p in rates[len(by) :])
        return dearest + sum(of_judge)

    def _reckon(self, units: Sequence[Unit]) -> Figures:
        estimates = [(unit, self._search(unit)) for unit in units]
        searches = [search for _, search in estimates if search is not None]
        verdicts = [v for unit, s in estimates for v in self._judgings(unit, s or _Search())]
        n_judged = sum(calls for calls, _ in verdicts)
        ruled = n_judged * (self.reckoning.reply or self.plan.config.judge.max_output_tokens)
        if len(searches) < len(units):
            return Figures(searches=len(units), judge_calls=n_judged, ruled=ruled)
        return Figures(
            searches=len(units),
            judge_calls=n_judged,
            ruled=ruled,
            completions=sum(search.completions for search in searches),
            embeddings=sum(search.embeddings for search in searches),
            searched=sum(search.prompt for search in searches),
            judged=sum(tokens for _, tokens in verdicts),
            answered=sum(search.output for search in searches),
            context=max((search.context for search in searches), default=0),
        )

    def _search(self, unit: Unit) -> _Search | None:
        """Return the calls and tokens of one search; None if the settings set no bound."""
        config, methods, reckoning = self.plan.config, self.methods, self.reckoning
        if methods.function(unit.method) is not None:
            return None
        index = config.index_of(unit.sample.imdb_key, unit.method)
        header, question = self.plan.headers[index], reckoning.count(unit.sample.question)
        if unit.method in CONTROLS:
            own = own_bound(answering_config(header))
            most = config.max_output_tokens if own is None else own.tokens
            quotes = unit.sample.evidence if unit.method == "oracle" else ()
            context = sum(reckoning.count(quote) + _AROUND_A_TEXT for quote in quotes)
            answer = min(most, reckoning.answer or most)
            prompt = reckoning.instructions + reckoning.around + question + context
            return _Search(
                completions=1,
                embeddings=0,
                prompt=prompt,
                context=context,
                answer=answer,
                output=answer,
            )
        method, varied = methods.search_method(unit.method), methods.header(unit.method, header)
        section = varied.section(method)
        if method in ("global", "drift"):
            return None
        context, units = int(section.max_context_tokens * reckoning.as_table), self.units_of
        if index in units:
            context = self._contexts.get((index, unit.method), -1)
            if context < 0:
                context = _likely_context(method, section, units[index])
                self._contexts[index, unit.method] = context
        is_of_graph = method in GRAPH_METHODS
        least = reckoning.of_graph if is_of_graph else reckoning.instructions
        files = varied.prompt_files(method).values()
        own = sum(file.stat().st_size // reckoning.bytes_a_token for file in files)
        calls = AGENTIC_ROUNDS if method == "agentic" else 1
        prompt = calls * (max(least, own) + reckoning.around + question + context)
        n_embedded = 0
        if "embedding" in varied.model_configs(method):
            n_embedded = 1 if is_of_graph else calls
        if method == "tog":
            depth, step = int(section.depth), max(reckoning.step, own)
            if reckoning.answer:  # mostly one call goes on, which reads half as much
                prompt += step + reckoning.around + question + context // 2
            else:
                prompt += depth * (prompt - least + step)
            calls = 1 + depth
            n_embedded *= 1 + depth * int(section.width)
        most = answer_bound(unit.method, methods, header, config.max_output_tokens)
        answer = min(most, reckoning.answer or most)
        output = answer if reckoning.answer else calls * answer
        return _Search(
            completions=calls,
            embeddings=n_embedded,
            prompt=prompt,
            context=context,
            answer=answer,
            output=output,
        )

    def _judgings(self, unit: Unit, search: _Search) -> Iterator[tuple[int, int]]:
        """Yield the calls and the prompt tokens of each verdict on a response."""
        if self.plan.judge is None:
            return
        sample, config, reckoning = unit.sample, self.plan.config, self.reckoning
        judge = config.judge
        of_fields = reckoning.field_tokens(sample, search.answer, search.context)
        for name in judgeable(sample, config.metrics, config.judges_claims):
            if name == FAITHFULNESS and config.judges_claims:
                claims = judge.max_output_tokens  # those of the reply that splits
                claims = min(claims, 2 * search.answer) if reckoning.answer else claims
                split = reckoning.judging(SPLIT_PROMPT, of_fields["question"] + search.answer)
                read = reckoning.judging(RULING_PROMPT, search.context + claims)
                yield 2 * judge.repeats, judge.repeats * (split + read)
                continue
            metric = JUDGED_METRICS[name]
            read = sum(of_fields[field] for field in metric.fields)
            yield judge.repeats, judge.repeats * reckoning.judging(metric.prompt, read)
        for kind in list_further(config, [sample]):
            yield SCORERS[kind].n_calls, self._judging(SCORERS[kind], of_fields)

    def _judging(self, scorer: Scorer, of_fields: Mapping[str, int]) -> int:
        read = sum(of_fields[field] for field in scorer.reads) + scorer.n_further_tokens
        return scorer.n_calls * self.reckoning.judging(scorer.prompt, read)


def _likely_context(method: str, section: Any, units: Sequence[int]) -> int:
    """Return the tokens of a context with text units or passages, and rows of the graph.

    ``units``: tokens of each text unit, the largest first, because a long unit is found more often.
    """
    total, budget = sum(units), int(section.max_context_tokens)
    room = int(budget * section.text_unit_prop) if method == "local" else budget
    most = len(units) if method == "local" or method in GRAPH_METHODS else int(section.k)
    size, context = getattr(section, "passage_tokens", None), 0
    for n in islice(units, most):
        n_parts = count_passages(n, size)
        each = n // n_parts + _AROUND_A_TEXT
        fitting = min(n_parts, (room - context) // each)
        context += fitting * each
        if fitting < n_parts:  # what does not fit ends the context
            break
    if method == "local":
        return context + int(_LOCAL_FILLS * min(budget - context, total // _OF_LOCAL))
    return min(budget, context + (total // _OF_GRAPH if method in GRAPH_METHODS else 0))


async def count_units(headers: Mapping[str, IndexHeader]) -> dict[str, list[int]]:
    """Return index -> tokens of its text units, the largest first.

    Indexes without token counts of their text units are left out.
    """
    by_index: dict[str, list[int]] = {}
    for key, header in headers.items():
        if counts := (await IndexView.open(header, ("text_units",))).token_counts():
            by_index[key] = sorted(counts, reverse=True)
    return by_index


async def show_dry_run(console: Console, plan: RunPlan, unbuilt: Sequence[str]) -> None:
    """Print the expected and the most calls, tokens and dollars of a run; send nothing.

    ``unbuilt``: the keys of indexes that are not built. Only their settings are known.
    """
    built = {key: header for key, header in plan.headers.items() if key not in unbuilt}
    models, costs = plan.details.models, plan.details.index_costs
    methods = MethodSet(plan.config)
    run = DryRun(plan=plan, methods=methods, reckoning=MOST)
    expected = DryRun(
        plan=plan, methods=methods, reckoning=LIKELY, units_of=await count_units(built)
    )
    most, likely = run.figures(), expected.figures()
    n_compared, compared = run.comparisons()
    dollars = {name: run.dollars(name, figures) for name, figures in most.items()}
    likely_dollars = {name: run.dollars(name, figures) for name, figures in likely.items()}
    tokens = sum_known(figures.prompt_tokens for figures in most.values())
    completions = sum_known(figures.completions for figures in most.values())
    embeddings = sum_known(figures.embeddings for figures in most.values())
    calls = prompts = _UNBOUND
    if tokens is not None:
        full = "if every context and answer fills its budget"
        prompts = f"about {tokens + compared:,} {full}, retries aside"
    if completions is not None and embeddings is not None:
        calls = (
            f"at most {counted(completions, 'completion')} and "
            f"{counted(embeddings, 'embedding')}, retries aside"
        )
    judge_calls = sum(figures.judge_calls for figures in most.values()) + n_compared
    console.print(
        f"Dry run: nothing is sent.\n"
        f"Searches:         {len(plan.units):,}\n"
        f"Search calls:     {calls}\n"
        f"Judge calls:      {judge_calls:,}, retries aside\n"
        f"Expected:         {_expected(expected, likely, likely_dollars)}\n"
        f"Prompt tokens:    {prompts}\n"
        f"Dollars:          {_total(list(dollars.values()), models)}",
        soft_wrap=True,
    )
    lines = [
        "Expected: contexts are as long as the texts of the index allow, and answers have "
        f"{LIKELY.answer} tokens. Most: both are as long as the settings allow."
    ]
    if tokens is None or None in dollars.values():
        limit = "--max-cost bounds what calls to the models below cost."
        if None in map(model_price, models):
            limit = "--max-cost needs the price of each model, and --limit bounds the cost without."
        lines.append(f"open: the settings set no bound, or a price is not known. {limit}")
    columns = {
        "searches": [figures.searches for figures in most.values()],
        "search calls": [figures.completions for figures in most.values()],
        "judge calls": [figures.judge_calls for figures in most.values()],
        "expected tokens": [figures.prompt_tokens for figures in likely.values()],
        "most tokens": [figures.prompt_tokens for figures in most.values()],
    }
    cells = {
        name: [number(value, ",.0f", "open") for value in values]
        for name, values in columns.items()
    }
    if any(amount != 0 for amount in dollars.values()):
        for name, amounts in (("expected $", likely_dollars), ("most $", dollars)):
            cells[name] = [number(amount, ",.2f", "open") for amount in amounts.values()]
    title = "Expected and at most, by method"
    rows = list(zip(most, *cells.values(), strict=True))
    table = Table(
        title=title, columns=[METHOD, *((heading, "count") for heading in cells)], rows=rows
    )
    if unbuilt:
        one, named = len(unbuilt) == 1, join_names(unbuilt, most=_MOST_NAMED)
        lines.append(
            f"{'Index' if one else 'Indexes'} {named} {'is' if one else 'are'} not built, and "
            f"building {'it' if one else 'them'} is not in these figures. --max-cost does not "
            f"bound it. Contexts of {'it' if one else 'them'} are expected to be full."
        )
    lines += describe_index_costs({key: costs.get(key) for key in built})
    show(console, [table, *map(Line, lines)])
    console.print(f"Models:           {', '.join(models)}", soft_wrap=True)
    for model in models:
        console.print(_describe_price(model, run.tiers.get(model)), soft_wrap=True)


def _expected(
    run: DryRun, likely: Mapping[str, Figures], dollars: Mapping[str, float | None]
) -> str:
    """Return the expected tokens and dollars of all methods and comparisons, as text."""
    tokens = sum_known(figures.prompt_tokens for figures in likely.values())
    if tokens is None:
        return "not known, as the settings set no bound; see below"
    _, compared = run.comparisons()
    line = f"about {tokens + compared:,} prompt tokens"
    if usd := sum_known(dollars.values()):
        line += f" and ${usd:,.2f}{', comparisons aside' if compared else ''}"
    return f"{line}; an estimate, see below"


def _total(dollars: Sequence[float | None], models: Sequence[str]) -> str:
    if (usd := sum_known(dollars)) is None:
        return f"{_UNBOUND}, or a price is not known"
    if usd:
        return f"at most about {usd:,.2f}, comparisons and embeddings aside"
    if not all(p and not p.prompt_usd + p.output_usd for p in map(model_price, models)):
        return "0 besides embeddings, whose tokens are not known beforehand"
    return "0, as every model of the searches and the judge is free"


def _describe_price(model: str, tier: str | None) -> str:
    """Return the price of a model as one line."""
    if is_offline(model):
        return f"  {model}: free, runs here"
    prices = [
        f"${price.prompt_usd * 1e6:g} a million prompt tokens, ${price.output_usd * 1e6:g} a "
        "million output tokens"
        + (f" of calls with more than {above:,} prompt tokens" if above else "")
        for above, price in list_prices(model, tier)
    ]
    return f"  {model}{in_brackets(tier)}: {'; '.join(prices) or 'price not known'}"
