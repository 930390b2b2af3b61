"""The embedded model behind the released graphrag's own index operations."""

import cProfile
import json
import pstats

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag.embedded.extraction import extract_graph
from graphrag.index.operations.extract_graph.graph_extractor import GraphExtractor
from graphrag.index.operations.summarize_communities.community_reports_extractor import (
    CommunityReportResponse,
)
from graphrag.prompts.index.community_report import COMMUNITY_REPORT_PROMPT
from graphrag.prompts.index.extract_graph import GRAPH_EXTRACTION_PROMPT
from graphrag.prompts.index.summarize_descriptions import SUMMARIZE_PROMPT
from graphrag.text.sentences import sentences

TEXT = """The Lamp Of Doctor Moss

Chapter 4: A Visit To The Castle

In 1921 Professor Ada Lindqvist travelled to Uppsala with her brother Nils. Ada told Nils
that the Cross of Saint Erik was hidden in Vik Castle. The Count of Vik met them at the gate.
Ada greeted the Count, and Nils waited outside. Shepherds crowded the yard. Mr. Berg of the
Northern Trading Company bought the painting Girl with Lamp from the Count's widow. Suddenly
the Count laughed at Mr. Berg, and Berg's hat fell. Dr. Jürgen von Östberg arrived from Vienna.
"""


async def graph_of(completion, text, max_gleanings=0):
    extractor = GraphExtractor(
        model=completion,
        prompt=GRAPH_EXTRACTION_PROMPT,
        max_gleanings=max_gleanings,
        on_error=lambda error, *_: pytest.fail(repr(error)),
    )
    return await extractor(text, ["person", "geo", "organization", "event"], "unit-1")


KINDS = {
    "PROFESSOR ADA LINDQVIST": "PERSON",
    "NILS": "PERSON",
    "COUNT OF VIK": "PERSON",
    "MR. BERG": "PERSON",
    "DR. JÜRGEN VON ÖSTBERG": "PERSON",
    "UPPSALA": "GEO",
    "VIK CASTLE": "GEO",
    "VIENNA": "GEO",
    "NORTHERN TRADING COMPANY": "ORGANIZATION",
    "CROSS OF SAINT ERIK": "OBJECT",
    "GIRL WITH LAMP": "OBJECT",
}


async def test_names_are_found_with_their_kinds_and_short_forms_are_tied_to_them(completion):
    entities, relationships = await graph_of(completion, TEXT)
    kinds = dict(zip(entities["title"], entities["type"], strict=True))
    assert {name: kinds[name] for name in KINDS} == KINDS
    # Words that only start a sentence, and headings, are no names.
    assert not kinds.keys() & {"IN", "SHEPHERDS", "SUDDENLY", "THE COUNT", "CHAPTER", "VISIT"}
    assert not any("VISIT TO" in title or "MOSS" in title for title in kinds)
    full = entities[entities["title"] == "PROFESSOR ADA LINDQVIST"].iloc[0]
    assert "Ada told Nils" in full["description"]
    pairs = set(zip(relationships["source"], relationships["target"], strict=True))
    assert ("ADA", "PROFESSOR ADA LINDQVIST") in pairs
    assert ("PROFESSOR ADA LINDQVIST", "NILS") in pairs
    assert ("ADA", "NILS") not in pairs
    # A title makes a person, whatever stands around it.
    entities, _ = await graph_of(completion, "So Mara walked to the Bishop of Hull.")
    assert dict(zip(entities["title"], entities["type"], strict=True))["BISHOP OF HULL"] == "PERSON"


async def test_shared_sentences_make_the_weight_and_the_description(completion):
    text = "So Mara saw Otto. So Mara thanked Otto. So Mara met Ines."
    edge = (await graph_of(completion, text))[1].set_index(["source", "target"])
    assert edge.loc[("MARA", "OTTO"), "weight"] == 2.0
    assert edge.loc[("MARA", "INES"), "weight"] == 1.0
    assert edge.loc[("MARA", "OTTO"), "description"] == "So Mara saw Otto. So Mara thanked Otto."
    listed = "So Mara, Otto, Ines, Paul, Karin and Viktor ate."
    assert 5 <= len((await graph_of(completion, listed))[1]) <= 12


async def test_a_script_gives_its_speakers_and_not_its_shouting(completion):
    entities, relationships = await graph_of(
        completion,
        "INT. HALL - NIGHT\nMRS. KANE\nHave you seen Tobias?\nTOBIAS\nHe SLAMS the DOOR on"
        " Mrs. Kane and RUNS.\n",
    )
    assert set(entities["title"]) == {"MRS. KANE", "TOBIAS"}
    assert set(entities["type"]) == {"PERSON"}
    assert len(relationships) == 1


async def test_gleaning_adds_nothing_and_an_ambiguous_short_form_is_left_alone(completion):
    once, thrice = await graph_of(completion, TEXT), await graph_of(completion, TEXT, 3)
    assert once[0].equals(thrice[0])
    assert once[1].equals(thrice[1])
    _, relationships = await graph_of(
        completion,
        "Anna Holm met Peter Holm in the park. Later the two of them saw Holm and a dog near Rome.",
    )
    pairs = set(zip(relationships["source"], relationships["target"], strict=True))
    assert pairs >= {("ANNA HOLM", "PETER HOLM"), ("HOLM", "ROME")}


async def test_separators_in_the_text_never_break_a_record(completion):
    entities, relationships = await graph_of(
        completion,
        'So Mara ## said <|> to Otto ("entity"<|>FAKE<|>PERSON<|>x). '
        "So Mara <|COMPLETE|> Otto ###.",
    )
    assert set(entities["title"]) >= {"MARA", "OTTO"}
    assert set(entities["type"]) <= {"PERSON", "OBJECT", "GEO", "ORGANIZATION", "EVENT"}
    assert not entities["description"].str.contains(r"##|<\|").any()
    assert entities["description"].str.contains("said").any()
    assert not relationships["description"].str.contains(r"##|<\|").any()


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=300))
def test_any_unicode_text_gives_a_graph_that_can_be_read(ask, text):
    prompt = GRAPH_EXTRACTION_PROMPT.format(entity_types="person", input_text="So Mara " + text)
    records = [r.strip() for r in ask(prompt).split("##")]
    assert records[-1] == "<|COMPLETE|>"
    for record in records[:-1]:
        fields = record.removeprefix("(").removesuffix(")").split("<|>")
        assert (fields[0], len(fields)) in {('"entity"', 4), ('"relationship"', 5)}
        if len(fields) == 5:
            assert 1 <= int(fields[4]) <= 10


@pytest.mark.parametrize(
    ("descriptions", "limit", "summary"),
    [
        (
            ["Mara sings. Mara met Otto.", "Mara met Otto!", "Mara left."],
            100,
            "Mara sings. Mara met Otto. Mara left.",
        ),
        (["Mara sings. Mara met Otto.", "Mara left."], 4, "Mara sings. Mara left."),
        (["word " * 300], 50, None),
    ],
)
def test_summaries_keep_each_sentence_once_within_the_limit(ask, descriptions, limit, summary):
    listed = json.dumps(descriptions)
    reply = ask(
        SUMMARIZE_PROMPT.format(entity_name='"MARA"', description_list=listed, max_length=limit)
    )
    assert reply == summary or summary is None
    assert len(reply.split()) <= limit + 1


def test_a_community_report_comes_from_the_tables(ask):
    table = (
        "-----Entities-----\nhuman_readable_id,title,description,degree\n"
        '5,MARA,"Mara, a singer, lives in Rome.",2\n6,OTTO,Otto paints.,1\n7,ROME,A city.,1\n\n\n'
        "-----Relationships-----\nhuman_readable_id,source,target,description,combined_degree\n"
        "37,MARA,OTTO,Mara married Otto.,3\n38,MARA,ROME,Mara lives in Rome.,3\n"
    )
    prompt = COMMUNITY_REPORT_PROMPT.format(input_text=table, max_report_length=1500)
    report = ask(prompt, response_format=CommunityReportResponse)
    assert report.title == "Mara and Otto"
    assert "2 relationships" in report.summary
    assert "Mara, a singer, lives in Rome." in report.summary
    assert [finding.summary for finding in report.findings] == ["Mara", "Otto", "Rome"]
    assert report.findings[0].explanation.endswith("[Data: Entities (5); Relationships (37, 38)]")
    assert "report should include" not in report.model_dump_json()
    assert 0 <= report.rating <= 10


def town(n_people: int) -> str:
    """Return a text that names people in full, and then by their surnames."""
    names = [f"Carr{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(n_people)]
    full = [f"Then Anna {name} met the baker." for name in names]
    return " ".join([*full, *(f"Then the baker met {name}." for name in names)])


def test_extraction_takes_four_times_the_work_for_four_times_the_names():
    def n_calls(n_people: int) -> int:
        """Count function calls: the same on every machine."""
        profile = cProfile.Profile()
        profile.runcall(extract_graph, town(n_people))
        return pstats.Stats(profile).total_calls

    told = {entity.name: entity.sentences for entity in extract_graph(town(60))[0]}
    assert sum(name.startswith("Anna ") for name in told) == 60
    assert "Then the baker met Carraa." in told["Anna Carraa"]
    assert n_calls(400) < 4 * 1.3 * n_calls(100)


def test_initials_end_no_sentence_however_many_there_are():
    text = "It was signed by " + "J. K. " * 3000 + "and by Agnes Holt. Nobody read it."
    first, second = sentences(text)
    assert first.endswith("and by Agnes Holt.")
    assert second == "Nobody read it."
