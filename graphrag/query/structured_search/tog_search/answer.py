"""From paths and ranked texts to a context, from the context to a cited answer and data frames."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import pandas as pd
from pydantic_core import from_json

from graphrag.config.models.tog_search_config import PPRSearchConfig
from graphrag.query.replies import UnreadableReplyError
from graphrag.query.structured_search.tog_search.asking import (
    CompletionModel,
    ReasonedAnswer,
    ToGSearchError,
    ask,
    csv_line,
    fill,
)
from graphrag.query.structured_search.tog_search.state import (
    Exploration,
    Passages,
    Path,
    Round,
    ScoredEdge,
)
from graphrag.query.structured_search.tog_search.store import (
    EntityRow,
    GraphStore,
    RelationshipRow,
    TextUnit,
    TextUnits,
)
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


@dataclass(frozen=True, slots=True)
class Context:
    """What a check-and-answer call is shown: the tables as they are sent, and their rows."""

    text: str = ""
    paths: tuple[Path, ...] = ()
    entities: tuple[EntityRow, ...] = ()
    relationships: tuple[RelationshipRow, ...] = ()
    sources: tuple[TextUnit, ...] = ()


class _Draft:
    """The rows chosen so far, each with its rendered line, and the tokens they take."""

    def __init__(self) -> None:
        self.used = 0
        self.paths: dict[Path, str] = {}
        self.relationships: dict[int, tuple[RelationshipRow, str]] = {}
        self.entities: dict[int, tuple[EntityRow, str]] = {}
        self.sources: list[tuple[TextUnit, str]] = []

    def render(self) -> str:
        """Join the lines to the context; a section without rows keeps its heading."""
        sources = [line for _, line in self.sources]
        entities = [line for _, line in self.entities.values()]
        relationships = [line for _, line in self.relationships.values()]
        sections = (
            ["-----Sources-----", "id|text", *sources],
            ["-----Entities-----", "id|entity|description", *entities],
            ["-----Relationships-----", "id|source|target|description", *relationships],
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

    def build(self, starts: Sequence[int], paths: Sequence[Path], passages: Passages) -> Context:
        """Choose and render what the model is shown.

        Paths, relationships and entities take at most ``graph_share`` of ``max_context_tokens``
        (all of it where no text unit is there or fits), text units the rest.

        Parameters
        ----------
        starts : sequence of int
            Nodes that the search started from; shown after those on the paths.
        paths : sequence of Path
            Best first.
        passages : Passages
            Ranks the text units.
        """
        draft = _Draft()
        draft.used = self._count_line(draft.render())
        share = int(self._budget * self._graph_share)
        if not self._texts_first:
            self._add_graph(draft, starts, paths, share)
        for unit in self._text_units.best(passages.units, _MAX_UNITS):
            line = csv_line((unit.human_readable_id, unit.text))
            if self._take(draft, [line], self._budget):
                draft.sources.append((unit, line))
        if self._texts_first or not draft.sources:
            left = min(self._budget, draft.used + share) if draft.sources else self._budget
            self._add_graph(draft, starts, paths, left)
        # Joined rows may take a few tokens more than the rows counted one by one.
        while self._count(text := draft.render()) > self._budget and draft.drop_last():
            pass
        return Context(
            text=text,
            paths=tuple(draft.paths),
            entities=tuple(row for row, _ in draft.entities.values()),
            relationships=tuple(row for row, _ in draft.relationships.values()),
            sources=tuple(unit for unit, _ in draft.sources),
        )

    def _add_graph(
        self, draft: _Draft, starts: Sequence[int], paths: Sequence[Path], limit: int
    ) -> None:
        for path in paths:
            if path not in draft.paths:
                self._add_path(draft, path, limit)
        for node in (*(node for path in draft.paths for node in path.nodes), *starts):
            if node not in draft.entities:
                row = self._store.entity_row(node)
                line = csv_line((row.human_readable_id, row.title, row.description))
                if self._take(draft, [line], limit):
                    draft.entities[node] = (row, line)

    def _add_path(self, draft: _Draft, path: Path, limit: int) -> None:
        line = path_line(path, self._store)
        new: dict[int, tuple[RelationshipRow, str]] = {}
        for step in path.steps:
            for link in step.edge.links:
                if link.relationship not in draft.relationships:
                    row = self._store.relationship_row(link.relationship)
                    cells = (row.human_readable_id, row.source, row.target, row.description)
                    new[link.relationship] = (row, csv_line(cells))
        if self._take(draft, [line, *(text for _, text in new.values())], limit):
            draft.paths[path] = line
            draft.relationships.update(new)

    def _take(self, draft: _Draft, lines: Sequence[str], limit: int) -> bool:
        cost = sum(self._count_line(line + "\n") for line in lines)
        if draft.used + cost > limit:
            return False
        draft.used += cost
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
    """What came of one check.

    Attributes
    ----------
    response : str
        The text for the user, citations included.
    abstained : bool
        Whether the response says no more than that the answer was not found.
    note : str
        Which cited ids the context did not hold, and what the model says that it lacks; "" where
        there is nothing to say.
    """

    response: str
    abstained: bool
    note: str


class LiveText:
    """Hands an answer on while it is being written, and puts it right if it was not kept."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
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
    """Asks whether the context suffices, and for the answer in the form of ``response_type``.

    The prompt has the fields {context_data} and {response_type}; the bound is each reply's.
    """

    model: CompletionModel
    prompt: str
    response_type: str
    bound: OutputBound

    async def check(self, question: str, context: Context, live: LiveText | None = None) -> Verdict:
        """Ask once; once more if the reply can't be read or cites nothing of the context.

        The response cites at least one id of the context, or says plainly that the answer was
        not found; `live` shows the answer while it arrives.

        Raises
        ------
        ToGSearchError
            If two replies in a row can't be read.
        CutOffReplyError
            If a reply was cut off; asked again it would be cut off again.
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
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": question},
        ]

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
    if (
        n_dropped := len({*reply.relationships})
        + len({*reply.sources})
        - len([*relationships, *sources])
    ):
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
    return (
        sorted({*reply.relationships} & {row.human_readable_id for row in context.relationships}),
        sorted({*reply.sources} & {unit.human_readable_id for unit in context.sources}),
    )


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

    Returns
    -------
    dict of str to pandas.DataFrame
        ``paths`` (a row for each relationship of each hop; source and target as stored, hop
        from 1, score the product up to that hop in [0, 1]), ``entities``, ``relationships``,
        ``sources``, ``exploration``, ``starts`` and ``edges`` (a row for each edge that was
        scored, by its heaviest relationship; source and target as it was walked, score its own,
        path_score the product up to it, fate "walked", "kept" or "pruned", rests_on the rows of
        ``relationships`` and ``sources`` that speak for it, as citations name them; none in
        connect mode, which scores no edge). Ids are human_readable_id, ``text_unit_ids`` the ids of
        the text units table. Every column is there even without rows.
    """
    numbers = {row.human_readable_id for row in context.relationships}
    texts = {unit.id: unit.human_readable_id for unit in context.sources}

    def frame(columns: str, rows: Iterable[Sequence[object]]) -> pd.DataFrame:
        return pd.DataFrame(list(rows), columns=columns.split())

    return {
        "paths": frame(
            "path_id hop source target relationship_id traversed_forward score text_unit_ids",
            _path_rows(context.paths, store),
        ),
        "entities": frame(
            "id entity description",
            ((row.human_readable_id, row.title, row.description) for row in context.entities),
        ),
        "relationships": frame(
            "id source target description weight",
            (
                (row.human_readable_id, row.source, row.target, row.description, row.weight)
                for row in context.relationships
            ),
        ),
        "sources": frame(
            "id text", ((unit.human_readable_id, unit.text) for unit in context.sources)
        ),
        "exploration": frame(
            "depth strategy_used n_edges n_kept note", (_round_row(each) for each in walked.rounds)
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


def _round_row(each: Round) -> Sequence[object]:
    return (each.depth, each.strategy_used, each.n_edges, each.n_kept, each.note)


def _path_rows(paths: Sequence[Path], store: GraphStore) -> Iterable[Sequence[object]]:
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
