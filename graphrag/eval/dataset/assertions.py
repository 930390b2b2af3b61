"""What an answer must say, or must not: the assertions of a dataset's row."""

from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from graphrag.config.models.strict_section import nearest

Weight = Literal["vital", "okay"]
_AUTOQ = {"id", "text", "question_type", "attributes"}


class Assertion(BaseModel):
    """One statement that an answer is held to; it must be true or false by itself.

    ``weight``: ``vital``, an answer without it is not whole, or ``okay``, it is welcome, and not
    needed. ``must``: ``say``, or ``not_say`` of a mistake that an answer must not make.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)

    text: str = Field(min_length=1)
    weight: Weight = "vital"
    must: Literal["say", "not_say"] = "say"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value


def _of_row(value: object) -> object:
    """Refuse unknown keys of a row's assertion; BenchmarkQED's have a statement and further ones.

    What is null, as in the columns of a Parquet file, is left out.
    """
    if not isinstance(value, Mapping):
        if not isinstance(value, str):
            raise ValueError("it must be a text, or an object with text, weight and must")
        return value
    given = {k: v for k, v in cast("Mapping[str, object]", value).items() if v is not None}
    if "statement" in given:
        return {"text": given["statement"]}
    known = list(Assertion.model_fields)
    for key in given:
        if key not in known:
            msg = f"there is no key {key!r}{nearest(key, known)} (keys: {', '.join(known)})"
            raise ValueError(msg)
    return given


RowAssertion = Annotated[Assertion, BeforeValidator(_of_row)]
"""An assertion as a dataset's row holds it; a text is a vital one that must be said."""


def unfold_autoq(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return a question that AutoQ wrote as a row, and any other row as it is."""
    attributes = row.get("attributes")
    if not row.keys() >= _AUTOQ or not (attributes is None or isinstance(attributes, Mapping)):
        return row
    within = cast("Mapping[str, object]", attributes or {})
    return {
        "question_id": row["id"],
        "question_text": row["text"],
        "question_type": row["question_type"],
        "assertions": within.get("assertions") or [],
    }
