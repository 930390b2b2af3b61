"""``graphrag eval import``: what it writes of each format, what it refuses, and a run of it."""

import json
from pathlib import Path

import pandas as pd
import pytest
from support.benchmark_files import (
    BENCH,
    CORPUS,
    HOTPOT,
    MUSIQUE,
    PASSAGES,
    RAGAS,
    write_samples,
)
from support.clock_evaluation import in_process
from support.openai_server import running_server
from support.projects import server_settings

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import parse_samples

SAID = {"question_id": "q", "question_text": "Why?", "answer": "A system said so."}
QUOTES = ["Ines Vale built it in 1871.", "Ines Vale was born in Port Sorrel."]
BOTH = "Each of these answers is right:\n- Port Sorrel\n- Sorrel"
TEXTS = [text for _, text in PASSAGES[:2]]
EXPECTED = {
    "hotpotqa": (1, 3, {"kind": "bridge", "hops": 2, "evidence": QUOTES, "n_sources": 2}),
    "2wikimultihopqa": (1, 3, {"kind": "bridge", "hops": 2, "evidence": QUOTES, "n_sources": 2}),
    "musique": (
        1,
        3,
        {"answer": BOTH, "kind": "2hop", "hops": 2, "evidence": TEXTS, "n_sources": 2},
    ),
    "multihop-rag": (2, 3, {"kind": "inference_query", "evidence": QUOTES, "n_sources": 0}),
    "graphrag-bench": (1, 1, {"kind": "Complex Reasoning", "evidence": QUOTES[1:]}),
    "ultradomain": (2, 1, {"kind": "fiction", "answer": "Port Sorrel"}),
    "benchmark-qed": (1, 0, {"kind": "data_local", "says": ["It names Port Sorrel."]}),
    "squad": (2, 1, {"evidence": TEXTS[1:], "n_sources": 1, "answer": "Port Sorrel"}),
    "ragas": (1, 2, {"hops": 2, "evidence": TEXTS, "answer": "Port Sorrel"}),
    "promptfoo": (2, 2, {"kind": "bridge", "evidence": TEXTS, "says": ["It says “Oldmere”."]}),
}


def run_import(root: Path, name: str, *rest: object):
    return in_process("import", name, *map(str, rest), "--root", str(root))


def save(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def read(root: Path):
    return json.loads((root / "eval" / "questions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_each_format_becomes_a_project_and_a_dataset(name, tmp_path):
    root, files = tmp_path / "2024", write_samples(tmp_path)[name]
    done = run_import(root, name, *files)
    assert done.exit_code == 0, done.output
    assert EvaluationConfig.from_yaml(root / "eval_config.yaml", root).index_roots == {
        "2024": str(root)
    }
    n_rows, n_documents, fields = EXPECTED[name]
    data, documents = read(root), sorted((root / "input").glob("*.txt"))
    rows = data["questions"]
    assert (len(rows), len(documents)) == (n_rows, n_documents)
    row = rows[0] | {
        "n_sources": len(rows[0].get("expected_sources", [])),
        "says": [each["text"] for each in rows[0].get("assertions", [])],
    }
    assert {field: row.get(field) for field in fields} == fields
    assert {*row.get("expected_sources", [])} <= {path.name for path in documents}
    assert all(
        any(q in path.read_text("utf-8") for path in documents) for q in row.get("evidence", [])
    )
    assert (data["format"], len(data["files"])) == (name, len(files))
    parse_samples(rows, "key")
    if name == "multihop-rag":
        assert rows[1]["answerable"] is False
        assert "The Gazette, 2023-11-02" in documents[0].read_text("utf-8")


def test_what_can_not_be_matched_is_listed_first_and_no_source_is_guessed(tmp_path):
    strange = HOTPOT | {"supporting_facts": [["Brass Tower", 7], ["Nowhere", 0]]}
    again = HOTPOT | {"_id": "h1", "question": "Who built it?"}
    rows = [
        *(strange, again, again | {"answer": "Arden"}),
        *(HOTPOT | {"question": "Why?", "answer": None, "supporting_facts": []}, {"question": 5}),
        HOTPOT | {"question": ""},
    ]
    file = save(tmp_path / "hotpot.json", *rows)
    tried = run_import(tmp_path / "p", "hotpotqa", file, "--dry-run")
    assert (tried.exit_code, (tmp_path / "p").exists()) == (0, False), tried.output
    done = run_import(tmp_path / "p", "hotpotqa", file)
    for said in (
        "their passage does not contain: 1 (hotpot.json, row 1: sentence 7 of 'Brass Tower')",
        "that the files do not have: 1 (hotpot.json, row 1: 'Nowhere')",
        "again with another answer, asked once: each answer is accepted: 1 (hotpot.json, row 3)",
        "the id of another one, which lose it: 2 (hotpot.json, row 2: h1; ",
        "no run could ask, left out: 2 (hotpot.json, row 6: it has no question; 'Why?': "
        "answer is missing; ",
        "rows that can't be read, left out: 1 (hotpot.json, row 5",
    ):
        assert said.casefold() in done.stdout.casefold(), (said, done.stdout)
    first, second = read(tmp_path / "p")["questions"]
    assert [name[:11] for name in first["expected_sources"]] == ["Brass_Tower"]
    assert ("evidence" in first, "id" in second) == (False, False)
    assert second["answer"].endswith("\n- Arden")
    assert json.loads((tmp_path / "p/eval/questions.not_matched.json").read_text("utf-8"))


def test_questions_of_graphrag_bench_need_no_evidence(tmp_path):
    bare = {name: value for name, value in BENCH[0].items() if not name.startswith("evidence")}
    questions = save(tmp_path / "questions.json", bare)
    corpus = save(tmp_path / "corpus.json", CORPUS)
    done = run_import(tmp_path / "p", "graphrag-bench", questions, corpus)
    assert done.exit_code == 0, done.output
    (row,) = read(tmp_path / "p")["questions"]
    assert (row["answer"], "evidence" in row) == ("Port Sorrel", False)


def test_a_question_that_only_its_own_passages_leave_open_is_not_asked(tmp_path):
    file = save(tmp_path / "full.json", MUSIQUE | {"answerable": False}, MUSIQUE)
    done = run_import(tmp_path / "p", "musique", file)
    assert "only their own passages do not answer, left out: 1" in done.stdout
    assert len(read(tmp_path / "p")["questions"]) == 1


def test_a_row_without_an_id_comes_after_one_whose_id_is_none(tmp_path):
    with_id = HOTPOT | {"_id": "None"}
    without = {name: value for name, value in HOTPOT.items() if name != "_id"}
    others = [without | {"question": "Who built it?"}, without | {"question": "When?"}]
    done = run_import(tmp_path / "p", "hotpotqa", save(tmp_path / "hotpot.json", with_id, *others))
    assert done.exit_code == 0, done.output
    questions = read(tmp_path / "p")["questions"]
    assert [row.get("id") for row in questions] == ["None", None, None]


def test_tables_and_parquet_are_read_as_they_are_distributed(tmp_path):
    facts = {"title": ["Brass Tower", "Ines Vale"], "sent_id": [1, 0]}
    context = {
        "title": [t for t, _ in HOTPOT["context"]],
        "sentences": [s for _, s in HOTPOT["context"]],
    }
    row = HOTPOT | {"supporting_facts": facts, "context": context}
    pd.DataFrame([row]).to_parquet(tmp_path / "hotpot.parquet")
    pd.DataFrame([RAGAS]).to_csv(tmp_path / "ragas.csv", index=False)
    for name, file, quotes in (
        ("hotpotqa", "hotpot.parquet", QUOTES),
        ("ragas", "ragas.csv", TEXTS),
    ):
        done = run_import(tmp_path / name, name, tmp_path / file)
        assert done.exit_code == 0, done.output
        assert read(tmp_path / name)["questions"][0]["evidence"] == quotes


def test_bad_files_are_refused_in_a_sentence_and_nothing_is_written(tmp_path):
    root = tmp_path / "p"
    files = {
        name: save(tmp_path / f"{name}.json", row) for name, row in (("m", MUSIQUE), ("h", HOTPOT))
    }
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "config.yaml").write_text("tests: file://tests.csv")
    for name, file, said in (
        ("hotpotqa", files["m"], "it looks like musique"),
        ("musique", files["h"], "it looks like hotpotqa"),
        ("squad", save(tmp_path / "x.json", {"a": 1}), "formats: hotpotqa, "),
        ("hotpot", files["h"], "name it under dataset.path"),
        ("squad", tmp_path / "empty.json", "is empty"),
        ("squad", tmp_path / "none.json", "does not exist"),
        ("promptfoo", tmp_path / "config.yaml", "import that file"),
        ("benchmark-qed", save(tmp_path / "q.json", "Why?"), "no question to ask"),
        ("benchmark-qed", save(tmp_path / "a.json", SAID), "no question to ask"),
        ("benchmark-qed", save(tmp_path / "b.json", SAID | {"assertions": [""]}), "no question"),
        ("hotpotqa", save(tmp_path / "c.json", HOTPOT | {"context": {"title": 5}}), "no question"),
    ):
        done = run_import(root, name, file)
        assert (done.exit_code, said in done.stderr, root.exists()) == (2, True, False), done.output
    (root / "input").mkdir(parents=True)
    (root / "input" / "own.txt").write_text("mine")
    done = run_import(root, "hotpotqa", files["h"])
    assert (done.exit_code, "own.txt is there" in done.stderr) == (2, True), done.output


def test_odd_texts_and_titles_are_kept_and_the_encoding_is_said(tmp_path):
    context = [["../a/b", ["Café."]], ["\x00" * 3, [" "]], ["Zoë" * 90, ["One."]]]
    row = HOTPOT | {"context": context, "supporting_facts": [["../a/b", 0]]}
    file = tmp_path / "h.json"
    file.write_bytes(json.dumps([row], ensure_ascii=False).encode("cp1252"))
    done = run_import(tmp_path / "p", "hotpotqa", file)
    assert (done.exit_code, "read as Windows-1252" in done.stderr) == (0, True), done.output
    names = sorted(path.name for path in (tmp_path / "p" / "input").iterdir())
    assert [name[:6] for name in names] == ["ZoëZoë", "a_b_" + names[1][4:6]]
    assert read(tmp_path / "p")["questions"][0]["evidence"] == ["Café."]


@pytest.mark.slow
def test_what_is_imported_is_indexed_asked_and_measured_over_http(tmp_path):
    root = tmp_path / "p"
    assert run_import(root, "hotpotqa", save(tmp_path / "h.json", HOTPOT)).exit_code == 0
    with running_server() as server:
        (root / "settings.yaml").write_text(server_settings(server.base_url), encoding="utf-8")
        done = in_process("--root", str(root), "--index")
    assert done.exit_code == 0, done.output
    results = root / "eval" / "results" / "evaluation_basic.json"
    (result,) = json.loads(results.read_text("utf-8"))["results"]
    assert result["hit_rate"] == 1.0
