"""What judges are shown of answers and texts in many languages: sentences, and previews."""

import json

import pytest
from graphrag_llm.config import ModelConfig
from support.language_worlds import ASKED, LANGUAGES, read_world

from graphrag.eval.metrics.claims import judge_claims, split_sentences
from graphrag.eval.metrics.judge import JudgeModel
from graphrag.eval.metrics.judge_input import EvaluableQueryResult
from graphrag.eval.metrics.rubric import LLMEvaluationPrompt, preview
from graphrag.query.client.models import open_completion
from graphrag.text.stems import read_as, terms


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        (
            "दीप जला। क्यों? [Data: Sources (1)] बुझ गया।",
            ["दीप जला।", "क्यों? [Data: Sources (1)]", "बुझ गया।"],
        ),
        (
            "ذهبت. متى؟ [Data: Sources (1)]، وعادت.",
            ["ذهبت.", "متى؟ [Data: Sources (1)]،", "وعادت."],
        ),
        (
            "他走了。【Data：Sources（1）】。她来了。",
            ["他走了。【Data：Sources（1）】。", "她来了。"],
        ),
        ("両方：\n・村は谷\n２、島は海\n①橋", ["両方：", "・村は谷", "２、島は海", "①橋"]),
        ("เขามา [Data: Sources (1)]\n\nเธอไป", ["เขามา [Data: Sources (1)]", "เธอไป"]),
        ("Նա եկավ։ Նա գնաց։", ["Նա եկավ։", "Նա գնաց։"]),
    ],
)
def test_sentences_end_with_the_marks_of_their_script(answer, sentences):
    assert [each.text for each in split_sentences(answer)] == sentences


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_is_split_into_the_sentences_that_it_has(language):
    passages = read_world(language).passages
    joined = ("" if language in ("ja", "zh") else " ").join(passages)
    has_marks = language != "th"
    assert len(split_sentences(joined)) == (len(passages) if has_marks else 1)


async def test_the_embedded_judge_looks_for_the_names_of_any_alphabet():
    settings = ModelConfig(type="offline", model_provider="offline", model="rules")
    judge = JudgeModel(open_completion(settings))
    answer = "У реки стоит мельница Гариной. У реки стоит мельница Анны Маршевой."
    judged = await judge_claims(judge, "Чья?", answer, "Мельница Анны Гариной стоит у реки.")
    assert [claim.ruling for claim in judged.claims] == ["supported", "not_found"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_preview_is_the_passage_that_the_answer_needs_in_any_language(language):
    world = read_world(language)
    for question, (_, gold) in zip(world.questions, ASKED, strict=True):
        needed = world.passages[gold[0]]
        text = " ".join([*world.passages[gold[0] + 1 :], *world.passages[: gold[0] + 1]])
        result = EvaluableQueryResult(question, needed, context_chunks=[text])
        prompt = LLMEvaluationPrompt(preview_chars=3 * len(needed)).generate(result)
        shown = json.loads(prompt.rpartition("Material:\n")[2])["texts"][0]
        with read_as(language):
            assert {*terms(needed)} <= {*terms(shown)}


def test_a_preview_ends_between_words_also_where_no_blank_is():
    text = f"灯塔 {'平静的海。' * 40}柳瀬村的磨坊主。{'平静的海。' * 40}"
    found = preview(text, ["磨坊主"], 60)
    assert "磨坊主" in found
    assert len(found.strip("… ")) == 60
