"""The form of a reply, as a service that keeps to it exactly wants it described.

https://platform.openai.com/docs/guides/structured-outputs (supported schemas): every property of
an object is required and no other is allowed, and a reference stands alone.
"""

from functools import lru_cache
from typing import Any, cast

_OF_SCHEMAS = ("$defs", "definitions", "properties")
_LISTS = ("anyOf", "allOf")


@lru_cache(maxsize=256)
def describe_form(form: Any) -> dict[str, Any]:
    """Return the request for replies of a form, a pydantic class; as openai's client writes it.

    Raises
    ------
    TypeError
        If the form is no pydantic model.
    """
    describe: Any = getattr(form, "model_json_schema", None)
    if describe is None:
        msg = f"a reply's form is a pydantic model, not {form!r}"
        raise TypeError(msg)
    schema: dict[str, Any] = describe()
    return {
        "type": "json_schema",
        "json_schema": {"schema": _strict(schema, schema), "name": form.__name__, "strict": True},
    }


def _strict(given: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which nothing is optional; ``top`` holds what references point to."""
    if "$ref" in given and len(given) > 1:
        rest = {key: value for key, value in given.items() if key != "$ref"}
        return _strict({**_find(given["$ref"], top), **rest}, top)
    schema = {key: value for key, value in given.items() if key != "default" or value is not None}
    for key in _OF_SCHEMAS:
        if isinstance(named := schema.get(key), dict):
            parts = cast("dict[str, dict[str, Any]]", named)
            schema[key] = {name: _strict(part, top) for name, part in parts.items()}
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    if isinstance(properties := schema.get("properties"), dict):
        schema["required"] = list(cast("dict[str, Any]", properties))
    if isinstance(items := schema.get("items"), dict):
        schema["items"] = _strict(cast("dict[str, Any]", items), top)
    for key in _LISTS:
        if isinstance(several := schema.get(key), list):
            schema[key] = [_strict(part, top) for part in cast("list[dict[str, Any]]", several)]
    if len(only := schema.get("allOf", ())) == 1:
        schema |= only[0]
        del schema["allOf"]
    return schema


def _find(reference: str, top: dict[str, Any]) -> dict[str, Any]:
    found: Any = top
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found
