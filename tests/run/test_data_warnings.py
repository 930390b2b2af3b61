"""What is said of a dataset and its indexes before the first call is paid for."""

import shutil

import pytest
from click.testing import Result
from support.clock_evaluation import ROWS, MakeEvaluation, flat
from support.projects import OFFLINE_SETTINGS, build_project, server_settings

from graphrag.eval.runner.preflight import list_judge_warnings

MILL_TEXT = """\
The miller Orla Finch runs the watermill of Dunmere. Orla Finch inherited the watermill from her
uncle Bertram Lode. Bertram Lode drowned in the millpond during a thunderstorm. The baker Hugo
Pym buys flour from Orla Finch. Hugo Pym bakes saffron loaves for the harvest festival. The
weaver Sunniva Ash spins wool beside the watermill. Sunniva Ash dyes the wool with madder. A
fox raided the henhouse of Hugo Pym in autumn. Orla Finch trapped the fox beneath the sluice.
"""
MILL_ROWS = [
    {"question": "who runs the watermill?", "answer": "the miller orla finch"},
    {"question": "what drowned bertram lode?", "answer": "a thunderstorm at the millpond"},
    {"question": "who bakes saffron loaves?", "answer": "the baker hugo pym"},
    {"question": "with what is wool dyed?", "answer": "sunniva ash takes madder"},
    {"question": "what raided the henhouse?", "answer": "a fox, trapped beneath the sluice"},
]
CLOCK_ROWS = [{k: row[k].lower() for k in ("question", "answer")} for row in ROWS]
MILL_QUOTES = ("runs the watermill of Dunmere", "buys flour from", "dyes the wool [...] madder [1]")
CLOCK_QUOTES = ("built the tower clock", "sold the silver pendulum", "The ship Wren belongs to")
GENERIC = (
    "What is the text about?",
    "Who are the main people?",
    "How does it end?",
    "Which events matter most?",
    "What is the mood of the opening?",
)


@pytest.fixture(scope="module")
def mill(tmp_path_factory):
    return build_project(tmp_path_factory.mktemp("mill"), mill=MILL_TEXT)


@pytest.fixture
def both(make_evaluation: MakeEvaluation, mill):
    """Return an evaluation of two indexes, clock and mill."""
    made = make_evaluation(indexes={"clock": "clock", "mill": "mill"})
    shutil.copytree(mill, made.root / "mill")
    return made


def said(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return flat(result.output)


def rows_of(clock, mill):
    return [{**r, "imdb_key": "clock"} for r in clock] + [{**r, "imdb_key": "mill"} for r in mill]


def quoting(rows, quotes):
    return [{**row, "evidence": [quotes[n % len(quotes)]]} for n, row in enumerate(rows)]


def test_texts_under_each_others_key_are_warned_of(both):
    both.write_rows(rows_of(quoting(CLOCK_ROWS, CLOCK_QUOTES), quoting(MILL_ROWS, MILL_QUOTES)))
    right = said(both.run("--dry-run"))
    assert "swapped" not in right
    assert "does not contain" not in right
    both.configure(indexes={"clock": "mill", "mill": "clock"})
    wrong = said(both.run("--dry-run"))
    assert (
        "mill: of the quotes in its questions 0 of 5 are in its own text, and 5 of 5 in "
        "that of clock; are the documents swapped?" in wrong
    )
    assert "11 of 11 questions with evidence quote what their document does not contain (c" in wrong
    # General questions are not taken for swapped ones, and names of another book are.
    general = [{"question": text, "answer": "Several people."} for text in GENERIC]
    both.write_rows(rows_of(general, general))
    assert "swapped" not in said(both.run("--dry-run"))
    potter = [
        {"question": "Where does Harry Potter meet Ron Weasley?", "answer": "In London"},
        {"question": "Who taught Hermione Granger at Hogwarts?", "answer": "Minerva"},
    ]
    both.write_rows(rows_of(potter, []))
    assert "are the documents swapped?" in said(both.run("--dry-run"))


def test_evidence_that_is_not_there_is_said_before_any_call_and_left_out(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    there = {**ROWS[0], "evidence": ["The clockmaker ... lives in the town\nof Ashcombe. [1]"]}
    guessed = {**ROWS[1], "evidence": ["Petra Holm is the owner of the Ashcombe Bank."]}
    evaluation.write_rows([there, guessed, ROWS[2]])
    warning = (
        "1 of 2 questions with evidence quote what their document does not contain, e.g. q2: "
        "'Petra Holm is the owner of the Ashcombe Bank.'; these quotes are left out"
    )
    assert warning in said(evaluation.run("--dry-run"))
    result = said(evaluation.run("--skip-judge", "--full"))
    assert result.index(warning) < result.index("3/3")
    assert "Left out here and in the retrieval measures: all evidence of 1 question," in result
    summary = evaluation.read_results("summary")
    assert any(warning in each for each in summary["metadata"]["warnings"])
    recall = summary["measures"]["basic"]["measures"]["recall"]
    assert (recall["estimate"]["mean"], recall["estimate"]["n"], recall["n_excluded"]) == (1, 1, 2)
    (row,) = [row for row in summary["loss"] if row["imdb_key"] is None]
    assert (row["n"], row["n_untraced"], row["n_unmatched"]) == (3, 1, 1)
    assert row["lost"]["in_source"] == 0


def test_contexts_that_hold_most_of_the_text_are_warned_of(both):
    both.write_rows(rows_of(ROWS[:1], []))
    both.configure(
        methods=["tog", "local", "basic", {"name": "tight", "method": "basic", "k": 1}, "oracle"]
    )
    found = said(both.run("--dry-run"))
    assert (
        "the context of tog (8,000 tokens), local (6,000 of its 12,000 tokens for text) and basic "
        "(10 text units) have all of the text of index 'clock' (" in found
    )
    assert "this comparison says little about retrieval" in found
    assert "tight" not in found.partition("says little")[0]
    both.configure(methods=["tight"], variants={"tight": {"method": "basic", "k": 1}})
    assert "says little" not in said(both.run("--dry-run"))


def test_text_units_for_which_there_is_no_room_are_warned_of(both):
    both.write_rows(rows_of(ROWS[:1], []))
    both.configure(
        methods=[
            {"name": "small", "method": "basic", "max_context_tokens": 45},
            {"name": "half", "method": "local", "max_context_tokens": 105},
            "tog",
            "closed_book",
        ]
    )
    found = said(both.run("--dry-run"))
    assert (
        "4 of 5 text units of index 'clock' (the largest has 60 tokens) are larger than the room "
        "for text of small (45 tokens) and half (52 of its 105 tokens for text), and can't be "
        "shown; raise max_context_tokens, or index with a smaller chunking.size" in found
    )
    both.configure(methods=["tog", "local", "basic", {"name": "k1", "method": "basic", "k": 1}])
    assert "can't be shown" not in said(both.run("--dry-run"))


@pytest.mark.parametrize(
    ("model", "warned"),
    [
        ("no-such-model", False),
        ("gpt-4", True),  # reads 8,192 tokens, and the budget below is as large
    ],
)
def test_a_judge_that_cannot_read_the_contexts_is_warned_of(make_evaluation, server, model, warned):
    evaluation = make_evaluation(
        server.base_url,
        judge={"model": f"openai/{model}"},
        methods=[{"name": "wide", "method": "tog", "max_context_tokens": 9000}],
    )
    found = said(evaluation.run("--dry-run"))
    assert ("and the context and answer of wide (11,000) may take as many" in found) is warned
    assert ("verdicts on faithfulness and relevance may fail" in found) is warned
    if warned:
        evaluation.configure(metrics=["correctness"])
        assert "may fail" not in said(evaluation.run("--dry-run"))


def test_a_graph_that_rules_made_for_a_language_model_is_warned_of(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["tog"])
    warning = "an embedded model makes the graph of clock by fixed rules; methods that read it may"
    assert warning in said(evaluation.run("--dry-run"))  # whatever model is named since
    (evaluation.project / "output" / "index_cost.json").unlink()  # built by another command
    assert warning not in said(evaluation.run("--dry-run"))
    rules = "  rules: {type: offline, model_provider: offline, model: rules}\nembedding_models:"
    settings = server_settings(server.base_url).replace("embedding_models:", rules)
    evaluation.write_settings(f"{settings}extract_graph: {{completion_model_id: rules}}\n")
    assert warning in said(evaluation.run("--dry-run"))
    evaluation.write_settings(OFFLINE_SETTINGS)  # nothing but embedded models: labelled whole
    assert warning not in said(evaluation.run("--dry-run"))


def test_a_source_that_the_index_lacks_can_not_have_been_found(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    there = {**ROWS[0], "expected_sources": ["clock.txt"]}
    lacking = {**ROWS[1], "expected_sources": ["minutes of 1871.txt"]}
    partly = {**ROWS[2], "expected_sources": ["clock.txt", "minutes of 1871.txt"]}
    quote = "Petra Holm is the owner of the Ashcombe Bank."
    quoted = {**ROWS[3], "evidence": [quote], "expected_sources": [quote]}
    evaluation.write_rows([there, lacking, partly, quoted])
    warning = (
        "2 of 4 questions with evidence expect a source that their index does not contain, e.g. "
        "q2: 'minutes of 1871.txt'; no search can have found these, and they count so"
    )
    result = said(evaluation.run("--skip-judge", "--full"))
    assert warning in result
    assert "1 of 4 questions with evidence quote what their document does not contain" in result
    summary = evaluation.read_results("summary")
    found = summary["measures"]["basic"]["measures"]
    for name, mean in (("hit_rate", 2 / 3), ("mrr", 2 / 3), ("recall", 1.5 / 3)):
        assert found[name]["estimate"]["mean"] == pytest.approx(mean)
        assert (found[name]["estimate"]["n"], found[name]["n_excluded"]) == (3, 1)
    (row,) = [row for row in summary["loss"] if row["imdb_key"] is None]
    assert (row["n"], row["n_unmatched"], row["lost"]["in_source"]) == (4, 1, 2)


@pytest.mark.parametrize(
    ("judge", "answering", "is_related"),
    [
        ("openai/gpt-4.1", "openai/gpt-4o", True),
        ("openai/gpt-4.1", "mistral/codestral-2.1", False),
        ("bedrock/us.anthropic.claude-3-5", "anthropic/claude-4.1", True),
        ("bedrock/meta.llama3-1-70b", "ollama/llama2", True),
    ],
)
def test_a_version_is_no_family(judge, answering, is_related):
    assert bool(list_judge_warnings(judge, [answering])) is is_related
