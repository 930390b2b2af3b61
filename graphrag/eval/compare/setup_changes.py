"""Lists, in words, the differences between two runs' settings and indexes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from graphrag.eval.results.runs import Indexes, RunMetadata
from graphrag.eval.stats.gates import Reason
from graphrag.eval.store.records import EMBEDDING_MODEL, RunSetup, list_differences

MetricKey: TypeAlias = tuple[str, str]
"""Method and metric."""
_SECTIONS = {
    "dataset": "the questions differ",
    "indexes": "the indexes differ; a rebuilt graph shifts whole documents",
    "judge": "the judges differ",
    "metrics": "the judge's prompts differ",
}
_OF_THE_RUN = (
    *("trials", "max_output_tokens", "equal_terms", "further", "suites"),
    *("responses_of", "releases"),
)
_SHOWN = 5  # indexes that are named


def list_setup_changes(
    new: RunSetup,
    baseline: RunSetup,
    methods: Sequence[str],
    facts: tuple[Indexes, Indexes] = ({}, {}),
) -> list[str]:
    """Return the differences between two runs' setups, each as ``meaning (key: before -> now)``.

    A section that one of them lacks is listed as not known. Methods that are not among ``methods``
    are left out. ``facts``: what is known of the new run's indexes and the baseline's, except
    their fingerprints.
    """
    changes: list[str] = []
    unknown: list[str] = []
    for section, meaning in _SECTIONS.items():
        old, now = (_section(setup, section, methods) for setup in (baseline, new))
        if old is None or now is None:
            unknown.append(section)
        elif old != now:
            keys = [key for key in {**old, **now} if old.get(key) != now.get(key)]
            details = "; ".join(_describe_change(section, key, (old, now), facts) for key in keys)
            changes.append(f"{meaning} ({details})")
    if "indexes" not in unknown:
        changes += _list_method_changes(new, baseline, methods)
    if unknown:
        return [*changes, f"not known whether the runs agree in: {', '.join(unknown)}"]
    old, now = (  # only in complete setups does a missing section mean a default
        RunSetup({k: setup.root[k] for k in _OF_THE_RUN if k in setup.root})
        for setup in (baseline, new)
    )
    if differences := list_differences(old, now):
        changes.append(f"the runs' own settings differ ({', '.join(differences.values())})")
    return changes


def _describe_change(
    section: str,
    key: str,
    sides: tuple[Mapping[str, object], Mapping[str, object]],
    facts: tuple[Indexes, Indexes],
) -> str:
    """Return the change of one key, with the meaning of a hash instead of the hash."""
    old, now = sides
    if section == "dataset" and key == "fingerprint":
        return "other questions or answers"
    if section not in ("metrics", "indexes"):
        return f"{key}: {old.get(key)} -> {now.get(key)}"
    for name, side in (("baseline", now), ("new run", old)):
        if key not in side:
            return f"{key}: of the {name} alone"
    if section == "metrics":
        by = [cast("Mapping[str, str]", side[key]).get("by", "response") for side in sides]
        return f"{key}: another prompt" if by[0] == by[1] else f"{key}: by {by[0]} -> by {by[1]}"
    if None in (old[key], now[key]):
        return f"{key}: not known of the {'baseline' if old[key] is None else 'new run'}"
    after, before = (side.get(key, {}) for side in facts)
    if not before or not after:
        return f"{key}: another index; what changed was not kept"
    changed = [
        f"{name} {before.get(name, 'unknown')} -> {after.get(name, 'unknown')}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    return f"{key}: {', '.join(changed) or 'other content, by the same settings'}"


def _section(setup: RunSetup, section: str, methods: Sequence[str]) -> Mapping[str, object] | None:
    """Return a section of a setup; for the indexes only fingerprints, settings are listed apart."""
    if section == "indexes" and section in setup.root:
        return setup.fingerprints(methods)
    return cast("Mapping[str, object] | None", setup.root.get(section))


def _list_method_changes(new: RunSetup, baseline: RunSetup, methods: Sequence[str]) -> list[str]:
    """Return a line on each change of settings or models, with the methods and indexes it is of."""
    old, now = baseline.indexes, new.indexes
    keys = [key for key in now if key in old]
    alike: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for method in methods:
        for key in keys:
            before, after = (RunSetup(_settings_of(side[key].get(method))) for side in (old, now))
            if lines := list_differences(before, after):
                alike.setdefault(tuple(lines.values()), {}).setdefault(method, []).append(key)
    changes: list[str] = []
    for lines, where in alike.items():
        names = ", ".join(
            method if len(on) == len(keys) else f"{method} on {', '.join(on)}"
            for method, on in where.items()
        )
        changes.append(f"the settings of {names} differ ({', '.join(lines)})")
    return changes


def _settings_of(described: Mapping[str, object] | None) -> dict[str, object]:
    """Return a method's part of a setup, without the index; settings by their plain names."""
    values = {key: value for key, value in (described or {}).items() if key != "index"}
    settings = cast("Mapping[str, object]", values.pop("settings", {}))
    return {**settings, **values}


def changed_indexes(
    new: RunMetadata, baseline: RunMetadata, method: str, documents: Iterable[str]
) -> list[str]:
    """Return, sorted, the documents whose index is another now, or that only one run recorded.

    An index is known by the fingerprint of its tables; a rebuild gives every row another id, and so
    changes it. The fingerprint does not cover the vectors, so another embedding model counts as
    another index as well. ``documents``: the compared ones; with "" among them, all count,
    because documents are not known.
    """
    now, then = (
        {key: by.get(method, {}).get("index") for key, by in side.setup.indexes.items()}
        if "indexes" in side.setup.root
        else {}
        for side in (new, baseline)
    )
    compared = set(documents)
    keys = now.keys() | then.keys()
    return sorted(
        key
        for key in (keys if "" in compared else keys & compared)
        if now.get(key) != then.get(key) or _is_embedded_anew((new, baseline), key, method)
    )


def _is_embedded_anew(sides: Iterable[RunMetadata], key: str, method: str) -> bool:
    names = ((side, side.setup.index_of(key, method)) for side in sides)
    models = {side.indexes.get(name, {}).get(EMBEDDING_MODEL) for side, name in names}
    return len(models - {None}) > 1


def judge_changes(changed: Sequence[str], accepts: bool) -> tuple[Reason | None, Reason | None]:
    """Return why the gate can't decide on changed indexes, and what it assumes if it does anyway.

    At most one of the two is not None: the second if the user ``accepts`` the change.
    """
    if not changed:
        return None, None
    names = ", ".join(changed[:_SHOWN]) + (", ..." if len(changed) > _SHOWN else "")
    if accepts:
        return None, Reason(
            "the index of {} changed, and as you accepted it this takes each question to change on "
            "its own: an index that shifts whole documents is wrongly failed or passed more often",
            (names,),
        )
    why = Reason(
        "the index of {} changed since the baseline, or only one of the runs recorded it; a "
        "rebuilt index shifts whole documents by chance, which no number of questions shows (to "
        "decide all the same, as if each question changed on its own: --accept-index-change)",
        (names,),
    )
    return why, None
