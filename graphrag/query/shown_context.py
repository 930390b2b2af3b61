"""Finding what a released search showed its model in the prompts that it sent.

The released functions return the records of a context and not its text; the text stands in the
system message, where the prompt's template has ``{context_data}``.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag.utils.api import load_search_prompt

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig

_Prompts = Sequence[Sequence[Mapping[str, Any]]]
_MARK = "\x00context\x00"


def local_context(config: "GraphRagConfig", response_type: str, prompts: _Prompts) -> str:
    """Return the context of a local search, whose only completion is its answer."""
    from graphrag.prompts.query.local_search_system_prompt import LOCAL_SEARCH_SYSTEM_PROMPT

    template = load_search_prompt(config.local_search.prompt) or LOCAL_SEARCH_SYSTEM_PROMPT
    return _of_first(template, {"response_type": response_type}, prompts)


def basic_context(config: "GraphRagConfig", response_type: str, prompts: _Prompts) -> str:
    """Return the context of a basic search, whose only completion is its answer."""
    from graphrag.prompts.query.basic_search_system_prompt import BASIC_SEARCH_SYSTEM_PROMPT

    template = load_search_prompt(config.basic_search.prompt) or BASIC_SEARCH_SYSTEM_PROMPT
    return _of_first(template, {"response_type": response_type}, prompts)


def drift_contexts(config: "GraphRagConfig", query: str, prompts: _Prompts) -> dict[str, str]:
    """Return the contexts of a DRIFT search: follow-up question -> what its answer was shown."""
    from graphrag.prompts.query.drift_search_system_prompt import DRIFT_LOCAL_SYSTEM_PROMPT

    section = config.drift_search
    template = load_search_prompt(section.prompt) or DRIFT_LOCAL_SYSTEM_PROMPT
    # The response type of a follow-up's answer is not the caller's; the release fixes it.
    fields = {
        "response_type": "multiple paragraphs",
        "global_query": query,
        "followups": section.drift_k_followups,
    }
    found: dict[str, str] = {}
    for messages in prompts:
        if len(messages) != 2:
            continue
        context = find_context(template, fields, str(messages[0]["content"]))
        if context is not None:
            found[str(messages[1]["content"])] = context
    return found


def _of_first(template: str, fields: Mapping[str, Any], prompts: _Prompts) -> str:
    if not prompts:
        return ""
    prompt = str(prompts[0][0]["content"])
    context = find_context(template, fields, prompt)
    return prompt if context is None else context


def find_context(template: str, fields: Mapping[str, Any], prompt: str) -> str | None:
    """Return what stands in a prompt for its template's ``{context_data}``.

    Returns
    -------
    str or None
        ``""`` for a template without the field; None if the prompt was not made from it.
    """
    marked = template.format(context_data=_MARK, **fields)
    parts = marked.split(_MARK)
    n_places = len(parts) - 1
    if n_places == 0:
        return "" if prompt == marked else None
    length, rest = divmod(len(prompt) - sum(map(len, parts)), n_places)
    if length < 0 or rest:
        return None
    context = prompt[len(parts[0]) : len(parts[0]) + length]
    return context if context.join(parts) == prompt else None
