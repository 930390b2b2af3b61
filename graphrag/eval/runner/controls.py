"""Methods that retrieve nothing, to show how much of a score retrieval earned.

``closed_book`` asks the model without any context, ``oracle`` with the sample's evidence as the
context. Both use the model of local search and the same instructions, so that they differ in
nothing but the context.
"""

import time
from typing import TYPE_CHECKING, cast

from graphrag.eval.config.sections import EqualTerms
from graphrag.eval.dataset.samples import Sample
from graphrag.query.usage import phase

if TYPE_CHECKING:
    from graphrag_llm.completion import LLMCompletion
    from graphrag_llm.config import ModelConfig
    from graphrag_llm.types import LLMCompletionResponse
    from pydantic import BaseModel

    from graphrag.query.counted_result import CountedSearchResult
    from graphrag.query.index_header import IndexHeader

VERSION = 1
CONTROL_PROMPT = """You answer questions.
{source}
Form of the answer: {response_type}
When you do not know the answer, say so.

-----Sources-----
id|text
{table}
"""
_INSTRUCTIONS = {
    "closed_book": "No sources are given; rely on what you know.",
    "oracle": "Rely on the sources below alone, and cite them as [Data: Sources (ids)].",
}


class NoEvidenceError(ValueError):
    """The sample quotes no evidence, so that an oracle has nothing to show."""


def answering_config(header: "IndexHeader") -> "ModelConfig":
    """Return the configuration of the model that answers: local search's."""
    model_id = header.config.local_search.completion_model_id
    return header.config.get_completion_model_config(model_id)


def describe_control(
    name: str, header: "IndexHeader", terms: EqualTerms | None
) -> dict[str, object]:
    """Return everything that changes what a control answers."""
    from graphrag.query.index_header import model_name, public_call_args

    config = answering_config(header)
    return {
        "control": name,
        "version": VERSION,
        "response_type": response_type(header, terms),
        "models": {
            "completion": {"model": model_name(config), "call_args": public_call_args(config)}
        },
    }


def response_type(header: "IndexHeader", terms: EqualTerms | None) -> str:
    """Return the form of the answer that the other methods are asked for as well."""
    return header.options.response_type if terms is None else terms.response_type


def evidence_of(sample: Sample) -> list[str]:
    """Return the quotes that an oracle shows.

    Raises
    ------
    NoEvidenceError
        If there is none.
    """
    if not sample.evidence:
        msg = "the sample quotes no evidence, so there is nothing to show"
        raise NoEvidenceError(msg)
    return list(sample.evidence)


async def ask_control(
    model: "LLMCompletion", name: str, sample: Sample, form: str
) -> "CountedSearchResult":
    """Ask the model with the sample's evidence, or with nothing for a closed book.

    Parameters
    ----------
    model : LLMCompletion
    name : {"closed_book", "oracle"}
    sample : Sample
    form : str
        See :func:`response_type`.

    Returns
    -------
    CountedSearchResult
        Without counters of its own, as the calls are in the run's log.

    Raises
    ------
    NoEvidenceError
        If an oracle has nothing to show.
    """
    from graphrag.query.counted_result import CountedSearchResult

    contexts = evidence_of(sample) if name == "oracle" else []
    rows = [f"{number}|{' '.join(text.split())}" for number, text in enumerate(contexts)]
    system = CONTROL_PROMPT.format(
        source=_INSTRUCTIONS[name], response_type=form, table="\n".join(rows)
    )
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": sample.question},
    ]
    started = time.perf_counter()
    with phase("response"):
        reply = cast(
            "LLMCompletionResponse[BaseModel]", await model.completion_async(messages=messages)
        )
    seconds = time.perf_counter() - started
    return CountedSearchResult(str(reply.content), {}, contexts, seconds, 0, 0, 0)
