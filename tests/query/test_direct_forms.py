"""The described form of a reply is the one that openai's own client sends."""

from enum import Enum
from typing import Annotated, Literal, Optional

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from graphrag.eval.scorers.judge import JudgeReply
from graphrag.eval.scorers.rubric import RubricReply
from graphrag.query.direct.forms import describe_form


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    """A part of something."""

    name: str
    weight: float | None = None


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Whole(BaseModel):
    model_config = ConfigDict(extra="allow")

    part: Part = Field(description="a reference that has company")
    parts: list[Part]
    pair: tuple[int, str]
    colour: Colour = Colour.RED
    either: Annotated[int | Part, Field(description="one of two")]
    kind: Literal["a", "b"] = "a"
    named: dict[str, int] = {}
    maybe: Optional[Part] = None  # noqa: UP045
    tree: Tree


class Empty(BaseModel):
    pass


@pytest.mark.parametrize("form", [JudgeReply, RubricReply, Part, Tree, Whole, Empty])
def test_a_form_is_described_as_by_openai(form: type[BaseModel]) -> None:
    from openai import pydantic_function_tool

    expected = pydantic_function_tool(form)["function"].get("parameters")
    described = describe_form(form)["json_schema"]
    assert described == {"schema": expected, "name": form.__name__, "strict": True}


def test_the_class_keeps_its_own_schema() -> None:
    before = Whole.model_json_schema()
    describe_form(Whole)
    assert Whole.model_json_schema() == before


@pytest.mark.parametrize("form", [JudgeReply, RubricReply])
def test_a_schema_that_is_made_once_is_one_s_own_to_change(form: type[BaseModel]) -> None:
    for given in ({}, {"ref_template": "#/here/{model}"}, {"mode": "serialization"}):
        for _ in range(2):
            schema = form.model_json_schema(**given)
            assert schema == TypeAdapter(form).json_schema(**given)
            schema["properties"]["reason"] = schema["properties"].popitem()


def test_what_is_no_model_has_no_form() -> None:
    with pytest.raises(TypeError, match="a pydantic model"):
        describe_form(int)
