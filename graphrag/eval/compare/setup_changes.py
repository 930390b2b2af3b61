"""What differs between two runs' setups: methods, settings, models, indexes, judge, bounds."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from graphrag.eval.runner.plan import list_differences
from graphrag.eval.store.records import RunSetup

Facts: TypeAlias = Mapping[str, Mapping[str, str | int | None]]
"""Index key -> what its index was built with, and how much it holds."""
_SECTIONS = {
    "dataset": "the questions differ",
    "indexes": "the indexes differ; a rebuilt graph shifts whole documents",
    "judge": "the judges differ",
    "metrics": "the judge's prompts differ",
}
_OF_THE_RUN = (
    "trials",
    "max_output_tokens",
    "equal_terms",
    "further",
    "suites",
    "responses_of",
    "releases",
)


def list_setup_changes(
    new: RunSetup,
    baseline: RunSetup,
    methods: Sequence[str],
    facts: tuple[Facts, Facts] = ({}, {}),
) -> list[str]:
    """Name what differs between two runs' setups, each as ``meaning (key: before -> now)``.

    Of a section that one of them lacks it is said that it is not known. Of methods that are not
    among ``methods`` nothing is said. ``facts`` say of the new run's indexes and of the baseline's
    what a fingerprint does not.
    """
    changes: list[str] = []
    unknown: list[str] = []
    for section, meaning in _SECTIONS.items():
        old, now = (_section(each, section, methods) for each in (baseline, new))
        if old is None or now is None:
            unknown.append(section)
        elif old != now:
            keys = [key for key in {**old, **now} if old.get(key) != now.get(key)]
            shown = "; ".join(_change(section, key, (old, now), facts) for key in keys)
            changes.append(f"{meaning} ({shown})")
    if "indexes" not in unknown:
        changes += _list_method_changes(new, baseline, methods)
    if not unknown:  # only of setups that are whole is a section that is missing a default
        old, now = (
            RunSetup({k: each.root[k] for k in _OF_THE_RUN if k in each.root})
            for each in (baseline, new)
        )
        if differences := list_differences(old, now):
            changes.append(f"the runs' own settings differ ({', '.join(differences)})")
    if unknown:
        changes.append(f"not known whether the runs agree in: {', '.join(unknown)}")
    return changes


def _change(
    section: str,
    key: str,
    sides: tuple[Mapping[str, object], Mapping[str, object]],
    facts: tuple[Facts, Facts],
) -> str:
    """Return what became of one key; hashes are replaced by what they stand for."""
    old, now = sides
    if section == "dataset" and key == "fingerprint":
        return "other questions or answers"
    if section not in ("metrics", "indexes"):
        return f"{key}: {old.get(key)} -> {now.get(key)}"
    lone = next(
        (name for name, side in (("baseline", now), ("new run", old)) if key not in side), None
    )
    if lone is not None:
        return f"{key}: of the {lone} alone"
    if section == "metrics":
        return f"{key}: another prompt"
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
    """Return a section of a setup; of the indexes their fingerprints, as settings come apart."""
    if section == "indexes" and section in setup.root:
        return setup.fingerprints(methods)
    return cast("Mapping[str, object] | None", setup.root.get(section))


def _list_method_changes(new: RunSetup, baseline: RunSetup, methods: Sequence[str]) -> list[str]:
    """Name the settings and models that differ, methods and indexes that differ alike in a line."""
    old, now = baseline.indexes, new.indexes
    keys = [key for key in now if key in old]
    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for method in methods:
        for key in keys:
            before, after = (RunSetup(_described(each[key].get(method))) for each in (old, now))
            if lines := list_differences(before, after):
                found.setdefault(tuple(lines), {}).setdefault(method, []).append(key)
    return [
        f"the settings of {_names(where, len(keys))} differ ({', '.join(lines)})"
        for lines, where in found.items()
    ]


def _described(described: Mapping[str, object] | None) -> dict[str, object]:
    """Return what is said of a method beside the index, its settings by their plain names."""
    told = dict(described or {})
    told.pop("index", None)
    settings = cast("Mapping[str, object]", told.pop("settings", {}))
    return {**settings, **told}


def _names(where: Mapping[str, Sequence[str]], n_keys: int) -> str:
    return ", ".join(
        method if len(keys) == n_keys else f"{method} on {', '.join(keys)}"
        for method, keys in where.items()
    )
