"""The stored JSON schemas are those of the models, or of the files that a run writes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from jsonschema import Draft7Validator
from support.clock_evaluation import ROWS
from support.projects import OFFLINE_SETTINGS
from typer.testing import CliRunner

from graphrag.eval.config.evaluation import parse_config
from graphrag.eval.config.file_schema import config_schema
from graphrag.eval.errors import ConfigError
from graphrag.eval.suite.cases import parse_suite, read_suite, suite_schema

MODELINE = "# yaml-language-server: $schema="


def stored(root: Path, name: str) -> Any:
    return json.loads((root / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def named_schema(path: Path) -> Path:
    """Return the schema that a file's first line names, from the file's own folder."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(MODELINE), path
    return path.parent / first.removeprefix(MODELINE)


def test_the_stored_schemas_are_what_the_models_give(project_root):
    """Written anew with: graphrag eval init, which writes both below eval/."""
    assert stored(project_root, "eval_config") == config_schema()
    assert stored(project_root, "suite") == suite_schema()
    for schema in (config_schema(), suite_schema()):
        Draft7Validator.check_schema(schema)


def test_the_shipped_files_are_valid_by_the_schema_that_they_name(project_root):
    suites = sorted((project_root / "eval" / "suites").glob("*.yaml"))
    assert suites
    for path in (project_root / "eval_config.yaml", *suites):
        schema = json.loads(named_schema(path).read_text(encoding="utf-8"))
        Draft7Validator(schema).validate(read(path))


def test_init_names_a_schema_that_is_there(tmp_path):
    from graphrag.cli.main import app

    (tmp_path / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")

    def init() -> Result:
        return CliRunner().invoke(app, ["eval", "init", "--root", str(tmp_path)])

    assert init().exit_code == 0
    config = tmp_path / "eval_config.yaml"
    schema = named_schema(config)
    assert json.loads(schema.read_text(encoding="utf-8")) == config_schema()
    Draft7Validator(config_schema()).validate(read(config))
    schema.write_text("{}", encoding="utf-8")  # of an earlier release
    config.write_text("mine: 1", encoding="utf-8")
    assert init().exit_code == 0
    assert json.loads(schema.read_text(encoding="utf-8")) == config_schema()
    assert config.read_text(encoding="utf-8") == "mine: 1"


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
    suite = {"name": "questions", "evaluator": "query_response", "methods": ["tog", "basic"]}
    case = {"input_data": {"question": ROWS[0]["question"]}, "expected_output": {"answer": "Idris"}}
    suite["cases"] = [{"id": "builder", **case}]
    evaluation.write_suite("questions.yaml", suite)
    for line in (
        ("-q",),
        ("compare", "latest", "--pin", "-q"),
        ("-q",),
        ("compare", "latest", "-q", "--json", str(evaluation.root / "compare.json")),
        ("suite", "all", "-q"),
    ):
        result = evaluation.run(*line)
        assert result.exit_code in (0, 3, 100), result.output
    listed = evaluation.run("show", "--json")
    names = ("eval_results_summary", "eval_results_detailed", "suite_results", "baseline")
    values = {name: evaluation.read_json(f"{name}.json") for name in names}
    values["evaluation"] = evaluation.read_json("evaluation_tog.json")
    values["compare"] = json.loads((evaluation.root / "compare.json").read_text("utf-8"))
    values["history"] = json.loads(listed.stdout)
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
        ({"thresholds": {"correctness": 2}}, False),
        ({"outptu": {}}, False),
        ({"judge": {"pairwise": [["tog"]]}}, False),
        ({"measures": {"criteria": [{"metric": "mrr", "most": 1}]}}, False),
    ],
)
def test_schema_and_model_agree(values, is_right):
    values = {**values, "variants": {k: {"method": "tog"} for k in values.get("variants", {})}}
    assert Draft7Validator(config_schema()).is_valid(values) == is_right
    if is_right:
        parse_config(values, "here")
    else:
        with pytest.raises(ConfigError):
            parse_config(values, "here")


def test_a_suite_may_be_a_list_and_number_its_cases(tmp_path):
    case = {"id": 1, "input_data": {"question": "Who?"}, "expected_output": {"answer": "Idris"}}
    check = Draft7Validator(suite_schema())
    for values in ([case], {"evaluator": "query_response", "cases": [case]}):
        check.validate(values)
        (tmp_path / "one.json").write_text(json.dumps(values), encoding="utf-8")
        assert read_suite(tmp_path / "one.json").cases[0].id == "1"
    for wrong in ([], {"evaluator": "x", "cases": [{"idd": 1}]}, {"cases": [case]}):
        assert not check.is_valid(wrong)
    with pytest.raises(ConfigError):
        parse_suite({"name": "x", "cases": [case]})


def test_hovering_a_setting_says_what_the_docstring_says():
    fields = config_schema()["properties"]
    assert fields["trials"]["description"].startswith("How often every search is repeated")
    assert all(field.get("description") for name, field in fields.items() if "$ref" not in field), [
        name for name, field in fields.items() if not field.get("description")
    ]
