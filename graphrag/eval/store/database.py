"""Runs, responses, verdicts and finished model calls, committed as they arrive.

A process killed at any moment loses only the calls in flight: every finished call is kept
until the response or the verdicts it belongs to are, and a resumed run reads it from here.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import Failure, JudgeResult, Retrieved
from graphrag.eval.store.connection import (
    COLUMNS,
    Statement,
    StoreWriter,
    explain_errors,
    insert,
    names_damage,
    open_connection,
)
from graphrag.eval.store.records import (
    CallScope,
    Judgement,
    Run,
    RunDetails,
    RunSetup,
    StoredResponse,
    new_run,
    now,
)
from graphrag.eval.store.sums import RunSums
from graphrag.query.usage import CallAttempt, RecordedCall, Usage, sum_usages, summarize_attempts


def of_units(run_id: str, units: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    """Return the condition and the values that choose a run, or some units of it."""
    if units is None:
        return "run_id = ?", (run_id,)
    return f"run_id = ? AND unit IN ({', '.join('?' * len(units))})", (run_id, *units)


def response_of(row: Sequence[Any]) -> StoredResponse:
    """Return a response of its columns, in the order of the record but usage and failure."""
    return StoredResponse(
        *row[:6],
        usage=usage_of(row[6]),
        failure=_failure(row[7]),
        trial=row[8],
        retrieved=Retrieved.from_dict(json.loads(row[9])) if row[9] else None,
        abstained=bool(row[10]),
    )


def response_row(run_id: str, found: StoredResponse) -> tuple[object, ...]:
    """Return a response as its row."""
    return (
        run_id,
        found.unit,
        found.sample_id,
        found.method,
        found.response,
        found.context_text,
        found.latency_s,
        usage_text(found.usage),
        json.dumps(found.failure.to_dict()) if found.failure else None,
        now(),
        found.trial,
        json.dumps(found.retrieved.to_dict()) if found.retrieved else None,
        found.abstained,
    )


def verdict_row(run_id: str, unit: str, metric: str, verdict: JudgeResult) -> tuple[object, ...]:
    """Return a verdict as its row."""
    failure = json.dumps(verdict.failure.to_dict()) if verdict.failure else None
    repeats = json.dumps(verdict.repeats) if verdict.repeats else None
    return run_id, unit, metric, verdict.score, verdict.reason, failure, now(), repeats


def judgement_row(run_id: str, judged: Judgement) -> tuple[object, ...]:
    """Return a judgement as its row."""
    value, usage = json.dumps(judged.value), usage_text(judged.usage)
    return run_id, judged.subject, judged.kind, value, judged.failed, usage, now()


def verdict_of(
    score: int | None, reason: str, failure: str | None, repeats: str | None
) -> JudgeResult:
    """Return a verdict; one that can't be read is unscored, so that it never hides the others."""
    try:
        return JudgeResult(score, reason, _failure(failure), tuple(json.loads(repeats or "[]")))
    except (TypeError, ValueError) as error:
        message = f"the stored verdict can't be read: {error}"
        return JudgeResult(None, f"Unscored: {message}", Failure("judge", "unreadable", message))


def attempts_of(text: str) -> tuple[CallAttempt, ...]:
    """Return the attempts of a call."""
    return tuple(CallAttempt.from_dict(values) for values in json.loads(text))


def attempts_text(attempts: Sequence[CallAttempt]) -> str:
    """Return the attempts of a call as text."""
    return json.dumps([each.to_dict() for each in attempts])


def usage_text(usage: Usage) -> str:
    """Return what something cost as text."""
    return json.dumps(usage.to_dict())


def usage_of(text: str) -> Usage:
    """Return what something cost."""
    return Usage.from_dict(json.loads(text))


def _failure(text: str | None) -> Failure | None:
    return None if text is None else Failure(**json.loads(text))


@names_damage
class EvaluationStore:
    """The runs of an output folder.

    One process at a time holds it.

    Parameters
    ----------
    path : Path
        The database file, made with its folder when missing.
    reads_only : bool
        Read it beside the process that holds it, as it is at one moment.

    Raises
    ------
    StoreError
        If another process holds it, or it can't be opened or written.
    """

    def __init__(self, path: Path, reads_only: bool = False) -> None:
        self.path = path
        self._db = open_connection(path, reads_only)
        self._writer = StoreWriter(self._db, path)

    @classmethod
    def of(cls, config: EvaluationConfig) -> "EvaluationStore":
        """Open the store that a configuration names."""
        return cls(config.store_path)

    def close(self) -> None:
        """Close the database and let others have it."""
        try:
            self._writer.catch_up()
        finally:
            self._db.close()

    def __enter__(self) -> "EvaluationStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_run(
        self,
        setup: RunSetup,
        samples: Sequence[Sample] = (),
        details: RunDetails | None = None,
    ) -> Run:
        """Begin a run and keep its questions, so that its responses can be read without them."""
        run = new_run(setup, details)
        described = None if details is None else json.dumps(details.to_dict())
        values = (run.run_id, run.started_at, None, run.status, json.dumps(setup.root), described)
        self._writer.write((insert("runs"), values), *_sample_rows(run.run_id, samples))
        return run

    def keep_samples(self, run_id: str, samples: Sequence[Sample]) -> None:
        """Keep the questions of a run, in place of those that are kept."""
        self._writer.write(*_sample_rows(run_id, samples))

    def samples(self, run_id: str) -> list[Sample]:
        """Return the questions of a run in their order; empty for a run of an older release."""
        rows = self._read(
            "SELECT sample FROM samples WHERE run_id = ? ORDER BY position", (run_id,)
        )
        return [Sample.from_dict(json.loads(row[0])) for row in rows]

    def runs(self) -> list[Run]:
        """Return every run, the newest first."""
        rows = self._read(
            "SELECT run_id, started_at, status, setup, details FROM runs ORDER BY rowid DESC", ()
        )
        return [
            Run(
                *row[:3],
                setup=RunSetup(json.loads(row[3])),
                details=None if row[4] is None else RunDetails.from_dict(json.loads(row[4])),
            )
            for row in rows
        ]

    def keep_details(self, run_id: str, details: RunDetails) -> None:
        """Keep what a run's tables and files say beside its setup, in place of what was kept."""
        self._write(
            "UPDATE runs SET details = ? WHERE run_id = ?", (json.dumps(details.to_dict()), run_id)
        )

    def recorded_at(self, run_id: str) -> str | None:
        """Return when the latest result of a run was kept; None while there is none."""
        rows = self._read(
            "SELECT max(recorded_at) FROM (SELECT recorded_at FROM responses WHERE run_id = ? "
            "UNION ALL SELECT recorded_at FROM verdicts WHERE run_id = ? "
            "UNION ALL SELECT recorded_at FROM judgements WHERE run_id = ?) AS kept",
            (run_id, run_id, run_id),
        )
        return cast("str | None", rows[0][0])

    def sums(self, run_id: str) -> RunSums:
        """Return what adds up a run in the database."""
        return RunSums(self._read, run_id)

    def fingerprint(self, run_id: str) -> list[Any]:
        """Return what is another as soon as anything is kept or forgotten of a run."""
        return [
            list(self._read(f"SELECT {what} FROM {table} WHERE run_id = ?", (run_id,))[0])
            for table, what in _CHANGES.items()
        ]

    def finished_at(self, run_id: str) -> str | None:
        """Return when a run was finished; None of an unfinished one."""
        rows = self._read("SELECT finished_at FROM runs WHERE run_id = ?", (run_id,))
        return cast("str | None", rows[0][0])

    def finish_run(self, run_id: str) -> None:
        """Mark a run as having nothing left to do."""
        self._write(
            "UPDATE runs SET status = 'finished', finished_at = ? WHERE run_id = ?",
            (now(), run_id),
        )

    def reopen_run(self, run_id: str) -> None:
        """Mark a run as unfinished again."""
        self._write(
            "UPDATE runs SET status = 'unfinished', finished_at = NULL WHERE run_id = ?", (run_id,)
        )

    def append_response(
        self, run_id: str, found: StoredResponse, left: Usage | None = None
    ) -> None:
        """Keep a response, in place of its calls and of verdicts on one that was there before.

        ``left`` is what those of its calls cost that are no part of it.
        """
        self._writer.write(
            ("DELETE FROM verdicts WHERE run_id = ? AND unit = ?", (run_id, found.unit)),
            (insert("responses"), response_row(run_id, found)),
            *_drop_calls(run_id, CallScope.of_search(found.unit), left),
        )

    def append_verdicts(
        self,
        run_id: str,
        unit: str,
        verdicts: dict[str, JudgeResult],
        usage: Usage,
        left: Usage | None = None,
    ) -> None:
        """Keep the verdicts on a response and what they cost, in one transaction.

        ``left`` is what those of their calls cost that are no part of them.
        """
        self._writer.write(
            *(
                (insert("verdicts"), verdict_row(run_id, unit, metric, verdict))
                for metric, verdict in verdicts.items()
            ),
            (insert("judge_usage"), (run_id, unit, usage_text(usage))),
            *_drop_calls(run_id, CallScope.of_verdicts(unit), left),
        )

    def search_states(self, run_id: str) -> list[tuple[str, bool, float]]:
        """Return each unit that has a response, whether its search failed, and its US dollars."""
        rows = self._read(
            "SELECT unit, failure IS NOT NULL, usage FROM responses WHERE run_id = ? ORDER BY unit",
            (run_id,),
        )
        return [(unit, bool(failed), usage_of(usage).spent_usd) for unit, failed, usage in rows]

    def responses(
        self, run_id: str, units: Sequence[str] | None = None, with_texts: bool = True
    ) -> dict[str, StoredResponse]:
        """Return unit -> response of a run, or of some units of it.

        ``with_texts=False`` leaves out what it said and retrieved.
        """
        only, values = of_units(run_id, units)
        texts = "response, context_text" if with_texts else "'', ''"
        retrieved = "retrieved" if with_texts else "NULL"
        rows = self._read(
            f"SELECT unit, sample_id, method, {texts}, latency_s, usage, failure, "
            f"trial, {retrieved}, abstained FROM responses WHERE {only} ORDER BY unit",
            values,
        )
        return {row[0]: response_of(row) for row in rows}

    def verdicts(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, dict[str, JudgeResult]]:
        """Return unit -> metric -> verdict of a run, or of some units of it."""
        found: dict[str, dict[str, JudgeResult]] = {}
        only, values = of_units(run_id, units)
        rows = self._read(
            "SELECT unit, metric, score, reason, failure, repeats FROM verdicts "
            f"WHERE {only} ORDER BY unit, metric",
            values,
        )
        for unit, metric, score, reason, failure, repeats in rows:
            given = verdict_of(score, reason, failure, repeats)
            found.setdefault(unit, {})[metric] = given
        return found

    def judge_usage(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, list[Usage]]:
        """Return unit -> what its verdicts cost, one entry each time it was judged."""
        found: dict[str, list[Usage]] = {}
        only, values = of_units(run_id, units)
        for unit, usage in self._read(
            f"SELECT unit, usage FROM judge_usage WHERE {only} ORDER BY rowid", values
        ):
            found.setdefault(unit, []).append(usage_of(usage))
        return found

    def copy_responses(self, source: str, target: str) -> None:
        """Take the responses of one run over into another, as far as they are not there."""
        first, *others = COLUMNS["responses"].split()
        taken = ", ".join(others)
        self._write(
            f"INSERT INTO responses ({first}, {taken}) SELECT ?, {taken} FROM responses "
            "WHERE run_id = ? ON CONFLICT DO NOTHING",
            (target, source),
        )

    def append_judgement(
        self, run_id: str, judged: Judgement, left: Usage | None = None
    ) -> Judgement:
        """Keep a judgement, and return it with what earlier ones of it cost as well.

        ``left`` is what those of its calls cost that are no part of it.
        """
        earlier = self._read(
            "SELECT usage FROM judgements WHERE run_id = ? AND subject = ? AND kind = ?",
            (run_id, judged.subject, judged.kind),
        )
        usage = sum_usages([judged.usage, *(usage_of(row[0]) for row in earlier)])
        judged = replace(judged, usage=usage)
        self._writer.write(
            (insert("judgements"), judgement_row(run_id, judged)),
            *_drop_calls(run_id, CallScope(judged.kind, judged.subject), left),
        )
        return judged

    def judgements(self, run_id: str) -> list[Judgement]:
        """Return the judgements of a run."""
        rows = self._read(
            "SELECT subject, kind, value, failed, usage FROM judgements WHERE run_id = ? "
            "ORDER BY subject, kind",
            (run_id,),
        )
        return [
            Judgement(subject, kind, json.loads(value), bool(failed), usage_of(usage))
            for subject, kind, value, failed, usage in rows
        ]

    def discard_response(self, run_id: str, unit: str) -> None:
        """Forget a response, so that its question is asked again; keep what it cost."""
        self._writer.write(
            (
                "INSERT INTO forgotten (run_id, unit, usage) "
                "SELECT run_id, unit, usage FROM responses WHERE run_id = ? AND unit = ?",
                (run_id, unit),
            ),
            ("DELETE FROM responses WHERE run_id = ? AND unit = ?", (run_id, unit)),
        )

    def append_forgotten(self, run_id: str, unit: str, usage: Usage) -> None:
        """Keep what calls cost that are part of nothing else that is kept."""
        self._write(insert("forgotten"), (run_id, unit, usage_text(usage)))

    def forgotten_usage(self, run_id: str) -> list[Usage]:
        """Return what forgotten responses cost, and calls that are no part of what is kept."""
        rows = self._read("SELECT usage FROM forgotten WHERE run_id = ? ORDER BY rowid", (run_id,))
        return [usage_of(row[0]) for row in rows]

    def calls_in_flight(self, run_id: str) -> int:
        """Return how many calls had been sent and not been answered when the run stopped."""
        rows = self._read(
            "SELECT count(*) FROM calls WHERE run_id = ? AND reply IS NULL", (run_id,)
        )
        return cast("int", rows[0][0])

    def forget_calls_in_flight(self, run_id: str) -> None:
        """Forget the calls that had been sent and not been answered when the run stopped."""
        self._write("DELETE FROM calls WHERE run_id = ? AND reply IS NULL", (run_id,))

    def finished_calls(self, run_id: str) -> dict[str, dict[str, RecordedCall]]:
        """Return stored scope -> call -> its reply, for what is not complete yet."""
        found: dict[str, dict[str, RecordedCall]] = {}
        for scope, call, reply, attempts in self._read(
            "SELECT scope, call, reply, attempts FROM calls WHERE run_id = ? "
            "AND reply IS NOT NULL ORDER BY scope, call",
            (run_id,),
        ):
            found.setdefault(scope, {})[call] = RecordedCall(
                json.loads(reply), attempts_of(attempts)
            )
        return found

    def unclaimed_usage(self, run_id: str) -> dict[str, Usage]:
        """Return stored scope -> what its finished calls cost, for what is not complete yet."""
        return {
            scope: summarize_attempts(a for call in calls.values() for a in call.attempts)
            for scope, calls in self.finished_calls(run_id).items()
        }

    def write_call(
        self, run_id: str, scope: CallScope, call: str, recorded: RecordedCall | None
    ) -> None:
        """Note a call as sent, or keep its reply."""
        if recorded is None:
            self._write(insert("calls"), (run_id, scope.stored, call, None, None))
            return
        reply, attempts = json.dumps(recorded.reply), attempts_text(recorded.attempts)
        values = (run_id, scope.stored, call, reply, attempts)
        self._writer.write_soon((insert("calls"), values))

    def drop_call(self, run_id: str, scope: CallScope, call: str) -> None:
        """Forget a call that failed."""
        forget = "DELETE FROM calls WHERE run_id = ? AND scope = ? AND call = ?"
        self._writer.write_soon((forget, (run_id, scope.stored, call)))

    def grouped(self) -> AbstractContextManager[None]:
        """See :meth:`StoreWriter.grouped`: it is the ends of calls that are put off."""
        return self._writer.grouped()

    def _read(self, query: str, values: tuple[object, ...]) -> list[Any]:
        self._writer.catch_up()
        with explain_errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _write(self, query: str, values: tuple[object, ...]) -> None:
        self._writer.write((query, values))


_CHANGES = {
    "samples": "count(*)",
    "responses": "count(*), max(recorded_at)",
    "verdicts": "count(*), max(recorded_at)",
    "judgements": "count(*), max(recorded_at)",
    "judge_usage": "count(*)",
    "forgotten": "count(*)",
}
"""Table -> what tells whether its rows of a run are the same: each row that is put in the place of
another has its own time."""


def _sample_rows(run_id: str, samples: Sequence[Sample]) -> Iterator[Statement]:
    for position, sample in enumerate(samples):
        yield insert("samples"), (run_id, position, json.dumps(sample.to_dict()))


def _drop_calls(run_id: str, scope: CallScope, left: Usage | None) -> Iterator[Statement]:
    if left is not None:
        yield insert("forgotten"), (run_id, scope.unit, usage_text(left))
    yield "DELETE FROM calls WHERE run_id = ? AND scope = ?", (run_id, scope.stored)
