"""The stored JSON schemas are those of the configuration and of the files that a run writes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator, Draft202012Validator
from support.clock_evaluation import ROWS, in_process
from support.projects import OFFLINE_SETTINGS

from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.errors import ConfigError

MODELINE = "# yaml-language-server: $schema="


def stored(root: Path, name: str) -> Any:
    return json.loads((root / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))


def test_the_stored_schema_is_what_the_configuration_gives(project_root):
    """Written anew with json.dumps(EvaluationConfig.model_json_schema(), indent=2)."""
    assert stored(project_root, "eval_config") == EvaluationConfig.model_json_schema()
    Draft202012Validator.check_schema(EvaluationConfig.model_json_schema())


def test_the_shipped_files_are_valid_by_the_schema_that_they_name(project_root):
    for name in ("eval_config.yaml", "examples/archipelago/eval_config.yaml"):
        text = (project_root / name).read_text(encoding="utf-8")
        first = text.splitlines()[0]
        assert first.startswith(MODELINE), name
        path = (project_root / name).parent / first.removeprefix(MODELINE)
        schema = json.loads(path.read_text(encoding="utf-8"))
        Draft202012Validator(schema).validate(yaml.safe_load(text))


def test_init_writes_what_the_schema_takes_and_no_schema(tmp_path):
    (tmp_path / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    assert in_process("init", "--root", str(tmp_path)).exit_code == 0
    config = (tmp_path / "eval_config.yaml").read_text(encoding="utf-8")
    Draft202012Validator(EvaluationConfig.model_json_schema()).validate(yaml.safe_load(config))
    assert not [*tmp_path.rglob("*.schema.json")]


def closed(schema: Any) -> Any:
    """Return a schema that takes no key which it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    values = {key: closed(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        values.setdefault("additionalProperties", False)
    return values


def test_the_files_of_a_run_are_what_their_schemas_say(make_evaluation, server, project_root):
    """A key that no schema names, or of another type, is refused: mend the file in schemas/."""
    further = {"rubric": True, "quality": True, "pairwise": [["tog", "basic"]], "repeats": 3}
    criteria = {"criteria": [{"metric": "mrr", "minimum": 0.1}]}
    evaluation = make_evaluation(server.base_url, judge=further, measures=criteria, trials=2)
    evaluation.write_rows([{**ROWS[0], "evidence": ["Idris Vane built the tower clock"]}, ROWS[1]])
    result = evaluation.run("-q")
    assert result.exit_code in (0, 3), result.output
    names = ("eval_results_summary", "eval_results_detailed")
    values = {name: evaluation.read_json(f"{name}.json") for name in names}
    schemas = {name: stored(project_root, name) for name in values}
    for name, schema in schemas.items():
        Draft7Validator.check_schema(schema)
        errors = [*Draft7Validator(closed(schema)).iter_errors(values[name])]
        assert not errors, (name, [(list(e.absolute_path), e.message[:200]) for e in errors])
    values["eval_results_summary"]["by_method"]["tog"]["correctness"] = "0.5"
    summary = Draft7Validator(schemas["eval_results_summary"])
    assert not summary.is_valid(values["eval_results_summary"])


WIDE = {"name": "tog-wide", "method": "tog", "width": 5}


@pytest.mark.parametrize(
    ("values", "is_right"),
    [
        ({}, True),
        ({"methods": ["tog", WIDE, "tog-wide-2"], "variants": {"tog-wide-2": WIDE}}, True),
        ({"metrics": "none", "equal_terms": True, "trials": 2}, True),
        ({"equal_terms": {"max_context_tokens": 4000}, "thresholds": {"correctness": 0.5}}, True),
        ({"dataset_path": "a.json", "output_dir": "b", "index_roots": {"a": "b"}}, True),
        ({"judge": {"pairwise": [["tog", "local"]]}, "methods": ["tog", "local"]}, True),
        ({"trials": 0}, False),
        ({"metrics": [3]}, False),
        ({"methods": [{"method": "tog"}]}, False),
        ({"thresholds": {"correctness": -1}}, False),
        ({"outptu": {}}, False),
        ({"judge": {"pairwise": [["tog"]]}}, False),
        ({"measures": {"criteria": [{"metric": "mrr", "most": 1}]}}, False),
    ],
)
def test_schema_and_model_agree(values, is_right):
    values = {**values, "variants": {k: {"method": "tog"} for k in values.get("variants", {})}}
    assert Draft202012Validator(EvaluationConfig.model_json_schema()).is_valid(values) == is_right
    if is_right:
        parse_config(values, "here")
    else:
        with pytest.raises(ConfigError):
            parse_config(values, "here")


def test_hovering_a_setting_says_what_the_docstring_says():
    fields = EvaluationConfig.model_json_schema()["properties"]
    assert fields["trials"]["description"].startswith("How often every search is repeated")
    assert all(field.get("description") for name, field in fields.items() if "$ref" not in field), [
        name for name, field in fields.items() if not field.get("description")
    ]
