"""bm25 and hybrid: basic search whose text units are ranked by words, or by words and vectors."""

import asyncio
import csv
import gc
import io
import math
import re
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bm25s
import numpy as np
import pandas as pd
import pytest
from graphrag_vectors import VectorStoreDocument
from graphrag_vectors.lancedb import LanceDBVectorStore
from hypothesis import example, given, strategies
from support.lighthouse import QUESTION
from support.projects import offline_settings
from typer.testing import CliRunner, Result

from graphrag.config.project_settings import ProjectConfig, read_settings
from graphrag.embedded.vectors import average_words
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index.header import IndexHeader
from graphrag.query.index.tables import IndexTables
from graphrag.text.ranking import WordIndex, best_of, fuse_scores
from graphrag.text.stems import stem
from graphrag.text.tokenize import split_terms
from graphrag.tokenizer.get_tokenizer import get_tokenizer

LENGTH = 64
WORDS = re.findall(
    r"\w+", "lamp storm ferry isle letter glass captain lens sale whale harbour repairing light"
)
CJK = [
    "灯台守は大きなランプを修理した。",
    "船長は嵐の夜に手紙を運んだ。",
    "玛塔修理了灯塔的大灯。",
    "ห้องสมุดอยู่ในเมืองเก่า",
]


def texts(count: int = 80) -> list[str]:
    """Return sentences of a few words, all unlike, some with what a table must quote."""
    random = np.random.default_rng(7)
    return [
        f'Unit{at} says "' + " ".join(random.choice(WORDS, size=random.integers(3, 25))) + '"\n|.'
        for at in range(count)
    ]


def as_table(given: Sequence[str]) -> pd.DataFrame:
    """Return a table of text units whose ids sort in another order than they stand in."""
    ids = [f"unit-{997 * (at + 1) % 1_009:04d}" for at in range(len(given))]
    alike = {"n_tokens": 1, "document_id": "all"}
    none = dict.fromkeys(("entity_ids", "relationship_ids", "covariate_ids"))
    texts = {"id": ids, "human_readable_id": range(len(given)), "text": list(given)}
    return pd.DataFrame({**texts, **alike, **none})


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> ProjectConfig:
    """Return the settings of a folder that holds nothing but the vectors of ``texts()``."""
    root = tmp_path_factory.mktemp("ranked")
    static = offline_settings(LENGTH).replace("hashed-ngrams", "wordllama")
    (root / "settings.yaml").write_text(static, encoding="utf-8")
    config = read_settings(root)
    store = LanceDBVectorStore(
        db_uri=str(config.vector_store.db_uri), index_name="text_unit_text", vector_size=LENGTH
    )
    store.connect()
    store.create_index()
    units = as_table(texts())
    gone = [VectorStoreDocument(id="of a unit that is gone", vector=[1.0] * LENGTH)]
    found = [
        VectorStoreDocument(id=name, vector=vector.tolist())
        for name, vector in zip(units["id"], average_words(units["text"], LENGTH), strict=True)
    ]
    store.load_documents([*gone, *found])
    return config


def index_of(config: ProjectConfig, given: Sequence[str], **settings: object) -> GraphIndex:
    header = IndexHeader(config).changed("basic", {"max_context_tokens": 100_000, **settings})
    return GraphIndex(header, IndexTables(text_units=as_table(given)))


async def shown(index: GraphIndex, method: str, question: str) -> list[int]:
    """Return the places of the text units that a search showed, in its order."""
    found = await index.search(method, question)
    return [int(short) for short in found.context_data["sources"].get("id", ())]


async def test_bm25_shows_the_texts_that_share_a_word_best_first(config):
    given, question = texts(), "storms, storms and a letter"
    expected = [place for place, _ in WordIndex.of(given).best(question)]

    assert 10 < len(expected) < len(given)
    assert await shown(index_of(config, given, k=len(given)), "bm25", question) == expected
    assert await shown(index_of(config, given, k=7), "bm25", question) == expected[:7]


async def test_hybrid_fuses_what_words_and_vectors_say_and_how_sure_they_are(config):
    given, question = texts(), "Who repairs the lamp in the storm?"
    by_words = WordIndex.of(given).scores(question)
    (asked,) = average_words([question], LENGTH)
    # As the vector store has it: less the square of the distance.
    by_vectors = 2 * np.stack(average_words(given, LENGTH)) @ asked
    # The part of what words could reach counts four times the way from the median to the nearest.
    median = np.sort(by_vectors)[::-1][len(given) // 2]
    way = np.clip((by_vectors - median) / (by_vectors.max() - median), 0, None)
    both = np.hypot(4 * by_words, way)

    every = await shown(index_of(config, given, k=len(given)), "hybrid", question)
    first = await shown(index_of(config, given, k=7), "hybrid", question)

    assert sorted(every) == list(range(len(given)))
    assert [both[at] for at in every] == pytest.approx(sorted(both, reverse=True), abs=1e-4)
    assert first == every[:7]
    assert first != np.argsort(-by_words, kind="stable").tolist()[:7]
    assert first != np.argsort(-by_vectors, kind="stable").tolist()[:7]


async def test_whole_text_units_are_shown_within_the_budget(config):
    given, question, budget = texts(), "Who repairs the lamp in the storm?", 150
    every = await shown(index_of(config, given, k=20), "hybrid", question)
    tight = index_of(config, given, k=20, max_context_tokens=budget)
    found = await tight.search("hybrid", question)

    rows = list(csv.reader(io.StringIO(found.context_text), delimiter="|", escapechar="\\"))
    n_shown = len(rows) - 1
    expected = [[str(at), given[at]] for at in every[:n_shown]]
    assert rows == [["id", "text"], *expected]
    encode = get_tokenizer(encoding_model="cl100k_base").encode
    taken = [len(encode(f"{at}|{given[at]}\n")) for at in every]
    assert 1 < n_shown < 20
    assert sum(taken[:n_shown]) <= budget < sum(taken[: n_shown + 1]) + len(encode("id|text\n"))
    for method in ("bm25", "hybrid"):
        bare = index_of(config, given, k=20, max_context_tokens=10)
        assert await shown(bare, method, question) == []


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
async def test_texts_show_the_title_of_their_document_unless_they_begin_with_it(config, method):
    given = ["No excess.", "Home Policy\nThe excess is 90 euros.", "The excess is 300 euros."]
    titles = ["Car policy | private.txt", "home-policy.md"]
    units = as_table(given).assign(document_id=["car", "home", "car"])
    documents = pd.DataFrame({"id": ["car", "home"], "title": titles})

    async def ask(documents: pd.DataFrame, budget: int) -> list[list[str]]:
        header = IndexHeader(config).changed("basic", {"max_context_tokens": budget, "k": 3})
        index = GraphIndex(header, IndexTables(text_units=units, documents=documents))
        found = await index.search(method, "How large is the excess?")
        head, *rows = csv.reader(io.StringIO(found.context_text), delimiter="|", escapechar="\\")
        return [head, *sorted(rows)]

    every = [["0", titles[0], given[0]], ["1", "", given[1]], ["2", titles[0], given[2]]]
    assert await ask(documents, 1_000) == [["id", "document", "text"], *every]
    encode = get_tokenizer(encoding_model="cl100k_base").encode
    needed = len(encode("id|document|text\n")) + sum(
        len(encode(f"{n}|{given[n]}\n")) for n in range(3)
    )
    assert len(await ask(documents, needed)) < 4  # titles count, too, so not all texts have room
    # A single document needs no name.
    alone = [["id", "text"], *([row, text] for row, _, text in every)]
    assert await ask(documents[:1], needed) == alone


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("手紙を運んだのは誰か", 1),
        ("谁修理了灯塔", 2),
        ("ห้องสมุด", 3),
        ("\uff32\uff25\uff30\uff21\uff29\uff32\uff33 OF A \uff2c\uff21\uff2d\uff30", 4),
    ],
)
async def test_texts_without_spaces_and_of_other_width_are_found(question, place, config):
    given = [*CJK, "The keeper repaired a lamp.", "No one came."]

    assert (await shown(index_of(config, given), "bm25", question))[0] == place


@pytest.mark.parametrize("given", [["", " ", "\n"], ["The ferry came late."]])
async def test_nothing_is_shown_where_no_word_is_shared(given, config):
    found = await index_of(config, given).search("bm25", QUESTION.replace("the ", ""))

    assert list(found.context_data["sources"].columns) == []
    assert found.abstained


def scores(least: float, most: float) -> strategies.SearchStrategy[dict[int, float]]:
    return strategies.dictionaries(
        strategies.integers(0, 30), strategies.floats(least, most), max_size=20
    )


@example({0: 0.8999999999999998, 1: 0.9}, {})
@example({0: 0.001, 1: 0.0010000000000000002}, {0: 0.0})
@given(scores(0.001, 1), scores(-9, 9))
def test_fused_scores_hold_every_item_once_best_first(words, near):
    fused = fuse_scores(words, near, 31)

    assert sorted(item for item, _ in fused) == sorted({*words, *near})
    values = [score for _, score in fused]
    assert values == sorted(values, reverse=True)
    assert all(0 <= score <= round(math.hypot(4, 1), 9) for score in values)
    alone = [item for item, _ in fuse_scores(words, dict.fromkeys(near, 0.5), 31) if item in words]
    ranked = sorted(words.values(), reverse=True)
    assert [words[item] for item in alone] == pytest.approx(ranked, abs=1e-9)  # closer ones tie


def test_nearness_counts_from_its_median_or_from_the_least_that_is_known():
    near = {1: 9.0, 2: 5.0, 3: 1.0, 4: 0.5, 5: -8.0}
    assert fuse_scores({}, near, 5) == [(1, 1.0), (2, 0.5), (3, 0.0), (4, 0.0), (5, 0.0)]
    # Of a large index only the nearest are known.
    assert fuse_scores({}, {1: 3.0, 2: 2.0, 3: 1.0}, 1_000) == [(1, 1.0), (2, 0.5), (3, 0.0)]


def test_a_quarter_of_what_words_could_reach_counts_as_much_as_the_nearest():
    near = {1: 9.0, 2: 5.0, 3: 1.0}
    assert fuse_scores({4: 0.25, 3: 0.2}, near, 5)[:3] == [(1, 1.0), (4, 1.0), (3, 0.8)]
    # One that either is sure of comes before one of which both say a little.
    assert [item for item, _ in fuse_scores({4: 0.15, 2: 0.1}, near, 5)] == [1, 2, 4, 3]
    assert [item for item, _ in fuse_scores({4: 0.2, 2: 0.1}, near, 5)] == [1, 4, 2, 3]


def test_words_count_by_what_the_question_could_reach():
    """Of BM25's score the part of the idf of all words asked for, as Lucene computes both."""
    given = ["the lamp of the storm", "a lamp", "a ferry late", "no one"]
    index = WordIndex.of(given)

    def idf(n: int) -> float:
        return math.log(1 + (len(given) - n + 0.5) / (n + 0.5))

    lengths = [len(words) for words in split_terms(given)]
    saturated = 1 / (1 + 1.5 * (0.25 + 0.75 * lengths[0] / np.mean(lengths)))
    for question, reachable in (
        ("Lamps, a lamp in a storm", idf(2) + idf(1)),
        ("A lamp in a storm: who sold harpoons?", idf(2) + idf(1) + 2 * idf(0)),
    ):
        found = index.scores(question)
        assert found[0] == pytest.approx(saturated * (idf(2) + idf(1)) / reachable)
        assert 0 < found[1] < found[0]
        assert found[2:].tolist() == [0, 0]
    assert index.scores("harpoons").tolist() == [0, 0, 0, 0]


def test_the_docs_worked_example_is_what_is_computed():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "think_on_graph.md").read_text(encoding="utf-8")
    told = re.findall(
        r"^\|([^|]*)\| \**([\w ]+?)\**(?:, [^|]*)? \| ([\d.]+) \| ([\d.]+) \| \**([\d.]+)\** \|$",
        page,
        re.MULTILINE,
    )
    assert len(told) == 4
    articles = sorted((root / "examples" / "archipelago" / "input").glob("*.txt"))
    given = [path.read_text(encoding="utf-8") for path in articles]
    titles = [text.partition("\n")[0] for text in given]
    index, vectors = WordIndex.of(given), np.stack(average_words(given, 256))
    question, order = "", list[int]()
    for asked, title, *figures in told:
        if asked.strip():
            question = asked.strip()
            near = dict(enumerate((vectors @ average_words([question], 256)[0]).tolist()))
            words = index.scores(question)
            nearness, scores = (
                dict(fuse_scores(dict(part), near, len(given)))
                for part in ([], best_of(words, None))
            )
            order = list(scores)
        at = titles.index(title)
        found = [words[at], nearness[at], scores[at]]
        assert [f"{figure:.2f}" for figure in found] == figures, (question, title)
        assert (order[0] == at) is bool(asked.strip()), "the first row is the first text"


def test_texts_are_ranked_as_bm25s_ranks_them():
    """Bit by bit: of so many texts some scores differ in their last digits alone."""
    chance = np.random.default_rng(11)
    drawn = chance.zipf(1.3, size=(1_500, 40)) % 900
    given = [
        " ".join(f"w{word}" for word in row[: chance.integers(0, 41)]) + CJK[row[0] % 4][:3]
        for row in drawn
    ]
    oracle = bm25s.BM25(method="lucene")
    oracle.index(split_terms(given), show_progress=False)
    index, backwards = WordIndex.of(given), np.arange(len(given))[::-1]

    for words in (["w1", "w2", "w3"], ["w40", "w1", "w40"], ["w7", "灯台", "w800", "w3"]):
        scores, asked = oracle.get_scores(list(dict.fromkeys(words))), " ".join(words)
        expected = [at for at in np.argsort(-scores, kind="stable").tolist() if scores[at] > 0]
        assert [place for place, _ in index.best(asked)] == expected
        last = [place for place, _ in best_of(index.scores(asked), None, backwards)]
        assert last == sorted(expected, key=lambda at: (-scores[at], -at)) != expected
        for k in (0, 1, 7, len(expected), len(expected) + 1):
            assert [p for p, _ in best_of(index.scores(asked), k, backwards)] == last[:k]


def counted() -> int:
    """Return how many collections have their words counted at this moment."""
    gc.collect()
    return sum(isinstance(found, WordIndex) for found in gc.get_objects())


async def test_the_words_of_an_index_are_counted_once_for_all_that_rank_them(project):
    gc.freeze()  # what there was before is not looked through
    before, index = counted(), await GraphIndex.open(project)
    await index.search("basic", QUESTION)
    assert counted() == before, "who does not rank by words pays nothing"
    found, words = [await index.search(method, QUESTION) for method in ("hybrid", "bm25")]
    assert found.context_text == words.context_text, "hashed n-grams would take from words"
    assert found.usage.embedding_calls == 0

    varied = [
        *(index.under(index.header.changed("hybrid", {"k": k})) for k in (1, 3)),
        *(index.under(index.header.changed("tog", {"max_context_tokens": n})) for n in (500, 900)),
    ]
    asked = [(each, name) for each in (index, *varied) for name in ("bm25", "hybrid", "tog")]
    await asyncio.gather(*(each.search(name, QUESTION) for each, name in asked))
    assert counted() == before + 1
    assert len(await shown(varied[0], "hybrid", QUESTION)) == 1

    del index, varied, asked
    assert counted() == before, "an index that is closed keeps no words"


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
async def test_the_request_is_that_of_basic_search_but_for_the_rows(method, make_project, server):
    extra = "basic_search: {k: 1000, max_context_tokens: 9000}\n"
    remote = await GraphIndex.open(make_project(extra))
    basic = await remote.search("basic", QUESTION)
    other = await remote.search(method, QUESTION)

    requests = [request for request in server.requests.values() if "messages" in request]
    texts = [str(found.context_text) for found in (basic, other)]
    for request, text in zip(requests, texts, strict=True):
        system = request["messages"][0]
        assert system["content"].count(text) == 1
        system["content"] = system["content"].replace(text, "")
    assert requests[0] == requests[1]
    assert {*texts[1].splitlines()} <= {*texts[0].splitlines()}
    assert basic.usage.embedding_calls == 1
    assert other.usage.embedding_calls == (method == "hybrid")
    assert other.usage.llm_calls == 1


def graphrag(*arguments: str) -> Result:
    from graphrag.cli.main import app

    return CliRunner().invoke(app, list(arguments))


@pytest.mark.usefixtures("as_before")
def test_bm25_needs_no_vectors_and_hybrid_says_that_it_does(project, tmp_path):
    root = tmp_path / "bare"
    shutil.copytree(project, root, ignore=shutil.ignore_patterns("lancedb"))
    here = ("query", QUESTION, "--root", str(root), "--method")
    answered, refused = graphrag(*here, "bm25", "--verbose"), graphrag(*here, "hybrid")

    assert answered.exit_code == 0, answered.output
    assert "Jonas Feld" in answered.stdout
    assert "embeddings: 0 calls, 0 tokens" in answered.stderr
    assert "offline baseline model" in answered.stderr
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: ")
    assert "no vector store" in refused.stderr
    assert refused.stderr.count("\n") == 1

    (tmp_path / "questions.csv").write_text(
        f'question,answer,evidence\n"{QUESTION}",Jonas Feld,"Marta Quill repaired the great"\n',
        encoding="utf-8",
    )
    (tmp_path / "eval_config.yaml").write_text(
        "dataset: {path: questions.csv}\nindexes: {isle: bare}\n"
        "methods: [bm25, {name: first, method: bm25, k: 1}]\n",
        encoding="utf-8",
    )
    evaluated = graphrag("eval", "--root", str(tmp_path))
    refused = graphrag("eval", "--root", str(tmp_path), "--methods", "bm25,hybrid")
    assert evaluated.exit_code == 0, evaluated.output
    assert "not the one that was searched" not in evaluated.output
    assert refused.exit_code == 2
    assert "no vector store" in refused.output


def test_words_that_threads_stem_at_once_are_stemmed_as_by_one():
    """A stemmer keeps its word in itself: shared by threads it raised, or gave another's word."""
    roots = [f"{a}{b}{c}{d}" for a in "bdf" for b in "aeiou" for c in "lmn" for d in "kp"]
    words = [f"{root}{ending}" for root in roots for ending in ("izations", "fulness", "ingly")]
    parts = [words[place::8] for place in range(8)]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        stem.cache_clear()
        with ThreadPoolExecutor(8) as threads:
            together = list(threads.map(lambda part: [stem(word) for word in part], parts))
    finally:
        sys.setswitchinterval(switching)
    stem.cache_clear()
    assert together == [[stem(word) for word in part] for part in parts]
