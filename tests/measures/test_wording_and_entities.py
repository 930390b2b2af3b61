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
    time_score,
)

nodes = st.sampled_from("abcdefgh")


def test_keywords_count_as_whole_words_whatever_case_and_punctuation():
    said = "The GREAT-lamp was lit; they call it art."
    assert keyword_relevance(["great lamp", "lit"], said) == 1
    assert keyword_relevance(["great lamp", "par", "ar"], said) == pytest.approx(1 / 3)
    assert keyword_relevance(["Lamp", "lamp"], said) == 1
    assert keyword_relevance(["灯塔"], "她守着灯塔") == 1
    assert keyword_relevance([], said) is None
    assert keyword_relevance(["?"], said) is None


def test_an_aspect_is_covered_by_one_or_two_neighbouring_sentences():
    aspect = ["the repair of the broken lamp"]
    assert aspect_coverage(aspect, "Jonas repaired it. The lamp had broken.") == 1
    assert aspect_coverage(aspect, "Jonas repaired it. He sailed. The hull had gone.") == 0
    far = "A repair was due. He sailed home. The broken sea was calm."
    assert aspect_coverage(aspect, far) == 0
    assert aspect_coverage(aspect, far.replace("home", "to the lamp")) == 1
    assert aspect_coverage([*aspect, "letter"], "The lamp was broken.") == 0.5
    assert aspect_coverage(aspect, "A lamp.", least_share=0.3) == 1
    assert aspect_coverage(["the"], "A lamp.") is None


def test_an_answer_states_the_truth_by_its_words_and_all_its_numbers():
    truth = "Oswin Tarrant built it in 1871"
    assert states_answer(truth, "It was built in 1871 by Oswin Tarrant.")
    assert not states_answer(truth, "Oswin Tarrant built it in 1872.")
    assert not states_answer(truth, "In 1871 someone did.")
    assert states_answer(truth, "It was Oswin who built it, in 1871.")
    assert states_answer("the", "the") is None


def test_the_time_score_is_1_within_the_limit_and_falls_beyond():
    assert [time_score(s, 2) for s in (0, 2, 2.5, 3, 4, 8)] == [1, 1, 0.75, 0.5, 0, 0]
    assert time_score(None, 2) is None
    with pytest.raises(ValueError, match="limit"):
        time_score(1, 0)
    with pytest.raises(ValueError, match="negative"):
        time_score(-1, 1)


@given(st.lists(nodes), st.lists(nodes), st.lists(nodes))
def test_every_share_lies_between_0_and_1_or_is_undefined(keywords, aspects, said):
    for value in (
        keyword_relevance(keywords, " ".join(said)),
        aspect_coverage(aspects, ". ".join(said)),
    ):
        assert value is None or 0 <= value <= 1


def test_names_match_by_case_spacing_and_alias():
    found, expected = ["MARTA  QUILL", "Great-Lamp", "Isle"], ["Marta Quill", "great lamp", "Jonas"]
    folded = score_entities(found, expected)
    assert folded.f1 == pytest.approx(2 / 3)
    assert (folded.missed, folded.unexpected) == (("jonas",), ("isle",))
    named = score_entities(
        found, expected, NameRule(aliases={"isle": "J. Feld", "j. feld": "Jonas"})
    )
    assert (named.precision, named.recall, named.f1) == (1, 1, 1)


def test_aliases_in_a_circle_are_one_name():
    rule = NameRule(aliases={"a": "b", "b": "a"})
    assert rule.key("A") == rule.key("b")


def test_nothing_found_or_expected_is_undefined_not_0():
    assert score_entities([], ["a"]).precision is None
    assert score_entities([], ["a"]).f1 == 0
    assert score_entities(["a"], [" "]).recall is None
    assert score_entities([], []).f1 is None


@given(st.sets(nodes), st.sets(nodes))
def test_f1_is_the_harmonic_mean(found, expected):
    scores = score_entities(found, expected)
    if scores.n_matched:
        mean = 2 / (1 / scores.precision + 1 / scores.recall)
        assert scores.f1 == pytest.approx(mean)


def test_relationships_match_without_direction():
    found, expected = [("Ann", "Bo"), ("Cy", "Di"), ("A", " ")], [("bo", "ann"), ("cy", "di")]
    assert score_relationships(found, expected).n_matched == 2


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


@pytest.mark.parametrize("said", ["connected", "connecting", "connections", "connects"])
def test_forms_of_a_word_are_one_word(said):
    assert aspect_coverage(["a secret connection"], f"They are {said} in secret.") == 1
    assert aspect_coverage(["she forgets"], "It was forgotten.") == 1
    assert aspect_coverage(["the connection"], "They are conical.") == 0
