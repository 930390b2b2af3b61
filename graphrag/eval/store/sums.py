"""A run added up by the database: what a page asks for again and again while the run goes on."""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphrag.eval.records import FailureKind
from graphrag.eval.store.connection import Values
from graphrag.query.usage import Usage

_COUNTS = ("llm_calls", "prompt_tokens", "output_tokens", "embedding_calls", "embedding_tokens")


class SearchCount(NamedTuple):
    """Searches that ended alike; ``is_done``: none of them waits for a verdict."""

    method: str
    document: str
    lacks_answer: bool
    is_first: bool
    failed: bool
    abstained: bool
    is_done: bool
    n: int


class VerdictCount(NamedTuple):
    """Verdicts on done responses of the first trial that ended alike."""

    method: str
    document: str
    abstained: bool
    metric: str
    score: int | None
    failure: FailureKind | None
    n: int


class RunSums:
    """Adds up a run in SQL; ``read``: runs a statement with its values and returns the rows."""

    def __init__(
        self, read: Callable[[str, tuple[object, ...]], list[Values]], run_id: str
    ) -> None:
        self._read, self._run_id = read, run_id

    def ends(
        self, metrics: Sequence[str], without_truth: Sequence[str], waits: bool
    ) -> tuple[list[SearchCount], list[VerdictCount]]:
        """Return how searches and verdicts ended.

        ``metrics``: what responses are to be judged on. ``without_truth``: those of them that say
        something without an answer that is right. ``waits``: whether responses wait for verdicts at
        all.
        """
        listed = ", ".join("?" * len(metrics)) or "NULL"
        searched = f"""WITH asked AS MATERIALIZED (
            SELECT CAST({_value("sample", "id")} AS TEXT) AS id,
            {_value("sample", "imdb_key")} AS document,
            coalesce({_value("sample", "ground_truth")}, '') = ''
            AND (coalesce({_value("sample", "expected_sources")}, '[]') <> '[]'
            OR coalesce({_value("sample", "assertions")}, '[]') <> '[]') AS lacks_answer
            FROM samples WHERE run_id = ?
        ), judged AS MATERIALIZED (
            SELECT unit, count(*) AS n FROM verdicts
            WHERE run_id = ? AND metric IN ({listed}) GROUP BY unit
        ), searched AS MATERIALIZED (
            SELECT r.unit, r.method, coalesce(a.document, '') AS document,
            CASE WHEN a.lacks_answer THEN 1 ELSE 0 END AS lacks_answer,
            CASE WHEN r.trial = 0 THEN 1 ELSE 0 END AS is_first,
            CASE WHEN r.failure IS NULL THEN 0 ELSE 1 END AS failed, r.abstained,
            CASE WHEN r.failure IS NOT NULL OR ? = 0 OR coalesce(j.n, 0) >=
            CASE WHEN a.lacks_answer THEN ? ELSE ? END THEN 1 ELSE 0 END AS is_done
            FROM responses r LEFT JOIN asked a ON a.id = r.sample_id
            LEFT JOIN judged j ON j.unit = r.unit WHERE r.run_id = ?
        ) """
        values = (
            *(self._run_id, self._run_id, *metrics, int(waits)),
            *(len(without_truth), len(metrics), self._run_id),
        )
        names = "method, document, lacks_answer, is_first, failed, abstained, is_done"
        searches = self._read(
            f"{searched} SELECT {names}, count(*) FROM searched GROUP BY {names}", values
        )
        names = (
            f"s.method, s.document, s.abstained, v.metric, v.score, {_value('v.failure', 'kind')}"
        )
        verdicts = self._read(
            f"{searched} SELECT {names}, count(*) FROM searched s JOIN verdicts v "
            "ON v.run_id = ? AND v.unit = s.unit WHERE s.is_first = 1 AND s.failed = 0 "
            f"AND s.is_done = 1 GROUP BY {names}",
            (*values, self._run_id),
        )
        return (
            [SearchCount._make((*row[:2], *map(bool, row[2:7]), row[7])) for row in searches],
            [VerdictCount._make((*row[:2], bool(row[2]), *row[3:])) for row in verdicts],
        )

    def failed_searches(self) -> list[tuple[str, dict[str, str], int]]:
        """Return method, failure and how often, of searches."""
        rows = self._read(
            "SELECT method, failure, count(*) FROM responses WHERE run_id = ? "
            "AND failure IS NOT NULL GROUP BY method, failure",
            (self._run_id,),
        )
        return [(method, json.loads(failure), n) for method, failure, n in rows]

    def missing_verdicts(self) -> list[tuple[str, str, dict[str, str], int]]:
        """Return method, metric, failure and how often, of verdicts."""
        rows = self._read(
            "SELECT r.method, v.metric, v.failure, count(*) FROM verdicts v JOIN responses r "
            "ON r.run_id = v.run_id AND r.unit = v.unit WHERE v.run_id = ? "
            "AND v.failure IS NOT NULL GROUP BY r.method, v.metric, v.failure",
            (self._run_id,),
        )
        return [(method, metric, json.loads(failure), n) for method, metric, failure, n in rows]

    def slowest(self, most: int) -> list[tuple[float, str, bool, str]]:
        """Return seconds, method, whether it failed, and question of the slowest searches."""
        rows = self._read(
            "SELECT r.latency_s, r.method, r.failure IS NOT NULL, coalesce("
            f"(SELECT {_value('s.sample', 'question')} FROM samples s WHERE s.run_id = ? AND "
            f"{_value('s.sample', 'id')} = r.sample_id), r.sample_id) FROM "
            "(SELECT * FROM responses WHERE run_id = ? AND latency_s >= 0 AND latency_s < 1e300 "
            "ORDER BY latency_s DESC LIMIT ?) AS r ORDER BY r.latency_s DESC",
            (self._run_id, self._run_id, most),
        )
        return [(seconds, method, bool(failed), text) for seconds, method, failed, text in rows]

    def latest(self, most: int) -> list[str]:
        """Return when the latest searches were kept (ISO 8601), the newest first."""
        sql = "SELECT recorded_at FROM responses WHERE run_id = ? ORDER BY recorded_at DESC LIMIT ?"
        return [at for (at,) in self._read(sql, (self._run_id, most))]

    def models(self) -> set[str]:
        """Return every model that is named by what was kept."""
        named = (
            model
            for table in ("responses", "judge_usage", "judgements")
            for (models,) in self._read(
                f"SELECT DISTINCT {_value('usage', 'models')} FROM {table} WHERE run_id = ?",
                (self._run_id,),
            )
            for model in json.loads(models or "[]")
        )
        return set(named)

    def spent(self, with_searches: bool) -> tuple[Usage, float]:
        """Return what was paid for and kept, and the dollars of it whose price is known.

        Only its counts, its dollars and whether it is counted are filled in.
        """
        sums = ", ".join(f"coalesce(sum({_value('usage', name)}), 0)" for name in _COUNTS)
        cost = _value("usage", "cost_usd")
        tables = ("responses",) if with_searches else ()
        rows = [
            self._read(
                f"SELECT {sums}, coalesce(sum({cost}), 0), "
                f"sum(CASE WHEN {cost} IS NULL THEN 1 ELSE 0 END), "
                f"min(coalesce({_value('usage', 'is_counted')}, 1)), count(*) "
                f"FROM {table} WHERE run_id = ?",
                (self._run_id,),
            )[0]
            for table in (*tables, "judge_usage", "forgotten", "judgements")
        ]
        rows = [row for row in rows if row[-1]]
        columns: list[Values] = list(zip(*rows, strict=True)) or [()] * 9
        known = float(sum(columns[5]))
        usage = Usage(
            *(int(sum(column)) for column in columns[: len(_COUNTS)]),
            cost_usd=None if any(columns[6]) else known,
            is_counted=all(columns[7]),
        )
        return usage, known


def _value(column: str, name: str) -> str:
    return f"json_extract({column}, '$.{name}')"
