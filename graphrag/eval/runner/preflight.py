"""What is refused or warned of before the first call is made."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from graphrag.command_lines import eval_line_here
from graphrag.config.project_settings import unknown_settings
from graphrag.eval.errors import ConfigError, StoreError
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
        "favour their own kind, so check it against human labels after the run: "
        f"{eval_line_here('audit', 'export', 'latest')}"
        for model in sorted(set(answering))
        if _family(model) == family
    ]


def list_setting_warnings(roots: Mapping[str, Path]) -> list[str]:
    """Name the keys in projects' settings files that have no effect."""
    return [f"{key}: {line}" for key, root in roots.items() for line in unknown_settings(root)]


def _family(model: str) -> str:
    """Return the family of ``provider/model``: the name that its versions share."""
    # Some services put the maker and a dot before the name; the dot of a version is another.
    name = re.split(r"\.(?=[a-z])", model.rpartition("/")[2].casefold())[-1]
    for family, names in _FAMILIES.items():
        if any(name.startswith(each) for each in names):
            return family
    return re.split(r"[-:_\d]", name)[0] or name
