"""Ranking by PageRank: where mass starts, what it reaches, what a search of one call shows."""

import math

import networkx as nx
import pandas as pd
import pytest
from support.tog_world import (
    ScriptedModel,
    entities,
    frames,
    graph_of,
    ids_in,
    relationships,
    section,
    text_units,
    units_of,
)

from graphrag.config.models.tog_search_config import PPRSearchConfig
from graphrag.query.graph import PPRSearch, pagerank
from graphrag.query.graph.names import Names, title_of
from graphrag.query.graph.pagerank import (
    N_SEEDS,
    Reached,
    Seeds,
    find_seeds,
    lean_on,
    spread,
    weigh_texts,
)
from graphrag.query.graph.store import TextUnits, build_in_memory
from graphrag.text.ranking import WordIndex
from graphrag.text.tokenize import word_keys

N = len(text_units())


def plain_mentions() -> dict[str, set[str]]:
    people, texts = entities(), text_units()
    found = {
        title: set(units)
        for title, units in zip(people["title"], people["text_unit_ids"], strict=True)
    }
    keys = dict(zip(people["title"], word_keys(list(people["title"])), strict=True))
    for unit, text in zip(texts["id"], word_keys(list(texts["text"])), strict=True):
        padded = f" {text} "
        for title, key in keys.items():
            if f" {key} " in padded and title != "OZ":
                found[title].add(unit)
    return found


def _plain_graph() -> nx.Graph:
    graph = nx.Graph()
    for title, units in plain_mentions().items():
        telling = max(0.001, math.log(N / len(units)) / math.log(N))
        for unit in units:
            graph.add_edge(title, unit, weight=telling)
    joined: dict[frozenset[str], float] = {}
    joins = relationships()
    known = set(entities()["title"])
    for source, target, weight in zip(
        joins["source"], joins["target"], joins["weight"], strict=True
    ):
        if source != target and {source, target} <= known:
            ends = frozenset({source, target})
            joined[ends] = joined.get(ends, 0.0) + weight
    for ends, weight in joined.items():
        graph.add_edge(*sorted(ends), weight=0.1 * math.log1p(weight))
    return graph


def unit_ids(found: Reached) -> dict[str, float]:
    return {text_units()["id"][row]: mass for row, mass in found.units.items()}


def test_mass_spreads_as_personalised_pagerank(world, monkeypatch):
    """networkx is the oracle; with enough steps the two agree."""
    monkeypatch.setattr(pagerank, "_STEPS", 60)
    (node,) = world.graph.nodes_named_in("WICKED WITCH")
    found = spread(Seeds({1: 0.125, 5: 0.375}, {node: 0.5}, 0.5), world.graph, 50)
    seeds = {"WICKED WITCH": 0.5, "t2": 0.125, "t6": 0.375}
    expected = nx.pagerank(
        _plain_graph(), alpha=0.5, personalization=seeds, tol=1e-12, max_iter=500, weight="weight"
    )
    mass = unit_ids(found)
    for unit in text_units()["id"]:
        assert mass.get(unit, 0.0) == pytest.approx(expected.get(unit, 0.0), abs=1e-8), unit


def test_mass_that_goes_back_at_once_stays_and_tells_the_entities(world):
    """The ranking is then that of the words, and walks still have where to start."""
    found = spread(Seeds({4: 0.75, 0: 0.25}, {}, 1), world.graph, 50)
    assert unit_ids(found) == {"t5": 0.75, "t1": 0.25}
    titles = {world.graph.title(node) for node in found.entities}
    assert {"WICKED WITCH", "WINKIES", "TOTO", "AUNT EM"} <= titles


def test_rare_names_hold_mass_and_carry_it_far(world):
    """As documented: three quarters of the mass and 0.85 of it at each step for the rarest."""
    scored = [(0, 2.0), (3, 1.0)]
    texts = weigh_texts(scored, {}, N)
    plain = find_seeds([], texts, world.graph)
    assert plain == Seeds({0: 8 / 9, 3: 1 / 9}, {}, 1)
    df = {title: len(units) for title, units in plain_mentions().items()}
    named = world.graph.names_in("Did DOROTHY fear the WINKIES?")
    assert [world.graph.title(name) for name in named] == ["WINKIES", "DOROTHY"]
    found = find_seeds(named, texts, world.graph)
    telling = math.log(N / df["WINKIES"]) / math.log(N)
    names = {world.graph.title(node): mass for node, mass in found.names.items()}
    assert sum(names.values()) == pytest.approx(0.75 * telling)
    assert names["WINKIES"] / names["DOROTHY"] == pytest.approx(df["DOROTHY"] / df["WINKIES"])
    assert sum(found.units.values()) == pytest.approx(1 - 0.75 * telling)
    assert found.restart == pytest.approx(1 - 0.85 * telling)
    alone = find_seeds(named[1:], {}, world.graph)
    assert sum(alone.names.values()) == 1
    assert alone.restart == pytest.approx(0.15)


def test_names_are_found_in_texts_whole_and_the_longest_first():
    """Whatever stands around them, also where there are none to find."""
    names = ["wizard of oz", "oz", "emerald city", "东 京", "art", "", "oz"]
    texts = [
        "The Wizard of Oz. The emerald-city!",
        "smart art",
        "在东京有人",
        "wizard of",
        "Jo Oz",
        "",
    ]
    gathered = Names()
    gathered.add(names)
    index = gathered.index()
    in_texts = index.find(texts)
    units, found = in_texts.texts, in_texts.names
    pairs = sorted(zip(units.tolist(), [names[i] for i in found.tolist()], strict=True))
    expected = [(0, "emerald city"), (0, "wizard of oz"), (1, "art"), (2, "东 京"), (4, "oz")]
    assert pairs == expected
    assert found.tolist().count(6) == 0
    assert [names[i] for i in index.find(texts[:1], 2).names] == ["wizard of oz"]
    assert not len(index.find([]).names)
    assert not len(Names().index().find(texts).names)


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Mount Fuji", "It is high.", "Mount Fuji"),
        ("p1.txt", "Mount Fuji\nIt is high.", "Mount Fuji"),
        ("", "# 富士山\n日本の山。", "富士山"),
        ("notes.md", "It is high. Nobody lives there.\nMore.", ""),
        ("notes.md", "こんにちは。\n山。", ""),
        ("notes.md", "यह ऊँचा है।\nयहाँ कोई नहीं रहता।", ""),
        ("notes.md", "هل هو عال؟\nنعم.", ""),
        ("p1.txt", "One line alone", ""),
        ("p1.txt", '{| class="wikitable"\n! Model', ""),
        ("p1.txt", "<html lang=en>\n<p>Text", ""),
        ("p1.md", "---\ntags: clock", ""),
        ("p1.txt", "w " * 90 + "\nMore", ""),
        ("St. John", "x", "St. John"),
    ],
)
def test_a_document_says_what_it_is_about(title, text, expected):
    """By a title that is no file's name, or by its first line."""
    assert title_of(title, text) == expected


def articles() -> tuple[pd.DataFrame, ...]:
    texts = {
        "a": "Ada Brandt\nShe was born on Skerry Voe and became a sailor.",
        "b": "Skerry Voe\nAn island of the north.",
        "c": "Its harbour was built by monks in 1342.",
        "d": "Market day\nFish, bread, wool.",
        "e": "Weather\nRain, wind, hail.",
    }
    units = pd.DataFrame({"id": [*texts], "text": [*texts.values()], "document_id": [*"12234"]})
    people = pd.DataFrame(
        {"id": ["x", "y"], "title": ["ADA BRANDT", "MONKS"], "text_unit_ids": [["a"], ["c"]]}
    )
    titles = ["a.txt", "b.txt", "Market day", "d.txt"]
    documents = pd.DataFrame({"id": [*"1234"], "title": titles})
    return people, pd.DataFrame({"source": [], "target": []}), units, documents


def test_a_title_joins_the_texts_of_its_document_and_those_that_name_it():
    """No extraction found the island; the harbour shares no word with the question."""
    store = graph_of(*articles())
    units = units_of(articles()[2])
    question = "Where was Ada Brandt born?"
    texts = weigh_texts(units.score_by_words(question, N_SEEDS), {}, len(articles()[2]))
    found = spread(find_seeds(store.names_in(question), texts, store), store, 50)
    ranked = [units.passage(n).unit_id for n in units.best(found.units, 9, question)]
    assert ranked[0] == "a"
    assert set(ranked[1:]) == {"b", "c"}
    assert store.nodes_named_in("Skerry Voe") == []
    assert len(store.names_in("Ada Brandt of Skerry Voe")) == 2
    assert set(found.entities) <= {0, 1}


def test_documents_are_told_apart_where_a_heading_does_not():
    texts = ["Terms\nFire.", "Terms\nTheft.", "Cover\nLoss.", "No heading here.", "All of it."]
    units = pd.DataFrame({"id": [*"abcde"], "text": texts, "document_id": [*"12345"]})
    titles = ["car.pdf", "home.pdf", "boat.pdf", "pets.pdf", "Fees"]
    documents = pd.DataFrame({"id": [*"12345"], "title": titles})
    opened = build_in_memory(None, None, units, documents)
    called = [opened.text_units.passage(place).unit.document for place in range(5)]
    assert called == ["Terms (car.pdf)", "Terms (home.pdf)", "Cover", "pets.pdf", "Fees"]
    for place in range(5):
        only = slice(place, place + 1)
        alone = build_in_memory(None, None, units.iloc[only], documents.iloc[only])
        assert alone.text_units.passage(0).unit.document == "", "a single document needs no name"


def scored(units: TextUnits, question: str, k: int) -> list[str]:
    rows = {row: -place for place, (row, _) in enumerate(units.score_by_words(question, k), 1)}
    masses = {row: 100.0 + mass for row, mass in rows.items()}
    return [units.passage(place).unit_id for place in units.best(masses, k, question)]


def test_words_are_compared_by_their_stems_in_any_script():
    units = units_of(text_units())
    assert scored(units, "Which buckets are thrown?", 1) == ["t5"]
    assert scored(units, "富士山はどこから見えますか", 1) == ["t7"]
    assert scored(units, "zircon", 5) == []


def test_of_texts_that_fit_equally_the_first_number_leads():
    """Whatever the order of the table, which other methods go by."""
    table = pd.DataFrame(
        {
            "id": ["d", "b", "e", "a", "c"],
            "human_readable_id": [1, 7, 0, 1, 7],
            "text": ["A mill.", "A mill.", "No word of it.", "A mill.", "A mill, a mill."],
        }
    )
    units = units_of(table)

    assert scored(units, "Which mill?", 9) == ["c", "a", "d", "b"]
    assert scored(units, "Which mill?", 2) == ["c", "a"]
    best = WordIndex.of(table["text"].tolist()).best("Which mill?")
    assert [place for place, _ in best] == [4, 0, 1, 3]


def called(texts: list[str], titles: list[str]) -> tuple[pd.DataFrame, ...]:
    """Entities by title, which extraction found nowhere, and texts."""
    people = pd.DataFrame({"id": titles, "title": titles})
    units = pd.DataFrame({"id": [f"u{at}" for at in range(len(texts))], "text": texts})
    return people, pd.DataFrame({"source": [], "target": []}), units


def test_a_name_is_as_rare_as_its_words():
    """MOUSTAFA stands wherever MR. MOUSTAFA does: it doesn't pull a search to the few others."""
    texts = [*["Mr. Moustafa sits alone."] * 8, "Old Moustafa, mr. who?", "A maid.", "A key."]
    store = graph_of(*called(texts, ["MOUSTAFA", "MR. MOUSTAFA", "MAID"]))
    short, long, maid = 0, 1, 2
    assert [store.frequency(name) for name in (short, long, maid)] == [9, 8, 1]
    assert store.names_in("Did Moustafa call the maid?") == [maid, short]
    weights = find_seeds([maid, short], {0: 1.0}, store).names
    assert weights[maid] == pytest.approx(9 * weights[short])


@pytest.mark.parametrize("asked", ["Moustafa", "Mr. Moustafa"])
def test_a_name_leads_on_from_its_other_form_if_that_is_as_rare(asked):
    texts = [*["Mr. Moustafa sits alone."] * 4, "Old Moustafa's key.", *["Key Bay."] * 4, "A bay."]
    people, joins, units = called(texts, ["MOUSTAFA", "MR. MOUSTAFA", "OLD MOUSTAFA", "KEY BAY"])
    store = graph_of(people, joins, units)
    forms = store.with_forms(store.nodes_named_in(f"Who is {asked}?"))
    assert [store.title(node) for node in forms] == ["MR. MOUSTAFA", "MOUSTAFA"]


def test_what_is_looked_up_leans_on_texts_that_are_known():
    """A quarter of the mass, shared alike; without any nothing changes."""
    seeds = Seeds({3: 0.6}, {1: 0.4}, 0.5)
    leaning = lean_on(seeds, [3, 7])
    assert leaning.units == pytest.approx({3: 0.6 * 0.75 + 0.125, 7: 0.125})
    assert leaning.names == pytest.approx({1: 0.3})
    assert lean_on(seeds, []) == seeds


async def test_ppr_asks_once_and_shows_texts_where_mass_led(world):
    model = ScriptedModel()
    result = await world.ranked(model).search("How did Dorothy melt the wicked witch?")
    assert len(model.requests) == len(model.reasoning) == 1
    assert result.llm_calls_categories == {"exploration": 0, "reasoning": 1}
    context = str(result.context_text)
    assert section(context, "Sources")[1].startswith("5|")
    assert not section(context, "Relationships"), "no heading without rows"
    [call] = frames(result)["exploration"].to_dict("records")
    assert call["shown"] == ids_in(context, "Sources")


async def test_where_there_are_no_texts_ppr_shows_the_relationships_of_what_is_named():
    model = ScriptedModel()
    graph = graph_of(entities(), relationships())
    texts, config = units_of(text_units().iloc[:0]), PPRSearchConfig()
    search = PPRSearch(model=model, graph=graph, text_units=texts, config=config)
    result = await search.search("Who has a quarrel with the WICKED WITCH?")
    rows = section(str(result.context_text), "Relationships")[1:]
    assert all("WICKED WITCH" in row for row in rows[:2])
    assert "WICKED WITCH" in {*frames(result)["entities"]["entity"]}
