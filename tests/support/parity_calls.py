"""Calls every released search function in each way, and prints what came of it as JSON.

Run by the interpreter of an environment with the release alone and by that of this project, so it
imports nothing of either but the release's names: ``python parity_calls.py PROJECT URL``.
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
from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.config.load_config import load_config

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
    calls: dict[str, Any] = {
        "local": lambda c: api.local_search(config=config, **local, callbacks=[c]),
        "local by position": lambda c: api.local_search(
            config, *frames, None, 2, "List of 3-7 Points", QUESTION, [c], True
        ),
        "local with a mapping and a level as text": lambda c: api.local_search(
            config=as_dict, **{**local, "community_level": "2"}, callbacks=[c]
        ),
        "basic": lambda c: api.basic_search(config=config, **basic, callbacks=[c]),
        "basic by position": lambda c: api.basic_search(
            config, tables["text_units"], "Single Sentence", QUESTION, [c]
        ),
        "global": lambda c: api.global_search(config=config, **whole, callbacks=[c]),
        "global of every level, chosen by the model": lambda c: api.global_search(
            config=as_dict,
            **{**whole, "community_level": None, "dynamic_community_selection": "true"},
            callbacks=[c],
        ),
        "drift": lambda c: api.drift_search(config=config, **drift, callbacks=[c]),
        "drift with a mapping": lambda c: api.drift_search(
            config=as_dict, **{**drift, "community_level": "2"}, callbacks=[c], verbose="yes"
        ),
        "without callbacks": lambda c: api.local_search(config=config, **local),
        "local streamed": lambda c: api.local_search_streaming(
            config=config, **local, callbacks=[c]
        ),
        "basic streamed": lambda c: api.basic_search_streaming(
            config=config, **basic, callbacks=[c]
        ),
        "global streamed": lambda c: api.global_search_streaming(
            config=config, **whole, callbacks=[c]
        ),
        "drift streamed": lambda c: api.drift_search_streaming(
            config=config, **drift, callbacks=[c]
        ),
        "no query": lambda c: api.local_search(
            config=config, **{k: v for k, v in local.items() if k != "query"}
        ),
        "basic without a query": lambda c: api.basic_search(config, tables["text_units"], "One"),
        "a level that is none": lambda c: api.drift_search(
            config=config, **{**drift, "community_level": "two"}
        ),
        "a callback that is none": lambda c: api.global_search(
            config=config, **whole, callbacks=[object()]
        ),
        "a mapping with a wrong model": lambda c: api.basic_search(
            config={**as_dict, "completion_models": {"x": {"model": 3}}}, **basic
        ),
        "an empty question": lambda c: api.drift_search(
            config=config, **{**drift, "query": ""}, callbacks=[c]
        ),
        "local, refused": lambda c: api.local_search(
            config=config, **{**local, "query": "refuse this"}, callbacks=[c]
        ),
        "basic, an empty reply": lambda c: api.basic_search(
            config=config, **{**basic, "query": "answer nothing"}, callbacks=[c]
        ),
        "global, refused": lambda c: api.global_search(
            config=config, **{**whole, "query": "refuse this"}, callbacks=[c]
        ),
        "drift, refused at a step": lambda c: api.drift_search(
            config=config, **{**drift, "query": "refuse a step"}, callbacks=[c]
        ),
    }
    outcomes: dict[str, Any] = {}
    for name, call in calls.items():
        told = Told()
        outcomes[name] = await outcome_of(lambda call=call, told=told: call(told), told)
    shown = json.dumps(outcomes).replace(url, "URL").replace(str(root), "ROOT")
    shown = re.sub(r"0x[0-9a-f]+", "0x", shown)
    # Settings are of a subclass with one section more, which pydantic's messages cut off show.
    sys.stdout.write(re.sub(r"input_value=ArgsKwargs.*?, input_type", "input_type", shown))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
