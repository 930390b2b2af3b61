"""What models were told and said of one answer, on the terminal."""

from collections.abc import Iterator, Mapping, Sequence

from graphrag.eval.records import KeptCalls, KeptExchange
from graphrag.eval.report.table import Line

_LONG, _FIRST, _LAST = 1_500, 900, 400
_UNSEEN = "none were seen: what it asked, if anything, went past graphrag's models"


def list_calls(calls: Sequence[KeptCalls], full: bool = False) -> Iterator[Line]:
    """Yield the calls of a search and of its judges, in order; of long texts both ends.

    ``full``: all of them.
    """
    if not calls:
        yield Line("  Calls: not kept; output.keep_calls keeps them", "dim")
    for each in calls:
        who = {"search": "the search", "judge": "the judge"}.get(
            each["work"], f"the judge ({each['work']})"
        )
        yield Line(f"  Calls of {who}: {len(each['exchanges']) or _UNSEEN}", "bold")
        for number, exchange in enumerate(each["exchanges"], 1):
            yield Line(f"  {number}. {describe_call(exchange)}", "bold")
            for role, text in _texts(exchange):
                yield Line(f"  {role}:", "italic")
                yield Line(text if full else _folded(text))


def describe_call(exchange: KeptExchange) -> str:
    """Return what a call was for, who was asked, and what it took."""
    if exchange["earlier_run"] is not None:
        return f"judged before, in run {exchange['earlier_run']}: nothing was sent"
    values: Mapping[str, object] = {"error": "", **exchange["attempt"]}
    told = f"{values['phase']} by {values['model']}"
    counts = f"{values['prompt_tokens']:,} tokens in, {values['output_tokens']:,} out"
    failed = f", failed: {values['error']}" if values["error"] else ""
    return f"{told}: {counts}, {values['latency_s']:.2f} s{failed}"


def _texts(exchange: KeptExchange) -> Iterator[tuple[str, str]]:
    for role, pieces in exchange["sent"]:
        yield role, "".join(pieces)
    if exchange["settings"]:
        yield "settings", "".join(exchange["settings"])
    yield "reply", "none came" if exchange["reply"] is None else "".join(exchange["reply"])


def _folded(text: str) -> str:
    if len(text) <= _LONG:
        return text
    left = f"\n[... {len(text) - _FIRST - _LAST:,} more characters, which --full prints ...]\n"
    return f"{text[:_FIRST]}{left}{text[-_LAST:]}"
