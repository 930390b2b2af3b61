"""Recognise what a request asks for, and let the rules for it reply."""

from collections.abc import Callable

from graphrag.offline.errors import OfflineModelError
from graphrag.offline.extraction import COMPLETE, answer_extraction, is_extraction
from graphrag.offline.grading import compare_answers, grade_quality, grade_rubric
from graphrag.offline.judging import judge
from graphrag.offline.query_replies import (
    answer_drift_local,
    answer_from_tables,
    answer_hypothesis,
    answer_map,
    answer_primer,
    answer_rating,
    answer_reduce,
    is_hypothesis,
    is_primer,
    is_rating,
    name_next_search,
)
from graphrag.offline.requests import Reply, Request
from graphrag.offline.summaries import (
    answer_community_report,
    answer_description_summary,
    is_description_summary,
)
from graphrag.offline.tog_replies import check_and_answer, score_edges
from graphrag.text.tables import context_region, read_context

SUPPORTED = (
    "graphrag's index prompts (extract graph, summarize descriptions, community reports)",
    "its local, basic, global and drift search prompts, and that of agentic search",
    "Think-on-Graph's edge scoring and check-and-answer",
    "the evaluation's judge prompts (the four metrics, rubric, quality, pairwise)",
)

_BY_FIELDS: dict[frozenset[str], Callable[[Request], dict[str, object]]] = {
    frozenset({"scores"}): score_edges,
    frozenset({"sufficient", "answer", "relationships", "sources", "missing"}): check_and_answer,
    frozenset({"missing", "query"}): name_next_search,
    frozenset({"reason", "score"}): judge,
    frozenset(
        {
            *("relevance", "faithfulness", "completeness", "coherence", "groundedness"),
            *("overall_score", "summary"),
        }
    ): grade_rubric,
    frozenset(
        {"reasoning", "accuracy", "completeness", "relevance", "overall_score"}
    ): grade_quality,
    frozenset({"reasoning", "winner"}): compare_answers,
    frozenset({"intermediate_answer", "score", "follow_up_queries"}): answer_primer,
    frozenset({"title", "summary", "findings", "rating", "rating_explanation"}): (
        lambda request: answer_community_report(request.user)
    ),
}


def reply(request: Request) -> Reply:
    """Reply to a request; in JSON of the reply's class where it names one.

    Raises
    ------
    OfflineModelError
        When the request is none that the rules know. Nothing is ever made up instead.
    """
    if request.reply_type is not None:
        handler = _BY_FIELDS.get(request.fields)
        if handler is None or (handler is answer_primer and not is_primer(request)):
            raise _unknown(f"a reply with the fields {', '.join(sorted(request.fields))}")
        return Reply(request.reply_type.model_validate(handler(request)).model_dump_json())
    text = _reply_without_context(request)
    return _reply_from_context(request) if text is None else Reply(text)


def _reply_without_context(request: Request) -> str | None:
    asked = request.user.strip()
    if is_extraction(request.first_user):
        if asked.startswith("MANY entities"):
            return COMPLETE
        if "Y or N" in asked and asked != request.first_user.strip():
            return "N"
        return answer_extraction(request.user)
    if is_description_summary(request.user):
        return answer_description_summary(request.user)
    if "LLM connectivity test" in asked and len(asked.split()) < 20:
        return "Hello World"
    if is_hypothesis(request):
        return answer_hypothesis(request)
    if is_rating(request):
        return answer_rating(request)
    return None


def _reply_from_context(request: Request) -> Reply:
    region = context_region(request.system)
    instructions = request.system.replace(region, "", 1)
    if "---Example questions---" in instructions:
        raise _unknown("new questions to be made up")
    if "---Analyst Reports---" in instructions or "---Data Reports---" in instructions:
        return answer_reduce(request)
    if "---Data tables---" in instructions:
        if '"points"' in instructions:
            return Reply(answer_map(request))
        if "follow_up_queries" in instructions:
            return Reply(answer_drift_local(request))
        return answer_from_tables(request)
    if read_context(request.system) or "-----Sources-----" in request.system:
        return answer_from_tables(request)
    raise _unknown("something else")


def _unknown(what: str) -> OfflineModelError:
    return OfflineModelError(
        f"The request asks for {what}, which the offline model can't do. "
        f"It answers {'; '.join(SUPPORTED)}. For anything else configure a language model."
    )
