"""The embedding of static words: vectors of a package, read without importing it."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import LLMEmbedding, create_embedding
from support.lighthouse import TEXT
from support.projects import build_project, offline_settings
from typer.testing import CliRunner

from graphrag.offline import OfflineModelError

QUESTION = "Who repaired the great lamp with Marta Quill?"


def make(**changes: object) -> LLMEmbedding:
    given = {"type": "offline", "model_provider": "offline", "model": "wordllama", **changes}
    return create_embedding(ModelConfig.model_validate(given))


def vectors(texts: list[str], **changes: object) -> np.ndarray:
    return np.array(make(**changes).embedding(input=texts).embeddings)


def test_other_words_of_the_same_meaning_are_nearer_than_other_subjects():
    asked, same, other, cjk, empty, blank = vectors(
        [
            "How did the doctor cure the child?",
            "A physician healed the young boy.",
            "Stocks and bonds fell sharply in March.",
            "灯台守は大きなランプを修理した。",
            "",
            " ",
        ]
    )
    assert asked @ same > asked @ other + 0.1
    assert "wordllama" not in sys.modules, "it would set up logging and could download"
    for vector in (asked, other, cjk, empty, blank):
        assert vector.shape == (256,)
        assert np.linalg.norm(vector) == pytest.approx(1)


def test_a_vector_is_the_same_alone_in_a_batch_and_in_threads():
    texts = [f"{TEXT[at : at + 90 * (at % 5)]}" for at in range(40)]
    together = vectors(texts)
    with ThreadPoolExecutor(4) as pool:
        alone = np.concatenate(list(pool.map(lambda text: vectors([text]), texts)))
    assert np.array_equal(together, alone)


def test_shorter_vectors_begin_the_longest():
    whole, part = vectors(["The lamp"]), vectors(["The lamp"], dimensions=64)
    assert part.shape == (1, 64)
    assert part[0] @ whole[0, :64] == pytest.approx(np.linalg.norm(whole[0, :64]))
    with pytest.raises(OfflineModelError, match="must be 64, 128 or 256 of wordllama, not 384"):
        make(dimensions=384)


def test_without_the_package_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(OfflineModelError, match="not installed; run: pip install") as caught:
        make()

    assert '"wordllama' in str(caught.value)


def test_a_project_is_indexed_and_answers_are_labelled(tmp_path):
    from graphrag.cli.main import app

    build_project(tmp_path, offline_settings(256).replace("hashed-ngrams", "wordllama"), isle=TEXT)
    asked = ["query", QUESTION, "--root", str(tmp_path), "--method", "hybrid", "--verbose"]
    done = CliRunner().invoke(app, asked)

    assert done.exit_code == 0, done.output
    assert "Jonas Feld" in done.stdout
    assert "models: offline/rules, offline/wordllama" in done.stderr
    assert "offline baseline models" in done.stderr
