from .columns import check_columns, parse_columns
from .keys import check_keys
from .samples import (
    TIME_LIMIT_TAG,
    Sample,
    as_samples,
    fingerprint_samples,
    fold_wording,
    name_question,
    parse_samples,
    read_dataset,
    read_samples,
)

__all__ = [
    "TIME_LIMIT_TAG",
    "Sample",
    "as_samples",
    "check_columns",
    "check_keys",
    "fingerprint_samples",
    "fold_wording",
    "name_question",
    "parse_columns",
    "parse_samples",
    "read_dataset",
    "read_samples",
]
