"""Context budgets: each search is asked at every one of them, as a variant of its own."""

from collections.abc import Mapping, Sequence
from typing import Annotated, cast, get_args

from pydantic import Field, TypeAdapter, ValidationError

from graphrag.eval.config.sections import EqualTerms, JudgeSettings, Variant
from graphrag.query.methods import SearchMethod

LEAST_BUDGET = 200
"""Tokens; the smallest budget that Think-on-Graph takes."""
SETTING = "max_context_tokens"
_BUDGETS = TypeAdapter(list[Annotated[int, Field(ge=LEAST_BUDGET)]])
# Global search and DRIFT read reports in many calls: no setting bounds what they answer from.
_WITH_BUDGET = frozenset(get_args(SearchMethod)) - {"global", "drift"}


def read_budgets(given: object) -> tuple[int, ...]:
    """Return budgets in tokens, ascending; none of None and of an empty list.

    A ValueError unless they are two whole numbers or more, each >= 200 and none twice.
    """
    try:
        budgets = sorted(_BUDGETS.validate_python([] if given is None else given))
    except ValidationError as error:
        msg = (
            "budgets is a list of numbers of tokens, whole and each at least "
            f"{LEAST_BUDGET}, such as 1000,2000,4000; not {error.errors()[0]['input']!r}"
        )
        raise ValueError(msg) from error
    if len(set(budgets)) != len(budgets):
        msg = f"budgets names one twice: {', '.join(map(str, budgets))}"
        raise ValueError(msg)
    if len(budgets) == 1:
        msg = (
            "budgets needs two numbers of tokens or more for a curve; one budget for all searches "
            f"is equal_terms.{SETTING}"
        )
        raise ValueError(msg)
    return tuple(budgets)


def check_pairs(budgets: Sequence[int], judge: JudgeSettings) -> None:
    """Refuse (ValueError) pairs of methods that are each asked at several budgets."""
    if budgets and judge.pairwise:
        msg = (
            "judge.pairwise would hold every method at every budget against each other; leave it "
            "or budgets out"
        )
        raise ValueError(msg)


def split_name(name: str, budgets: Sequence[int]) -> tuple[str, int | None]:
    """Return a method and the budget that it is asked at; None of one that has none."""
    method, _, budget = name.rpartition("@")
    if method and budget.isascii() and budget.isdecimal() and int(budget) in budgets:
        return method, int(budget)
    return name, None


def with_budgets(
    methods: Sequence[object], variants: Mapping[str, object], budgets: Sequence[int]
) -> tuple[list[object], dict[str, object]]:
    """Return methods and variants with every search at every budget, method by method.

    Controls, functions, and searches without a context budget stay as they are; so do names that
    were made here before. A ValueError if a variant sets a budget of its own.
    """
    names: list[object] = []
    made = dict(variants)
    for name in methods:
        # What is no name is refused where names are looked at.
        settings = _settings_of(name, variants) if isinstance(name, str) else None
        if settings is None or (name in variants and split_name(str(name), budgets)[1]):
            names.append(name)
            continue
        if SETTING in settings:
            msg = (
                f"variants.{name} sets {SETTING} of its own, and budgets sets it too; leave it out"
            )
            raise ValueError(msg)
        at = {f"{name}@{budget}": {**settings, SETTING: budget} for budget in budgets}
        names += at
        made |= at
    return names, made


def _settings_of(name: str, variants: Mapping[str, object]) -> dict[str, object] | None:
    """Return a search as the settings of a variant; None of what has no context budget."""
    given = variants.get(name, {"method": name})
    if isinstance(given, Variant):
        given = given.model_dump()
    if not isinstance(given, Mapping):
        return None
    settings = {k: v for k, v in cast("Mapping[str, object]", given).items() if k != "function"}
    return settings if settings.get("method") in _WITH_BUDGET else None


def without_own_budget(terms: object) -> object:
    """Return equal terms that leave the budget to ``budgets``; a ValueError if they set one."""
    if isinstance(terms, EqualTerms):
        terms = terms.model_dump(exclude_unset=True)
    if not isinstance(terms, Mapping):
        return terms
    given = cast("Mapping[str, object]", terms)
    if given.get(SETTING) is not None:
        msg = f"budgets and equal_terms.{SETTING} both set the context budget; leave one out"
        raise ValueError(msg)
    return {**given, SETTING: None}
