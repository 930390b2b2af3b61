"""A comparison of two runs as Markdown, for a pull request or a job's summary.

Texts of questions, documents and models are anybody's: as they stand they could mention people,
close issues, or end the table that they stand in.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag.eval.compare.pairing import BASELINE, NEW
from graphrag.eval.report.cells import money
from graphrag.eval.report.gate_cells import COLUMNS, cells_of, title_of
from graphrag.eval.report.gate_lines import list_notes, list_reasons, shortened, word_of
from graphrag.redaction import redact
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.compare.compare import RunComparison
    from graphrag.eval.compare.pairing import Flip
    from graphrag.query.usage import Usage

_MOST_FLIPS = 10
_MOST_BYTES = 60_000  # GitHub takes 65,536 characters, and a workflow adds lines of its own
_MOST_OF_A_LINE = 2_000
_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # or turns lines round
_TAG = re.compile(r"<(?=\S)")  # before a blank it begins no tag, and reads as it is
_LINKED = re.compile(r"(@|#|:(?=//)|\bwww(?=\.)|\bGH(?=-))", flags=re.IGNORECASE)
_NOTHING = "\u200b"  # of no width: what follows it is no mention, reference or link
_PART = r"""(?:'[^'`|]*'|"[^"`|]*"|[^\s'"`|;(),.]|[,.](?=[^\s'"`|;()]))"""
"""Of a word of a command: what ends one in a sentence is quoted in it, but for a stop inside."""
_PATH = rf"""(?:(?=['"/\\.~]|\w:\\){_PART}*?(?:['"][^'"`|]*)?(?<=[/\\]))?"""
_COMMAND = re.compile(
    rf"""(?<![^\s(]){_PATH}(?:(?:graphrag|gtog)(?:\.exe)?['"]? eval"""
    rf"""|py[\w.]*['"]? -m graphrag(?:\.| )eval)(?: {_PART}+)*"""
)


def render_markdown(
    comparison: "RunComparison", usages: "Mapping[str, Usage] | None" = None
) -> str:
    """Return the comparison as Markdown: the answer, a table, what flipped, what it cost.

    Parameters
    ----------
    comparison : RunComparison
    usages : mapping, optional
        Run id -> all that the run took; of a run that is not in it no cost is told.

    Returns
    -------
    str
        At most 60,000 bytes; where lines had to be left out their number is told.
    """
    visible = [
        f"### Evaluation gate: {word_of(comparison.outcome)}",
        "",
        escape(title_of(comparison)),
        "",
        _row(COLUMNS),
        _row(["---"] * len(COLUMNS)),
        *(_row([escape(cell) for cell in cells_of(item)]) for item in comparison.items),
        "",
        *(f"- {escape(line)}" for line in list_reasons(comparison)),
        *(f"- Warning: {escape(line)}" for line in comparison.warnings),
        *(f"- Warning: {escape(line)}" for line in _rooms(comparison)),
        f"- {_costs(comparison, usages or {})}",
    ]
    notes = [f"- {escape(line)}" for line in list_notes(comparison)]
    return _fit(visible, _flips(comparison.flips), _details("How sure this is", notes))


def escape(text: str) -> str:
    """Return a text as one line that Markdown shows as it is: no mark-up, mention or link.

    Commands of ``graphrag eval`` become code, so that they run when they are copied.
    """
    line = _UNSEEN.sub("\ufffd", " ".join(redact(text).split()))
    line = line if len(line) <= _MOST_OF_A_LINE else f"{line[: _MOST_OF_A_LINE - 3]}..."
    parts: list[str] = []
    end = 0
    for found in _COMMAND.finditer(line):
        parts += [_escape_prose(line[end : found.start()]), f"`{found[0]}`"]
        end = found.end()
    return "".join([*parts, _escape_prose(line[end:])])


def _escape_prose(text: str) -> str:
    line = _TAG.sub("&lt;", text.replace("&", "&amp;"))
    return _LINKED.sub(rf"\1{_NOTHING}", _SPECIAL.sub(r"\\\1", line))


def _rooms(comparison: "RunComparison") -> list[str]:
    """Return what was warned of contexts that held most of a text, once for both runs."""
    found: dict[str, list[str]] = {}
    for side, run in ((NEW, comparison.new), (BASELINE, comparison.baseline)):
        for line in run.roomy:
            found.setdefault(line, []).append(side)
    return [f"{' and '.join(sides)}: {line}" for line, sides in found.items()]


def _flips(flips: "Sequence[Flip]") -> list[str]:
    if not flips:
        return []
    n_wrong = sum(flip.newly == "wrong" for flip in flips)
    ordered = sorted(flips, key=lambda flip: flip.newly == "right")
    lines = [
        f"- newly {flip.newly}: {escape(flip.method)}, {escape(flip.metric)}: "
        f"{escape(flip.question_id)}"
        f"{f' of {escape(flip.document)}' if flip.document else ''}"
        f"{'' if flip.question is None else f': {escape(shortened(flip.question, 200))}'}"
        for flip in ordered[:_MOST_FLIPS]
    ]
    if len(flips) > _MOST_FLIPS:
        lines.append(f"- ... and {len(flips) - _MOST_FLIPS:,} more")
    name = f"Flipped: {n_wrong:,} newly wrong, {len(flips) - n_wrong:,} newly right"
    return _details(name, lines)


def _costs(comparison: "RunComparison", usages: "Mapping[str, Usage]") -> str:
    told: list[str] = []
    for side, run in ((NEW, comparison.new), (BASELINE, comparison.baseline)):
        usage = usages.get(run.run_id or "")
        if usage is None:
            told.append(f"{side} not known here")
            continue
        n = usage.prompt_tokens + usage.output_tokens + usage.embedding_tokens
        tokens = f"{n:,} tokens" if usage.is_counted else "tokens not counted"
        if usage.cached_prompt_tokens is not None:
            tokens += f", {usage.cached_prompt_tokens:,} of them cached"
        # The searches of responses that were judged again were paid for by another run.
        alone = ", judge alone" if run.setup.responses_of is not None else ""
        told.append(f"{side} {money(usage.cost_usd, '$', 'price not known')} ({tokens}{alone})")
    return f"Cost, searches and judge: {'; '.join(told)}"


def _details(name: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return ["", "<details>", f"<summary>{name}</summary>", "", *lines, "", "</details>"]


def _fit(*blocks: Sequence[str]) -> str:
    """Join blocks of lines within the bound; what folds is there whole or not at all."""
    kept: list[str] = []
    left = _MOST_BYTES
    n_out = 0
    for block in blocks:
        size = sum(len(line.encode()) + 1 for line in block)
        if size <= left:
            kept += block
            left -= size
            continue
        if "</details>" in block:
            n_out += len(block)
            continue
        for line in block:
            n = len(line.encode()) + 1
            if n > left:
                n_out += 1
                continue
            kept.append(line)
            left -= n
    if n_out:
        kept += ["", f"{counted(n_out, 'line')} left out here: `graphrag eval compare` prints all."]
    return "\n".join(kept) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
