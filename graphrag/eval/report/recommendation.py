"""Decides a run's answer: the method to use, how sure that is, its price, and the next step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, floor
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

from graphrag.eval.report.cost_comparison import Prices
from graphrag.eval.report.formatting import round_up
from graphrag.eval.report.recommendation_by_group import answer_kinds
from graphrag.eval.report.run_tables import RIGHT, label_results
from graphrag.eval.report.table import STYLES, Line
from graphrag.eval.results.analysis import usable_methods
from graphrag.eval.results.handicaps import explain_handicaps, format_handicaps
from graphrag.eval.stats.family import describe_tests
from graphrag.eval.stats.intervals import Structure, choose_structure
from graphrag.eval.stats.label_correction import MIN_LABELS
from graphrag.eval.stats.paired import MIN_COVERAGE, has_verdicts
from graphrag.eval.stats.power import ALPHA, POWER, questions_needed
from graphrag.query.client.embedded_labels import ANSWERS, VERDICTS
from graphrag.text.cli_hints import eval_line, eval_line_here
from graphrag.text.message_phrases import counted, join_names

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis, Comparison
    from graphrag.eval.results.evaluation_results import EvaluationResults

Chip: TypeAlias = Literal["WINNER", "TIED", "TOO FEW", "PASS", "FAIL", "INCONCLUSIVE", ""]
_MOST = 4  # methods that a sentence names
_ENOUGH = 50  # questions from which on it can be estimated how many more decide
_HUNDREDS = 200
_TELLING = 10  # questions from which on a difference that was seen is worth planning for


@dataclass(frozen=True, slots=True)
class Answer:
    """A run's recommendation in plain words, the same on a terminal, on a page and in a file.

    ``chip``: WINNER, a method is shown to be better than every other; TIED, one that needs least of
    an index, or costs least, is shown to lose less than the margin to each that is not worse; TOO
    FEW, neither. For two runs: PASS, FAIL, TOO FEW or, if more questions would not help,
    INCONCLUSIVE. "": there is nothing to choose. ``headline``: the recommendation, after the
    context budgets if they differ. ``score``: on how many questions the method is right, and the
    numbers of questions, and of missing searches and verdicts. ``lead``: how far it is ahead, and
    for which questions that is so. ``by_kind``: kinds of questions that call for another method.
    ``cost``: of a question and the index. ``next``, ``command``: the one thing to do next, and its
    command. ``how``: how the answer was computed. ``label``: a warning such as "offline baseline
    models". Texts may be "".
    """

    chip: Chip
    headline: str
    score: str = ""
    lead: str = ""
    by_kind: str = ""
    cost: str = ""
    next: str = ""
    command: str = ""
    how: tuple[str, ...] = ()
    label: str = ""
    conditions: str = ""
    """Why methods had to do without something, which the headline names."""
    method: str | None = None
    """The method to use, or the only one that was asked."""

    @property
    def line(self) -> str:
        """The answer in a line: chip, label, headline and score."""
        label = f"({self.label})" if self.label else ""
        start = " ".join(filter(None, (self.chip, label)))
        text = " ".join(filter(None, (self.headline, self.score)))
        return f"{start}: {text}" if start else text

    @property
    def reasons(self) -> tuple[str, ...]:
        """The conditions, the lead, the kinds and the cost, as far as they are not ""."""
        return tuple(filter(None, (self.conditions, self.lead, self.by_kind, self.cost)))

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values, without the command, which names folders of this machine."""
        names = ("chip", "headline", "score", "lead", "by_kind", "cost", "next", "label")
        values = {name: getattr(self, name) for name in names}
        more = {"conditions": self.conditions} if self.conditions else {}
        return {**values, **more, "how": list(self.how)}


def answer_run(results: "EvaluationResults") -> Answer | None:
    """Return the answer of a run; None if no metric was to be judged.

    A method is recommended if it is shown to be better than every other. Else it is, of those not
    shown to be worse, the one that needs least of an index and then costs least, if it is shown to
    lose less than the equivalence margin to each of them, however missing verdicts fell.
    """
    analysis, label = results.analysis, label_results(results) or ""
    if analysis is None or not results.metrics or not analysis.outcomes:
        return None
    answer = _Basis(results, analysis).answer()
    if handicaps := format_handicaps(results.conditions.handicaps):
        headline = f"{answer.headline.removesuffix('.')}, with {handicaps}."
        reasons = " ".join(explain_handicaps(results.conditions.handicaps))
        answer = replace(answer, headline=headline, conditions=reasons)
    return replace(answer, label=label)


class _Basis:
    def __init__(self, results: "EvaluationResults", analysis: "Analysis") -> None:
        self._results, self._analysis, self._best = results, analysis, analysis.best
        self._primary, self._prices = analysis.primary, Prices(results, analysis)
        self._outcomes = {m: outcomes[self._primary] for m, outcomes in analysis.outcomes.items()}
        chosen = usable_methods(self._outcomes)
        self._dead, self._of_dead = _list_dead(results, chosen)
        self._usable = [method for method in chosen if method not in self._dead]
        self._scored = analysis.scores
        self._means = {m: score.mean for m, score in self._scored.items() if score.mean is not None}
        self._family = [pair for pair in analysis.comparisons if pair.in_family]
        margins = [pair.family.equivalence_margin for pair in self._family if pair.family]
        self._margin = 100 * min(margins, default=0.0)
        self._is_corrected = any(pair.is_corrected for pair in self._family)
        self._by = " by the judge's verdicts" if self._is_corrected else ""
        if analysis.scored_by_labels:
            is_complete = analysis.labels_are_complete
            self._by = " by people's labels" if is_complete else " as people's labels correct it"
        self._is_clustered = Structure.CLUSTERED in map(self._structure, self._outcomes)
        self._right = RIGHT.get(self._primary, self._primary)
        ns = {outcomes.mean.n for outcomes in self._outcomes.values()}
        self._n_trials = n_trials = 1 if results.repeats is None else results.repeats.n_trials
        # Scores are a number of all questions where these are few, else in percent.
        self._few = max(ns) if len(ns) == n_trials == 1 and max(ns) < 100 else None
        ids: dict[str, set[tuple[str, str]]] = {method: set() for method in self._outcomes}
        for result in results.results:
            ids[result.method].add((result.imdb_key, result.sample_id or result.question))
        self._are_asked_alike = all(ids[m] == ids[self._usable[0]] for m in self._usable)
        self._shared = [
            f"{a} and {b} share {len(ids[a] & ids[b]):,} of {len(ids[a] | ids[b]):,}"
            for a, b in combinations(ids, 2)
            if ids[a] != ids[b]
        ]

    def _structure(self, method: str) -> Structure:
        """Return how documents enter the interval of a method's mean."""
        by_document = self._analysis.outcomes_by_document.items()
        ns = {
            key or None: outcomes[method][self._primary].mean.n
            for key, outcomes in by_document
            if method in outcomes
        }
        return choose_structure({document: n for document, n in ns.items() if n})

    def answer(self) -> Answer:
        """Return the answer of the first rule that applies."""
        rules = (
            self._answer_failed,
            self._answer_unjudged,
            self._answer_absent,
            self._answer_single,
            self._answer_all_wrong,
            self._answer_winner,
            self._answer_tie,
        )
        answers = (rule() for rule in rules)
        return next(filter(None, answers), None) or self._answer_undecided()

    def _answer_failed(self) -> Answer | None:
        is_left = bool(self._contenders or (self._usable and not self._has_scores(self._dead)))
        if is_left:
            return None
        failed = [r.failure is not None for r in self._results.results if r.method in self._dead]
        n, n_failed = len(failed), sum(failed)
        which = "every search" if n == n_failed else "most searches"
        whose = "" if n == len(self._results.results) else f" of {join_names(self._dead)}"
        rest = ", and no other method is as good" if self._usable else ""
        why = f"{which}{whose} failed ({n_failed:,} of {n:,}){rest}"
        return self._answer_nothing(why, "see why", _command(self._results, "show", "--failed"))

    def _answer_unjudged(self) -> Answer | None:
        if self._contenders:
            return None
        has_answers = any(result.ground_truth for result in self._results.results)
        if self._primary == "correctness" and not has_answers:
            headline = "No question has an answer, so correctness is not judged."
            return Answer(chip="", headline=headline, lead="See what was judged instead.")
        return self._answer_nothing(f"no response has a verdict on {self._primary}")

    def _answer_absent(self) -> Answer | None:
        if not self._absent:
            return None
        has = "has" if len(self._absent) == 1 else "have"
        return self._answer_nothing(f"{join_names(self._absent)} {has} no result yet")

    def _answer_all_wrong(self) -> Answer | None:
        if self._best.winner is not None or self._has_scores(self._usable):
            return None
        which = " that mostly answered" if self._has_scores(self._dead) else ""
        return self._answer_nothing(f"{self._primary} is 0 % for every method{which}")

    def _answer_winner(self) -> Answer | None:
        winner = self._best.winner
        if winner is None:
            return None
        rest = (m for m in (*self._usable, *self._dead) if m != winner)
        nearest = min(rest, key=lambda other: self._deficit(winner, other)[0])
        lead = f"Lead over {nearest}: {_limits(*self._deficit(winner, nearest))} points."
        return self._make("WINNER", f"Use {winner}.", winner, nearest, lead)

    def _answer_tie(self) -> Answer | None:
        least = self._prices.least_of_an_index(self._contenders)
        taken, worse = self._prices.cheapest(least), self._name_worse()
        if taken is None:
            if not all(self._is_near(a, b) for a in least for b in self._unbeaten if a != b):
                return None
            headline = f"{join_names(least)} tie, and which of them is cheaper is not known."
            return self._make("TIED", headline, None, None, worse.strip())
        rivals = [method for method in self._unbeaten if method != taken]
        if not all(self._is_near(taken, rival) for rival in rivals):
            return None
        lead, headline = "Every other method is shown to be worse than another.", f"Use {taken}."
        if rivals:
            lead = f"It loses less than {self._margin:g} points to {join_names(rivals)}, if any."
            reason = self._prices.reason(taken, rivals)
            headline = f"Use {taken}: as good as {join_names(rivals)} here, and it {reason}."
        return self._make("TIED", headline, taken, next(iter(rivals), None), f"{lead}{worse}")

    def _answer_undecided(self) -> Answer:
        least = self._prices.least_of_an_index(self._contenders)
        pivot = self._prices.cheapest(least) or least[0]
        headline = "Undecided."
        if len(self._contenders) > 1:
            headline = f"Undecided between {join_names(self._contenders)}."
        rivals = [method for method in self._unbeaten if method != pivot]
        rival = max(rivals, key=lambda other: self._loss_limit(pivot, other), default=pivot)
        lead = f"{self._gap(pivot, rival)}{self._name_worse()}"
        return self._make("TOO FEW", headline, pivot, rival, lead)

    @property
    def _contenders(self) -> list[str]:
        """The winner alone, else the methods that are not beaten and whose searches went well."""
        if self._best.winner is not None:
            return [self._best.winner]
        return [method for method in self._best.contenders if method not in self._dead]

    @property
    def _unbeaten(self) -> list[str]:
        """The contenders, and the methods without a score, which are not beaten either."""
        return [*self._contenders, *(m for m in self._usable if m not in self._means)]

    def _has_scores(self, methods: Sequence[str]) -> bool:
        """Return whether one of the methods scores more than 0."""
        return any(map(self._means.get, methods))

    def _make(
        self, chip: Chip, headline: str, method: str | None, rival: str | None, lead: str
    ) -> Answer:
        taken, other = method, rival
        if chip == "TOO FEW":  # its price is compared with the best other method's
            others = [m for m in self._best.contenders if m not in (method, *self._dead)]
            taken, other = None, max(others, key=lambda m: self._means.get(m, 0.0), default=None)
        next_, command = self._propose_check()
        if chip == "TOO FEW" and method is not None:
            next_, command = self._ask_more(method, rival or method), ""
        if mend := self._mend_first(chip == "TOO FEW" and self._lacks_pairs()):
            next_, command = mend
        how = (
            f"WINNER: shown to be better on {self._primary} than every other method. TIED: shown "
            f"to lose less than {self._margin:g} points, however missing verdicts fell, to each "
            "that is not shown to be worse; of several such methods the one that needs least of an "
            "index (text units, vectors, a graph), then the cheapest. TOO FEW: neither. All "
            "intervals hold together at 95 % confidence, and p is corrected by Holm over all pairs."
        )
        if self._prices.in_all(self._usable):
            how += " Of methods on different indexes that tie: the cheapest in all, if known."
        validity = self._describe_validity(taken, is_lead=chip == "WINNER")
        is_named = chip != "WINNER"
        return Answer(
            chip=chip,
            headline=" ".join(filter(None, (self._prices.budgets, headline))),
            score=f"{self._format_scores(taken)} {self._count_questions()}",
            lead=f"{self._of_dead}{lead} {validity}".lstrip(),
            by_kind="" if self._list_missing() else answer_kinds(self._results, taken),
            cost="" if method is None else self._prices.line(method, other, is_named=is_named),
            next=next_,
            command=command,
            how=(how, *self._explain()),
            method=taken,
        )

    def _mend_first(self, lacks_pairs: bool = False) -> tuple[str, str] | None:
        """Return the first thing to mend, and its command; None if nothing needs mending."""
        if lacks_pairs or self._list_missing():
            return self._propose_completion()
        if self._prices.budgets and not self._results.conditions.differ_by_variants:
            return "give all methods one budget: equal_terms in eval_config.yaml", ""
        return _see_why(self._results, self._dead[0]) if self._dead else None

    def _answer_nothing(self, why: str, next_: str = "", command: str = "") -> Answer:
        if self._list_missing() and not next_:
            next_, command = self._propose_completion()
        headline, lead = f"No answer: {why}.", " ".join(self._list_missing())
        score = self._count_questions()
        return Answer("", headline=headline, score=score, lead=lead, next=next_, command=command)

    def _answer_single(self) -> Answer | None:
        if len(self._usable) != 1 or self._best.winner is not None:
            return None
        method = self._contenders[0]
        score, verb = self._scored[method], "is" if self._primary in RIGHT else "has"
        lead = ""
        if score.low is not None and score.high is not None:
            low, high = floor(1000 * score.low) / 10, ceil(1000 * score.high) / 10
            lead = f"95 % sure: {low:.1f} to {high:.1f} %. "
        next_, command = self._mend_first() or ("compare it with another method, by --methods", "")
        return Answer(
            chip="",
            headline=f"{method} {verb} {self._right} on {self._format_share(method)}{self._by}.",
            score=f"{self._format_judge_scores([method])} {self._count_questions()}".lstrip(),
            lead=f"{self._of_dead}{lead}{self._describe_validity(None)}",
            cost=self._prices.line(method, None),
            next=next_,
            command=command,
            how=tuple(self._explain()),
            method=method,
        )

    def _explain(self) -> Iterator[str]:
        yield from describe_tests([pair.decided[0] for pair in self._family])
        yield from self._list_missing()
        if self._shared:
            yield (
                "The methods were not asked the same questions, and are compared on those that "
                f"both were: {join_names(self._shared, most=_MOST, last=', ')}."
            )
        n = len(self._results.by_movie)
        if not self._is_clustered:
            this = "this index" if n == 1 else f"these {n:,} indexes"
            yield (
                f"Every p and interval is for {this} only. Other indexes may rank the methods "
                "differently: of methods that are equal in general, a few indexes show a "
                "difference in up to 61 % of runs."
            )

    def _list_missing(self) -> list[str]:
        """Return which verdicts and searches are missing, if too many are for an answer."""
        missing = [
            f"{n:,} of {outcomes.n_planned:,} {lack} of {method}"
            for method, outcomes in self._outcomes.items()
            for n, lack in (
                (outcomes.n_judge_failed + outcomes.n_judge_unparseable, "verdicts are missing"),
                (outcomes.n_not_run, "searches are not made"),
            )
            if n > (1 - MIN_COVERAGE) * outcomes.n_planned
        ]
        if self._absent:
            missing.append(f"all of {join_names(self._absent)}")
        return [f"Missing: {', '.join(missing)}."] if missing else []

    def _lacks_pairs(self) -> bool:
        """Return whether too few questions have a verdict on both methods of some pair."""
        choices = [pair for pair in self._family if {pair.a, pair.b} <= {*self._usable}]
        return not all(has_verdicts(pair.result) for pair in choices)

    @property
    def _absent(self) -> list[str]:
        """The methods of an unfinished run that have no result yet."""
        meta = self._results.metadata
        names: list[str] = [] if meta.get("is_complete", True) else meta["asked"]["methods"]
        return [m for m in names if m not in self._outcomes and m != "oracle"]  # may have no unit

    def _n_not_made(self) -> int:
        n = sum(outcomes.n_not_run for outcomes in self._outcomes.values())
        meta = self._results.metadata
        return max(n, meta["n_planned"] - meta["n_done"]) if self._absent else n

    def _format_share(self, method: str) -> str:
        unit = "% of questions" if self._few is None else f"of {counted(self._few, 'question')}"
        return f"{self._format_score(method)} {unit}"

    def _format_score(self, method: str, by_judge: bool = False) -> str:
        """Return a score as a number; 0, or all, only if it is exactly that."""
        total, mean = 100 if self._few is None else self._few, self._means[method]
        number = total * ((self._outcomes[method].mean.mean or 0) if by_judge else mean)
        is_near = 0 < number < 0.5 or total - 0.5 <= number < total
        return f"{number:.1f}" if is_near else f"{number:.0f}"

    def _format_scores(self, method: str | None) -> str:
        ranked = sorted(self._means, key=lambda m: (m != method, -self._means[m]))
        cells, by = [f"{name} {self._format_score(name)}" for name in ranked], self._by
        judge = f" {self._format_judge_scores(ranked)}".rstrip()
        if method is None:
            few, right = self._few, f"{self._right}{by}"
            lead = f"Of {counted(few, 'question')} {right}" if few else f"{right}, in percent"
            return f"{lead[0].upper()}{lead[1:]}: {join_names(cells, _MOST + 1, ', ')}.{judge}"
        rest = join_names(cells[1:], _MOST, ", ")
        opening = f"{method} is {self._right} on {self._format_share(method)}{by}"
        return f"{opening}; {rest}.{judge}" if rest else f"{opening}.{judge}"

    def _format_judge_scores(self, methods: list[str]) -> str:
        """Return the judge's scores as a sentence if the shown scores are by labels, else ""."""
        if not self._analysis.scored_by_labels:
            return ""
        cells = [f"{method} {self._format_score(method, by_judge=True)}" for method in methods]
        return f"The judge says {join_names(cells, _MOST + 1, ', ')}."

    def _count_questions(self) -> str:
        """Return a sentence on the questions asked, and on missing searches and verdicts."""
        results, summaries = self._results, self._outcomes.values()
        n_failed = sum(result.failure is not None for result in results.results)
        n_missing = sum(of.n_judge_failed + of.n_judge_unparseable for of in summaries)
        n_unjudged = sum(summary.n_not_judged + summary.n_search_failed for summary in summaries)
        missing = (
            ("search", "searches", "failed", n_failed),
            ("search", "searches", "not made", self._n_not_made()),
            ("verdict", "verdicts", "missing", n_missing),
            ("answer", "answers", "not judged", n_unjudged - n_failed),
        )
        parts = [f"{counted(n, one, many)} {state}" for one, many, state, n in missing if n]
        answered = "" if any(result.abstained for result in results.results) else "answered and "
        figures = [of for m in self._analysis.outcomes.values() for of in m.values()]
        is_partly = any(of.n_judge_failed + of.n_judge_unparseable for of in figures)
        complete = f"all {answered}judged{f' on {self._primary}' if is_partly else ''}"
        asked = counted(results.metadata["total_questions"], "question")
        trials = f", each searched {self._n_trials} times," if self._n_trials > 1 else ""
        n = len(results.by_movie) if any(results.by_movie) else 0
        on = f" on {counted(n, 'index', 'indexes')}" if n else ""
        return f"{asked}{trials}{on}, {', '.join(parts) or complete}."

    def _gap(self, pivot: str, rival: str) -> str:
        if self._lacks_pairs():
            return "".join(self._list_missing()) or "Too many verdicts are missing."
        pair = self._find(rival, pivot)
        if pair is None or pair.result.difference is None:
            return f"No question has a verdict on both {pivot} and {rival}."
        low, high = self._deficit(rival, pivot)
        better = f", or {-low:.1f} better" if low < 0 else ""
        return f"{pivot} may be up to {high:.1f} points worse than {rival}{better}."

    def _name_worse(self) -> str:
        beaten = list(self._best.beaten)
        verb = "is" if len(beaten) == 1 else "are"
        return f" {join_names(beaten, _MOST)} {verb} shown to be worse." if beaten else ""

    def _describe_validity(self, method: str | None, is_lead: bool = False) -> str:
        """Return the questions for which the lead is valid, and the number of indexes with it."""
        start = ""
        if self._is_corrected and not self._analysis.scored_by_labels:
            start = "People's labels corrected the differences. "
        if not self._are_asked_alike:
            start += "Methods were asked different questions: pairs share fewer. "
        by_document = self._analysis.outcomes_by_document
        start += "Holds for more questions on" if method else "This is for"
        n, led = len(by_document), 0
        if self._is_clustered:
            return f"{start} indexes like these {n:,}."
        for outcomes in by_document.values():
            methods = (m for m in self._usable if m in outcomes)
            means = {m: outcomes[m][self._primary].mean.mean or 0 for m in methods}
            mean = means.pop(method or "", 0)
            led += bool(means) and mean > max(means.values())
        led_on = is_lead and n > 1 and not self._is_corrected
        count = f" ({method} led on {led:,} of {n:,})" if led_on else ""
        these = "this index" if n < 2 else f"these {n:,} indexes"
        return f"{start} {these}; other indexes may differ{count}."

    def _ask_more(self, pivot: str, rival: str) -> str:
        """Return the step that would decide, such as more questions; see docs/numbers.md.

        The interval's half width shrinks with the square root of the questions. They are enough
        when a difference of 0 is shown to lie within the margin with 80 % power, and when the
        difference that was seen would be decided if it stays.
        """
        pair, margin = self._find(rival, pivot), self._margin / 100
        if pair is None or pair.result.difference is None or not pair.result.n_pairs or not margin:
            return "ask all methods the same questions"
        labels = pair.corrected if pair.is_corrected else None
        if labels is not None and labels.n_labels < pair.result.n_pairs:
            return "label more answers"  # the interval is wide for want of labels, too
        low, high = (limit / 100 for limit in self._deficit(rival, pivot))
        half, distance = (high - low) / 2, abs(pair.result.difference)
        n_tests = sum(other.result.p is not None for other in self._family)
        normal = NormalDist()
        level = normal.inv_cdf(1 - ALPHA / max(1, 2 * n_tests - 1) / 2)
        power = 1 + normal.inv_cdf((1 + POWER) / 2) / level
        times = max(power * half / margin, half / max(distance, margin - distance))
        n = pair.result.n_pairs
        more = n * (times**2 - 1)
        if more < 1:
            return "ask further questions"
        seen = None
        if distance and n >= _TELLING:
            discordance = max(distance, pair.result.discordance or 0)
            seen = questions_needed(distance, discordance, POWER, ALPHA / max(1, n_tests))
        return describe_more(more, n, None if seen is None else seen - n)

    def _propose_check(self) -> tuple[str, str]:
        """Return a step that makes a decided answer surer, and its command."""
        label = self._results.metadata["embedded_models"] or ""
        roles = label.rpartition(": ")[0]
        if label and (ANSWERS in roles or not roles):
            return "your own documents and models", eval_line("init", "--root", "PROJECT")
        if VERDICTS in roles:
            return "name a language model as judge.model in eval_config.yaml", ""
        if self._is_corrected:
            pin = _command(self._results, "compare", "--pin")
            return "compare the next change with this run", pin
        flags = () if self._primary == "correctness" else ("--metric", self._primary)
        run_id = self._results.metadata.get("run_id")
        command = eval_line_here("view", "--labels", run_id, *flags) if run_id else ""
        n = min(MIN_LABELS, self._results.metadata["total_questions"])
        return f"label the answers to {counted(n, 'question')} to check the judge", command

    def _propose_completion(self) -> tuple[str, str]:
        """Return the step that gets what is missing, and its command (judging makes no search)."""
        origin = self._results.metadata.get("setup", {}).get("responses_of")
        outcomes = self._outcomes.values()
        if origin and not any(o.n_judge_failed + o.n_judge_unparseable for o in outcomes):
            next_ = "finish the run whose answers were judged, and judge it again"
            return next_, eval_line_here("show", origin)
        command = self._results.command
        flag = "" if "--retry-errors" in command.split() else " --retry-errors"
        return "get what is missing", f"{command}{flag}" if command else ""

    def _is_near(self, method: str, rival: str) -> bool:
        """Return whether a method is shown to lose less than the margin to another."""
        pair = self._find(rival, method)
        is_judged = pair is not None and has_verdicts(pair.result)
        return is_judged and self._loss_limit(method, rival) < self._margin

    def _find(self, a: str, b: str) -> "Comparison | None":
        return next((pair for pair in self._family if {pair.a, pair.b} == {a, b}), None)

    def _deficit(self, ahead: str, other: str) -> tuple[float, float]:
        """Return the simultaneous limits of how many points ``other`` is behind ``ahead``."""
        pair = self._find(ahead, other)
        family = None if pair is None else pair.decided[1]
        if pair is None or family is None:
            return -100.0, 100.0
        low, high = family.low_simultaneous, family.high_simultaneous
        if low is None or high is None:
            return -100.0, 100.0
        limits = (low, high) if pair.a == ahead else (-high, -low)
        return floor(1000 * limits[0] + 1e-9) / 10, ceil(1000 * limits[1] - 1e-9) / 10

    def _loss_limit(self, method: str, rival: str) -> float:
        """Return the most points of a method's loss to another, however missing verdicts fell."""
        pair, high = self._find(rival, method), self._deficit(rival, method)[1]
        if pair is None or pair.result.difference is None or pair.result.difference_bounds is None:
            return high
        (low, up), difference = pair.result.difference_bounds, pair.result.difference
        return high + 100 * max(0.0, up - difference if pair.a == rival else difference - low)


def _list_dead(results: "EvaluationResults", methods: Sequence[str]) -> tuple[list[str], str]:
    """Return the methods most of whose searches failed, and a line on them, or ""."""
    failed = {m: (results.counts[m]["n_search_failed"], results.counts[m]["n"]) for m in methods}
    dead = [method for method, (n_failed, n) in failed.items() if 2 * n_failed > n]
    cells = ["{} {:,} of {:,}".format(method, *failed[method]) for method in dead]
    return dead, f"Failed searches: {join_names(cells, last=', ')}. " if dead else ""


def _see_why(results: "EvaluationResults", method: str) -> tuple[str, str]:
    command = _command(results, "show", "--failed", "--method", method)
    return f"see why the searches of {method} failed", command


def _command(results: "EvaluationResults", command: str, *flags: str) -> str:
    run_id = results.metadata.get("run_id")
    return eval_line_here(command, run_id, *flags) if run_id else ""


def list_lines(answer: Answer) -> Iterator[Line]:
    """Yield the lines of an answer: the recommendation, the reasons, the next step."""
    yield Line(answer.line, f"bold {STYLES.get(answer.chip, '')}".rstrip())
    yield from map(Line, answer.reasons)
    if answer.next:
        text = f"Next: {': '.join(filter(None, (answer.next, answer.command)))}"
        yield Line(text, "bold", is_command=bool(answer.command))


def describe_more(more: float, n: int, seen: float | None = None) -> str:
    """Return a clause on how many more questions decide.

    ``more``: the questions that decide whatever the difference is. ``n``: the questions asked.
    ``seen``: the questions that show a difference as large as the one seen, named if they are
    fewer; None if none was seen.
    """
    number = f"about {round_up(more):,}" if n >= _ENOUGH else "hundreds"
    is_fewer = seen is not None and 1 <= seen < (more if n >= _ENOUGH else min(more, _HUNDREDS))
    if seen is None or not is_fewer:
        return f"{number} more questions decide"
    return (
        f"about {round_up(seen):,} more questions decide if the difference stays this large; "
        f"else {number}"
    )


def _limits(low: float, high: float) -> str:
    """Return limits of a lead in whole points, rounded outwards, or in tenths if it is small."""
    low = max(0.0, low)
    return f"{low:.1f} to {high:.1f}" if low < 1 else f"{floor(low)} to {ceil(high)}"
