"""JSON schemas of the files that people write, made from the models that read them.

Editors complete and check a file by them while it is written. They are of draft 7, which the YAML
language server reads, and say what can be said of a file's form; the models check the rest.
"""

import ast
import inspect
from itertools import pairwise
from textwrap import dedent
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from graphrag.eval.config.evaluation import IN_PLACE_OF, EvaluationConfig
from graphrag.eval.config.sections import CONTROLS
from graphrag.eval.records.judged import DEFAULT_METRICS, SUFFICIENCY
from graphrag.query.methods import SearchMethod

DRAFT = "http://json-schema.org/draft-07/schema#"
Schema: TypeAlias = dict[str, Any]


def schema_of(model: type[BaseModel]) -> Schema:
    """Return a model's JSON schema, its fields described as in the code, without titles."""
    schema = model.model_json_schema(schema_generator=_FileSchema)
    return {"$schema": DRAFT, **schema}


def config_schema() -> Schema:
    """Return the JSON schema of an eval_config.yaml, with all that the file may say shorter."""
    schema = schema_of(EvaluationConfig)
    fields = schema["properties"]
    del fields["root"]  # no part of the file
    methods = [*get_args(SearchMethod), *CONTROLS]
    metric = {"anyOf": [{"enum": [*DEFAULT_METRICS, SUFFICIENCY.name]}, {"type": "string"}]}
    variant = schema["$defs"]["Variant"]
    inline = {
        "properties": {"name": {"type": "string", "minLength": 1}, **variant["properties"]},
        "required": ["name"],
        "type": "object",
    }
    fields["methods"]["items"] = {"anyOf": [{"enum": methods}, {"type": "string"}, inline]}
    fields["metrics"] |= {
        "anyOf": [{"items": metric, "type": "array", "uniqueItems": True}, {"const": "none"}]
    }
    del fields["metrics"]["items"], fields["metrics"]["type"]
    fields["equal_terms"]["anyOf"].append({"type": "boolean"})
    share = {"type": "number", "minimum": 0, "maximum": 1}
    fields["thresholds"] |= {
        "propertyNames": metric,
        "properties": dict.fromkeys([*DEFAULT_METRICS, SUFFICIENCY.name], share),
    }
    for name, (section, key) in IN_PLACE_OF.items():
        field, setting = fields[section], section
        if key:
            model = field["$ref"].rpartition("/")[2]
            field, setting = schema["$defs"][model]["properties"][key], f"{section}.{key}"
        fields[name] = {**field, "description": f"In place of {setting}."}
    return schema


class _FileSchema(GenerateJsonSchema):
    """Fields with the docstrings below them, and no titles, which repeat the names."""

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        return _described(super().dataclass_schema(schema), schema["cls"])

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def tuple_schema(self, schema: core_schema.TupleSchema) -> Schema:
        result = super().tuple_schema(schema)
        if "prefixItems" in result:  # as the drafts before 2020 have it
            result["items"] = result.pop("prefixItems")
        return result


def _described(schema: Schema, model: type) -> Schema:
    about = (inspect.getdoc(model) or "").partition("\n\nNotes\n")[0]
    schema["description"] = " ".join(about.split())
    # Read here, and not by pydantic as the classes are made: that would be at every start.
    fields = schema.get("properties", {})
    for owner in reversed(model.__mro__):
        if owner.__module__.startswith("graphrag."):
            (tree,) = ast.parse(dedent(inspect.getsource(owner))).body
            for field, text in pairwise(ast.iter_child_nodes(tree)):
                match field, text:
                    case (
                        ast.AnnAssign(target=ast.Name(name)),
                        ast.Expr(value=ast.Constant(value=str(words))),
                    ) if name in fields:
                        fields[name]["description"] = " ".join(words.split())
                    case _:
                        pass
    return schema
