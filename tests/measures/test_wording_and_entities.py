"""What an answer says by its words, what was extracted, and how connected a graph is."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.scorers.entities import (
    NameRule,
    graph_connectivity,
    score_entities,
    score_relationships,
)
from graphrag.eval.scorers.wording import (
    aspect_coverage,
    keyword_relevance,
    states_answer,
)

nodes = st.sampled_from("abcdefgh")


SAID = "The GREAT-lamp was lit; they call it art."


@pytest.mark.parametrize(
    ("keywords", "said", "share"),
    [
        (["great lamp", "lit"], SAID, 1),
        (["great lamp", "par", "ar"], SAID, 1 / 3),
        (["Lamp", "lamp"], SAID, 1),
        (["灯塔"], "她守着灯塔", 1),
        ([], SAID, None),
        (["?"], SAID, None),
    ],
)
def test_keywords_count_as_whole_words_whatever_case_and_punctuation(keywords, said, share):
    found = keyword_relevance(keywords, said)
    assert found == (None if share is None else pytest.approx(share))


REPAIR = "the repair of the broken lamp"


@pytest.mark.parametrize(
    ("aspects", "said", "share"),
    [
        # One or two neighbouring sentences cover it.
        ([REPAIR], "Jonas repaired it. The lamp had broken.", 1),
        ([REPAIR], "Jonas repaired it. He sailed. The hull had gone.", 0),
        ([REPAIR], "A repair was due. He sailed home. The broken sea was calm.", 0),
        ([REPAIR], "A repair was due. He sailed to the lamp. The broken sea was calm.", 1),
        ([REPAIR, "letter"], "The lamp was broken.", 0.5),
        (["the"], "A lamp.", None),
        # Forms of a word are one word.
        *(
            (["a secret connection"], f"They are {word} in secret.", 1)
            for word in ("connected", "connecting", "connections", "connects")
        ),
        (["she forgets"], "It was forgotten.", 1),
        (["the connection"], "They are conical.", 0),
    ],
)
def test_an_aspect_is_covered_by_its_words(aspects, said, share):
    assert aspect_coverage(aspects, said) == share
    assert aspect_coverage([REPAIR], "A lamp.", least_share=0.3) == 1


@pytest.mark.parametrize(
    ("said", "is_stated"),
    [
        ("It was built in 1871 by Oswin Tarrant.", True),
        ("Oswin Tarrant built it in 1872.", False),
        ("In 1871 someone did.", False),
        ("It was Oswin who built it, in 1871.", True),
    ],
)
def test_an_answer_states_the_truth_by_its_words_and_all_its_numbers(said, is_stated):
    assert states_answer("Oswin Tarrant built it in 1871", said) is is_stated
    assert states_answer("the", "the") is None


def test_names_match_by_case_spacing_and_alias():
    found, expected = ["MARTA  QUILL", "Great-Lamp", "Isle"], ["Marta Quill", "great lamp", "Jonas"]
    folded = score_entities(found, expected)
    assert folded.f1 == pytest.approx(2 / 3)
    assert (folded.missed, folded.unexpected) == (("jonas",), ("isle",))
    aliases = NameRule(aliases={"isle": "J. Feld", "j. feld": "Jonas"})
    named = score_entities(found, expected, aliases)
    assert (named.precision, named.recall, named.f1) == (1, 1, 1)
    circle = NameRule(aliases={"a": "b", "b": "a"})
    assert circle.key("A") == circle.key("b")
    pairs = [("Ann", "Bo"), ("Cy", "Di"), ("A", " ")]  # relationships have no direction
    assert score_relationships(pairs, [("bo", "ann"), ("cy", "di")]).n_matched == 2


def test_what_is_found_or_expected_of_nothing_is_undefined_not_0():
    assert score_entities([], ["a"]).precision is None
    assert score_entities([], ["a"]).f1 == 0
    assert score_entities(["a"], [" "]).recall is None
    assert score_entities([], []).f1 is None


@given(st.sets(nodes, min_size=1), st.lists(st.tuples(nodes, nodes), max_size=12))
def test_connectivity_is_that_of_networkx(entities, pairs):
    titles = sorted(entities)
    found = graph_connectivity(titles, [a for a, _ in pairs], [b for _, b in pairs])
    kept = [(a, b) for a, b in pairs if a in entities and b in entities]
    graph = nx.Graph(kept)
    graph.add_nodes_from(titles)
    parts = [len(part) for part in nx.connected_components(graph)]
    assert found == (len(titles), max(parts), parts.count(1))
    assert graph_connectivity([], ["a"], ["b"]) == (0, 0, 0)
