"""Recognise what a request asks for, and let the rules for it reply."""

from collections.abc import Callable, Mapping

from graphrag.offline import OfflineModelError, grading, search_replies, summaries
from graphrag.offline.extraction import answer_extraction
from graphrag.offline.requests import Reply, Request
from graphrag.text.tables import context_region, read_context

SUPPORTED = (
    "graphrag's index prompts (extract graph, summarize descriptions, community reports)",
    "its local, basic, global and drift search prompts, and that of agentic search",
    "Think-on-Graph's edge scoring and check-and-answer",
    "the evaluation's judge prompts (the four metrics, rubric, quality, pairwise)",
)

_STRUCTURED: dict[frozenset[str], Callable[[Request], Mapping[str, object] | None]] = {
    frozenset(fields.split()): handler
    for fields, handler in {
        "scores": search_replies.score_edges,
        "sufficient answer relationships sources missing": search_replies.check_and_answer,
        "missing query": search_replies.name_next_search,
        "reason score": grading.judge,
        "relevance faithfulness completeness coherence groundedness overall_score summary": (
            grading.grade_rubric
        ),
        "reasoning accuracy completeness relevance overall_score": grading.grade_quality,
        "reasoning winner": grading.compare_answers,
        "intermediate_answer score follow_up_queries": search_replies.answer_primer,
        "title summary findings rating rating_explanation": summaries.answer_community_report,
    }.items()
}


def _answer_connectivity(request: Request) -> str | None:
    is_test = "LLM connectivity test" in request.user and len(request.user.split()) < 20
    return "Hello World" if is_test else None


_PLAIN: tuple[Callable[[Request], str | None], ...] = (
    answer_extraction,
    summaries.answer_description_summary,
    _answer_connectivity,
    search_replies.answer_hypothesis,
    search_replies.answer_rating,
)


def reply(request: Request) -> Reply:
    """Reply to a request; in JSON of the reply's class where it names one.

    Raises
    ------
    OfflineModelError
        When the request is none that the rules know. Nothing is ever made up instead.
    """
    if request.reply_type is not None:
        handler = _STRUCTURED.get(request.fields)
        values = handler(request) if handler else None
        if values is None:
            raise _unknown(f"a reply with the fields {', '.join(sorted(request.fields))}")
        return Reply(request.reply_type.model_validate(values).model_dump_json())
    texts = (handler(request) for handler in _PLAIN)
    text = next((text for text in texts if text is not None), None)
    return _reply_from_context(request) if text is None else Reply(text)


def _reply_from_context(request: Request) -> Reply:
    region = context_region(request.system)
    instructions = request.system.replace(region, "", 1)
    if "---Example questions---" in instructions:
        raise _unknown("new questions to be made up")
    if "---Analyst Reports---" in instructions or "---Data Reports---" in instructions:
        return search_replies.answer_reduce(request)
    if "---Data tables---" in instructions:
        if '"points"' in instructions:
            return search_replies.answer_map(request)
        if "follow_up_queries" in instructions:
            return search_replies.answer_drift_local(request)
        return search_replies.answer_from_tables(request)
    if read_context(request.system) or "-----Sources-----" in request.system:
        return search_replies.answer_from_tables(request)
    raise _unknown("something else")


def _unknown(what: str) -> OfflineModelError:
    return OfflineModelError(
        f"The request asks for {what}, which the offline model can't do. "
        f"It answers {'; '.join(SUPPORTED)}. For anything else configure a language model."
    )
