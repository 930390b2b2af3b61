"""From paths and ranked texts to a context, from the context to a cited answer and data frames."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, cast

import pandas as pd
from pydantic_core import from_json

from graphrag.config.models.tog_search_config import PPRSearchConfig
from graphrag.query.counted_result import OnText
from graphrag.query.replies import UnreadableReplyError
from graphrag.query.structured_search.tog_search.asking import (
    CompletionModel,
    ReasonedAnswer,
    ToGSearchError,
    ask,
    csv_line,
    fill,
)
from graphrag.query.structured_search.tog_search.store import (
    EntityRow,
    GraphStore,
    RelationshipRow,
    TextUnit,
    TextUnits,
)
from graphrag.query.structured_search.tog_search.walk import Exploration, Path, ScoredEdge
from graphrag.query.usage import OutputBound, phase
from graphrag.text.path_tree import name_row
from graphrag.text.terms import shorten

if TYPE_CHECKING:
    from graphrag_llm.tokenizer import Tokenizer

NOT_FOUND = "I could not find this in the provided context."
WITHDRAWN = "(The text above could not be traced to the index and is withdrawn.)"

_OWN_CITATION = re.compile(r"\s*\[Data:[^\]]*(?:\]|$)")
_HALF_CITATION = re.compile(r"\s*\[(?:D(?:a(?:t(?:a)?)?)?)?$")
_N_ATTEMPTS = 2
_MAX_LABEL_CHARS = 160
# No budget holds more text units.
_MAX_UNITS = 300
_N_CACHED_COUNTS = 2048


@dataclass(slots=True)
class Context:
    """What a check-and-answer call is shown: rows by their number, and the text they make.

    ``n_tokens`` are those of the headings and of each line counted alone.
    """

    text: str = ""
    n_tokens: int = 0
    paths: dict[Path, str] = field(default_factory=dict[Path, str])
    entities: dict[int, EntityRow] = field(default_factory=dict[int, EntityRow])
    relationships: dict[int, RelationshipRow] = field(default_factory=dict[int, RelationshipRow])
    sources: list[TextUnit] = field(default_factory=list[TextUnit])

    def render(self) -> str:
        """Write the tables; a section without rows keeps its heading."""
        sections = (
            ["-----Sources-----", "id|text", *map(_line, self.sources)],
            ["-----Entities-----", "id|entity|description", *map(_line, self.entities.values())],
            [
                "-----Relationships-----",
                "id|source|target|description",
                *map(_line, self.relationships.values()),
            ],
            ["-----Paths-----", *self.paths.values()],
        )
        return "\n\n".join(map("\n".join, sections))

    def drop_last(self) -> bool:
        """Take the least important row out; False when there is none left."""
        if self.sources:
            self.sources.pop()
        elif self.entities:
            self.entities.popitem()
        elif self.paths:
            self.paths.popitem()
            links = (link for path in self.paths for step in path.steps for link in step.edge.links)
            needed = {link.relationship for link in links}
            for row in self.relationships.keys() - needed:
                del self.relationships[row]
        else:
            return False
        return True


_Row = TextUnit | EntityRow | RelationshipRow
_CELLS: dict[type[_Row], Callable[[_Row], Sequence[object]]] = {
    TextUnit: attrgetter("human_readable_id", "text"),
    EntityRow: attrgetter("human_readable_id", "title", "description"),
    RelationshipRow: attrgetter("human_readable_id", "source", "target", "description"),
}
"""What is shown of a row."""


def _line(row: _Row) -> str:
    return csv_line(_CELLS[type(row)](row))


class Grounder:
    """Builds contexts over one index, in the tokens of the completion model.

    With ``texts_first`` paths and entities get no more than text units leave.
    """

    def __init__(
        self,
        store: GraphStore,
        text_units: TextUnits,
        tokenizer: "Tokenizer",
        config: PPRSearchConfig,
        texts_first: bool,
    ) -> None:
        self._store = store
        self._text_units = text_units
        self._count_line = lru_cache(maxsize=_N_CACHED_COUNTS)(tokenizer.num_tokens)
        self._count = tokenizer.num_tokens
        self._budget = config.max_context_tokens
        self._graph_share = config.graph_share
        self._texts_first = texts_first

    def build(
        self, starts: Sequence[int], paths: Sequence[Path], masses: Mapping[int, float]
    ) -> Context:
        """Choose and render what the model is shown.

        Paths, best first, their relationships and entities, and then the ``starts``, take at most
        ``graph_share`` of ``max_context_tokens`` (all of it where no text unit is there or fits),
        text units the rest; these are ranked by the mass (> 0) of their rows.
        """
        context = Context()
        context.n_tokens = self._count_line(context.render())
        share = int(self._budget * self._graph_share)
        if not self._texts_first:
            self._add_graph(context, starts, paths, share)
        for unit in self._text_units.best(masses, _MAX_UNITS):
            if self._takes(context, [_line(unit)], self._budget):
                context.sources.append(unit)
        if self._texts_first or not context.sources:
            left = min(self._budget, context.n_tokens + share) if context.sources else self._budget
            self._add_graph(context, starts, paths, left)
        context.text = context.render()
        # Joined rows may take a few tokens more than the rows counted one by one.
        while self._count(context.text) > self._budget and context.drop_last():
            context.text = context.render()
        return context

    def _add_graph(
        self, context: Context, starts: Sequence[int], paths: Sequence[Path], limit: int
    ) -> None:
        for path in paths:
            if path not in context.paths:
                self._add_path(context, path, limit)
        for node in (*(node for path in context.paths for node in path.nodes), *starts):
            if node not in context.entities:
                row = self._store.entity_row(node)
                if self._takes(context, [_line(row)], limit):
                    context.entities[node] = row

    def _add_path(self, context: Context, path: Path, limit: int) -> None:
        line = path_line(path, self._store)
        new = {
            link.relationship: self._store.relationship_row(link.relationship)
            for step in path.steps
            for link in step.edge.links
            if link.relationship not in context.relationships
        }
        if self._takes(context, [line, *map(_line, new.values())], limit):
            context.paths[path] = line
            context.relationships |= new

    def _takes(self, context: Context, lines: Sequence[str], limit: int) -> bool:
        cost = sum(self._count_line(line + "\n") for line in lines)
        if context.n_tokens + cost > limit:
            return False
        context.n_tokens += cost
        return True


def path_line(path: Path, store: GraphStore) -> str:
    """Render a path, each arrow in the direction in which its relationship is stored.

    Of parallel relationships those in the direction of the heaviest are shown.
    """
    parts = [shorten(store.title(path.start), _MAX_LABEL_CHARS)]
    for step in path.steps:
        links = step.edge.links
        label = "; ".join(
            store.relationship_row(link.relationship).description
            for link in links
            if link.forward == links[0].forward
        )
        label = shorten(label, _MAX_LABEL_CHARS)
        parts.append(f"-[{label}]->" if links[0].forward else f"<-[{label}]-")
        parts.append(shorten(store.title(step.edge.target), _MAX_LABEL_CHARS))
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one check: the text for the user, citations included.

    ``abstained`` when it says no more than that the answer was not found. The note, or "", says
    how many cited ids the context did not hold, and what the model says that it lacks.
    """

    response: str
    abstained: bool
    note: str


class LiveText:
    """Hands an answer on while it is being written, and puts it right if it was not kept."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._shown = ""

    def show(self, answer: str) -> None:
        """Hand on what is new in an answer that may still grow."""
        ready = _HALF_CITATION.sub("", _clean(answer))
        if len(ready) > len(self._shown) and ready.startswith(self._shown):
            self._on_text(ready[len(self._shown) :])
            self._shown = ready

    def finish(self, response: str) -> None:
        """Hand on the rest of the final text; if another text was shown before, say so."""
        if response.startswith(self._shown):
            rest = response[len(self._shown) :]
        else:
            rest = f"\n\n{WITHDRAWN}\n\n{response}"
        if rest:
            self._on_text(rest)


@dataclass(frozen=True, slots=True)
class Reasoner:
    """Asks whether the context suffices, and for the answer in the form of ``response_type``."""

    model: CompletionModel
    prompt: str
    response_type: str
    bound: OutputBound

    async def check(self, question: str, context: Context, live: LiveText | None = None) -> Verdict:
        """Ask once; once more if the reply can't be read or cites nothing of the context.

        The response cites at least one id of the context, or says plainly that the answer was
        not found; `live` shows the answer while it arrives. Raises ToGSearchError if two replies in
        a row can't be read, CutOffReplyError if one was cut off: it would be again.
        """
        reply: ReasonedAnswer | None = None
        problem = unreadable = ""
        for _ in range(_N_ATTEMPTS):
            try:
                reply = await self._ask(question, context, problem, live)
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
        return _settle(reply, context)

    async def _ask(
        self, question: str, context: Context, problem: str, live: LiveText | None
    ) -> ReasonedAnswer:
        values = {"context_data": context.text, "response_type": self.response_type}
        system = fill(self.prompt, values)
        if problem:
            system += f"\n\nYour last reply could not be used: {problem}. Reply again."
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]

        def show(received: str) -> None:
            if live:
                live.show(_read_partial(received))

        with phase("reasoning"):
            on_partial = show if live else None
            return await ask(self.model, messages, ReasonedAnswer, self.bound, on_partial)


def _find_fault(reply: ReasonedAnswer, context: Context) -> str:
    if not _clean(reply.answer):
        return "it says that the data suffices but gives no answer" if reply.sufficient else ""
    if any(_known_ids(reply, context)):
        return ""
    return "its answer cites no id of the tables Relationships and Sources"


def _settle(reply: ReasonedAnswer, context: Context) -> Verdict:
    relationships, sources = _known_ids(reply, context)
    answer, missing = _clean(reply.answer), " ".join(reply.missing.split())
    notes: list[str] = []
    cited_ids = len({*reply.relationships}) + len({*reply.sources})
    if n_dropped := cited_ids - len(relationships) - len(sources):
        notes.append(f"{n_dropped} cited ids were not in the context")
    abstained = not (answer and (relationships or sources))
    if abstained:
        response = f"{NOT_FOUND} Missing: {missing}" if missing else NOT_FOUND
    else:
        cited = [
            f"{name} ({', '.join(map(str, ids))})"
            for name, ids in (("Relationships", relationships), ("Sources", sources))
            if ids
        ]
        response = f"{answer} [Data: {'; '.join(cited)}]"
        if not reply.sufficient:
            lacking = missing or "something"
            notes.append(f"the model says that the context lacks this: {lacking}")
    return Verdict(response, abstained, "; ".join(notes))


def _known_ids(reply: ReasonedAnswer, context: Context) -> tuple[list[int], list[int]]:
    known = {row.human_readable_id for row in context.relationships.values()}
    sources = {unit.human_readable_id for unit in context.sources}
    return sorted(known & {*reply.relationships}), sorted(sources & {*reply.sources})


def _clean(answer: str) -> str:
    # Citations that the model writes into its text are unchecked ones.
    return _OWN_CITATION.sub("", answer).strip()


def _read_partial(received: str) -> str:
    """Return the answer so far, "" before it begins."""
    begin = received.find("{")
    try:
        values = from_json(received[max(0, begin) :], allow_partial="trailing-strings")
    except ValueError:
        return ""
    reply = cast("dict[str, object]", values) if isinstance(values, dict) else {}
    answer = reply.get("answer")
    return answer if isinstance(answer, str) else ""


def context_frames(
    context: Context, walked: Exploration, store: GraphStore
) -> dict[str, pd.DataFrame]:
    """Return the context and the course of the search as data frames.

    ``paths`` has a row for each relationship of each hop, source and target as stored, hop from 1,
    score the product up to that hop in [0, 1]; ``edges`` one for each edge that was scored, by its
    heaviest relationship, source and target as it was walked, score its own, path_score the product
    up to it, fate "walked", "kept" or "pruned", rests_on the rows of ``relationships`` and
    ``sources`` that speak for it, as citations name them. Connect mode scores no edge. Ids are
    human_readable_id, ``text_unit_ids`` the ids of the text units table. Every column is there even
    without rows.
    """
    rows = context.relationships.values()
    numbers = {row.human_readable_id for row in rows}
    texts = {unit.id: unit.human_readable_id for unit in context.sources}

    def frame(columns: str, rows: Iterable[Sequence[object]]) -> pd.DataFrame:
        return pd.DataFrame(list(rows), columns=columns.split())

    return {
        "paths": frame(
            "path_id hop source target relationship_id traversed_forward score text_unit_ids",
            _path_rows(context.paths, store),
        ),
        "entities": frame(
            "id entity description", map(_CELLS[EntityRow], context.entities.values())
        ),
        "relationships": frame(
            "id source target description weight",
            ((*_CELLS[RelationshipRow](row), row.weight) for row in rows),
        ),
        "sources": frame("id text", map(_CELLS[TextUnit], context.sources)),
        "exploration": frame(
            "depth strategy_used n_edges n_kept note", map(astuple, walked.rounds)
        ),
        "starts": frame(
            "id entity",
            ((store.entity_row(n).human_readable_id, store.title(n)) for n in walked.starts),
        ),
        "edges": frame(
            "depth source target relationship_id traversed_forward score path_score fate rests_on",
            (_edge_row(scored, numbers, texts, store) for scored in walked.scored),
        ),
    }


def _path_rows(paths: Iterable[Path], store: GraphStore) -> Iterable[Sequence[object]]:
    for path_id, path in enumerate(paths):
        for hop, step in enumerate(path.steps, start=1):
            score = Path(path.start, path.steps[:hop]).score
            for link in step.edge.links:
                row = store.relationship_row(link.relationship)
                ends = (row.source, row.target, row.human_readable_id)
                yield path_id, hop, *ends, link.forward, score, list(row.text_unit_ids)


def _edge_row(
    scored: ScoredEdge, numbers: set[int], texts: dict[str, int], store: GraphStore
) -> Sequence[object]:
    edge = scored.edge
    rows = [store.relationship_row(link.relationship) for link in edge.links]
    rests_on: list[str] = []
    if scored.fate != "pruned":
        shown = [row.human_readable_id for row in rows if row.human_readable_id in numbers]
        units = dict.fromkeys(unit for row in rows for unit in row.text_unit_ids)
        rests_on += [name_row("relationships", str(number)) for number in shown]
        rests_on += [name_row("sources", str(texts[unit])) for unit in units if unit in texts]
    return (
        scored.depth,
        store.title(edge.source),
        store.title(edge.target),
        rows[0].human_readable_id,
        edge.links[0].forward,
        scored.score,
        scored.path_score,
        scored.fate,
        rests_on,
    )
