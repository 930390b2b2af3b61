"""The label of the embedded models says who answered, who judged and who embedded."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.clock_evaluation import flat
from support.projects import OFFLINE_SETTINGS, server_settings
from typer.testing import CliRunner

from graphrag.eval.results.usage import label_embedded
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores, failed_search_scores
from graphrag.query.client.embedded_labels import ANSWERS, EMBEDDINGS, VERDICTS, Part, label_roles
from graphrag.query.client.usage import CallAttempt, Usage, sum_usages, summarize_attempts

RULES, HASHED, GPT = "offline/rules", "offline/hashed-ngrams", "openai/gpt-4o"
ALL = "offline baseline models"


def attempt(kind, model):
    return CallAttempt(kind, model, "response", 5, 0, "provider", 0.1)


def usage(completion=None, embedding=None):
    asked = [(kind, m) for kind, m in (("completion", completion), ("embedding", embedding)) if m]
    return summarize_attempts([attempt(*each) for each in asked])


def result(found=None, judge=None, score=1, **changes):
    values = {
        "imdb_key": "a",
        "question": "Who?",
        "method": "tog",
        "response": "Ann",
        "scores": MetricScores(JudgeResult(score, "r")),
        "efficiency": EfficiencyMetrics(1.0, 1, 1, 1),
        "usage": found,
        "judge_usage": judge,
    }
    return QueryResult(**{**values, **changes})


FAILED = {"failure": Failure("search", "error", "x"), "scores": failed_search_scores()}


@pytest.mark.parametrize(
    ("results", "label"),
    [
        ([], None),
        ([result(usage(GPT, "openai/ada"), usage(GPT))], None),
        ([result(usage(RULES, HASHED), usage(RULES))], ALL),
        ([result(usage(RULES, HASHED), score=None)], ALL),
        ([result(usage(GPT, HASHED), usage(GPT))], "embeddings: offline baseline model"),
        ([result(usage(GPT, HASHED), usage(RULES))], "verdicts and embeddings: " + ALL),
        ([result(usage(RULES, HASHED), usage(GPT))], "answers and embeddings: " + ALL),
        ([result(usage(RULES, "openai/ada"), usage(RULES))], "answers and verdicts: " + ALL[:-1]),
        (
            [result(usage(RULES), usage(GPT)), result(usage(GPT), usage(GPT))],
            "some answers: offline baseline model",
        ),
        # A judge, and a method, of one's own name no model.
        ([result(usage(RULES, HASHED))], "answers and embeddings: " + ALL),
        ([result(usage(RULES), usage(RULES)), result(Usage(), usage(RULES))],
         "some answers and verdicts: offline baseline model"),
        # A failed search has no answer, but what it asked was asked.
        ([result(usage(RULES), usage(RULES)), result(Usage(), **FAILED)], ALL),
        ([result(usage(GPT), usage(GPT)), result(usage(None, HASHED), **FAILED)],
         "embeddings: offline baseline model"),
    ],
)  # fmt: skip
def test_the_label_names_the_roles_that_embedded_models_played(results, label):
    assert label_embedded(results) == label


PARTS = st.builds(Part, st.frozensets(st.sampled_from([RULES, HASHED, GPT, "x/y"])), st.booleans())


@given(st.fixed_dictionaries(dict.fromkeys((ANSWERS, VERDICTS, EMBEDDINGS), PARTS)))
def test_a_role_is_named_just_where_an_embedded_model_played_it(parts):
    label = label_roles(parts)
    played = {r for r, p in parts.items() if any(m.startswith("offline/") for m in p.models)}
    if not played:
        assert label is None
    elif label != ALL:
        assert {r for r in parts if r in label.partition(":")[0]} == played
    else:
        assert all(m.startswith("offline/") for p in parts.values() for m in p.models)
        assert not any(part.others for part in parts.values())


def test_usages_that_do_not_tell_who_answered_are_labelled_by_the_names_of_their_models():
    given = [result(usage(GPT), usage(GPT))]  # and further judges are judges
    assert label_embedded(given, [usage(RULES)]) == "some verdicts: offline baseline model"
    assert label_embedded([result(Usage(models=(GPT, HASHED)), Usage(models=(GPT,)))]) == ALL
    assert label_embedded([result(Usage(models=(GPT,)), Usage(models=(GPT,)))]) is None


def test_kinds_of_models_survive_sums_and_storage():
    both = sum_usages([usage(GPT, HASHED), Usage(), usage(RULES)])
    assert (both.completion_models, both.embedding_models) == ((RULES, GPT), (HASHED,))
    assert Usage.from_dict(json.loads(json.dumps(both.to_dict()))) == both


@pytest.fixture
def mixed(make_evaluation, server):
    """Return an evaluation whose completions go to the server, its embeddings to no one."""
    evaluation = make_evaluation(methods=["basic"])
    settings = yaml.safe_load(server_settings(server.base_url))
    embedded = yaml.safe_load(OFFLINE_SETTINGS)
    settings["embedding_models"] = embedded["embedding_models"]
    evaluation.write_settings(yaml.safe_dump(settings))
    return evaluation


def said(evaluation, *words):
    return flat(evaluation.run(*words, COLUMNS="200").output)


def test_every_table_says_that_only_the_embeddings_were_embedded_ones(mixed):
    label = "embeddings: offline baseline model"
    ran = mixed.done("--limit", "3", "--full", COLUMNS="200")
    shown = flat(ran.output)
    assert f"({label}): " in shown
    assert shown.count(label) == 1
    _, _, further = shown.partition("Score: correctness")
    for title in ("Efficiency of the searches", "Traced to the index, in % (95 % interval)"):
        assert title in further
        assert shown.count(title) == 1
    before, _, tables = ran.output.partition("Score: ")
    assert f"Using {ALL} in addition to the others: {HASHED}." in before
    assert ALL not in tables
    assert mixed.read_results("summary")["metadata"]["embedded_models"] == label
    first = mixed.newest_folder.name
    history = said(mixed, "show")
    assert (label in history, ALL in history) == (True, False)
    planned = said(mixed, "compare", "latest", "--plan", "0.2")
    assert f"Of the observed run: {label}." in planned

    judged = said(mixed, "judge", "latest", "--model", "offline/rules")
    assert f"(verdicts and embeddings: {ALL})" in judged
    against = said(mixed, "compare", mixed.newest_folder.name, first)
    assert f"(new run: verdicts and embeddings: {ALL}; baseline: {label})" in against


def test_a_query_says_who_embedded_and_who_answered(mixed, make_evaluation):
    offline = make_evaluation(name="offline")
    question = "Who stole the silver pendulum?"
    for evaluation, label in ((mixed, "embeddings: offline baseline model"), (offline, ALL)):
        from graphrag.cli.main import app

        arguments = ["query", question, "-r", str(evaluation.project), "-m", "basic"]
        found = CliRunner().invoke(app, arguments)
        assert f"({label})" in found.stderr.splitlines()
