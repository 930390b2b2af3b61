"""Stores runs, responses, verdicts and finished model calls, committed as they arrive.

A process killed at any moment loses only the calls in flight: sent, but not answered. A finished
call is kept until the response or the verdicts that it belongs to are, and a resumed run reads it
from here. A unit is a question asked by a method; a scope is its search or one of its judgings.
"""

import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar, cast

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import UsageError
from graphrag.eval.store.exchanges import keep_exchanges, read_exchanges
from graphrag.eval.store.figure_cache import KeptFigures, read_kept
from graphrag.eval.store.records import (
    DOUBT,
    CallScope,
    Judgement,
    Origin,
    Run,
    RunDetails,
    RunSetup,
    StoredResponse,
    list_details,
    now,
)
from graphrag.eval.store.schema import COLUMNS, insert
from graphrag.eval.store.serialization import (
    Shown,
    contexts_of,
    each_of,
    judgement_row,
    judgings_of,
    outlines_of,
    response_of,
    response_row,
    text_of,
    usage_of,
    verdict_row,
    verdicts_of,
)
from graphrag.eval.store.sqlite import (
    IN_MEMORY,
    Statement,
    StoreWriter,
    Values,
    damage_error,
    explain_errors,
    open_connection,
)
from graphrag.eval.types.query_results import KeptCalls
from graphrag.eval.types.verdicts import JudgeResult
from graphrag.query.client.checked_numbers import ImpossibleFigureError
from graphrag.query.client.usage import (
    CallAttempt,
    Exchanges,
    RecordedCall,
    Usage,
    sum_usages,
    summarize_attempts,
)
from graphrag.text.cli_hints import eval_line_in

_T = TypeVar("_T")
PINNED, LATEST = "pinned", "latest"
BASELINE_FILE = "baseline.json"
ORIGIN_NAMES: dict[Origin, str] = {
    "command": "graphrag eval",
    "judge": "graphrag eval judge",
    "suite": "graphrag eval suite",
    "monitor": "graphrag eval monitor",
    "python": "Python",
}
_LISTED = 3
_RESPONSE = "unit, sample_id, method, {}, latency_s, usage, failure, trial, {}, abstained"
"""The columns of a response; those that not every reader wants are filled in."""


class EvaluationStore:
    """The runs of an output folder, in its eval.db.

    One process at a time holds it. ``path``: the database file, made with its folder if missing;
    IN_MEMORY: its runs are gone when it is closed. ``reads_only``: read it while another process
    holds it, as it is at one moment. What was read of the last run is then not read again, except
    its full responses.
    """

    def __init__(self, path: Path, reads_only: bool = False) -> None:
        self.path = path
        self.is_kept = path != IN_MEMORY
        self._reads_only = reads_only
        self._memory: tuple[str, dict[str, object]] = ("", {})
        self._db = open_connection(path, reads_only)
        self._writer = StoreWriter(self._db, path)

    def close(self) -> None:
        """Close the database and release its lock."""
        try:
            self._writer.catch_up()
        finally:
            self._db.close()

    def __enter__(self) -> "EvaluationStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_run(
        self, setup: RunSetup, samples: Sequence[Sample] = (), details: RunDetails | None = None
    ) -> Run:
        """Begin a run and keep its questions, so that nobody needs the dataset to read it.

        ``details``: None: those of a run that a user's program began.
        """
        started = now()
        run_id = f"{started[:19].replace(':', '')}-{secrets.token_hex(4)}"
        details = details or RunDetails(origin="python", n_units=0, config={})
        run = Run(
            run_id=run_id,
            started_at=started,
            finished_at=None,
            status="unfinished",
            setup=setup,
            details=details,
        )
        described = json.dumps(run.details.to_dict())
        values = (run.run_id, run.started_at, None, run.status, json.dumps(setup.root), described)
        self._writer.write((insert("runs"), values), *_sample_rows(run.run_id, samples))
        return run

    def keep_samples(self, run_id: str, samples: Sequence[Sample]) -> None:
        """Keep the questions of a run, replacing those that are kept."""
        self._writer.write(*_sample_rows(run_id, samples))

    def samples(self, run_id: str) -> list[Sample]:
        """Return the questions of a run in their order."""
        make = each_of(lambda row: Sample.from_dict(json.loads(row[0])))
        return self._rows("samples", "sample", run_id, "position", make)

    def runs(self) -> list[Run]:
        """Return every run, the newest first."""
        return self._read(
            "SELECT run_id, started_at, finished_at, status, setup, details FROM runs "
            "ORDER BY rowid DESC",
            (),
            lambda row: Run(
                *row[:4],
                setup=RunSetup(json.loads(row[4])),
                details=RunDetails.from_dict(json.loads(row[5])),
            ),
        )

    def kept_figures(self, name: str, run_id: str | None = None) -> dict[str, KeptFigures]:
        """Return run id -> the figures that are kept under a name, of one run or of all."""
        self._writer.catch_up()
        with explain_errors(self.path):
            return read_kept(self._db, name, run_id)

    def keep_details(self, run_id: str, details: RunDetails) -> None:
        """Replace the details of a run, which its tables and files show with its setup."""
        self._write(
            "UPDATE runs SET details = ? WHERE run_id = ?", (json.dumps(details.to_dict()), run_id)
        )

    def recorded_at(self, run_id: str) -> str | None:
        """Return when the latest result of a run was kept; None if there is none yet."""
        tables = ("responses", "verdicts", "judgements")
        parts = [f"SELECT recorded_at FROM {table} WHERE run_id = ?" for table in tables]
        rows = self._read(
            f"SELECT max(recorded_at) FROM ({' UNION ALL '.join(parts)}) AS kept", (run_id,) * 3
        )
        return cast("str | None", rows[0][0])

    def latest_times(self, run_id: str, most: int) -> list[str]:
        """Return when the latest ``most`` searches were kept (ISO 8601), the newest first."""
        sql = "SELECT recorded_at FROM responses WHERE run_id = ? ORDER BY recorded_at DESC LIMIT ?"
        return self._read(sql, (run_id, most), lambda row: str(row[0]))

    def prepare(self, *tables: str) -> None:
        """Run statements that make tables not every store has, such as those of exchanges."""
        self._writer.write(*((table, ()) for table in tables))

    def keep_exchanges(self, run_id: str, scope: CallScope, exchanges: Exchanges) -> None:
        """Keep the requests and replies of a scope; they are written with the next rows."""
        read = self._db.execute  # and not what waits to be written
        kept = keep_exchanges(lambda q, v: read(q, v).fetchall(), run_id, scope, exchanges)
        self._writer.write_soon(*kept)

    def exchanges(self, run_id: str, units: Sequence[str]) -> dict[str, list[KeptCalls]]:
        """Return unit -> its requests and their replies, for units that kept them."""
        return read_exchanges(self._read, run_id, units)

    def finish_run(self, run_id: str) -> None:
        """Mark a run as having nothing left to do."""
        sql = "UPDATE runs SET status = 'finished', finished_at = ? WHERE run_id = ?"
        self._write(f"{sql} AND status <> 'finished'", (now(), run_id))

    def reopen_run(self, run_id: str) -> int:
        """Mark a run as unfinished again; return how many calls were in flight when it stopped.

        These calls are then forgotten, so that they are reported once.
        """
        in_flight = self.calls_in_flight(run_id)
        reopened = "UPDATE runs SET status = 'unfinished', finished_at = NULL WHERE run_id = ?"
        forgotten = "DELETE FROM calls WHERE run_id = ? AND reply IS NULL"
        self._writer.write((reopened, (run_id,)), (forgotten, (run_id,)))
        return in_flight

    def append_response(
        self, run_id: str, response: StoredResponse, left: Usage | None = None
    ) -> None:
        """Keep a response, replacing its calls, and the verdicts on an earlier one of the unit.

        ``left``: the cost of those of its calls that are not part of its usage.
        """
        self._writer.write(
            ("DELETE FROM verdicts WHERE run_id = ? AND unit = ?", (run_id, response.unit)),
            (insert("responses"), response_row(run_id, response)),
            *_drop_calls(run_id, CallScope.of_search(response.unit), left),
        )

    def append_verdicts(
        self,
        run_id: str,
        unit: str,
        verdicts: dict[str, JudgeResult],
        usage: Usage,
        left: Usage | None = None,
    ) -> None:
        """Keep verdicts on a response and their usage, and drop their calls, in one transaction.

        ``left``: the cost of those of their calls that are not part of the usage.
        """
        self._writer.write(
            *(
                (insert("verdicts"), verdict_row(run_id, unit, metric, verdict))
                for metric, verdict in verdicts.items()
            ),
            *(
                (insert("judgements"), judgement_row(run_id, judgement))
                for judgement in list_details(unit, verdicts)
            ),
            (insert("judge_usage"), (run_id, unit, text_of(usage))),
            *_drop_calls(run_id, CallScope.of_verdicts(unit), left),
        )

    def responses(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, StoredResponse]:
        """Return unit -> response of a run, or of some units of it."""
        columns = _RESPONSE.format("response, context_text", "retrieved")
        make = each_of(response_of)
        rows = self._rows("responses", columns, run_id, "unit", make, units, keeps=False)
        return {response.unit: response for response in rows}

    def outlines(self, run_id: str, with_texts: bool = False) -> dict[str, StoredResponse]:
        """Return unit -> response of a run, without its text, its context and what it retrieved.

        ``with_texts``: with its text, and how much it retrieved.
        """
        columns = _RESPONSE.format("'', substr(context_text, 1, 0)", "NULL")
        if with_texts:
            columns = _RESPONSE.format("response, substr(context_text, 1, 0)", "retrieved")
        return self._rows("responses", columns, run_id, "unit", outlines_of)

    def contexts(self, run_id: str, units: Sequence[str]) -> dict[str, Shown]:
        """Return unit -> the context of its response, and what was retrieved."""
        columns = "unit, context_text, retrieved"
        return self._rows("responses", columns, run_id, "unit", contexts_of, units)

    def verdicts(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, dict[str, JudgeResult]]:
        """Return unit -> metric -> verdict of a run, or of some units of it."""
        columns = "unit, metric, score, reason, failure, repeats"
        return self._rows("verdicts", columns, run_id, "unit, metric", verdicts_of, units)

    def judge_usage(self, run_id: str) -> dict[str, list[Usage]]:
        """Return unit -> what its verdicts cost, one usage each time it was judged."""
        return self._rows("judge_usage", "unit, usage", run_id, "rowid", judgings_of)

    def copy_responses(self, source: str, target: str) -> None:
        """Copy the responses of one run into another, except for units that have one there."""
        first, *others = COLUMNS["responses"]
        taken = ", ".join(others)
        self._write(
            f"INSERT INTO responses ({first}, {taken}) SELECT ?, {taken} FROM responses "
            "WHERE run_id = ? ON CONFLICT DO NOTHING",
            (target, source),
        )

    def append_judgement(
        self, run_id: str, judgement: Judgement, left: Usage | None = None
    ) -> Judgement:
        """Keep a further judge's judgment, and return it with the cost of earlier ones added.

        ``left``: the cost of those of its calls that are not part of its usage.
        """
        key = (run_id, judgement.subject, judgement.kind)
        sql = "SELECT usage FROM judgements WHERE run_id = ? AND subject = ? AND kind = ?"
        earlier = self._read(sql, key, lambda row: usage_of(row[0]))
        judgement = replace(judgement, usage=sum_usages([judgement.usage, *earlier]))
        self._writer.write(
            (insert("judgements"), judgement_row(run_id, judgement)),
            *_drop_calls(run_id, CallScope(judgement.kind, judgement.subject), left),
        )
        return judgement

    def judgements(self, run_id: str) -> list[Judgement]:
        """Return the judgments of a run by further judges."""

        def make(row: Values) -> Judgement:
            subject, kind, value, failed, usage = row
            return Judgement(
                subject=subject,
                kind=kind,
                value=json.loads(value),
                failed=bool(failed),
                usage=usage_of(usage),
            )

        columns = "subject, kind, value, failed, usage"
        return self._rows("judgements", columns, run_id, "subject, kind", each_of(make))

    def doubts(self) -> dict[str, str]:
        """Return question -> why a judge doubts its row; of several runs the latest counts."""
        sql = (
            "SELECT json_extract(sample, '$.question'), value FROM judgements JOIN responses "
            "ON responses.run_id = judgements.run_id AND unit = subject JOIN samples "
            "ON samples.run_id = judgements.run_id AND json_extract(sample, '$.id') = sample_id "
            "WHERE kind = ? ORDER BY judgements.recorded_at"
        )
        rows = self._read(sql, (DOUBT,), lambda row: (str(row[0]), json.loads(row[1])))
        return {question: " ".join(doubts.values()) for question, doubts in rows}

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
        """Keep the cost of calls that are part of nothing else that is kept."""
        self._write(insert("forgotten"), (run_id, unit, text_of(usage)))

    def forgotten_usage(self, run_id: str) -> list[Usage]:
        """Return the costs of forgotten responses, and of calls that are part of nothing kept."""
        return self._rows("forgotten", "usage", run_id, "rowid", each_of(lambda r: usage_of(r[0])))

    def calls_in_flight(self, run_id: str) -> int:
        """Return how many calls have been sent but not answered."""
        sql = "SELECT count(*) FROM calls WHERE run_id = ? AND reply IS NULL"
        return cast("int", self._read(sql, (run_id,))[0][0])

    def finished_calls(self, run_id: str) -> dict[str, dict[str, RecordedCall]]:
        """Return stored scope -> call -> its reply, for scopes without a result yet."""
        of_scopes = defaultdict[str, dict[str, RecordedCall]](dict)

        def keep(row: Values) -> None:
            scope, call, reply, attempts = row
            with suppress(ImpossibleFigureError):  # an older release's: it is asked again
                made = tuple(CallAttempt.from_dict(values) for values in json.loads(attempts))
                of_scopes[scope][call] = RecordedCall(json.loads(reply), made)

        sql = "SELECT scope, call, reply, attempts FROM calls WHERE run_id = ? "
        self._read(f"{sql}AND reply IS NOT NULL ORDER BY scope, call", (run_id,), keep)
        return dict(of_scopes)

    def unclaimed_usage(self, run_id: str) -> dict[str, Usage]:
        """Return stored scope -> cost of its finished calls, for scopes without a result yet."""
        return {
            scope: summarize_attempts(a for call in calls.values() for a in call.attempts)
            for scope, calls in self.finished_calls(run_id).items()
        }

    def write_call(
        self, run_id: str, scope: CallScope, call: str, recorded: RecordedCall | None
    ) -> None:
        """Note that a call is about to be sent, or keep its reply if ``recorded`` is given."""
        if recorded is None:
            self._write(insert("calls"), (run_id, scope.stored, call, None, None))
            return
        reply = json.dumps(recorded.reply)
        attempts = json.dumps([attempt.to_dict() for attempt in recorded.attempts])
        self._writer.write_soon((insert("calls"), (run_id, scope.stored, call, reply, attempts)))

    def drop_call(self, run_id: str, scope: CallScope, call: str) -> None:
        """Forget a call that failed."""
        forget = "DELETE FROM calls WHERE run_id = ? AND scope = ? AND call = ?"
        self._writer.write_soon((forget, (run_id, scope.stored, call)))

    def grouped(self) -> AbstractContextManager[None]:
        """Let the ends of calls be written later within the block, see :class:`StoreWriter`."""
        return self._writer.grouped()

    def _read(
        self, query: str, values: tuple[object, ...], make: Callable[[Values], _T] = lambda row: row
    ) -> list[_T]:
        """Return the result of ``make`` for each row; a row on which it fails is damaged."""
        return self._read_all(query, values, each_of(make))

    def _read_all(
        self, query: str, values: tuple[object, ...], make: Callable[[Iterable[Values]], _T]
    ) -> _T:
        """Return the result of ``make`` for all rows, taken one by one: they may be long."""
        self._writer.catch_up()
        with explain_errors(self.path):
            try:
                return make(self._db.execute(query, values))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                why = f"a row of it is damaged: {error}"
                raise damage_error(self.path, why, in_row=True) from error

    def _rows(
        self,
        table: str,
        columns: str,
        run_id: str,
        order: str,
        make: Callable[[Iterable[Values]], _T],
        units: Sequence[str] | None = None,
        keeps: bool = True,
    ) -> _T:
        """Read a table's rows of a run, or of some units of it.

        ``keeps``: whether a store that only reads remembers them.
        """
        where, values = "run_id = ?", (run_id,)
        if units is not None:
            where += f" AND unit IN ({', '.join('?' * len(units))})"
            values = (run_id, *units)
        sql = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order}"
        if units is not None or not keeps or not self._reads_only:
            return self._read_all(sql, values, make)
        if run_id != self._memory[0]:
            self._memory = (run_id, {})
        kept = self._memory[1]
        if sql not in kept:
            kept[sql] = self._read_all(sql, values, make)
        return cast("_T", kept[sql])

    def _write(self, query: str, values: tuple[object, ...]) -> None:
        self._writer.write((query, values))


def _sample_rows(run_id: str, samples: Sequence[Sample]) -> Iterator[Statement]:
    for position, sample in enumerate(samples):
        yield insert("samples"), (run_id, position, json.dumps(sample.to_dict()))


def _drop_calls(run_id: str, scope: CallScope, left: Usage | None) -> Iterator[Statement]:
    if left is not None:
        yield insert("forgotten"), (run_id, scope.unit, text_of(left))
    yield "DELETE FROM calls WHERE run_id = ? AND scope = ?", (run_id, scope.stored)


def find_run(runs: Sequence[Run], name: str, store_path: Path, suites: bool = False) -> Run:
    """Return the run with this id, or with the only id that begins so, or the latest.

    ``runs``: those of the store, the newest first. ``suites``: whether "latest" means a run of
    ``graphrag eval suite``, see :func:`latest_run`. Raises UsageError if no run, or several, fit.
    """
    if not runs:
        raise UsageError(f"{store_path} has no run yet.")
    if name == LATEST:
        return latest_run(runs, suites)
    matches = [run for run in runs if run.run_id == name]
    matches = matches or [run for run in runs if name and run.run_id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        msg = f"{len(matches)} runs begin with {name!r}: {_listed(matches)}; give more of the id."
        raise UsageError(msg)
    near = get_close_matches(name, [run.run_id for run in runs], n=1, cutoff=0.7)
    hint = f"; did you mean {near[0]}?" if near else f": {_listed(runs)}."
    line = eval_line_in(store_path.parent.resolve(), "show")
    raise UsageError(f"{store_path} has no run {name!r}{hint} List its runs with: {line}")


def baseline_path(store_path: Path) -> Path:
    """Return the file of the pinned baseline, next to the store."""
    return store_path.with_name(BASELINE_FILE)


def no_such_file(path: Path, store_path: Path) -> UsageError:
    """Return the error for a file of rows that does not exist, such as the pinned baseline."""
    if path == baseline_path(store_path):
        pin = eval_line_in(path.parent, "compare", "latest", "--pin")
        return UsageError(f"No baseline is pinned in {path.parent}; pin the latest run with: {pin}")
    return UsageError(f"{path} does not exist; name a run, or a baseline.json.")


def latest_run(runs: Sequence[Run], suites: bool = False) -> Run:
    """Return the newest finished run of ``graphrag eval``, or of ``graphrag eval suite``.

    If there is none, it is the newest unfinished run of that command, then the newest run that was
    begun otherwise, a finished one first.
    """
    origin = "suite" if suites else "command"
    # min keeps the first of equal ones, which is the newest.
    return min(runs, key=lambda run: (run.origin != origin, run.status != "finished"))


def explain_latest(runs: Sequence[Run], taken: Run) -> str:
    """Return a sentence on which run "latest" is, and which newer runs it is not."""
    text = f"latest is run {taken.describe()}"
    if taken.origin != "command":
        text += f" by {ORIGIN_NAMES[taken.origin]}"
    if newer := runs[: runs.index(taken)]:
        text += f"; newer, but not taken: {_listed(newer, with_origin=True)}"
    return f"{text}."


def _listed(runs: Sequence[Run], with_origin: bool = False) -> str:
    more = f" and {len(runs) - _LISTED} more" if len(runs) > _LISTED else ""
    named = (
        f"{run.describe()} by {ORIGIN_NAMES[run.origin]}" if with_origin else run.describe()
        for run in runs[:_LISTED]
    )
    return ", ".join(named) + more


def open_store(path: Path) -> EvaluationStore:
    """Open an existing store to read it, also while a run writes it.

    Raises UsageError if there is none, StoreError if it can't be read.
    """
    if not path.is_file():
        msg = f"There is no run in {path.parent}; name its folder with --output, or run one."
        raise UsageError(msg)
    return EvaluationStore(path, reads_only=True)
