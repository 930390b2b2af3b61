"""Removes keys of eval_config.yaml that are no longer read, and returns what to do instead."""

from collections.abc import Mapping
from typing import cast


class GoneKeyWarning(UserWarning):
    """A configuration sets a key that is no longer read; the message says what to do instead."""


GONE_KEYS: Mapping[str, str] = {
    "budgets": "Gone since 2.0.0; write a variant with max_context_tokens for each budget.",
    "judge.cache": "Gone since 2.0.0; --resume continues an unfinished run and asks nothing twice.",
    "judge.max_input_tokens": "Gone since 2.0.0; litellm's map says how much the judge reads.",
    "judge.timeout_s": "Gone since 2.0.0; set timeout in call_args of the judge's model.",
    "measures.aspect_share": "Gone since 2.0.0; 60 % of an aspect's words have to be together.",
    "output.allow_outside": "Gone since 2.0.0; name a folder outside of the root by --output.",
    "request_timeout_s": "Gone since 2.0.0; a request may take half of timeout_s, and at least "
    "60 s. For another limit set timeout in call_args of the model.",
}
"""``section.key``, or a top-level key -> a sentence: since when it is gone, what to do instead."""


GONE_MEASURES: Mapping[str, str] = dict.fromkeys(
    ("path_edges_exist", "path_joins_meet", "path_edges_supported", "answer_entities_traced"),
    "Gone since 2.0.0; citation_validity and citations_in_index check the citations.",
)
"""Measure in ``measures.criteria`` -> since when it is gone, and what to do instead."""


def take_out_gone(settings: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """Remove keys that are no longer read from a configuration as it is written.

    Parameters
    ----------
    settings
        Keys and values of the file; sections are mappings.

    Returns
    -------
    The settings without those keys, and a sentence for each key that was removed.
    """
    kept, sentences = dict(settings), list[str]()
    for name, instead in GONE_KEYS.items():
        section, _, key = name.rpartition(".")
        within = kept.get(section) if section else kept
        if not isinstance(within, Mapping) or key not in within:
            continue
        rest = {k: v for k, v in cast("Mapping[str, object]", within).items() if k != key}
        kept = {**kept, section: rest} if section else rest
        sentences.append(f"{name} is read no more: {instead}")
    measures = kept.get("measures")
    if isinstance(measures, Mapping):
        kept["measures"], gone = _drop_criteria(cast("Mapping[str, object]", measures))
        sentences += [
            f"The criterion {name} is read no more: {GONE_MEASURES[name]}" for name in gone
        ]
    return kept, sentences


def _drop_criteria(measures: Mapping[str, object]) -> tuple[Mapping[str, object], list[str]]:
    """Return the section without criteria of gone measures, and the names of these measures."""
    criteria = measures.get("criteria")
    if not isinstance(criteria, list):
        return measures, []
    named = [(_measure_of(each), each) for each in cast("list[object]", criteria)]
    gone = dict.fromkeys(name for name, _ in named if name in GONE_MEASURES)
    return {**measures, "criteria": [each for name, each in named if name not in gone]}, [*gone]


def _measure_of(criterion: object) -> str:
    if not isinstance(criterion, Mapping):
        return ""
    name = cast("Mapping[str, object]", criterion).get("metric")
    return name if isinstance(name, str) else ""
