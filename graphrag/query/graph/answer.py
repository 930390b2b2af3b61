"""Builds the context of a model call, asks the model, and turns its reply into a cited answer.

The answer comes with data frames that record the course of the search.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar, cast

import pandas as pd
from pydantic_core import from_json

from graphrag.query.client.call_errors import CutOffReplyError
from graphrag.query.client.structured_output import UnreadableReplyError
from graphrag.query.client.thoughts import without_thoughts
from graphrag.query.client.usage import OutputBound, phase
from graphrag.query.graph.candidates import Row
from graphrag.query.graph.prompts import (
    CompletionModel,
    NextStep,
    ReasonedAnswer,
    ToGSearchError,
    ask,
    csv_line,
    fill,
)
from graphrag.query.graph.store import (
    EntityRow,
    GraphStore,
    RelationshipRow,
    TextUnit,
    TextUnits,
)
from graphrag.query.passages import Selection, show_passages
from graphrag.query.search_result import OnText, Outcome
from graphrag.text.citations import CITATION
from graphrag.text.message_phrases import shorten

if TYPE_CHECKING:
    from graphrag_llm.tokenizer import Tokenizer

NOT_FOUND = "I could not find this in the provided context."
WITHDRAWN = "(The text above could not be traced to the index and is withdrawn.)"

_OWN_CITATION = re.compile(rf"\s*{CITATION.pattern}", re.IGNORECASE)
_HALF_CITATION = re.compile(r"\s*\[(?:D(?:a(?:t(?:a)?)?)?)?$")
_N_ATTEMPTS = 2
# No token budget has room for more passages.
_MAX_PASSAGES = 300
_N_CACHED_COUNTS = 2048

_Form = TypeVar("_Form", bound=ReasonedAnswer)


@dataclass(slots=True)
class Context:
    """The tables that one model call is shown: their rows, and the text that they make.

    - ``n_tokens``: tokens of the headings and of each line, each counted alone.
    - ``passages``: place of each passage shown -> id of its text unit.
    - ``sources``: the text units shown, each with only the passages of its text that are shown.
    - ``in_part``: ids of the text units that are not shown in full.
    - ``relationships``, ``entities``: by row of their table.
    - ``earlier``: lines of what each earlier call lacked and searched for.
    """

    text: str = ""
    n_tokens: int = 0
    passages: dict[int, str] = field(default_factory=dict[int, str])
    sources: list[TextUnit] = field(default_factory=list[TextUnit])
    relationships: dict[int, RelationshipRow] = field(default_factory=dict[int, RelationshipRow])
    entities: dict[int, EntityRow] = field(default_factory=dict[int, EntityRow])
    rows: list[Row] = field(default_factory=list[Row])
    in_part: frozenset[str] = frozenset()
    earlier: list[str] = field(default_factory=list[str])

    def render(self) -> str:
        """Write the tables that have rows."""
        numbered = (
            csv_line([number, row.names, row.document, row.sentence])
            for number, row in enumerate(self.rows, 1)
        )
        sections = {
            "-----Sources-----\nid|document|text": map(_line, self.sources),
            "-----Relationships-----\nid|source|target|description": map(
                _line, self.relationships.values()
            ),
            "-----Entities-----\nid|entity|description": map(_line, self.entities.values()),
            "-----Rows-----\nnumber|from -> to|document|sentence": numbered,
            "-----Earlier calls-----\nmissing|searched for": self.earlier,
        }
        written = ((heading, list(lines)) for heading, lines in sections.items())
        return "\n\n".join("\n".join([heading, *lines]) for heading, lines in written if lines)

    def drop_last(self) -> bool:
        """Remove the least important row; return False if no row is left."""
        if self.rows:
            self.rows.pop()
        elif self.entities:
            self.entities.popitem()
        elif self.sources:
            dropped = self.sources.pop().id
            self.passages = {k: unit for k, unit in self.passages.items() if unit != dropped}
        elif self.relationships:
            self.relationships.popitem()
        else:
            return False
        return True


_TableRow = TextUnit | EntityRow | RelationshipRow
_CELLS: dict[type[_TableRow], Callable[[_TableRow], Sequence[object]]] = {
    TextUnit: attrgetter("human_readable_id", "document", "text"),
    EntityRow: attrgetter("human_readable_id", "title", "description"),
    RelationshipRow: attrgetter("human_readable_id", "source", "target", "description"),
}
"""The cells that are shown of a row, by its type."""
_TOKENS_OF_HEADINGS = 50
_SHORT_DESCRIPTION = 200
"""Characters of a relationship's description that are shown next to texts."""


def _line(row: _TableRow) -> str:
    if isinstance(row, TextUnit) and row.text.lstrip().startswith(row.document):
        return csv_line([row.human_readable_id, "", row.text])  # the text begins with its title
    return csv_line(_CELLS[type(row)](row))


class Grounder:
    """Builds contexts from one index, each of at most ``budget`` tokens of the completion model."""

    def __init__(
        self, store: GraphStore, text_units: TextUnits, tokenizer: "Tokenizer", budget: int
    ) -> None:
        self._store, self._text_units, self._budget = store, text_units, budget
        self._count_line = lru_cache(maxsize=_N_CACHED_COUNTS)(tokenizer.num_tokens)
        self._count = tokenizer.num_tokens

    def build(
        self,
        passages: Iterable[int],
        relationships: Iterable[int],
        n_texts: int,
        n_kept: int = 1,
        earlier: Iterable["Call"] = (),
    ) -> Context:
        """Build a context from the relationships, then the passages, that fit, in the order given.

        ``earlier``: the calls so far; what they lacked and looked up is shown, too. Passages are
        given by place. They take up to ``n_texts`` tokens. The first ``n_kept`` passages may take
        the full budget; so may any passage if otherwise none would fit. Next to
        passages, only the beginning of a relationship's description is shown: between main
        characters a description is longer than a text. Without passages, the entities at the ends
        of the relationships are shown instead.
        """
        context = Context(n_tokens=_TOKENS_OF_HEADINGS)
        for call in earlier:
            line = csv_line([call.missing, "; ".join(call.looked_up)])
            if call.looked_up and self._takes(context, line):
                context.earlier.append(line)
        places = list(dict.fromkeys(passages))[:_MAX_PASSAGES]
        for row in relationships:
            edge = self._store.relationship_row(row)
            if places:
                edge = replace(edge, description=shorten(edge.description, _SHORT_DESCRIPTION))
            if self._takes(context, _line(edge)):
                context.relationships[row] = edge
        room = self._budget - context.n_tokens
        cost_of_kept = self._select(places[:n_kept], room).cost
        selection = self._select(places, max(n_texts - context.n_tokens, cost_of_kept))
        if not selection.units:
            selection = self._select(places, room)
        context.n_tokens += selection.cost
        context.passages = {passage.place: passage.unit_id for passage in selection.passages}
        context.sources, context.in_part = selection.units, selection.in_part
        if not context.sources:
            edges = context.relationships.values()
            ends = (title for edge in edges for title in (edge.source, edge.target))
            nodes = (node for title in ends for node in self._store.nodes_named_in(title)[:1])
            for node in dict.fromkeys(nodes):
                row = self._store.entity_row(node)
                if self._takes(context, _line(row)):
                    context.entities[node] = row
        return self._finish(context)

    def _select(self, places: Iterable[int], room: int) -> Selection[TextUnit]:
        ranked = map(self._text_units.passage, places)
        return show_passages(ranked, lambda u: self._cost(_line(u)), room, passes_over=True)

    def add_rows(self, context: Context, rows: Iterable[Row], n_rows: int) -> Context:
        """Add at most ``n_rows`` rows that lead on to a context, as long as they fit."""
        for row in rows:
            line = csv_line([len(context.rows) + 1, row.names, row.document, row.sentence])
            if len(context.rows) == n_rows or not self._takes(context, line):
                break
            context.rows.append(row)
        return self._finish(context)

    def _finish(self, context: Context) -> Context:
        """Write the context's text, and drop rows while the full text exceeds the budget.

        Tokens of joined lines may be a few more than those of the lines counted one by one.
        """
        context.text = context.render()
        while self._count(context.text) > self._budget and context.drop_last():
            context.text = context.render()
        return context

    def _cost(self, line: str) -> int:
        return self._count_line(line + "\n")

    def _takes(self, context: Context, line: str) -> bool:
        fits = context.n_tokens + self._cost(line) <= self._budget
        context.n_tokens += self._cost(line) if fits else 0
        return fits


class LiveText:
    """Passes an answer on while the model writes it, and withdraws it if it was not kept."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._shown = ""

    def show(self, received: str, may_go_on: bool) -> None:
        """Pass on the new part of the answer in a reply that is still arriving."""
        ready = _HALF_CITATION.sub("", _clean(_read_partial(received, may_go_on)))
        if len(ready) > len(self._shown) and ready.startswith(self._shown):
            self._on_text(ready[len(self._shown) :])
            self._shown = ready

    def finish(self, response: str) -> None:
        """Pass on the rest of the final response, or withdraw the text shown if it differs."""
        is_kept = response.startswith(self._shown)
        rest = response[len(self._shown) :] if is_kept else f"\n\n{WITHDRAWN}\n\n{response}"
        if rest:
            self._on_text(rest)


@dataclass(frozen=True, slots=True)
class Reasoner:
    """Asks the model for the next step of a search, or for the answer in ``response_type``.

    ``exploring`` is the prompt of calls after which the search may go on, ``reasoning`` the prompt
    of the last call.
    """

    model: CompletionModel
    exploring: str
    reasoning: str
    response_type: str
    bound: OutputBound

    async def explore(
        self, question: str, context: Context, live: LiveText | None
    ) -> tuple[NextStep | None, str]:
        """Ask whether the context answers the question, or what leads on; retry unreadable replies.

        Asks at most twice. Returns the reply, or None, and what went wrong, or "". Raises
        CutOffReplyError if an answer was cut off.
        """
        fault = ""
        for _ in range(_N_ATTEMPTS):
            try:
                reply = await self._ask(NextStep, self.exploring, question, context, fault, live)
            except UnreadableReplyError as error:
                fault = str(error)
            except CutOffReplyError as error:
                if _read_partial(error.content, may_go_on=True):
                    raise  # another answer would be as long
                return None, str(error)
            else:
                return reply, ""
        return None, f"the model could not be understood, twice in a row: {fault}"

    async def check(
        self, question: str, context: Context, live: LiveText | None = None
    ) -> ReasonedAnswer:
        """Ask for the answer; ask again if the reply is unreadable or cites nothing of the context.

        ``live`` shows the answer while it arrives. Raises ToGSearchError if two replies in a row
        can't be read. Raises CutOffReplyError if one was cut off, because the next one would be,
        too.
        """
        reply: ReasonedAnswer | None = None
        problem = unreadable = ""
        for _ in range(_N_ATTEMPTS):
            try:
                reply = await self._ask(
                    ReasonedAnswer, self.reasoning, question, context, problem, live
                )
            except UnreadableReplyError as error:
                problem = unreadable = str(error)
                continue
            problem = _find_fault(reply, context)
            if not problem:
                break
            live = None  # what is shown live is never taken back for a second draft
        if reply is None:
            msg = f"The model's answer could not be read, twice in a row: {unreadable}."
            raise ToGSearchError(msg)
        return reply

    async def _ask(
        self,
        form: type[_Form],
        prompt: str,
        question: str,
        context: Context,
        problem: str,
        live: LiveText | None,
    ) -> _Form:
        values = {"context_data": context.text, "response_type": self.response_type}
        system = fill(prompt, values)
        if problem:
            system += f"\n\nYour last reply could not be used: {problem}. Reply again."
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        may_go_on = form is NextStep
        on_partial = None if live is None else partial(live.show, may_go_on=may_go_on)
        with phase("exploration" if may_go_on else "reasoning"):
            return await ask(self.model, messages, form, self.bound, on_partial)


def is_answer(reply: NextStep, context: Context) -> bool:
    """Say whether a reply ends the search: it cites an id of the context, and would not read on.

    A reply would not read on if it names nothing missing, or if it keeps no text (not even one that
    it cites) and follows no row: small models write under ``missing`` what they have found.
    """
    is_last = not reply.missing or not (reply.keep or reply.follow)
    return is_last and bool(_clean(reply.answer)) and any(_known_ids(reply, context))


def _find_fault(reply: ReasonedAnswer, context: Context) -> str:
    if not _clean(reply.answer):
        return "" if reply.missing else "it says that nothing is missing but gives no answer"
    if any(_known_ids(reply, context)):
        return ""
    return "its answer cites no id of the tables Relationships and Sources"


def _known_ids(reply: ReasonedAnswer, context: Context) -> tuple[list[int], list[int]]:
    relationships = {row.human_readable_id for row in context.relationships.values()}
    sources = {unit.human_readable_id for unit in context.sources}
    return sorted(relationships & {*reply.relationships}), sorted(sources & {*reply.sources})


def _clean(answer: str) -> str:
    # Citations inside the model's text are unchecked, and "..." is no answer.
    text = _OWN_CITATION.sub("", answer).strip()
    return text if any(map(str.isalnum, text)) else ""


def _read_partial(received: str, may_go_on: bool) -> str:
    """Return the answer in a reply received so far, "" before the answer begins.

    With ``may_go_on``, the answer also counts as "" unless the reply says that nothing is missing.
    """
    received = without_thoughts(received, goes_on=True)
    begin = received.find("{")
    try:
        values = from_json(received[max(0, begin) :], allow_partial="trailing-strings")
    except ValueError:
        return ""
    reply = cast("dict[str, object]", values) if isinstance(values, dict) else {}
    answer = reply.get("answer")
    is_used = not may_go_on or reply.get("missing") == ""
    return answer if isinstance(answer, str) and is_used else ""


@dataclass(slots=True)
class Call:
    """One model call of a search, as the search reports it.

    ``shown`` and ``kept`` are ids of text units; ``rows`` and ``followed`` are rows as the model
    saw them; ``looked_up`` are the searches that it asked for.
    """

    call: int
    shown: list[int]
    rows: list[str]
    kept: list[int] = field(default_factory=list[int])
    followed: list[str] = field(default_factory=list[str])
    looked_up: list[str] = field(default_factory=list[str])
    missing: str = ""
    note: str = ""

    def add_note(self, note: str) -> None:
        """Add a remark to the call's note."""
        self.note = "; ".join(filter(None, [self.note, note]))


def conclude(
    reply: ReasonedAnswer,
    context: Context,
    calls: Sequence[Call],
    followed: Sequence[Row],
    store: GraphStore,
) -> Outcome:
    """Return the outcome of a search from its last reply, with the citations checked.

    The response cites at least one id of the context, or says plainly that the answer was not
    found. The last call records what the model says is missing, and how many cited ids the context
    lacks.
    """
    relationships, sources = _known_ids(reply, context)
    answer, last = _clean(reply.answer), calls[-1]
    last.missing = reply.missing
    cited_ids = len({*reply.relationships}) + len({*reply.sources})
    if n_dropped := cited_ids - len(relationships) - len(sources):
        last.add_note(f"{n_dropped} cited ids were not in the context")
    abstained = not (answer and (relationships or sources))
    if abstained:
        response = f"{NOT_FOUND} Missing: {reply.missing}" if reply.missing else NOT_FOUND
    else:
        cited = [
            f"{name} ({', '.join(map(str, ids))})"
            for name, ids in (("Relationships", relationships), ("Sources", sources))
            if ids
        ]
        response = f"{answer} [Data: {'; '.join(cited)}]"
    frames = _frames(context, calls, followed, store)
    return Outcome(
        response=response, context_data=frames, context_text=context.text, abstained=abstained
    )


def _frames(
    context: Context, calls: Sequence[Call], followed: Sequence[Row], store: GraphStore
) -> dict[str, pd.DataFrame]:
    """Return the last context and the course of a search as data frames.

    - ``paths``: a row for each relationship followed, in order; source and target are as stored. A
      relationship that starts where the one before it ended is a further hop of the same path.
    - ``exploration``: a row for each call.
    - ``sources``: has a column ``in_part`` if a text unit is not shown in full.

    Ids are human_readable_id; ``text_unit_ids`` are ids of the text units table. Every column is
    there even without rows.
    """
    edges = context.relationships.values()
    tables: dict[str, tuple[str, Iterable[Sequence[object]]]] = {
        "paths": (
            "path_id hop source target relationship_id traversed_forward score text_unit_ids",
            _path_rows(followed, store),
        ),
        "entities": ("id entity description", map(_CELLS[EntityRow], context.entities.values())),
        "relationships": (
            "id source target description weight",
            ((*_CELLS[RelationshipRow](row), row.weight) for row in edges),
        ),
        "sources": ("id document text", map(_CELLS[TextUnit], context.sources)),
        "exploration": (
            "call shown rows kept followed looked_up missing note",
            map(astuple, calls),
        ),
    }
    frames = {
        name: pd.DataFrame(list(rows), columns=columns.split())
        for name, (columns, rows) in tables.items()
    }
    if context.in_part:
        frames["sources"]["in_part"] = [unit.id in context.in_part for unit in context.sources]
    return frames


def _path_rows(followed: Sequence[Row], store: GraphStore) -> Iterable[Sequence[object]]:
    path, hop, end = -1, 0, ""
    for step in followed:
        if step.relationship is None:
            continue
        row = store.relationship_row(step.relationship)
        begin, after = (row.source, row.target)[:: 1 if step.forward else -1]
        path, hop = (path, hop + 1) if begin == end else (path + 1, 1)
        end = after
        ends = (row.source, row.target, row.human_readable_id)
        yield path, hop, *ends, step.forward, 1.0, list(row.text_unit_ids)
