"""Embedded models for machines without a key, a network or a download.

``type: offline`` in settings.yaml selects them. The completion model works by rules: it
finds names in text, answers with the best-matching sentences of its context, scores edges
and judges by word overlap. The embedding model hashes n-grams. Both are deterministic. They
are a baseline and no language model; outputs made with them carry `OFFLINE_LABEL`.

The models themselves are in `graphrag.offline.completion` and `graphrag.offline.embedding`;
importing this package alone loads neither.
"""

from graphrag.offline.errors import NOT_FOUND, OFFLINE_LABEL, OfflineModelError

__all__ = ["NOT_FOUND", "OFFLINE_LABEL", "OfflineModelError"]
