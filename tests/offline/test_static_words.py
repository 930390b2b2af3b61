"""The embedding of static words: vectors of a package, read without importing it."""

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pytest
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import LLMEmbedding, create_embedding
from packaging.requirements import Requirement
from support.clock_evaluation import flat, in_process
from support.lighthouse import TEXT
from support.projects import build_project, offline_settings
from typer.testing import CliRunner, Result

from graphrag.embedded import OfflineModelError

QUESTION = "Who repaired the great lamp with Marta Quill?"


def make(**changes: object) -> LLMEmbedding:
    given = {"type": "offline", "model_provider": "offline", "model": "wordllama", **changes}
    return create_embedding(ModelConfig.model_validate(given))


def vectors(texts: list[str], **changes: object) -> np.ndarray:
    return np.array(make(**changes).embedding(input=texts).embeddings)


def test_other_words_of_the_same_meaning_are_nearer_than_other_subjects():
    asked, same, other, cjk, empty, *odd = vectors(
        [
            "How did the doctor cure the child?",
            "A physician healed the young boy.",
            "Stocks and bonds fell sharply in March.",
            "灯台守は大きなランプを修理した。",
            "",
            " ",
            "\U0001f701\U0001f702",
            "half a pair \ud83d",
            "the lamp " * 20_000,
        ]
    )
    assert asked @ same > asked @ other + 0.1
    assert "wordllama" not in sys.modules, "it would set up logging and could download"
    assert max(empty @ each for each in (asked, same, other)) < 0.2
    for vector in (asked, other, cjk, empty, *odd):
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
    with pytest.raises(OfflineModelError, match=r"not installed; run: .*pip install") as caught:
        make()

    assert '"wordllama' in str(caught.value)


HASHED = offline_settings(256)
LEARNED = HASHED.replace("hashed-ngrams", "wordllama")


def ask(root: Path, method: str, *flags: str) -> Result:
    from graphrag.cli.main import app

    return CliRunner().invoke(
        app, ["query", QUESTION, "--root", str(root), "--method", method, *flags]
    )


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_project(tmp_path_factory.mktemp("learned"), LEARNED, isle=TEXT)


def test_a_project_is_indexed_and_answers_are_labelled(learned):
    done = ask(learned, "hybrid", "--verbose")

    assert done.exit_code == 0, done.output
    assert "Jonas Feld" in done.stdout
    assert "models: offline/rules, offline/wordllama" in done.stderr
    assert "offline baseline models" in done.stderr
    assert "hashed" not in done.stderr


def test_vectors_that_another_model_made_are_refused_until_the_index_is_built_again(
    learned, tmp_path
):
    root = tmp_path / "isle"
    shutil.copytree(learned, root)
    (root / "settings.yaml").write_text(HASHED, encoding="utf-8")
    for method in ("basic", "local", "hybrid"):
        refused = ask(root, method)
        assert refused.exit_code == 2
        assert "offline/hashed-ngrams embeds the questions, and another model" in refused.stderr
        assert f"index --root {root}, or name the model" in " ".join(refused.stderr.split())
    assert ask(root, "bm25").exit_code == 0
    rebuilt = build_project(tmp_path / "again", HASHED, isle=TEXT)
    (root / "settings.yaml").write_text(LEARNED, encoding="utf-8")
    assert ask(root, "basic").exit_code == 0
    assert ask(rebuilt, "basic").exit_code == 0

    (rebuilt / "settings.yaml").write_text(LEARNED, encoding="utf-8")
    by_words = ask(rebuilt, "ppr")
    assert "words alone ranked the texts: offline/wordllama embeds the questions" in by_words.stderr


def test_where_the_package_is_not_to_be_had_hashed_vectors_answer_and_the_run_says_so(
    learned, tmp_path, monkeypatch
):
    sentence = "hashed n-grams embed the texts here, as wordllama has no package"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "wordllama", None)
        root = build_project(tmp_path / "isle", LEARNED, isle=TEXT)
        done = ask(root, "basic")
        assert (done.exit_code, sentence in done.stderr) == (0, True), done.output
        dataset = tmp_path / "isle" / "questions.csv"
        dataset.write_text(f"question,answer\n{QUESTION},Jonas Feld\n", encoding="utf-8")
        (root / "eval_config.yaml").write_text(
            "dataset: {path: questions.csv}\nindexes: {isle: .}\nmethods: [basic, ppr]\n"
        )
        run = in_process("--root", str(root))
        assert run.exit_code == 0, run.output
        assert sentence in flat(run.output)
        summary = json.loads((root / "eval/results/eval_results_summary.json").read_text("utf-8"))
        assert summary["metadata"]["models"] == ["offline/hashed-ngrams", "offline/rules"]
        assert ask(learned, "local").exit_code == 2
    assert ask(root, "local").exit_code == 2


def test_a_package_is_asked_for_where_there_is_one():
    (line,) = (line for line in requires("gtog") or () if line.startswith("wordllama"))
    marker = Requirement(line).marker
    assert marker is not None
    needed = {
        (system, machine): marker.evaluate({"sys_platform": system, "platform_machine": machine})
        for system in ("linux", "darwin", "win32")
        for machine in ("x86_64", "AMD64", "arm64", "aarch64", "ARM64")
    }
    assert needed["linux", "x86_64"]
    assert needed["win32", "AMD64"]
    assert needed["darwin", "x86_64"]
    assert needed["darwin", "arm64"]
    assert not needed["linux", "aarch64"]
    assert not needed["win32", "ARM64"]
