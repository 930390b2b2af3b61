"""What indexes took to build, as a table and lines, and after how many questions that pays."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from graphrag.eval.report.answer import join_names
from graphrag.eval.report.cells import UNKNOWN, money
from graphrag.eval.report.table import Kind, Table, Value
from graphrag.eval.results.index_costs import Payoff
from graphrag.eval.store.index_costs import IndexCost
from graphrag.query.model_facts import is_offline
from graphrag.text.phrases import counted

_MOST = 3  # indexes whose workflows are listed; the summary file has those of all
_NOTE = (
    "Replies that were in the project's cache count as well: an earlier build paid for them. "
    "Requests without a reply do not. Methods that read the graph share its cost; bm25 needs the "
    "texts alone, and basic, hybrid and agentic their vectors besides."
)


def index_cost_table(costs: Mapping[str, IndexCost | None]) -> Table | None:
    """Return what a few indexes took, by workflow and model; None where that is not known."""
    rows: list[list[Value]] = []
    for key, cost in costs.items():
        asking: set[str] = set()
        for step in () if cost is None else cost.steps or ():
            counts = (step.prompt_tokens, step.output_tokens)
            tokens = " + ".join(UNKNOWN if n is None else f"{n:,}" for n in counts)
            # A workflow that asks two models took its time once.
            seconds = "" if cost is None or step.workflow in asking else cost.seconds[step.workflow]
            asking.add(step.workflow)
            name = f"{key}: {step.workflow}\n{step.model}"
            rows.append([name, step.replies, tokens, step.cost_usd, seconds])
    columns: list[tuple[str, Kind]] = [
        *(("index, workflow, model", "text"), ("replies", "count"), ("tokens in + out", "tokens")),
        *(("$", "money"), ("seconds", "seconds")),
    ]
    is_long = not rows or len(costs) > _MOST
    return None if is_long else Table("What building the indexes took", columns, rows, _NOTE)


def describe_index_costs(costs: Mapping[str, IndexCost | None]) -> Iterator[str]:
    """Yield a line on each index: what it took in all, or what is not known of it."""
    for key, cost in costs.items():
        seconds = 0.0 if cost is None else fsum(cost.seconds.values())
        if cost is None:
            yield f"What index {key} took to build is not known; graphrag eval --index counts it."
        elif cost.steps is None:
            yield (
                f"Index {key} took {seconds:,.1f} s to build under graphrag index's own profiler; "
                "tokens and dollars are not known."
            )
        else:
            tokens = UNKNOWN if cost.tokens is None else f"{cost.tokens:,}"
            n_cached = sum(step.n_cached for step in cost.steps)
            line = counted(sum(step.replies for step in cost.steps), "reply", "replies")
            line += f" ({n_cached:,} from the project's cache)" if n_cached else ""
            usd = money(cost.cost_usd(), "$", f"dollars {UNKNOWN}")
            line = f"Index {key} took {line}, {tokens} tokens, {usd} and {seconds:,.1f} s to build"
            offline = sorted({step.model for step in cost.steps if is_offline(step.model)})
            yield f"{line}{f' (embedded models: {join_names(offline)})' if offline else ''}."


def describe_payoffs(payoffs: Sequence[Payoff]) -> Iterator[str]:
    """Yield after how many questions the dearer indexes pay, where that is known."""
    never: dict[str, list[str]] = {}
    unknown: dict[str, None] = {}
    for each in payoffs:
        more, saved = each.more_usd, each.saved_usd
        if more is None or saved is None:
            unknown |= dict.fromkeys(["indexes"] * (more is None) + ["searches"] * (saved is None))
        elif each.questions is None:
            never.setdefault(each.first, []).append(each.second)
        else:
            shown = f"but {counted(saved.n, 'question')} do not show that they cost less"
            if each.at_most is not None:
                shown = f"at most {each.at_most:,} with 95 % confidence"
            yield (
                f"{each.first} pays after about {counted(each.questions, 'question')} against "
                f"{each.second}: its index costs {money(more, '$')} more, a thousand of its "
                f"searches {money(1000 * (saved.mean or 0), '$')} less on average; {shown}."
            )
    for first, others in never.items():
        yield (
            f"{first} never pays by cost against {join_names(others)}: its index costs more, and "
            "its searches cost no less on average."
        )
    if unknown:
        yield (
            "After how many questions a dearer index pays is not known, as it is not known what "
            f"the {join_names([*unknown])} cost."
        )
