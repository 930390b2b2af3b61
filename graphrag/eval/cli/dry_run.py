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

_UNBOUND = "not bounded by the settings"
_SOURCES = {
    "answer": "from answers: the mean of what answers of earlier runs here took, under the same "
    "settings",
    "budgets": f"from budgets: as if every context were full and answers had {TYPICAL_ANSWER} "
    "tokens, as no earlier run says",
}


class Expected(NamedTuple):
    """What a method is expected to take, and what that is reckoned from; None: not known."""

    prompt_tokens: float | None
    dollars: float | None
    source: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """A run that is not made: what it would ask.

    ``n_metrics`` is 0 where no verdict is asked for; ``judge`` names the model that gives them.
    ``measured`` holds what earlier runs took, by method.
    """

    config: EvaluationConfig
    units: Sequence[Unit]
    headers: Mapping[str, IndexHeader]
    methods: MethodSet
    n_metrics: int
    judge: str | None
    measured: Mapping[str, Measured] = field(default_factory=dict[str, Measured])

    @property
    def names(self) -> list[str]:
        """The methods, in the order in which they are asked."""
        return list(dict.fromkeys(unit.method for unit in self.units))

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


def show_dry_run(
    console: Console, run: DryRun, models: Sequence[str], unbuilt: Sequence[str]
) -> None:
    """Print the most that a run asks and what its tokens cost.

    ``unbuilt`` says what is not known of indexes that are not built, a line each.
    """
    most, tokens, calls = run.estimate(), _UNBOUND, _UNBOUND
    if most.prompt_tokens is not None:
        tokens = (
            f"about {most.prompt_tokens:,} if every context and answer fills its budget, "
            "retries aside"
        )
    if most.completion_calls is not None:
        calls = (
            f"at most {counted(most.completion_calls, 'completion')} and "
            f"{counted(most.embedding_calls or 0, 'embedding')}, retries aside"
        )
    by_method = {name: run.estimate(name) for name in run.names}
    expected = {name: run.expect(name) for name in run.names}
    dollars = {name: run.dollars(name, each) for name, each in by_method.items()}
    say(
        console,
        f"Dry run: nothing is sent.\n{_budgets(run)}"
        f"Searches:         {most.searches:,}\n"
        f"Search calls:     {calls}\n"
        f"Judge calls:      {most.judge_calls:,}, retries aside\n"
        f"Expected:         {_expected(run, list(expected.values()))}\n"
        f"Prompt tokens:    {tokens}\n"
        f"Dollars:          {_total(list(dollars.values()), models)}",
    )
    paid = any(amount != 0 for amount in dollars.values())
    headings = ["searches", "search calls", "judge calls", "expected tokens", "most tokens"]
    headings += [*(["expected $", "most $"] if paid else []), "expected from"]
    rows: list[list[str]] = []
    for name, each in by_method.items():
        amounts = (expected[name].dollars, dollars[name]) if paid else ()
        rows.append(
            [
                *(name, f"{each.searches:,}", _figure(each.completion_calls)),
                f"{each.judge_calls:,}",
                *map(_figure, (expected[name].prompt_tokens, each.prompt_tokens)),
                *(_figure(amount, ",.2f") for amount in amounts),
                expected[name].source,
            ]
        )
    sources = " ".join(each.source for each in expected.values())
    lines = [f"Expected {'; '.join(line for word, line in _SOURCES.items() if word in sources)}."]
    if None in dollars.values() or any(e.prompt_tokens is None for e in by_method.values()):
        lines.append(
            "open: the settings set no bound, or a price is not known. --max-cost bounds what a "
            "run spends, whatever it asks."
        )
    title = "Expected and at most, by method"
    table = Table(title, [METHOD, *((heading, "count") for heading in headings)], rows)
    show(console, [table, *map(Line, (*lines, *unbuilt))])
    say(console, f"Models:           {', '.join(models)}")
    for model in models:
        say(console, describe_price(model))


def _expected(run: DryRun, expected: Sequence[Expected]) -> str:
    """Return what all methods are expected to take, with what compares two of them."""
    tokens = [each.prompt_tokens for each in expected if each.prompt_tokens is not None]
    dollars = [each.dollars for each in expected if each.dollars is not None]
    if len(tokens) < len(expected):
        return "not known, as the settings set no bound and no earlier run says; see below"
    alone = sum(run.estimate(name, TYPICAL).prompt_tokens or 0 for name in run.names)
    compared = (run.estimate(reckoning=TYPICAL).prompt_tokens or alone) - alone
    line = f"about {sum(tokens) + compared:,.0f} prompt tokens"
    if len(dollars) == len(expected) and sum(dollars):
        line += f" and ${sum(dollars):,.2f}{', comparisons aside' if compared else ''}"
    return f"{line}; an estimate, see below what it is from"


def _budgets(run: DryRun) -> str:
    """Return what budgets multiply, as a line; blank without any."""
    config, curves = run.config, run.config.curves
    if not config.budgets:
        return ""
    at = {name for of_method in curves.values() for name in of_method.values()}
    once = [name for name in config.methods if name not in at]
    n = sum(unit.method in at for unit in run.units)
    listed = ", ".join(f"{budget:,}" for budget in config.budgets)
    return (
        f"Budgets:          {listed} tokens of context; {', '.join(curves)} at each, "
        f"{', '.join(once) + ' once; ' if once else ''}{n:,} of the searches are at a budget\n"
    )


def _total(dollars: Sequence[float | None], models: Sequence[str]) -> str:
    known = [amount for amount in dollars if amount is not None]
    if len(known) < len(dollars):
        return f"{_UNBOUND}, or a price is not known"
    if sum(known):
        return f"about {sum(known):,.2f}, the judge's replies, comparisons and embeddings aside"
    if any(_price(model) != (0.0, 0.0) for model in models):
        return "0 besides embeddings, whose tokens are not known beforehand"
    return "0, as every model of the searches and the judge is free"


def _times(n: int, value: float | None) -> float | None:
    return None if value is None else n * value


def _figure(value: float | None, form: str = ",.0f") -> str:
    return "open" if value is None else format(value, form)


def _price(model: str) -> tuple[float, float] | None:
    """Return dollars a prompt token and an output token; None where they are not known."""
    if is_offline(model):
        return 0.0, 0.0
    price = model_price(model)
    return None if price is None else (price.prompt_usd, price.output_usd)
