"""Whether the indexes that questions are asked of are there."""

from collections.abc import Collection, Sequence

from graphrag.command_lines import config_name
from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import DatasetError


def check_keys(samples: Sequence[Sample], known: Collection[str]) -> None:
    """Refuse a sample whose index is not configured.

    Raises
    ------
    DatasetError
        Naming the sample and the nearest configured key.
    """
    for sample in samples:
        if sample.imdb_key not in known:
            msg = (
                f"Question {sample.name} is asked of index {sample.imdb_key!r}, which "
                f"{config_name()} does not configure; add it to indexes"
                f"{nearest(sample.imdb_key, list(known))}"
            )
            raise DatasetError(as_sentence(msg))
