"""Where quotes stand, what an answer says by its words, names, and how connected a graph is."""

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics import quote_matching
from graphrag.eval.metrics.entities import (
    NameRule,
    score_entities,
    score_relationships,
)
from graphrag.eval.metrics.keyword_coverage import aspect_coverage, keyword_relevance, states_answer
from graphrag.eval.metrics.quote_matching import SourceIndex, fold_text, phrase_key
from graphrag.eval.validation.graph import graph_connectivity
from graphrag.text.accepted_answers import join_answers

DOCUMENT = (
    "Marta Quill keeps the lighthouse. \u201cThe lamp \u2013 she said \u2013 is mine\u201d. "
    "Oswin built it in 1871 with great care."
)
CUT = DOCUMENT.index("in 1871")
ALL = {f"u{n}" for n in range(6)}


def units_table(texts, document="d1"):
    return pd.DataFrame(
        {
            "id": [f"u{n}" for n in range(len(texts))],
            "human_readable_id": range(len(texts)),
            "text": texts,
            "document_id": document,
        }
    )


def source_index(**changes):
    documents = pd.DataFrame({"id": ["d1"], "title": ["Isle.txt"], "text": [DOCUMENT]})
    others = ["Another isle.", "The plot has 40 m\u00b2 of [1] grass.", "Only C++.", "See C here."]
    table = units_table([DOCUMENT[:CUT], DOCUMENT[CUT:], *others])
    return SourceIndex(table, **{"documents": documents, **changes})


def sample(**fields):
    return Sample("s", "isle", "Who?", "Oswin", **fields)


@pytest.mark.parametrize(
    ("quote", "unit"),
    [
        ('"THE LAMP - she\n said - is mine"', "u0"),
        # Across a border the unit with at least half of it counts.
        ("Oswin built it in 1871 with", "u0"),
        ("it in 1871 with great care", "u1"),
        # A sign that is no mark is part of an exact quote.
        ("40 m\u00b2", "u3"),
        ("of [1] grass", "u3"),
        ("C++", "u4"),
    ],
)
def test_an_exact_quote_is_found_in_its_unit(quote, unit):
    assert source_index().units_with(quote) == {unit}


def test_many_quotes_are_found_as_one_by_one(monkeypatch):
    monkeypatch.setattr(quote_matching, "_BLOCK", 100)
    keepers = [
        f"Keeper {n} lit the lamp {n * n} times; \u201cnever once\u201d late." for n in range(90)
    ]
    documents = pd.DataFrame({"id": ["d1"], "title": ["Isle.txt"], "text": ["\n".join(keepers)]})
    # Each third text ends in the middle of a sentence, and the next one begins with the rest.
    texts = [part for n, text in enumerate(keepers) for part in cut_each_third(n, text)]
    texts += keepers[:2]  # some texts twice
    forms = (
        lambda text: text.upper(),  # as it is
        lambda text: text.replace(";", "").replace("the", "[t]he"),  # by its words
        lambda text: text.replace("the lamp", "..."),  # by its parts
        lambda text: text.replace("Keeper", "Warden"),  # in no document
        lambda text: text[:30],  # within another quote
    )
    samples = [sample(evidence=(form(text),)) for text in [*keepers, keepers[0]] for form in forms]
    at_once, one_by_one = (SourceIndex(units_table(texts), documents) for _ in range(2))
    at_once.look_for(samples)
    expected = [one_by_one.evidence_of(each) for each in samples]
    assert [at_once.evidence_of(each) for each in samples] == expected
    found = [all(item.unit_ids for item in items) for items in expected]
    assert (sum(found), len(found)) == (91 * 4, 91 * 5)


def cut_each_third(n, text):
    return [text] if n % 3 else [text[:36], text[36:]]


@pytest.mark.parametrize(
    "quote",
    [
        "Marta Quill keeps ... the lamp she said",
        "Marta Quill keeps [\u2026] she said is mine",
        "Marta Quill keeps the lighthouse [12]",
        "Marta Quill keeps the lighthouse.\u00b9\u00b2",
        "[M]arta Quill keeps the light-\nhouse, [3], [4-6]",
        "Marta Quill keeps the light\u00ad\n house",
        "\u00abThe lamp\u00bb -- she said -- is mine",
        "MARTA\tQUILL KEEPS . . . the lamp she said [sic]",
        "Marta Quill keeps\nis mine",  # below three words: too short to be looked for by itself
    ],
)
def test_a_quote_with_marks_and_gaps_is_found_by_its_parts(quote):
    (found,) = source_index().evidence_of(sample(evidence=(quote,)))
    assert (found.unit_ids, found.in_source, found.is_matched) == ({"u0"}, True, True)


@pytest.mark.parametrize(
    "quote",
    [
        "the lamp she said ... Marta Quill keeps",  # the other way round
        "Marta Quill keeps ... the lamp she stole",
        "Marta Quill owns the lighthouse",
        "Marta Quill keeps the lighthouses",
        "Marta ... Oswin",  # parts that are too short tell nothing
        "Quill, keeps",  # and two words with another comma are no exact quote
        "[...]",
    ],
)
def test_a_quote_is_not_guessed_at(quote):
    (found,) = source_index().evidence_of(sample(evidence=(quote,)))
    assert (found.unit_ids, found.in_source, found.is_matched) == (frozenset(), False, False)


def test_parts_that_stand_in_different_text_units_are_items_of_their_own():
    quote = "Marta Quill keeps [...] 1871 with great care [2]"
    for documents in (pd.DataFrame({"id": ["d1"], "title": ["I"], "text": [DOCUMENT]}), None):
        found = source_index(documents=documents).evidence_of(sample(evidence=(quote,)))
        assert [(e.text, e.unit_ids) for e in found] == [
            ("Marta Quill keeps", {"u0"}),
            ("1871 with great care", {"u1"}),
        ]
    apart = "1871 with great care [...] Another isle of Man"
    (neither,) = source_index().evidence_of(sample(evidence=(apart,)))
    assert not neither.is_matched


@given(st.data())
def test_any_passage_is_found_in_one_of_two_units_by_its_halves(data):
    first = data.draw(st.integers(0, len(DOCUMENT) - 12))
    passage = DOCUMENT[first : data.draw(st.integers(first + 10, len(DOCUMENT)))]
    if len(fold_text(passage)) >= 8:
        assert source_index().units_with(passage)


@pytest.mark.parametrize(
    ("entry", "kind", "units"),
    [
        ("isle.TXT", "document", ALL),
        ("d1", "document", ALL),
        ("u1", "text_unit", {"u1"}),
        ("2", "text_unit", {"u2"}),
        ("keeps the lighthouse", "quote", {"u0"}),
        ("nowhere said", "source", set()),
    ],
)
def test_an_expected_source_names_a_document_a_text_unit_or_quotes(entry, kind, units):
    (found,) = source_index().evidence_of(sample(expected_sources=(entry,)))
    assert (found.kind, found.unit_ids) == (kind, units)
    assert found.in_source is (bool(units))


def test_quotes_serve_when_no_source_is_expected_and_are_never_names():
    index = source_index()
    (found,) = index.evidence_of(sample(evidence=("2", "  ")))
    assert found.kind == "quote"
    both = sample(evidence=("keeps",), expected_sources=("u1",))
    assert [e.text for e in index.evidence_of(both)] == ["u1"]
    bare = source_index(documents=None)
    assert bare.evidence_of(sample(evidence=("nowhere said",)))[0].in_source is None


def test_phrases_are_whole_words_in_every_script():
    for text, phrase, held in (
        ("At (oak-hill).", "Oak Hill", True),
        ("oak hills", "Oak Hill", False),
        ("她守着灯塔。", "灯塔", True),
    ):
        assert (phrase_key(phrase) in phrase_key(text)) is held
    assert phrase_key("?!") == ""


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


def test_of_several_accepted_answers_one_has_to_be_stated():
    truth = join_answers(["Port Sorrel", "The old harbor", "port sorrel."])
    assert states_answer(truth, "She was born in Port Sorrel.")
    assert states_answer(truth, "In the old harbor.")
    assert states_answer(truth, "In Oldmere.") is False


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
