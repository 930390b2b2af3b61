"""Finding text units by the question's words: BM25 over all of them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphrag.query.structured_search.tog_search.words import split_terms
from graphrag.text.lexicon import STOP_WORDS
from graphrag.text.words import stem


class WordIndex:
    """The words of some texts, counted once; English ones by their stems, without stop words.

    Parameters
    ----------
    texts : iterable of (str, str)
        Id and text of each.
    """

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        import bm25s

        given = list(texts)
        self._ids = [name for name, _ in given]
        documents = _stems([text for _, text in given])
        self._index: Any = None
        if any(documents):
            self._index = bm25s.BM25(method="lucene")
            self._index.index(documents, show_progress=False)

    def rank(self, question: str, k: int) -> list[str]:
        """Return the ids of the `k` best texts that share a word with a question, best first.

        Equal scores are in the texts' order.
        """
        if self._index is None:
            return []
        known = self._index.vocab_dict
        wanted = [word for word in dict.fromkeys(_stems([question])[0]) if word in known]
        if not wanted:
            return []
        scores = np.asarray(self._index.get_scores(wanted), dtype=np.float64)
        best = np.argsort(-scores, kind="stable")[:k]
        return [self._ids[row] for row in best.tolist() if scores[row] > 0]


def _stems(texts: list[str]) -> list[list[str]]:
    return [
        [stem(word) for word in words if word not in STOP_WORDS] for words in split_terms(texts)
    ]
