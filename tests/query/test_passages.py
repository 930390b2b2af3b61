"""Long text units are ranked and shown by passages, and what counts as shown is what was."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, strategies
from support.answers import answer
from support.projects import offline_settings

from graphrag.config.project_settings import ProjectConfig, read_settings
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.metrics.failure_stage import trace_loss
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.measures import measure
from graphrag.eval.metrics.retrieved_context import RetrievalReader
from graphrag.eval.runner.custom_methods import MethodSet
from graphrag.query.client.tokens import default_encoding
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index.header import IndexHeader
from graphrag.query.index.tables import IndexTables
from graphrag.query.passages import GAP, split_text

METHODS = ("bm25", "ppr", "tog")
FILLER = "The {} harbour was calm that day and nobody at the quay had much to do before noon. "
LAMP = "Captain Ferrol repaired the great lamp with a lens of blue glass. "
OTHER = "The keeper Ilse wrote a letter about the storm to her sister. "


def long_text(*told: tuple[int, str]) -> str:
    """Return 90 sentences of about 20 tokens each, some of them told otherwise."""
    text = [FILLER.format(f"number {at}") for at in range(90)]
    for at, sentence in told:
        text[at] = sentence
    return "".join(text)


LONG = long_text((50, LAMP), (5, OTHER))
SHORT = "A ferry brings the mail to the island on Tuesdays."


def index_of(config: ProjectConfig, texts: Sequence[str], **settings: object) -> GraphIndex:
    """Return an index of texts whose tokens are counted, and of one entity that all name."""
    encode = default_encoding().encode
    units = pd.DataFrame(
        {
            "id": [f"unit-{at}" for at in range(len(texts))],
            "human_readable_id": range(len(texts)),
            "text": list(texts),
            "n_tokens": [len(encode(text)) for text in texts],
            "document_id": "all",
            **dict.fromkeys(("entity_ids", "relationship_ids", "covariate_ids")),
        }
    )
    named = {"id": ["e0"], "human_readable_id": [0], "title": ["FERROL"], "description": ["a man"]}
    entities = pd.DataFrame({**named, "text_unit_ids": [["unit-0"]]})
    ends = ("id", "source", "target", "description", "weight", "text_unit_ids")
    tables = IndexTables(
        text_units=units, entities=entities, relationships=pd.DataFrame(columns=[*ends])
    )
    header = IndexHeader(config)
    for method in METHODS:
        header = header.changed(method, {"max_context_tokens": 550, **settings})
    return GraphIndex(header, tables)


@pytest.fixture
def config(tmp_path) -> ProjectConfig:
    (tmp_path / "settings.yaml").write_text(offline_settings(64), encoding="utf-8")
    return read_settings(tmp_path)


def row(shown: Mapping[str, pd.DataFrame], name: int) -> str:
    sources = shown["sources"]
    return str(sources["text"][sources["id"].astype(int) == name].iloc[0])


@pytest.mark.parametrize("method", METHODS)
async def test_the_passage_with_the_words_is_shown_under_its_unit(config, method):
    found = await index_of(config, [SHORT, LONG]).search(method, "Who repaired the great lamp?")
    whole = await index_of(
        config, [SHORT, LONG], passage_tokens=None, max_context_tokens=9_000
    ).search(method, "Who repaired the great lamp?")

    text = row(found.context_data, 1)
    assert LAMP.strip() in text
    assert LAMP.strip() in str(found.context_text)
    assert OTHER.strip() not in text
    assert len(text) < len(LONG) * 0.6
    assert bool(found.context_data["sources"].set_index("id")["in_part"].iloc[0])
    assert row(whole.context_data, 1) == LONG
    assert "in_part" not in whole.context_data["sources"]


async def test_neighbours_are_joined_and_others_parted(config):
    both = long_text((30, LAMP), (45, LAMP), (80, OTHER))
    question = "Who repaired the great lamp, and who wrote of the storm?"
    found = await index_of(config, [SHORT, both], max_context_tokens=1_300).search("bm25", question)

    text = row(found.context_data, 1)
    assert text.count(LAMP.strip()) == 2
    assert OTHER.strip() in text
    assert text.count(GAP.strip()) == 1
    assert all(part.strip() in both for part in text.split(GAP))
    # Of all of its passages a text unit is itself, to the letter.
    roomy = await index_of(
        config, [LONG.replace("harbour", "lamp")], max_context_tokens=9_000
    ).search("bm25", "Which lamp?")
    assert row(roomy.context_data, 0) == LONG.replace("harbour", "lamp").replace(OTHER, OTHER)


@pytest.mark.parametrize(
    ("sentence", "told", "question"),
    [
        (
            "港は静かで誰も仕事をしていなかった。",
            "船長は大きなランプを修理した。",
            "ランプを修理したのは誰か",
        ),
        ("ชาวบ้านเดินไปตลาดทุกเช้าแล้วกลับบ้านตอนเย็น", "กัปตันซ่อมโคมไฟใหญ่ด้วยแก้วสีน้ำเงิน", "ใครซ่อมโคมไฟใหญ่"),
    ],
    ids=["Japanese", "Thai without a blank"],
)
async def test_a_script_without_spaces_is_split_as_well(config, sentence, told, question):
    text = sentence * 40 + told + sentence * 40
    found = await index_of(config, [SHORT, text]).search("bm25", question)

    shown = row(found.context_data, 1)
    # Without sentences, and without blanks, it may be cut between any two characters.
    assert told in shown or told[:9] in shown or told[-9:] in shown
    assert len(shown) < len(text) * 0.7
    if sentence.endswith("。"):
        assert re.fullmatch(f"({sentence}|{told})+", shown)


@given(
    strategies.lists(
        strategies.sampled_from(["stone", "wall.", "Mr.", "x" * 50, "\n\n", "e\u0301a"])
    ),
    strategies.integers(50, 500),
)
def test_no_word_is_cut_and_nothing_is_lost(words, size):
    text = " ".join(words * 30)
    cuts = split_text(text, 3 * len(text), size)
    assert list(cuts) == sorted(set(cuts))
    assert all(0 < cut < len(text) for cut in cuts)
    assert all(text[cut - 1].isspace() for cut in cuts)


def test_texts_of_up_to_400_tokens_are_whole():
    text = FILLER * 40
    assert split_text(text, 400, 300) == ()
    assert len(split_text(text, 401, 300)) == 1
    assert len(split_text(text, 1_200, 300)) == 3
    assert split_text(text, 1_200, 1_200) == ()
    # Tokens that an index did not count are counted.
    assert len(split_text(text, None, 300)) >= 1
    assert split_text(SHORT, None, 300) == ()


@pytest.mark.parametrize("method", METHODS)
async def test_a_quote_of_a_passage_that_was_left_out_was_not_shown(config, method):
    index = index_of(config, [SHORT, LONG])
    question = "Who repaired the great lamp?"
    found = await index.search(method, question)
    retrieved = RetrievalReader(index.tables).read(method, found.context_data)
    view = IndexView(index.tables)
    shown = str(found.context_text)
    answered = answer(method, "Ferrol", context_text=shown, retrieved=retrieved, correctness=0)

    assert retrieved.in_part == ("unit-1",)
    for quote, shown in ((LAMP, 1.0), (OTHER, 0.0)):
        sample = Sample("s", "isle", question, "nobody", evidence=(quote.strip(),))
        values = measure(sample, answered, view).values
        assert values["shown_recall"] == values["shown_hit_rate"] == shown
        assert values["shown_unit_recall"] == values["recall"] == 1
        lost = trace_loss(sample, answered, view).first_break
        assert lost == ("judged_correct" if shown else "in_context")
    whole = replace(answered, retrieved=replace(retrieved, in_part=()))
    assert measure(sample, whole, view).values["shown_recall"] == 1
    # Released records, and those of whole text units, are as they were.
    assert "in_part" not in replace(retrieved, in_part=()).to_dict()
    assert type(retrieved).from_dict(retrieved.to_dict()) == retrieved


def test_a_run_is_another_one_only_where_a_text_unit_is_split(config):
    def described(longest: int | None, method: str, **changes: object) -> dict[str, object]:
        header = IndexHeader(config, longest=longest).changed(method, changes)
        settings = header.describe(method)["settings"]
        assert isinstance(settings, dict)
        return settings

    for method in ("bm25", "hybrid", "agentic", "ppr", "tog"):
        assert described(1_200, method)["passage_tokens"] == 300
        assert "passage_tokens" not in described(400, method)
        assert "passage_tokens" not in described(1_200, method, passage_tokens=None)
        assert "passage_tokens" not in described(1_200, method, passage_tokens=1_200)
    assert "passage_tokens" not in described(1_200, "basic")


def test_the_setting_is_of_the_methods_that_read_it(config):
    def header(**variant: object) -> IndexHeader:
        chosen = {"methods": ["mine"], "variants": {"mine": variant}}
        return MethodSet(EvaluationConfig.model_validate(chosen)).header(
            "mine", IndexHeader(config)
        )

    assert header(method="bm25", passage_tokens=None).section("bm25").passage_tokens is None
    assert header(method="tog", passage_tokens=150).section("tog").passage_tokens == 150
    with pytest.raises(ConfigError, match="basic has no setting 'passage_tokens'"):
        header(method="basic", passage_tokens=300)
    with pytest.raises(ConfigError, match="passage_tokens of hybrid: Input should be greater"):
        header(method="hybrid", passage_tokens=20)
