"""Context budgets: each search is asked at every one of them, as a variant of its own."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast, get_args

from pydantic import Field, TypeAdapter, ValidationError

from graphrag.eval.config.sections import EqualTerms, JudgeSettings, Variant
from graphrag.query.methods import SearchMethod

LEAST_BUDGET = 200
"""Tokens; the smallest budget that Think-on-Graph takes."""
SETTING = "max_context_tokens"
_WITHOUT_BUDGET = frozenset({"global", "drift"})
"""Searches that read reports in many calls: no setting bounds what an answer is written from."""
_BUDGETS = TypeAdapter(list[Annotated[int, Field(ge=LEAST_BUDGET)]])


def read_budgets(given: object) -> tuple[int, ...]:
    """Return budgets in tokens, ascending; none of None and of an empty list.

    Raises
    ------
    ValueError
        Unless they are two whole numbers or more, each at least ``LEAST_BUDGET`` and none twice.
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
    """Refuse pairs of methods that are each asked at several budgets.

    Raises
    ------
    ValueError
        If there are some.
    """
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
    methods: Sequence[Any], variants: Mapping[str, Any], budgets: Sequence[int]
) -> tuple[list[Any], dict[str, Any]]:
    """Return methods and variants with every search at every budget, method by method.

    Controls, functions, and searches without a context budget stay as they are; so do names that
    were made here before.

    Raises
    ------
    ValueError
        If a variant sets a budget of its own.
    """
    names: list[Any] = []
    made = dict(variants)
    for name in methods:
        settings = _settings_of(name, variants)
        if settings is None or (name in variants and split_name(name, budgets)[1]):
            names.append(name)
            continue
        if SETTING in settings:
            msg = (
                f"variants.{name} sets {SETTING} of its own, and budgets sets it too; leave it out"
            )
            raise ValueError(msg)
        for budget in budgets:
            names.append(f"{name}@{budget}")
            made[names[-1]] = {**settings, SETTING: budget}
    return names, made


def _settings_of(name: object, variants: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a search as the settings of a variant; None of what has no context budget."""
    if not isinstance(name, str):
        return None  # what is no name is refused where names are looked at
    given: object = variants.get(name, {"method": name})
    if isinstance(given, Variant):
        given = given.model_dump()
    if not isinstance(given, Mapping):
        return None
    settings = {k: v for k, v in cast("Mapping[str, Any]", given).items() if k != "function"}
    method = settings.get("method")
    return settings if method in get_args(SearchMethod) and method not in _WITHOUT_BUDGET else None


def without_own_budget(terms: object) -> object:
    """Return equal terms that leave the context budget to ``budgets``.

    Raises
    ------
    ValueError
        If they set one.
    """
    if isinstance(terms, EqualTerms):
        terms = terms.model_dump(exclude_unset=True)
    if not isinstance(terms, Mapping):
        return terms
    given = cast("Mapping[str, object]", terms)
    if given.get(SETTING) is not None:
        msg = f"budgets and equal_terms.{SETTING} both set the context budget; leave one out"
        raise ValueError(msg)
    return {**given, SETTING: None}
