"""How near stored vectors are to the question's."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore


async def cosine_by_id(
    question_vector: list[float], ids: Sequence[str], vectors: "VectorStore"
) -> dict[str, float]:
    """Compare the question with the stored vectors of some ids, in one look-up.

    The cosine is taken here, because a store's own score depends on the metric it was built
    with.

    Parameters
    ----------
    question_vector : list of float
    ids : sequence of str
        Documents to compare with.
    vectors : VectorStore

    Returns
    -------
    dict of str to float
        Cosine in [-1, 1] for each id that has a vector; 0 where one of the two is null.
    """
    from graphrag_vectors import F

    # The stores put ids into their filter text unescaped.
    wanted = [name for name in dict.fromkeys(ids) if "'" not in name and "\\" not in name]
    if not wanted:
        return {}
    hits = await asyncio.to_thread(
        vectors.similarity_search_by_vector,
        question_vector,
        k=len(wanted),
        filters=getattr(F, vectors.id_field).in_(wanted),
    )
    found = [(str(hit.document.id), hit.document.vector) for hit in hits if hit.document.vector]
    if not found:
        return {}
    question = np.asarray(question_vector, dtype=np.float64)
    matrix = np.asarray([vector for _, vector in found], dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(question)
    dots = matrix @ question
    cosines = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)
    return {
        name: float(cosine)
        for (name, _), cosine in zip(found, np.clip(cosines, -1, 1), strict=True)
    }
