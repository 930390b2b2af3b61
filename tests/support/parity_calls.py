"""Calls every released search function in each way, and prints what came of it as JSON.

Run by the interpreter of an environment with the release alone and by that of this project, so it
imports nothing of either but the release's names: ``python parity_calls.py PROJECT URL CODE``.
The code is run last.
"""

import asyncio
import copy
import inspect
import json
import os
import pickle
import random
import re
import secrets
import sys
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import pandas as pd
import yaml

import graphrag.api as api

LOADED = sorted(sys.modules)

from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks  # noqa: E402
from graphrag.config.load_config import load_config  # noqa: E402

# DRIFT draws a report at random; both environments have to draw the same.
secrets.choice = lambda reports: reports[0]

QUESTION = "Who repaired the great lamp with Marta Quill?"
NAMES = ("entities", "communities", "community_reports", "text_units", "relationships")


def plain(value: Any) -> Any:
    """Return anything that a search hands out as JSON-ready values, durations left out."""
    if isinstance(value, pd.DataFrame):
        return {"columns": list(value.columns), "rows": plain(value.to_dict(orient="records"))}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "completion_time"):
        return {k: plain(v) for k, v in vars(value).items() if k != "completion_time"}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Told(NoopQueryCallbacks):
    """Notes every event with what it brought, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []


for _name in [name for name in dir(NoopQueryCallbacks) if name.startswith("on_")]:

    def _note(self: Told, *given: Any, _name: str = _name) -> None:
        self.events.append([_name, *map(plain, given)])

    setattr(Told, _name, _note)


def as_pair(found: Any) -> dict[str, Any]:
    """What code written for the released pair can do with what was returned."""
    response, context = found
    return {
        "is a tuple": isinstance(found, tuple),
        "length": len(found),
        "first": plain(found[0]),
        "last": plain(found[-1]),
        "slice": plain(found[:1]),
        "slice's type": type(found[:1]).__name__,
        "unpacked": [plain(response), plain(context)],
        "keys": list(context) if isinstance(context, dict) else None,
        "sources": plain(context.get("sources")) if isinstance(context, dict) else None,
        "equal": found == (response, context),
        "unequal": found != (response, context),
        "text": f"{found} {found!r}",
        "JSON": json.dumps(found, default=plain),
        "in": response in found,
        "added": plain((*found, 1)),
        "sum": plain(found.__add__((2,))),
        "matched": [plain(part) for part in matched(found)],
        "copied": plain(tuple(copy.copy(found))),
        "deep copy": plain(tuple(copy.deepcopy(found))),
        "pickled": plain(tuple(pickle.loads(pickle.dumps(found)))),
    }


def matched(found: Any) -> list[Any]:
    match found:
        case (response, context):
            return [response, context]
        case _:
            return ["no match"]


async def outcome_of(call: Any, told: Told) -> dict[str, Any]:
    random.seed(7)
    try:
        found = call()
        if inspect.isasyncgen(found) or hasattr(found, "__aiter__"):
            result: Any = {"pieces": [piece async for piece in found]}
        else:
            result = as_pair(await found)
    except Exception as error:
        result = {"error": type(error).__name__, "says": str(error)}
    return {"result": result, "events": told.events}


async def main(root: Path, url: str) -> None:
    config = load_config(root)
    text = (root / "settings.yaml").read_text(encoding="utf-8")
    as_dict = yaml.safe_load(text)
    tables = {name: pd.read_parquet(root / "output" / f"{name}.parquet") for name in NAMES}
    five, three = dict(tables), {name: tables[name] for name in NAMES[:3]}
    asked = {"query": QUESTION, "response_type": "Single Paragraph"}
    local = {**five, "covariates": None, "community_level": 2, **asked}
    basic = {"text_units": tables["text_units"], **asked}
    whole = {**three, "community_level": 2, "dynamic_community_selection": False, **asked}
    drift = {**five, "community_level": 2, **asked}
    frames = [tables[name] for name in NAMES]

    def named(
        search: str, given: dict[str, Any], config: Any = config, how: str = "", **changes: Any
    ) -> Any:
        function = getattr(api, f"{search}_search{how}")
        return lambda c: function(config=config, **{"callbacks": [c], **given, **changes})

    units, wrong = tables["text_units"], {"completion_models": {"x": {"model": 3}}}
    calls: dict[str, Any] = {
        "local": named("local", local),
        "local by position": lambda c: api.local_search(
            config, *frames, None, 2, "List of 3-7 Points", QUESTION, [c], True
        ),
        "local with a mapping and a level as text": named(
            "local", local, as_dict, community_level="2"
        ),
        "basic": named("basic", basic),
        "basic by position": lambda c: api.basic_search(
            config, units, "Single Sentence", QUESTION, [c]
        ),
        "global": named("global", whole),
        "global of every level, chosen by the model": named(
            "global", whole, as_dict, community_level=None, dynamic_community_selection="true"
        ),
        "drift": named("drift", drift),
        "drift with a mapping": named("drift", drift, as_dict, community_level="2", verbose="yes"),
        "without callbacks": lambda c: api.local_search(config=config, **local),
        "local streamed": named("local", local, how="_streaming"),
        "basic streamed": named("basic", basic, how="_streaming"),
        "global streamed": named("global", whole, how="_streaming"),
        "drift streamed": named("drift", drift, how="_streaming"),
        "no query": lambda c: api.local_search(
            config=config, **{k: v for k, v in local.items() if k != "query"}
        ),
        "basic without a query": lambda c: api.basic_search(config, units, "One"),
        "a level that is none": named("drift", drift, community_level="two"),
        "a callback that is none": named("global", whole, callbacks=[object()]),
        "a mapping with a wrong model": named("basic", basic, {**as_dict, **wrong}),
        "an empty question": named("drift", drift, query=""),
        "local, refused": named("local", local, query="refuse this"),
        "basic, an empty reply": named("basic", basic, query="answer nothing"),
        "global, refused": named("global", whole, query="refuse this"),
        "drift, refused at a step": named("drift", drift, query="refuse a step"),
    }
    outcomes: dict[str, Any] = {}
    for name, call in calls.items():
        told = Told()
        outcomes[name] = await outcome_of(lambda call=call, told=told: call(told), told)
    shown = json.dumps(outcomes).replace(url, "URL").replace(str(root), "ROOT")
    shown = re.sub(r"0x[0-9a-f]+", "0x", shown)
    # Settings are of a subclass with one section more, which pydantic's messages cut off show.
    shown = re.sub(r"input_value=ArgsKwargs.*?, input_type", "input_type", shown)
    sys.stdout.write(f"{json.dumps(LOADED)}\n{shown}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
    exec(sys.argv[3])
