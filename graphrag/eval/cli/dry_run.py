"""What ``graphrag eval --dry-run`` shows: calls, tokens and dollars, by method and in total."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Console

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.report.run_lines import describe_price
from graphrag.eval.report.run_tables import METHOD
from graphrag.eval.report.table import Line, Table, say, show
from graphrag.eval.runner.estimate import (
    MOST,
    TYPICAL,
    TYPICAL_ANSWER,
    Estimate,
    Measured,
    Reckoning,
    estimate,
    mean_tokens,
    mean_usd,
)
from graphrag.eval.runner.methods import MethodSet
from graphrag.eval.store.records import Unit
from graphrag.query.index_header import IndexHeader
from graphrag.query.model_facts import is_offline, model_price
from graphrag.text.phrases import counted

_OPEN = "open"


class Expected(NamedTuple):
    """What a method is expected to take, and what that is reckoned from; None: not known."""

    prompt_tokens: float | None
    dollars: float | None
    source: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """A run that is not made: what it would ask, by which models.

    ``n_metrics`` is 0 where no verdict is asked for; ``judge`` names the model that gives them.
    ``measured`` holds what earlier runs took, by method; ``unbuilt`` says what is not known of
    indexes that are not built, a line each.
    """

    config: EvaluationConfig
    units: Sequence[Unit]
    headers: Mapping[str, IndexHeader]
    methods: MethodSet
    models: Sequence[str]
    n_metrics: int
    judge: str | None
    measured: Mapping[str, Measured] = field(default_factory=dict[str, Measured])
    unbuilt: Sequence[str] = ()

    def estimate(self, method: str | None = None, reckoning: Reckoning = MOST) -> Estimate:
        """Return the most that is asked, of one method alone without what compares two."""
        given = (self.headers, self.methods, self.n_metrics, reckoning)
        if method is None:
            return estimate(self.config, self.units, *given)
        judge = self.config.judge.model_copy(update={"pairwise": False})
        config = self.config.model_copy(update={"judge": judge})
        units = [unit for unit in self.units if unit.method == method]
        return estimate(config, units, *given)

    def expect(self, method: str) -> Expected:
        """Return what earlier answers took, times the searches; else what fills the budgets."""
        reckoned = self.estimate(method, TYPICAL)
        told, n = self.measured.get(method, Measured()), reckoned.searches
        if not told.searches:
            return Expected(reckoned.prompt_tokens, self.dollars(method, reckoned), "budgets")
        tokens, usd = n * mean_tokens(told.searches), _times(n, mean_usd(told.searches))
        source = f"{counted(len(told.searches), 'answer')}"
        if not self.n_metrics:
            return Expected(tokens, usd, source)
        if told.judgings:
            judged = n * mean_tokens(told.judgings)
            of_judge = _times(n, mean_usd(told.judgings))
            source += f", {len(told.judgings):,} judged"
        else:
            source += ", verdicts from budgets"
            if reckoned.prompt_tokens is None or reckoned.search_prompt_tokens is None:
                return Expected(None, None, source)
            judged = reckoned.prompt_tokens - reckoned.search_prompt_tokens
            price = None if self.judge is None else _price(self.judge)
            of_judge = None if price is None else judged * price[0]
        both = None if usd is None or of_judge is None else usd + of_judge
        return Expected(tokens + judged, both, source)

    def dollars(self, method: str, most: Estimate) -> float | None:
        """Return what the tokens of a method cost at most; None where that is not known.

        Of the judge's replies and of embeddings nothing is in it.
        """
        answering = {
            self.methods.answering_model(method, header) for header in self.headers.values()
        }
        prices = [_price(model) for model in answering if model is not None]
        judging = (0.0, 0.0) if self.judge is None else _price(self.judge)
        if len(prices) != len(answering) or None in prices or judging is None:
            return None
        if not any(any(price) for price in (*prices, judging) if price is not None):
            return 0.0  # however much is asked
        if None in (most.prompt_tokens, most.search_prompt_tokens, most.answer_tokens):
            return None
        searched, answered = most.search_prompt_tokens or 0, most.answer_tokens or 0
        judged = (most.prompt_tokens or 0) - searched
        dearest = max(
            (searched * price[0] + answered * price[1] for price in prices if price is not None),
            default=0.0,
        )
        return dearest + judged * judging[0]


def show_dry_run(console: Console, run: DryRun) -> None:
    """Print the most that a run asks and what its tokens cost."""
    most = run.estimate()
    tokens = "not bounded by the settings"
    if most.prompt_tokens is not None:
        tokens = (
            f"about {most.prompt_tokens:,} if every context and answer fills its budget, "
            "retries aside"
        )
    calls = "not bounded by the settings"
    if most.completion_calls is not None:
        calls = (
            f"at most {counted(most.completion_calls, 'completion')} and "
            f"{counted(most.embedding_calls or 0, 'embedding')}, retries aside"
        )
    names = list(dict.fromkeys(unit.method for unit in run.units))
    by_method = {name: run.estimate(name) for name in names}
    expected = {name: run.expect(name) for name in names}
    dollars = {name: run.dollars(name, found) for name, found in by_method.items()}
    known = [amount for amount in dollars.values() if amount is not None]
    total = sum(known) if len(known) == len(dollars) else None
    say(
        console,
        f"Dry run: nothing is sent.\n{_budgets(run)}"
        f"Searches:         {most.searches:,}\n"
        f"Search calls:     {calls}\n"
        f"Judge calls:      {most.judge_calls:,}, retries aside\n"
        f"Expected:         {_expected(run, list(expected.values()))}\n"
        f"Prompt tokens:    {tokens}\n"
        f"Dollars:          {_total(total, run.models)}",
    )
    paid = any(amount != 0 for amount in dollars.values())
    headings = ["searches", "search calls", "judge calls", "expected tokens", "most tokens"]
    headings += [*(["expected $", "most $"] if paid else []), "expected from"]
    rows: list[list[str]] = []
    for name, found in by_method.items():
        spent = [_money(expected[name].dollars), _money(dollars[name])]
        rows.append(
            [
                *(name, f"{found.searches:,}", _count(found.completion_calls)),
                f"{found.judge_calls:,}",
                _count(expected[name].prompt_tokens),
                _count(found.prompt_tokens),
                *(spent if paid else []),
                expected[name].source,
            ]
        )
    title = "Expected and at most, by method"
    lines = [_describe_sources(list(expected.values()))]
    if None in dollars.values() or any(e.prompt_tokens is None for e in by_method.values()):
        lines.append(
            "open: the settings set no bound, or a price is not known. --max-cost bounds what a "
            "run spends, whatever it asks."
        )
    table = Table(title, [METHOD, *((heading, "count") for heading in headings)], rows)
    show(console, [table, *map(Line, (*lines, *run.unbuilt))])
    say(console, f"Models:           {', '.join(run.models)}")
    for model in run.models:
        say(console, describe_price(model))


def _expected(run: DryRun, expected: Sequence[Expected]) -> str:
    """Return what all methods are expected to take, with what compares two of them."""
    tokens = [each.prompt_tokens for each in expected if each.prompt_tokens is not None]
    dollars = [each.dollars for each in expected if each.dollars is not None]
    if len(tokens) < len(expected):
        return "not known, as the settings set no bound and no earlier run says; see below"
    names = list(dict.fromkeys(unit.method for unit in run.units))
    alone = [run.estimate(name, TYPICAL).prompt_tokens or 0 for name in names]
    compared = (run.estimate(reckoning=TYPICAL).prompt_tokens or sum(alone)) - sum(alone)
    said = f"about {sum(tokens) + compared:,.0f} prompt tokens"
    if len(dollars) == len(expected) and sum(dollars):
        said += f" and ${sum(dollars):,.2f}, comparisons aside" if compared else ""
        said += "" if compared else f" and ${sum(dollars):,.2f}"
    return f"{said}; an estimate, see below what it is from"


def _describe_sources(expected: Sequence[Expected]) -> str:
    said: list[str] = []
    if any("answer" in each.source for each in expected):
        said.append(
            "from answers: the mean of what answers of earlier runs here took, under the same "
            "settings"
        )
    if any("budgets" in each.source for each in expected):
        said.append(
            f"from budgets: as if every context were full and answers had {TYPICAL_ANSWER} tokens, "
            "as no earlier run says"
        )
    return f"Expected {'; '.join(said)}."


def _budgets(run: DryRun) -> str:
    """Return what budgets multiply, as a line; blank without any."""
    config = run.config
    if not config.budgets:
        return ""
    curves = config.curves
    at = {name for of_method in curves.values() for name in of_method.values()}
    once = [name for name in config.methods if name not in at]
    n = sum(unit.method in at for unit in run.units)
    listed = ", ".join(f"{budget:,}" for budget in config.budgets)
    told = f"{', '.join(once)} once; " if once else ""
    return (
        f"Budgets:          {listed} tokens of context; {', '.join(curves)} at each, {told}"
        f"{n:,} of the searches are at a budget\n"
    )


def _total(dollars: float | None, models: Sequence[str]) -> str:
    if dollars is None:
        return "not bounded by the settings, or a price is not known"
    if not dollars and any(_price(model) != (0.0, 0.0) for model in models):
        return "0 besides embeddings, whose tokens are not known beforehand"
    if not dollars:
        return "0, as every model of the searches and the judge is free"
    return f"about {dollars:,.2f}, the judge's replies, comparisons and embeddings aside"


def _times(n: int, value: float | None) -> float | None:
    return None if value is None else n * value


def _money(value: float | None) -> str:
    return _OPEN if value is None else f"{value:,.2f}"


def _count(value: float | None) -> str:
    return _OPEN if value is None else f"{value:,.0f}"


def _price(model: str) -> tuple[float, float] | None:
    """Return dollars a prompt token and an output token; None where they are not known."""
    if is_offline(model):
        return 0.0, 0.0
    price = model_price(model)
    return None if price is None else (price.prompt_usd, price.output_usd)
