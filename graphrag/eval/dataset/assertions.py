"""What an answer must say, or must not: the assertions of a dataset's row."""

from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

Weight = Literal["vital", "okay"]


class Assertion(BaseModel):
    """One statement that an answer is held to.

    Attributes
    ----------
    text : str
        The statement, which must be true or false by itself.
    weight : str
        ``vital``: an answer without it is not whole. ``okay``: it is welcome, and not needed.
    must : str
        ``say``, or ``not_say`` of a mistake that an answer must not make.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)

    # BenchmarkQED's files say `statement`.
    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "statement"))
    weight: Weight = "vital"
    must: Literal["say", "not_say"] = "say"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value
