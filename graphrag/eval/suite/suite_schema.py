"""The JSON schema of a suite's file, made from the model that reads it."""

from typing import Any

from graphrag.eval.config import DRAFT, schema_of
from graphrag.eval.suite.cases import Suite


def suite_schema() -> dict[str, Any]:
    """Return the JSON schema of a suite: keys and values, or a plain list of cases."""
    schema = schema_of(Suite)
    defs = schema.pop("$defs")
    defs["SuiteCase"]["properties"]["id"] = {
        **defs["SuiteCase"]["properties"]["id"],
        "type": ["string", "integer"],
    }
    del schema["$schema"]
    schema["required"].remove("name")  # that of the file
    cases = schema["properties"]["cases"]
    return {
        "$schema": DRAFT,
        "$defs": {**defs, "Suite": schema},
        "anyOf": [{"$ref": "#/$defs/Suite"}, cases],
    }
