"""Checking and answering in one call, and holding the answer to what was retrieved."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from pydantic_core import from_json

from graphrag.query.structured_search.tog_search.answer.tables import Context
from graphrag.query.structured_search.tog_search.asking.prompts import fill
from graphrag.query.structured_search.tog_search.asking.replies import (
    CompletionModel,
    ReasonedAnswer,
    ToGSearchError,
    UnreadableReplyError,
    ask,
    ask_live,
)
from graphrag.query.usage import OutputBound, phase

NOT_FOUND = "I could not find this in the provided context."
WITHDRAWN = "(The text above could not be traced to the index and is withdrawn.)"

_OWN_CITATION = re.compile(r"\s*\[Data:[^\]]*(?:\]|$)")
_HALF_CITATION = re.compile(r"\s*\[(?:D(?:a(?:t(?:a)?)?)?)?$")
_N_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one check.

    Attributes
    ----------
    response : str
        The text for the user, citations included.
    n_dropped_ids : int
        Ids that the model cited although the context does not hold them.
    abstained : bool
        Whether the response says no more than that the answer was not found.
    lacking : str
        What the model says that the context lacks; "" where it says that it suffices.
    """

    response: str
    n_dropped_ids: int = 0
    abstained: bool = False
    lacking: str = ""


class LiveText:
    """Hands an answer on while it is being written, and puts it right if it was not kept.

    Parameters
    ----------
    on_text : callable
        Takes each new piece.
    """

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
    """Asks whether the context suffices, and for the answer.

    Parameters
    ----------
    model : CompletionModel
    prompt : str
        With the fields {context_data} and {response_type}.
    response_type : str
        Form of the answer, e.g. ``Multiple Paragraphs``.
    bound : OutputBound
        Of each reply.
    """

    model: CompletionModel
    prompt: str
    response_type: str
    bound: OutputBound

    async def check(self, question: str, context: Context, live: LiveText | None = None) -> Verdict:
        """Ask once; once more if the reply can't be read or cites nothing of the context.

        Parameters
        ----------
        question : str
        context : Context
        live : LiveText or None
            Where to show the answer while it arrives.

        Returns
        -------
        Verdict
            Its response cites at least one id of the context, or says plainly that the
            answer was not found.

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
        values = {
            "context_data": context.text,
            "response_type": self.response_type,
        }
        system = fill(self.prompt, values)
        if problem:
            system += f"\n\nYour last reply could not be used: {problem}. Reply again."
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": question},
        ]
        with phase("reasoning"):
            if live is None:
                return await ask(self.model, messages, ReasonedAnswer, self.bound)

            def read(received: str) -> None:
                answer = _read_partial(received)
                if answer is not None:
                    live.show(answer)

            return await ask_live(self.model, messages, ReasonedAnswer, self.bound, read)


def _find_fault(reply: ReasonedAnswer, context: Context) -> str:
    if not _clean(reply.answer):
        return "it says that the data suffices but gives no answer" if reply.sufficient else ""
    relationships, sources = _known_ids(reply, context)
    if relationships or sources:
        return ""
    return "its answer cites no id of the tables Relationships and Sources"


def _settle(reply: ReasonedAnswer, context: Context) -> Verdict:
    relationships, sources = _known_ids(reply, context)
    n_dropped = len({*reply.relationships} - {*relationships}) + len({*reply.sources} - {*sources})
    answer, missing = _clean(reply.answer), " ".join(reply.missing.split())
    if answer and (relationships or sources):
        cited = [
            f"{name} ({', '.join(map(str, ids))})"
            for name, ids in (("Relationships", relationships), ("Sources", sources))
            if ids
        ]
        lacking = "" if reply.sufficient else missing or "something"
        return Verdict(f"{answer} [Data: {'; '.join(cited)}]", n_dropped, lacking=lacking)
    said = f"{NOT_FOUND} Missing: {missing}" if missing else NOT_FOUND
    return Verdict(said, n_dropped, abstained=True)


def _known_ids(reply: ReasonedAnswer, context: Context) -> tuple[list[int], list[int]]:
    return (
        _known(reply.relationships, (row.human_readable_id for row in context.relationships)),
        _known(reply.sources, (unit.human_readable_id for unit in context.sources)),
    )


def _known(cited: list[int], shown: Iterable[int]) -> list[int]:
    return sorted({*cited} & {*shown})


def _clean(answer: str) -> str:
    # Citations that the model writes into its text are unchecked ones.
    return _OWN_CITATION.sub("", answer).strip()


def _read_partial(received: str) -> str | None:
    """Return the answer so far, None before it begins."""
    begin = received.find("{")
    if begin < 0:
        return None
    try:
        values = from_json(received[begin:], allow_partial="trailing-strings")
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    reply = cast("dict[str, object]", values)
    answer = reply.get("answer")
    return answer if isinstance(answer, str) else None
