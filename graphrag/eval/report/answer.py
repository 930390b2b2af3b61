"""The answer of a run: which method to take, how sure that is, at what price, and what next."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from math import ceil, floor
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

from graphrag.command_lines import eval_line, eval_line_here
from graphrag.eval.report.cells import percent
from graphrag.eval.report.run_lines import label_results
from graphrag.eval.report.run_tables import name_figure, total_of
from graphrag.eval.stats.correction import MIN_LABELS
from graphrag.eval.stats.family import describe_tests
from graphrag.eval.stats.paired import MIN_COVERAGE, has_verdicts
from graphrag.eval.stats.power import ALPHA, POWER
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis, Comparison
    from graphrag.eval.results.curves import BudgetCurves
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.stats.intervals import Estimate

Chip: TypeAlias = Literal["WINNER", "TIED", "TOO FEW", "PASS", "FAIL", "INCONCLUSIVE", ""]
_MOST = 4  # methods that a sentence names
_RIGHT = {
    "correctness": "right",
    "faithfulness": "faithful",
    "relevance": "given relevant texts",
    "completeness": "complete",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run says that is to be done, the same on every surface, in plain words.

    Attributes
    ----------
    chip : str
        WINNER: a method is shown to be better than every other. TIED: one is taken for its price,
        as it is shown to lose less than the margin to each other that is not worse. TOO FEW:
        neither. Of two runs PASS, FAIL, TOO FEW or INCONCLUSIVE. "": there is nothing to choose.
    headline : str
        What to do.
    score : str
        Of how many questions it is right, and the others; what was asked and is missing.
    lead, cost : str
        How far it is ahead and what that holds for; what it costs. May be "".
    next : str
        The one thing to do next, or "".
    command : str
        The command that does it, or "".
    how : tuple of str
        How it was computed: for those who doubt.
    label : str
        What it must be labelled with, e.g. "offline baseline models", or "".
    """

    chip: Chip
    headline: str
    score: str = ""
    lead: str = ""
    cost: str = ""
    next: str = ""
    command: str = ""
    how: tuple[str, ...] = ()
    label: str = ""

    @property
    def line(self) -> str:
        """The answer in a line: chip, label, what to do and the scores."""
        label = f"({self.label})" if self.label else ""
        start = " ".join(filter(None, (self.chip, label)))
        said = " ".join(filter(None, (self.headline, self.score)))
        return f"{start}: {said}" if start else said

    @property
    def reasons(self) -> tuple[str, ...]:
        """The lead and the cost, without what is not known."""
        return tuple(filter(None, (self.lead, self.cost)))

    @property
    def next_line(self) -> str:
        """What to do next, with its command; "" where there is nothing."""
        return f"Next: {': '.join(filter(None, (self.next, self.command)))}" if self.next else ""

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values, without the command, which names this machine's folders."""
        values = {**asdict(self), "how": list(self.how)}
        del values["command"]
        return values


def answer_run(results: "EvaluationResults") -> Answer | None:
    """Return the answer of a run; None where no metric was to be judged.

    A method is recommended when it is shown to be better than every other, or when it is the
    cheapest of those not shown to be worse and is shown to lose less than the equivalence margin
    to each of them, however the missing verdicts fell. Of a run at several context budgets it is by
    the areas under the curves, without a metric too.
    """
    analysis, curves = results.analysis, results.curves
    if curves is not None and curves.primary is not None:
        return _answer_curves(results, curves, curves.primary)
    if analysis is None or not results.metrics or not analysis.outcomes:
        return None
    return _Run(results, analysis).answer()


@dataclass(frozen=True, slots=True)
class _Run:
    results: "EvaluationResults"
    analysis: "Analysis"

    def answer(self) -> Answer:
        contenders, winner = self.analysis.best.contenders, self.analysis.best.winner
        scores = [self._estimate(method).mean for method in self.analysis.outcomes]
        n, n_failed = len(self.results.results), self._count("n_search_failed")
        if n_failed == n:
            see = self._here("show", "--failed")
            return self._none(f"every search failed ({n_failed:,} of {n:,})", "see why", see)
        if not contenders:
            return self._none(f"no response has a verdict on {self.analysis.primary}")
        if len(scores) == 1:
            return self._one(contenders[0])
        if not any(scores):
            return self._none(f"{self.analysis.primary} is 0 % for every method")
        if winner is not None:
            rest = (m for m in self.analysis.outcomes if m != winner)
            nearest = min(rest, key=lambda other: self._behind(winner, other)[0])
            lead = f"Lead over {nearest}: {_limits(*self._behind(winner, nearest))} points."
            return self._make("WINNER", winner, nearest, lead)
        cheapest = self._cheapest()
        rivals = [method for method in self._unbeaten() if method != cheapest]
        if cheapest is not None and all(self._is_near(cheapest, rival) for rival in rivals):
            lead = f"Every other method is shown to be worse than another.{self._worse()}"
            if rivals:
                lead = f"It loses less than {self._margin():g} points to {_list(rivals)}, if any."
                lead += self._worse()
            nearest = max(rivals, key=self._score, default=None)
            return self._make("TIED", cheapest, nearest, lead)
        pivot = cheapest or contenders[0]
        rivals = [method for method in self._unbeaten() if method != pivot]
        rival = max(rivals, key=lambda other: self._may_lose(pivot, other), default=pivot)
        return self._make("TOO FEW", pivot, rival, f"{self._open(pivot, rival)}{self._worse()}")

    def _make(self, chip: Chip, method: str, rival: str | None, lead: str) -> Answer:
        is_open = chip == "TOO FEW"
        next_, command = self._next(rival, method) if is_open and rival else self._check()
        if self.missing():
            next_, command = "get what is missing", self._retry()
        names = self.analysis.best.contenders
        headline = f"Undecided between {_list([*names])}." if len(names) > 1 else "Undecided."
        if not is_open:
            tied = len(names) > 1
            headline = f"Use {method}{f', the cheapest of {len(names)} that tie' if tied else ''}."
        return Answer(
            chip,
            headline,
            self._scores(None if is_open else method),
            f"{lead} {self._scope(None if is_open else method)}",
            self._price(method, rival),
            next_,
            command,
            self.how(),
            label_results(self.results) or "",
        )

    def _none(self, why: str, next_: str = "", command: str = "") -> Answer:
        if self.missing() and self._retry() and not next_:
            next_, command = "get what is missing", self._retry()
        lead, label = " ".join(self.missing()), label_results(self.results) or ""
        return Answer("", f"No answer: {why}.", self._asked(), lead, "", next_, command, (), label)

    def _one(self, method: str) -> Answer:
        found = self._estimate(method)
        lead = ""
        if found.low is not None and found.high is not None:
            low, high = floor(1000 * found.low) / 10, ceil(1000 * found.high) / 10
            lead = f"95 % sure: {low:.1f} to {high:.1f} of 100. "
        next_, command = "compare it with another method, by --methods", ""
        if self.missing():
            next_, command = "get what is missing", self._retry()
        score = f"{_of(found.mean, of := self._whole())} of {counted(of, 'question')}"
        return Answer(
            "",
            f"{method} is {self._right()} on {score}.",
            self._asked(),
            f"{lead}{self._scope(None)}",
            self._price(method, None),
            next_,
            command,
            self.how(),
            label_results(self.results) or "",
        )

    def how(self) -> tuple[str, ...]:
        """Return how the answer was computed, a sentence each."""
        family = self._family()
        together = (
            f"WINNER: shown to be better on {self.analysis.primary} than every other method. TIED: "
            f"shown to lose less than {self._margin():g} points, however missing verdicts fell, to "
            "each that is not shown to be worse, and the cheapest of them. TOO FEW: neither. All "
            "intervals hold together at 95 % confidence, and p is corrected by Holm over all pairs."
        )
        return (
            *([together] if family else []),
            *describe_tests([each.result for each in family]),
            *self.missing(),
            *self._other_questions(),
            *self._speaks_of(),
        )

    def missing(self) -> list[str]:
        """Return which verdicts are missing, where there are too many for an answer."""
        missing = [
            f"{n:,} of {of.n_planned:,} {what} of {method}"
            for method, by_metric in self.analysis.outcomes.items()
            for of in [by_metric[self.analysis.primary]]
            for n, what in (
                (of.n_judge_failed + of.n_judge_unparseable, "verdicts are missing"),
                (of.n_not_run, "searches are not made"),
            )
            if n > (1 - MIN_COVERAGE) * of.n_planned
        ]
        return [f"Missing: {', '.join(missing)}."] if missing else []

    def _scores(self, method: str | None) -> str:
        """Return how many questions each method is right on, and what was asked."""
        known = {m: e for m in self.analysis.outcomes if (e := self._estimate(m)).mean is not None}
        ranked = sorted(known, key=lambda m: (m != method, -(known[m].mean or 0)))
        of = self._whole()
        cells = [f"{m} {_of(known[m].mean, of)}" for m in ranked]
        if method is not None:
            own = _of(known[method].mean, of)
            rest = _list(cells[1:], most=_MOST, last=", ")
            listed = f"{self._right().capitalize()} on {own} of {counted(of, 'question')}"
            listed += f"; {rest}" if rest else ""
        else:
            listed = f"Of {counted(of, 'question')} {self._right()}: "
            listed += _list(cells, most=_MOST + 1, last=", ")
        return f"{listed}. {self._asked()}"

    def _whole(self) -> int:
        """Return of how many questions scores are told: of 100, or of all where these are fewer."""
        ns = {self._estimate(method).n for method in self.analysis.outcomes}
        n = max(ns)
        is_plain = self.results.repeats is None or self.results.repeats.n_trials == 1
        return n if len(ns) == 1 and n < 100 and is_plain else 100

    def _asked(self) -> str:
        """Return how many questions were asked, and what of them is missing."""
        metadata, documents = self.results.metadata, self.results.by_movie
        n = counted(metadata["total_questions"], "question")
        trials = self.results.repeats.n_trials if self.results.repeats is not None else 1
        times = f", each searched {trials} times," if trials > 1 else ""
        outcomes = [of[self.analysis.primary] for of in self.analysis.outcomes.values()]
        missing = {
            "searches failed": sum(of.n_search_failed for of in outcomes),
            "searches not made": sum(of.n_not_run for of in outcomes),
            "verdicts missing": sum(of.n_judge_failed + of.n_judge_unparseable for of in outcomes),
            "answers not judged": sum(of.n_not_judged for of in outcomes),
        }
        parts = [f"{times:,} {what}" for what, times in missing.items() if times]
        declined = any(each.abstained for each in self.results.results)
        whole = "all judged" if declined else "all answered and judged"
        where = f" on {counted(len(documents), 'document')}" if any(documents) else ""
        return f"{n}{times}{where}, {', '.join(parts) or whole}."

    def _open(self, pivot: str, rival: str) -> str:
        """Return how far apart the two are that keep the answer open."""
        if any(not has_verdicts(each.result) for each in self._family()):
            return self.missing()[0] if self.missing() else "Too many verdicts are missing."
        compared = self._find(rival, pivot)
        if compared is None or compared.result.difference is None:
            return f"No question has a verdict on both {pivot} and {rival}."
        low, high = self._behind(rival, pivot)
        better = f", or {-low:.1f} better" if low < 0 else ""
        return f"{pivot} may be up to {high:.1f} points worse than {rival}{better}."

    def _worse(self) -> str:
        beaten = list(self.analysis.best.beaten)
        verb = "is" if len(beaten) == 1 else "are"
        return f" {_list(beaten, most=_MOST)} {verb} shown to be worse." if beaten else ""

    def _scope(self, method: str | None) -> str:
        """Return which questions the lead holds for, and on how many documents it is the same."""
        labels = "Corrected by people's labels. " if self._is_corrected() else ""
        if self._asked_others():
            labels += "Methods were asked different questions: pairs share fewer. "
        by_document = self.analysis.outcomes_by_document
        n = len(by_document)
        verb = "Holds for more questions on" if method else "This is for"
        if self._is_clustered():
            return f"{labels}{verb} documents like these {n:,}."
        if n < 2:
            return f"{labels}{verb} this document; other documents may differ."
        led = 0
        for outcomes in by_document.values():
            means = {m: of[self.analysis.primary].mean.mean or 0 for m, of in outcomes.items()}
            own = means.pop(method or "", 0)
            led += bool(means) and own > max(means.values())
        count = f" ({method} led on {led:,} of {n:,})" if method else ""
        return f"{labels}{verb} these {n:,} documents; other documents may differ{count}."

    def _next(self, rival: str, pivot: str) -> tuple[str, str]:
        """Return how many more questions would decide, see docs/numbers.md.

        At ``n`` questions the interval has the half width h. It shrinks with the root of n: to
        where a difference of 0 is shown to lie within the margin with 80 % power, and to where the
        difference seen would be decided if it stays.
        """
        each, margin = self._find(rival, pivot), self._margin() / 100
        if each is None or each.result.difference is None or not each.result.n_pairs or not margin:
            return "ask both the same questions", ""
        low, high = (limit / 100 for limit in self._behind(rival, pivot))
        half, seen = (high - low) / 2, abs(each.result.difference)
        normal, n_pairs = NormalDist(), sum(c.result.p is not None for c in self._family())
        level = normal.inv_cdf(1 - ALPHA / max(1, 2 * n_pairs - 1) / 2)
        power = 1 + normal.inv_cdf((1 + POWER) / 2) / level
        times = max(power * half / margin, half / max(seen, margin - seen))
        more = each.result.n_pairs * (times**2 - 1)
        if more < 1:
            return "a second run with other questions", ""
        digits = 10 ** max(0, len(str(int(more))) - 2)
        return f"about {ceil(more / digits) * digits:,} more questions decide", ""

    def _check(self) -> tuple[str, str]:
        """Return what makes a decided answer surer."""
        if self.results.metadata["embedded_models"]:
            return "your own documents and models", eval_line("init", "--root", "PROJECT")
        if self._is_corrected():
            return "hold the next change against this run", self._here("compare", "--pin")
        flags = (
            () if self.analysis.primary == "correctness" else ("--metric", self.analysis.primary)
        )
        run_id = self.results.metadata.get("run_id")
        command = eval_line_here("view", "--labels", run_id, *flags) if run_id else ""
        return f"label {MIN_LABELS} responses to check the judge", command

    def _here(self, command: str, *flags: str) -> str:
        run_id = self.results.metadata.get("run_id")
        return eval_line_here(command, run_id, *flags) if run_id else ""

    def _retry(self) -> str:
        command = self.results.command
        flag = "" if "--retry-errors" in command.split() else " --retry-errors"
        return f"{command}{flag}" if command else ""

    def _asked_others(self) -> dict[str, set[tuple[str, str]]]:
        """Return which questions each method was asked; empty where that is the same."""
        asked: dict[str, set[tuple[str, str]]] = {m: set() for m in self.analysis.outcomes}
        for each in self.results.results:
            asked[each.method].add((each.imdb_key, each.sample_id or each.question))
        first = next(iter(asked.values()))
        return asked if any(each != first for each in asked.values()) else {}

    def _other_questions(self) -> Iterator[str]:
        asked = self._asked_others()
        pairs = [
            f"{a} and {b} share {len(asked[a] & asked[b]):,} of {len(asked[a] | asked[b]):,}"
            for a, b in combinations(asked, 2)
            if asked[a] != asked[b]
        ]
        if pairs:
            yield (
                "The methods were not asked the same questions, and are compared on those that "
                f"both were: {_list(pairs, most=_MOST, last=', ')}."
            )

    def _speaks_of(self) -> Iterator[str]:
        n = len(self.results.by_movie)
        if not self._is_clustered():
            this = "this document" if n == 1 else f"these {n:,} documents"
            yield (
                f"Every p and interval speaks of {this} alone. Other documents may rank the "
                "methods otherwise: of methods that are equal in general, a few documents show a "
                "difference in up to 61 % of runs."
            )

    def _is_clustered(self) -> bool:
        return any(
            of[self.analysis.primary].mean.method.endswith("clustered by document")
            for of in self.analysis.outcomes.values()
        )

    def _is_corrected(self) -> bool:
        return any(each.is_corrected for each in self._family())

    def _is_near(self, method: str, rival: str) -> bool:
        """Say whether a method is shown to lose less than the margin to another."""
        each = self._find(rival, method)
        known = each is not None and has_verdicts(each.result)
        return known and self._may_lose(method, rival) < self._margin()

    def _unbeaten(self) -> list[str]:
        """Return the contenders, and the methods that have no score to be beaten on."""
        unknown = [m for m in self.analysis.outcomes if self._estimate(m).mean is None]
        return [*self.analysis.best.contenders, *unknown]

    def _right(self) -> str:
        return _RIGHT.get(self.analysis.primary, self.analysis.primary)

    def _count(self, name: str) -> int:
        return sum(counts[name] for counts in self.results.counts.values())

    def _score(self, method: str) -> float:
        return self._estimate(method).mean or 0

    def _estimate(self, method: str) -> "Estimate":
        return self.analysis.outcomes[method][self.analysis.primary].mean

    def _find(self, a: str, b: str) -> "Comparison | None":
        return next((each for each in self._family() if {each.a, each.b} == {a, b}), None)

    def _behind(self, ahead: str, other: str) -> tuple[float, float]:
        """Return the simultaneous limits of how many points a method is behind another."""
        each = self._find(ahead, other)
        family = None if each is None else each.decided[1]
        if each is None or family is None:
            return -100.0, 100.0
        low, high = family.low_simultaneous, family.high_simultaneous
        if low is None or high is None:
            return -100.0, 100.0
        limits = (low, high) if each.a == ahead else (-high, -low)
        return floor(1000 * limits[0] + 1e-9) / 10, ceil(1000 * limits[1] - 1e-9) / 10

    def _may_lose(self, method: str, rival: str) -> float:
        """Return how many points a method may be behind another, however missing verdicts fell."""
        each, high = self._find(rival, method), self._behind(rival, method)[1]
        if each is None or each.result.difference is None or each.result.difference_bounds is None:
            return high
        (low, up), seen = each.result.difference_bounds, each.result.difference
        return high + 100 * max(0.0, up - seen if each.a == rival else seen - low)

    def _margin(self) -> float:
        margins = [each.family.equivalence_margin for each in self._family() if each.family]
        return 100 * min(margins, default=0.0)

    def _family(self) -> "list[Comparison]":
        return [each for each in self.analysis.comparisons if each.in_family]

    def _cheapest(self) -> str | None:
        """Return the contender that costs least; None when not all prices are known."""
        contenders = self.analysis.best.contenders
        prices = {method: self._amount(method) for method in contenders}
        known = {method: amount[0] for method, amount in prices.items() if amount is not None}
        return min(known, key=known.__getitem__) if len(known) == len(prices) else None

    def _amount(self, method: str) -> tuple[float, str] | None:
        """Return what a question costs and in which words: dollars where any are paid."""
        dollars = {m: of["cost_usd"] for m, of in self.results.efficiency.items()}
        n, of = self.results.counts[method]["n"], self.results.efficiency[method]
        if n and None not in dollars.values() and any(dollars.values()):
            return dollars[method] / n, f"${dollars[method] / n:.4f}"
        tokens = total_of(of["avg_prompt_tokens"], of["avg_output_tokens"])
        return None if tokens is None else (tokens, f"{tokens:,.0f} tokens")

    def _price(self, method: str, rival: str | None) -> str:
        """Return what a question costs, beside a rival, and who is much faster; "" if unknown."""
        own = self._amount(method)
        if own is None:
            return ""
        other = self._amount(rival) if rival and rival != method else None
        beside = f", {_times(own[0], other[0])} {rival}" if other and other[0] and own[0] else ""
        medians = {m: of.latency_median.value for m, of in self.analysis.efficiency.items()}
        mine = medians.pop(method, None)
        times = {m: mine / each for m, each in medians.items() if mine and each}
        fastest = max(times, key=times.__getitem__, default="")
        quick = f"; {fastest} is {times[fastest]:.0f} times faster" if fastest else ""
        name = f"{method} takes " if rival is not None and self.analysis.best.winner is None else ""
        shown = quick if fastest and times[fastest] >= 2 else ""
        return f"Cost: {name}{own[1]} a question{beside}{shown}."


def _answer_curves(results: "EvaluationResults", curves: "BudgetCurves", figure: str) -> Answer:
    """Return which method's area is shown to be the largest on the primary figure."""
    known = {c.method: c.areas[figure] for c in curves.curves if figure in c.areas}
    label, over = label_results(results) or "", f"{curves.budgets[0]:,} to {curves.budgets[-1]:,}"
    how = (
        f"The area under {name_figure(figure)} over budgets of {over} tokens of context. WINNER: "
        "shown to be larger than that of every other method. p is corrected by Holm.",
    )
    if not any(area.n for area in known.values()):
        return Answer("", "No answer: no method has a score at every budget.", how=how, label=label)
    ranked = sorted(known, key=lambda m: (m != curves.winner, -(known[m].mean or 0)))
    cells = [f"{m} {percent(known[m])}" for m in ranked]
    area = f"Area under {name_figure(figure)} in %, over budgets of {over} tokens: "
    score = f"{area}{_list(cells, most=_MOST, last=', ')}."
    if len(known) == 1:
        return Answer("", f"{ranked[0]} alone has an area.", score, how=how, label=label)
    if curves.winner is None:
        return Answer("TOO FEW", f"Undecided: {_list(ranked)}.", score, how=how, label=label)
    return Answer("WINNER", f"Use {curves.winner}.", score, how=how, label=label)


def _of(mean: float | None, whole: int) -> str:
    """Return a share as a number of so many, which is 0 or all only where it is exactly that."""
    number = whole * (mean or 0)
    is_near = mean not in (0, 1) and not 0.5 <= number < whole - 0.5
    return f"{number:.1f}" if is_near else f"{number:.0f}"


def _limits(low: float, high: float) -> str:
    """Return limits of a lead in whole points, rounded outwards, or in tenths where it is small."""
    low = max(0.0, low)
    return f"{low:.1f} to {high:.1f}" if low < 1 else f"{floor(low)} to {ceil(high)}"


def _list(names: list[str], most: int = 0, last: str = " and ") -> str:
    if most and len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return last.join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _times(amount: float, other: float) -> str:
    times = amount / other
    shown = f"{times:.0f}" if times >= 10 else f"{times:.2g}"
    return "about as" if 0.9 <= times <= 1.1 else f"{shown} times"
