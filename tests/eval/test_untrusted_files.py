"""Files that somebody else wrote: they are data, and name no place and no code by themselves."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag.config.project_settings import read_settings
from graphrag.config.settings_files import SettingsError
from graphrag.eval.annotation.ratings import read_ratings
from graphrag.eval.annotation.review import Review
from graphrag.eval.annotation.sheet import read_sheet
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.gone_keys import GoneKeyWarning
from graphrag.eval.dataset.files import read_rows
from graphrag.eval.errors import ConfigError, DatasetError, EvalError
from graphrag.eval.report.files import read_top
from graphrag.eval.results.runs import read_rows as read_run_rows
from graphrag.eval.runner.benchmark_import import Import
from graphrag.eval.runner.custom_methods import MethodSet
from graphrag.eval.store.atomic_files import SUMMARY_FILE, run_folder
from graphrag.eval.suite.cases import parse_suite, read_evaluation_file, read_suite
from graphrag.eval.suite.evaluators import make_evaluator

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGED = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{'<<': [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)
)
BAD_YAML = {
    "laughs": LAUGHS,
    "merged": MERGED,
    "itself": "a: &a [*a]",
    "class": "a: !!python/object/apply:os.system ['touch PLANTED']",
    "name": "a: !!python/name:os.system",
    "deep": "a: " + "[" * 1100,
    "digits": f"a: {'9' * 5000}",
    "date": "a: 2024-02-31",
}


@pytest.mark.parametrize("kind", BAD_YAML)
def test_yaml_is_data(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, read, error in (
        ("eval_config.yaml", EvaluationConfig.from_yaml, ConfigError),
        ("suite.yaml", read_suite, ConfigError),
        ("settings.yaml", lambda path: read_settings(path.parent), SettingsError),
    ):
        path = tmp_path / name
        path.write_text(BAD_YAML[kind], encoding="utf-8")
        with pytest.raises(error, match="YAML"):
            read(path)
    assert not (tmp_path / "PLANTED").exists()


def test_json_that_is_nested_too_deeply(tmp_path):
    path = tmp_path / "suite.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ConfigError, match="not valid JSON"):
        read_suite(path)


def test_aliases_are_fine_as_long_as_they_stay_small(tmp_path):
    path = tmp_path / "eval_config.yaml"
    path.write_text("indexes: &i {a: ../elsewhere, b: /abs}\nmethods: [tog]\nvariants: {}\n")
    assert EvaluationConfig.from_yaml(path).indexes == {"a": "../elsewhere", "b": "/abs"}


@pytest.mark.parametrize("folder", ["../out", "/tmp/out", "a/../../out"])
def test_results_go_outside_of_the_root_only_where_that_is_allowed(tmp_path, folder):
    root = tmp_path / "given"
    root.mkdir()
    path = root / "eval_config.yaml"
    path.write_text(json.dumps({"output": {"dir": folder}}))
    with pytest.raises(ConfigError, match=r"output\.dir: .*written there, name it with --output"):
        EvaluationConfig.from_yaml(path)
    assert EvaluationConfig.from_yaml(path, allow_outside=True).output.dir == folder
    path.write_text(json.dumps({"output": {"dir": folder, "allow_outside": True}}))
    with (
        pytest.warns(GoneKeyWarning, match=r"outside of the root by --output"),
        pytest.raises(ConfigError, match=r"name it with --output"),
    ):
        EvaluationConfig.from_yaml(path)
    path.write_text(json.dumps({"output": {"dir": str(root / "x" / ".." / "y")}}))
    assert EvaluationConfig.from_yaml(path).output_folder.resolve() == root / "y"

    file = root / "evaluation.yml"
    reporting = {"results_directory": folder}
    file.write_text(json.dumps({"evaluation": {"reporting": reporting}}))
    with pytest.raises(ConfigError, match=r"reporting\.allow_outside: true"):
        _ = read_evaluation_file(file).results_directory
    reporting["allow_outside"] = True  # type: ignore
    file.write_text(json.dumps({"evaluation": {"reporting": reporting}}))
    assert read_evaluation_file(file).results_directory == root / folder


@pytest.mark.parametrize("name", ["os:system", "asyncio:create_subprocess_shell"])
def test_a_method_is_no_function_of_python(tmp_path, name):
    config = EvaluationConfig.model_validate(
        {"methods": [{"name": "mine", "function": name}], "root": tmp_path}
    )
    with pytest.raises(ConfigError, match="part of Python"):
        MethodSet(config)


def test_what_does_not_evaluate_is_not_even_called(tmp_path):
    planted = tmp_path / "PLANTED"
    suite = parse_suite(
        {
            "name": "s",
            "evaluator": "subprocess:run",
            "settings": {"args": ["touch", str(planted)]},
            "cases": [{"id": "a"}],
        }
    )
    with pytest.raises(ConfigError, match="is part of Python"):
        make_evaluator(suite, tmp_path)
    assert not planted.exists()


@pytest.mark.parametrize("run_id", ["../../x", "/x", "..", "a\\b"])
def test_a_run_id_leads_nowhere_else(tmp_path, run_id):
    with pytest.raises(EvalError, match="no run's id"):
        run_folder(tmp_path, run_id)
    metadata = {"run_id": run_id, "timestamp": "2026-01-01T00:00:00"}
    (tmp_path / SUMMARY_FILE).write_text(json.dumps({"metadata": metadata}))
    top = read_top(tmp_path)
    assert top is not None
    assert top["run_id"] is None


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a data set": ("rows.jsonl", lambda path: read_rows(path, {})),
    "a Parquet file": ("rows.parquet", lambda path: read_rows(path, {})),
    "an import": ("rows.json", lambda path: Import("squad", [path])),
    "a configuration": ("eval_config.yaml", EvaluationConfig.from_yaml),
    "a suite": ("suite.yaml", read_suite),
    "labels": ("labels.csv", read_sheet),
    "ratings": ("ratings.csv", read_ratings),
    "drafts": ("drafts.json", lambda path: Review(path, {}, "Ann").check()),
    "a baseline": ("base.json", lambda path: read_run_rows(str(path), path.parent / "eval.db")),
}


@pytest.mark.parametrize("kind", ["zero", "pipe", "folder", "loop", "huge"])
@pytest.mark.parametrize("reader", READERS)
def test_only_regular_files_of_a_size_that_can_be_are_read(tmp_path, reader, kind):
    name, read = READERS[reader]
    path = tmp_path / name
    if kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        with path.open("wb") as file:
            file.truncate(1_000_000_001)  # a hole, which takes no room
    sentence = {
        "zero": "it is a pipe or a device; save its output in a file, and name that",
        "pipe": "it is a pipe or a device; save its output in a file, and name that",
        "folder": "it is a folder; name a file",
        "loop": "ymbolic link",
        "huge": "it has 1,000,000,001 bytes, where .*00,000 are read; take a part of it",
    }[kind]
    with pytest.raises(EvalError, match=f"{name}.*{sentence}"):
        read(path)


def rows_of(n_rows: int, column: str = "evidence") -> dict[str, Any]:
    same = pa.array([0] * n_rows, pa.int32())
    text = pa.DictionaryArray.from_arrays(same, pa.array(["What?"]))
    return {"question": text, "answer": text, column: text}


LISTED = pa.ListArray.from_arrays(pa.array([0, 25_000_000], pa.int32()), pa.nulls(25_000_000))
LONG = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["y" * 2**25]))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (rows_of(1_000_001), "has 1,000,001 rows; at most 1,000,000 rows, "),
        ({**rows_of(1), "evidence": LISTED}, "has 25,000,002 values; at most 1,000,000 rows"),
        ({**rows_of(1_000), "evidence": LONG}, "has rows of 33,554,"),
    ],
    ids=["rows", "entries", "cells"],
)
def test_a_small_parquet_file_that_stands_for_a_large_table_is_refused(tmp_path, columns, sentence):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
    assert path.stat().st_size < 50_000
    with pytest.raises(DatasetError, match=sentence) as refused:
        read_rows(path, {})
    assert "20,000,000 in a row are read. Write fewer." in str(refused.value)
