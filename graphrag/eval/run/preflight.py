"""What is refused or warned of before the first call is made."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag.command_lines import config_name
from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.config.project_settings import unknown_settings
from graphrag.eval.config import CONTROLS, EvaluationConfig
from graphrag.eval.dataset import Sample
from graphrag.eval.errors import ConfigError, DatasetError, StoreError
from graphrag.eval.run.methods import MethodSet
from graphrag.eval.run.units import Unit
from graphrag.query.index_header import IndexHeader
from graphrag.query.model_facts import (
    is_offline,
    model_price,
)

_BYTES_A_UNIT = 200_000
_BYTES_A_RUN = 50_000_000
_FAMILIES = {
    "gpt": ("gpt", "chatgpt", "o1", "o3", "o4"),
    "gemini": ("gemini", "gemma"),
    "mistral": ("mistral", "mixtral", "ministral", "codestral", "magistral"),
    "qwen": ("qwen", "qwq"),
    "llama": ("llama", "meta-llama", "codellama"),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """An upper bound of what a run will ask, from its settings alone.

    Attributes
    ----------
    searches, judge_calls : int
    completion_calls, embedding_calls : int or None
        Of the searches; retries are left out. None when a method's settings set no bound: global
        and DRIFT search ask once for each part of the index or follow-up, Think-on-Graph that
        scores by entity once for each, a method of one's own as often as it likes.
    prompt_tokens : int or None
        Upper bound of all prompt tokens; None when a method's settings set none.
    """

    searches: int
    completion_calls: int | None
    embedding_calls: int | None
    judge_calls: int
    prompt_tokens: int | None


def check_keys(samples: Sequence[Sample], roots: Mapping[str, Path]) -> None:
    """Refuse a sample whose index is not configured.

    Raises
    ------
    DatasetError
        Naming the sample and the nearest configured key.
    """
    for sample in samples:
        if sample.imdb_key not in roots:
            known = list(roots)
            msg = (
                f"Question {sample.name} is asked of index {sample.imdb_key!r}, which "
                f"{config_name()} does not configure; add it to indexes"
                f"{nearest(sample.imdb_key, known)}"
            )
            raise DatasetError(as_sentence(msg))


def check_output(folder: Path, n_units: int) -> None:
    """Refuse an output folder that can't be written or has too little space left.

    Raises
    ------
    StoreError
        Naming the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
    except OSError as error:
        msg = f"{folder} can't be written ({error.strerror}); choose another with --output."
        raise StoreError(msg) from error
    needed = _BYTES_A_RUN + n_units * _BYTES_A_UNIT
    free = shutil.disk_usage(folder).free
    if free < needed:
        msg = (
            f"{folder} has {free // 1_000_000} MB left and the run may need "
            f"{needed // 1_000_000} MB; free some space or choose another with --output."
        )
        raise StoreError(msg)


def check_prices(models: Iterable[str]) -> None:
    """Refuse a cost limit when the price of a model is not known.

    Raises
    ------
    ConfigError
        Naming the model.
    """
    for model in models:
        if not is_offline(model) and model_price(model) is None:
            msg = (
                f"--max-cost needs the price of {model}, which litellm's price map does not "
                "hold; leave --max-cost out, and use --limit to bound the run."
            )
            raise ConfigError(msg)


def list_judge_warnings(judge: str, answering: Iterable[str]) -> list[str]:
    """Warn of a judge that is an embedded model or related to the models it grades.

    Parameters
    ----------
    judge : str
        ``provider/model``.
    answering : iterable of str
        The completion models that wrote the responses.
    """
    if is_offline(judge):
        return [
            f"the judge is {judge}, which compares words by fixed rules; its verdicts say nothing "
            "about what a language model or a person would find"
        ]
    family = _family(judge)
    return [
        f"the judge {judge} is of the same family as {model}, whose responses it grades; judges "
        "favour their own kind, so check it against human labels: graphrag eval audit"
        for model in sorted(set(answering))
        if _family(model) == family
    ]


def list_setting_warnings(roots: Mapping[str, Path]) -> list[str]:
    """Name the keys in projects' settings files that have no effect."""
    return [f"{key}: {line}" for key, root in roots.items() for line in unknown_settings(root)]


def estimate(
    config: EvaluationConfig,
    units: Sequence[Unit],
    headers: Mapping[str, IndexHeader],
    methods: MethodSet,
    n_metrics: int,
) -> Estimate:
    """Bound what a run will ask from above."""
    completions = embeddings = 0
    is_bounded = True
    tokens: int | None = 0
    for unit in units:
        own = methods.function(unit.method) is not None
        bound = None if own else _bound(unit, headers, methods)
        if bound is None:
            tokens, is_bounded = None, False
            continue
        calls, embedded, context = bound
        completions += calls
        embeddings += embedded
        if context is None or tokens is None:
            tokens = None
            continue
        judged = config.judge.repeats * min(n_metrics, 2)  # faithfulness, relevance: the context
        tokens += context * (calls + judged)
    judgings = len(units) * n_metrics * config.judge.repeats
    if n_metrics:
        further = config.judge.rubric + config.judge.quality
        n_compared = len({unit.sample.id for unit in units}) * 2  # both orders
        judgings += len(units) * further + n_compared * len(config.judge.pairs(config.methods))
    return Estimate(
        len(units),
        completions if is_bounded else None,
        embeddings if is_bounded else None,
        judgings,
        tokens,
    )


def _bound(
    unit: Unit, headers: Mapping[str, IndexHeader], methods: MethodSet
) -> tuple[int, int, int | None] | None:
    """Return completions, embeddings and tokens of one context of a search, at most."""
    if unit.method in CONTROLS:
        return 1, 0, None
    method = methods.search_method(unit.method)
    section: Any = methods.header(unit.method, headers[unit.sample.imdb_key]).section(method)
    if method in ("global", "drift") or (method == "tog" and section.scores_per_entity):
        return None
    return 2 * int(section.depth) if method == "tog" else 1, 1, int(section.max_context_tokens)


def _family(model: str) -> str:
    """Return the family of ``provider/model``: the name that its versions share."""
    name = model.rpartition("/")[2].rpartition(".")[2].casefold()
    for family, names in _FAMILIES.items():
        if any(name.startswith(each) for each in names):
            return family
    return re.split(r"[-:_\d]", name)[0] or name
