"""Where the answers of a run were lost, counted by method and index."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from graphrag.eval.scorers.loss import STAGES, LossRecord, Stage


@dataclass(frozen=True, slots=True)
class LossRow:
    """One method's losses in one film; ``imdb_key`` is None for all films together.

    Attributes
    ----------
    n : int
        Responses: ``n_untraced + n_unmatched + sum(lost.values()) + n_kept + n_unjudged``.
    n_untraced : int
        Of questions without evidence.
    n_unmatched : int
        Of questions all of whose evidence is not in the text; they say nothing of a method.
    n_partly_unmatched : int
        Of questions some of whose evidence is not; traced by the rest. Cuts across the counts.
    lost : mapping
        Stage -> responses whose first break it is.
    right_anyway : mapping
        Stage -> those of them that were judged correct all the same.
    n_kept : int
        Right answers without a break.
    n_unjudged : int
        Answers without a verdict and without a break before it.
    n_right_without_evidence, n_retrieved_but_wrong : int
        These cut across the counts above.
    """

    method: str
    imdb_key: str | None
    n: int
    n_untraced: int
    n_unmatched: int
    n_partly_unmatched: int
    lost: Mapping[Stage, int]
    right_anyway: Mapping[Stage, int]
    n_kept: int
    n_unjudged: int
    n_right_without_evidence: int
    n_retrieved_but_wrong: int

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values."""
        return asdict(self)


def summarize_loss(records: Iterable[LossRecord]) -> list[LossRow]:
    """Count where it breaks: a row for each method and film, then one for each method."""
    groups: dict[tuple[str, str | None], list[LossRecord]] = {}
    for record in records:
        groups.setdefault((record.method, record.imdb_key), []).append(record)
        groups.setdefault((record.method, None), []).append(record)
    return [
        _count(*key, records)
        for key, records in sorted(groups.items(), key=lambda group: group[0][1] is None)
    ]


def _count(method: str, key: str | None, records: Sequence[LossRecord]) -> LossRow:
    traced = [record for record in records if record.n_evidence]
    lost = Counter(r.first_break for r in traced)
    right = Counter(r.first_break for r in traced if r.stage("judged_correct"))
    return LossRow(
        method=method,
        imdb_key=key,
        n=len(records),
        n_untraced=sum(not r.n_evidence and not r.n_unmatched for r in records),
        n_unmatched=sum(not r.n_evidence and r.n_unmatched > 0 for r in records),
        n_partly_unmatched=sum(r.n_unmatched > 0 for r in traced),
        lost={stage: lost[stage] for stage in STAGES},
        right_anyway={stage: right[stage] for stage in STAGES},
        n_kept=right[None],
        n_unjudged=lost[None] - right[None],
        n_right_without_evidence=sum(r.is_right_without_evidence for r in traced),
        n_retrieved_but_wrong=sum(r.is_retrieved_but_wrong for r in traced),
    )
