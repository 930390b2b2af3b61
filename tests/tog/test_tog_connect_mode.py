"""Connect mode from the question to the answer, per-entity scoring, and equal input twice."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.projects import OFFLINE_SETTINGS
from support.tog_world import (
    WALKED,
    Embedder,
    ScriptedModel,
    World,
    cite_all,
    embed,
    entities,
    entity_texts,
    explore_on,
    ids_in,
    relationships,
    section,
    store_vectors,
    text_units,
)
from typer.testing import CliRunner, Result

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.eval.config import EvaluationConfig
from graphrag.eval.run import MethodSet, build_index
from graphrag.query.graph_index import GraphIndex
from graphrag.query.structured_search.tog_search import GraphStore, ToGSearch, ToGSearchError
from graphrag.query.structured_search.tog_search.answer.reasoning import NOT_FOUND

QUESTION = "How is Toto related to the Wizard of Oz?"
FRAMES = {
    "paths",
    "entities",
    "relationships",
    "sources",
    "exploration",
    "starts",
    "edges",
}


def frames(result: Any) -> dict[str, Any]:
    """The result's data frames."""
    return result.context_data


def notes(result: Any) -> list[str]:
    """What the search says about each of its rounds."""
    return list(frames(result)["exploration"]["note"])


async def test_two_named_entities_are_joined_in_one_call(world: World) -> None:
    """No scoring, one answer from the paths and their texts, cited as ever."""
    model = ScriptedModel()
    n_before = len(world.embedder.asked)
    result = await world.search(model, mode="connect").search(QUESTION)

    assert world.embedder.asked[n_before:] == [QUESTION]
    assert not model.scoring
    assert len(model.reasoning) == len(model.requests) == result.llm_calls == 1
    assert "Final attempt: yes" in model.reasoning[0]
    context = str(result.context_text)
    assert context in model.reasoning[0]
    assert section(context, "Paths")[0] == (
        "WIZARD OF OZ -[The Wizard sends Dorothy to the west]-> DOROTHY "
        "-[Dorothy owns and loves Toto]-> TOTO"
    )
    assert 4 in ids_in(context, "Sources")
    assert str(result.response).startswith("Dorothy melted her. [Data: Relationships (505); ")
    data = frames(result)
    assert list(data["paths"]["relationship_id"]) == [505, 500]
    assert list(data["paths"]["traversed_forward"]) == [True, True]
    # Nine relationships join Dorothy; a score is 2^-(hops + log2 of the degrees passed).
    assert list(data["paths"]["score"]) == pytest.approx([1 / 18, 1 / 36])
    assert list(data["exploration"]["strategy_used"]) == ["start", "connect"]
    assert notes(result)[0] == "2 named in the question"
    assert notes(result)[1] == ("WIZARD OF OZ and TOTO: 1 path, the cheapest of 2 hops at cost 5.2")


async def test_directions_are_kept_and_parallel_relationships_shown(world: World) -> None:
    """A path walked against a relationship is printed with the arrow turned."""
    search = world.search(ScriptedModel(), mode="connect")
    result = await search.search("How do the Scarecrow and the Tin Woodman know each other?")
    paths = frames(result)["paths"]
    assert section(str(result.context_text), "Paths")[0] == (
        "TIN WOODMAN -[The Tin Woodman follows Dorothy]-> DOROTHY "
        "-[Dorothy frees the Scarecrow from his pole]-> SCARECROW"
    )
    first = paths[paths["path_id"] == 0]
    assert list(first["relationship_id"]) == [503, 501, 502]
    assert list(first["traversed_forward"]) == [True, True, False]


@pytest.mark.parametrize(
    ("question", "hops", "said"),
    [
        ("How is Toto related to Kansas?", 1, "TOTO and KANSAS are not connected within 1 hop."),
        ("How is Toto related to 富士山?", 4, "富士山 and TOTO are not connected within 4 hops."),
        ("Does Toto know the Hermit?", 9, "TOTO and HERMIT are not connected within 9 hops."),
    ],
)
async def test_not_connected_is_said_without_a_model(
    world: World, question: str, hops: int, said: str
) -> None:
    """It counts as an abstention; every frame is there."""
    model = ScriptedModel()
    result = await world.search(model, mode="connect", max_hops=hops).search(question)
    assert result.response == f"{NOT_FOUND} {said}"
    assert result.abstained
    assert not model.requests
    assert result.llm_calls == 0
    assert result.context_text == ""
    data = frames(result)
    assert set(data) == FRAMES
    assert all(data[name].empty for name in FRAMES - {"exploration", "starts"})
    assert notes(result)[1] == said


async def test_a_search_that_was_cut_claims_less(world: World) -> None:
    """With one relationship an entity, nothing is proven absent."""
    search = world.search(ScriptedModel(), mode="connect", max_relations_per_entity=1)
    result = await search.search("How is the 🎬 {film} related to the Emerald City?")
    assert "No path within 4 hops was found between" in str(result.response)
    assert "not every relationship was tried" in str(result.response)
    assert result.abstained


async def test_it_is_streamed_like_any_other_answer(world: World) -> None:
    """The pieces joined are the response, with a path and without one."""
    for question in (QUESTION, "How is Toto related to 富士山?", "Toto, Dorothy, 東京?"):
        search = world.search(ScriptedModel(), mode="connect")
        pieces = [piece async for piece in search.stream_search(question)]
        assert "".join(pieces) == (await search.search(question)).response


@pytest.mark.parametrize(
    "question", ["How is TOTO related to Toto?", "Who is close to Toto, the small dog?"]
)
async def test_a_missing_second_entity_comes_from_the_vectors(world: World, question: str) -> None:
    """One entity named, once or twice, is completed by the nearest other one, and that is told."""
    result = await world.search(ScriptedModel(), mode="connect").search(question)
    texts = entity_texts(entities())
    asked = embed(question)
    by_id = dict(zip(entities()["id"], entities()["title"], strict=True))
    near = max(
        (key for key in texts if by_id[key] != "TOTO"),
        key=lambda key: sum(a * b for a, b in zip(asked, embed(texts[key]), strict=True)),
    )
    assert notes(result)[0] == f"1 named in the question; nearest to it by vector: {by_id[near]}"
    assert notes(result)[1].startswith(f"TOTO and {by_id[near]}: ")


async def test_no_named_entity_leaves_both_to_the_vectors(world: World) -> None:
    """Width 1 still joins two."""
    search = world.search(ScriptedModel(), mode="connect", width=1)
    result = await search.search("Who wants a heart?")
    assert notes(result)[0].startswith("0 named in the question; nearest to it by vector: ")
    assert notes(result)[0].count(" and ") == 1
    assert frames(result)["paths"]["path_id"].nunique() <= 1


async def test_named_entities_need_no_vector_search(world: World, tmp_path: Path) -> None:
    """A vector store without this index's entities does no harm when two are named."""
    search = ToGSearch(
        model=ScriptedModel(),
        text_embedder=Embedder(),
        graph=world.graph,
        text_units=text_units(),
        entity_vectors=store_vectors(tmp_path, "old", {"gone": "Toto"}),
        config=ToGSearchConfig(mode="connect"),
    )
    assert not frames(await search.search(QUESTION))["paths"].empty
    with pytest.raises(ToGSearchError, match=r"Connecting needs two entities.* give 1;"):
        await search.search("Who is Toto?")


async def test_every_two_of_more_entities_are_joined(world: World) -> None:
    """Pairs take turns; the pair that isn't connected is named after the answer."""
    model = ScriptedModel()
    search = world.search(model, mode="connect", max_exploration_paths=2)
    result = await search.search("What do Toto, Glinda and 東京 have in common?")
    assert len(frames(result)["exploration"]) == 4
    joined = [note for note in notes(result) if " path" in note]
    assert len(joined) == 1
    assert len(model.requests) == 1
    assert str(result.response).startswith("Dorothy melted her. [Data: ")
    assert str(result.response).count("are not connected within 4 hops.") == 2


async def test_the_pairs_take_turns(world: World) -> None:
    """Each two of three have several paths; with place for three, each pair shows its best."""
    search = world.search(ScriptedModel(), mode="connect", max_exploration_paths=3)
    result = await search.search("Dorothy, the Tin Woodman and the Wicked Witch")
    assert all(": 2 paths" in note for note in notes(result)[1:])
    lines = section(str(result.context_text), "Paths")
    ends = {frozenset((line.split(" ")[0], line.split(" ")[-1])) for line in lines}
    assert len(lines) == len(ends) == 3


async def test_more_entities_than_the_width_are_left_out(world: World) -> None:
    """And that is told; two are always joined."""
    search = world.search(ScriptedModel(), mode="connect", width=1)
    result = await search.search("Toto, Glinda, Kansas and the Emerald City")
    assert notes(result)[0] == "2 named in the question, 2 more left out"
    assert len(notes(result)) == 2


async def test_ids_that_were_not_shown_are_dropped_here_too(world: World) -> None:
    """The same check as in a walk."""

    def answer(context: str) -> dict[str, Any]:
        return cite_all(context) | {"sources": [424242]}

    result = await world.search(ScriptedModel(answer=answer), mode="connect").search(QUESTION)
    assert "424242" not in str(result.response)
    assert notes(result)[-1].endswith("; 1 cited ids were not in the context")


def shuffled(world: World, **settings: Any) -> ToGSearch:
    """A search over the same tables with their rows in another order."""
    return ToGSearch(
        model=ScriptedModel(answer=explore_on),
        text_embedder=Embedder(),
        graph=GraphStore.from_tables(
            entities().sample(frac=1, random_state=7),
            relationships().sample(frac=1, random_state=7),
        ),
        text_units=text_units().sample(frac=1, random_state=7),
        entity_vectors=world.entity_vectors,
        text_unit_vectors=world.text_unit_vectors,
        config=ToGSearchConfig(**WALKED | settings),
    )


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "connect"},
        {"mode": "connect", "prune_strategy": "semantic"},
        {"prune_strategy": "bm25"},
        {"prune_strategy": "semantic"},
        {"prune_strategy": "llm"},
        {"prune_strategy": "llm", "scoring": "per_entity"},
        {"start_ranking": ["words", "texts", "descriptions"]},
        {"prune_strategy": "llm", "passage_ranking": "pagerank", "max_scored_edges": 5},
        {"preset": "thrifty", "passage_ranking": "pagerank"},
        {"preset": "thrifty", "passage_ranking": "pagerank", "width": 1, "depth": 2},
    ],
)
async def test_equal_input_gives_equal_output(world: World, options: dict[str, Any]) -> None:
    """Asked again, and of the same tables with shuffled rows."""
    search = world.search(ScriptedModel(answer=explore_on), **options)
    for question in (QUESTION, "Who melted the Wicked Witch?", "Glinda, Toto and the Winkies"):
        first = await search.search(question)
        again = await search.search(question)
        other = await shuffled(world, **options).search(question)
        assert first.context_text
        for result in (again, other):
            assert result.response == first.response
            assert result.context_text == first.context_text
            for name, frame in frames(first).items():
                assert frame.equals(frames(result)[name]), name


async def test_per_entity_scoring_asks_once_for_each_entity(world: World) -> None:
    """The same edges in calls of one entity each, at the same time; the same paths."""
    question = "Who melted the Wicked Witch?"
    combined, single = ScriptedModel(), _Counted()
    first = await world.search(combined, depth=1).search(question)
    second = await world.search(single, depth=1, scoring="per_entity").search(question)
    assert len(combined.scoring) == 1
    assert len(single.scoring) > 1
    assert single.most_at_once == len(single.scoring)
    edges = [edge for asked in single.scoring for edge in asked["edges"]]
    assert sorted(edges, key=lambda e: e["edge"]) == combined.scoring[0]["edges"]
    for asked in single.scoring:
        ends: list[set[str]] = [{edge["source"], edge["target"]} for edge in asked["edges"]]
        assert ends[0].intersection(*ends[1:])
    assert frames(second)["paths"].equals(frames(first)["paths"])


class _Counted(ScriptedModel):
    """Knows how many requests were under way at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most_at_once = 0
        self._now = 0

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Reply after everybody else had a turn."""
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0.01)
        reply = await super().completion_async(**kwargs)
        self._now -= 1
        return reply


@pytest.mark.parametrize(
    ("options", "per_entity"),
    [
        ({}, False),
        ({"scoring": "combined"}, False),
        ({"scoring": "per_entity"}, True),
        ({"entity_scoring_prompt": "a.txt"}, True),
        ({"scoring": "per_entity", "entity_scoring_prompt": "a.txt"}, True),
        ({"scoring": "combined", "relation_scoring_prompt": "a.txt"}, False),
    ],
)
def test_the_switch_decides_and_a_prompt_implies_it(
    options: dict[str, Any], per_entity: bool
) -> None:
    """The defaults are combined; a prompt for entities alone is enough."""
    assert ToGSearchConfig(**options).scores_per_entity is per_entity


async def test_each_prompt_words_its_kind_of_scoring(world: World, tmp_path: Path) -> None:
    """Per-entity scoring without a prompt of its own is worded as combined scoring."""
    for name in ("relation", "entity"):
        (tmp_path / name).write_text(f"Mine: {name}", encoding="utf-8")
    relation = {"relation_scoring_prompt": str(tmp_path / "relation")}
    both = {**relation, "entity_scoring_prompt": str(tmp_path / "entity")}
    for options, word in (
        (relation, "relation"),
        ({**relation, "scoring": "per_entity"}, "relation"),
        ({**both, "scoring": "per_entity"}, "entity"),
    ):
        model = ScriptedModel()
        await world.search(model, depth=1, **options).search("Who melted the Wicked Witch?")
        assert model.requests[0]["messages"][0]["content"] == f"Mine: {word}"


def test_a_prompt_that_would_not_be_read_is_refused() -> None:
    """The sentence says what to do."""
    with pytest.raises(ValidationError, match=r"never reads entity_scoring_prompt; set scoring"):
        ToGSearchConfig(scoring="combined", entity_scoring_prompt="a.txt")


TEXT = """\
Marta Quill keeps the lighthouse on Gannet Isle. Marta Quill repaired the great lamp with Jonas
Feld. Jonas Feld learned his craft from Berta Lindqvist. Berta Lindqvist founded the Merrow Glass
Company. Silas Crane once worked for Berta Lindqvist.

Piotr Zielinski met Ana Moreno in Lisbon.
"""
RELATED = "How are Silas Crane and Jonas Feld related?"
APART = "How are Piotr Zielinski and Jonas Feld related?"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built index with the embedded models."""
    root = tmp_path_factory.mktemp("connect")
    (root / "input").mkdir()
    (root / "input" / "isle.txt").write_text(TEXT, encoding="utf-8")
    (root / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    loop = asyncio.new_event_loop()
    loop.run_until_complete(build_index(root, lambda _: None))
    loop.close()
    return root


async def test_a_variant_of_an_evaluation_connects(project: Path) -> None:
    """A real index is asked with the settings of the variant; tog beside it explores."""
    config = EvaluationConfig.model_validate(
        {"methods": ["tog", {"name": "tog-connect", "method": "tog", "mode": "connect"}]}
    )
    methods = MethodSet(config)
    index = await GraphIndex.open(project)
    assert methods.header("tog", index.header).section("tog").mode == "explore"
    connecting = GraphIndex(methods.header("tog-connect", index.header), index.tables)

    found = await connecting.search("tog", RELATED)
    assert found.llm_calls == 1
    assert found.usage.embedding_calls == 1
    assert not found.abstained
    assert "[Data: " in str(found.response)
    paths = frames(found)["paths"]
    named = {*paths["source"], *paths["target"]}
    assert {"SILAS CRANE", "BERTA LINDQVIST", "JONAS FELD"} <= named

    apart = await connecting.search("tog", APART)
    assert apart.llm_calls == 0
    assert apart.abstained
    assert str(apart.response).endswith("are not connected within 4 hops.")


def query(*arguments: str) -> Result:
    """Run ``graphrag query``."""
    from graphrag.cli.main import app

    return CliRunner().invoke(app, ["query", *arguments])


@pytest.mark.usefixtures("as_before")
def test_a_query_can_ask_for_it(project: Path) -> None:
    """With a flag; the settings stay as they are."""
    apart = query(APART, "-r", str(project), "-m", "tog", "--connect")
    assert apart.exit_code == 0, apart.output
    assert "are not connected within 4 hops." in apart.stdout
    plain = query(APART, "-r", str(project), "-m", "tog")
    assert plain.exit_code == 0, plain.output
    assert "not connected" not in plain.stdout


@pytest.mark.usefixtures("as_before")
def test_other_methods_refuse_the_flag(project: Path) -> None:
    """It means nothing to them."""
    result = query(APART, "-r", str(project), "-m", "local", "--connect")
    assert result.exit_code == 2
    assert "--method tog" in result.output
