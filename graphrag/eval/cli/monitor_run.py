"""Rounds of a watch, its alarm, and the waiting between them."""

import json
import re
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag.command_lines import again, eval_line_here
from graphrag.eval.cli.evaluate import evaluate
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.run_input import RunFlags, read_input, read_questions, split_names
from graphrag.eval.cli.suite import SuiteFlags
from graphrag.eval.cli.suite_run import (
    check_baseline,
    read_suites,
    run_suite_round,
)
from graphrag.eval.cli.terminal import (
    DONE,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    USAGE,
    explained,
    say,
)
from graphrag.eval.compare.compare import shared_metrics
from graphrag.eval.errors import UsageError
from graphrag.eval.monitoring.watch import (
    LEVEL,
    MetricKey,
    NextRound,
    RoundNote,
    WatchState,
    check_webhook,
    describe_alarm,
    describe_figure,
    describe_power,
    plan_baseline_run,
    plan_round,
    post_alarm,
    read_watch,
)
from graphrag.eval.report.cells import money
from graphrag.eval.results.runs import RunRows, read_rows, read_usages
from graphrag.eval.stats.paired import MIN_COVERAGE
from graphrag.eval.stats.passes import LOOKS
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.whole_files import write_file
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.cli.monitor import MonitorFlags

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SECRET = {"--webhook": "URL"}


def read_interval(text: str) -> float:
    """Return the seconds of a time such as 90s, 30m, 6h, 1d or 2w.

    Raises
    ------
    UsageError
        If it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip().lower())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if seconds <= 0:
        msg = f"--every {text}: give a number and a unit (s, m, h, d, w), such as 30m, 6h or 1d."
        raise UsageError(msg)
    return seconds


def watch(place: Place, flags: "MonitorFlags") -> int:
    """Run rounds until an alarm, and return the exit code.

    100: a metric fell; 130: interrupted; without an alarm a single round has the code of what it
    ran, and with ``every`` the last one does. A round that failed does not end a watch.
    """
    return _Monitor(place, flags).run()


class _Monitor:
    def __init__(self, place: Place, flags: "MonitorFlags") -> None:
        self._place = place
        self._flags = flags
        self._every = None if flags.every is None else read_interval(flags.every)
        self._check()
        self._store_path = place.store_path()
        self._baseline = read_rows(flags.baseline, self._store_path)
        self._pool: list[str] | None = None

    def run(self) -> int:
        n_done, begin = 0, time.monotonic()
        while True:
            code = self._round()
            n_done += 1
            if code in (FAILED, INTERRUPTED, USAGE) or self._every is None:
                return code
            if self._flags.rounds is not None and n_done >= self._flags.rounds:
                return code
            # From the beginning of the round, so that a daily one stays at its hour.
            begin = max(begin + self._every, time.monotonic())
            if not self._wait_until(begin, n_done):
                return INTERRUPTED

    def _check(self) -> None:
        flags = self._flags
        if flags.webhook is not None:
            check_webhook(flags.webhook)
        if flags.rounds is not None and self._every is None:
            msg = "--rounds needs --every; without it there is one round."
            raise UsageError(msg)
        given = {
            "--sample": flags.sample,
            "--methods": flags.methods,
            "--max-cost": flags.max_cost,
        }
        refused = [flag for flag, value in given.items() if value is not None]
        if flags.suite is not None and refused:
            verb = "does not" if len(refused) == 1 else "do not"
            msg = f"{', '.join(refused)} {verb} apply to a suite; leave out one or the other."
            raise UsageError(msg)
        if not self._place.read_config().output.save_intermediate:
            msg = "output.save_intermediate is off, and a watch lives in what is kept; turn it on."
            raise UsageError(msg)

    def _round(self) -> int:
        """Run one round and look at the watch; return the exit code."""
        if self._flags.suite is None:
            self._check_shared()
            self._pool = self._read_pool()
        before = self._read_state()
        if before.is_over(self._pool):
            say(
                f"This watch was looked at for the last time after pass {LOOKS[-1]}; pin a run to "
                "begin another.",
                stderr=True,
            )
            return FAILED if before.falls else INCOMPLETE
        if not before.round_number:
            code = self._complete_baseline(before)
            if code is not None:
                return code
            before = self._read_state()
            self._tell_power(before)
        code = self._ask(self._plan(before))
        if code in (INTERRUPTED, USAGE):
            return code
        state = self._read_state()
        if state.round_number == before.round_number:  # it got nowhere, and has said why
            return code
        if not state.figures:
            say("No verdict of this round can be held against the baseline.", stderr=True)
            return code or INCOMPLETE
        self._say(f"Round {state.round_number}, pass {state.pass_number} over the questions:")
        for figure in state.figures:
            self._say(f"  {describe_figure(figure)}")
        if not state.falls:
            level = f"level {100 * LEVEL:g} % over all looks"
            which = f"Round {state.round_number}: no" if self._flags.quiet else "No"
            say(f"{which} metric has fallen beyond doubt ({level}).")
            decided = all(figure.coverage >= MIN_COVERAGE for figure in state.figures)
            return code if decided else code or INCOMPLETE
        self._raise_alarm(state)
        return FAILED

    def _complete_baseline(self, before: WatchState) -> int | None:
        """Make the further runs of the baseline that are missing; None when there are all."""
        state, wanted = before, self._flags.baseline_runs
        planned = plan_baseline_run(state, wanted, self._pool)
        if planned is not None and state.strayed is None:
            self._announce_baseline(planned)
        while planned is not None and state.strayed is None:
            code = self._ask(planned)
            if code not in (DONE, INCOMPLETE):
                return code
            number, state = planned.note.pass_number, self._read_state()
            planned = plan_baseline_run(state, wanted, self._pool)
            if state.strayed is not None:
                break
            if planned is not None and planned.note.pass_number == number:
                return code or INCOMPLETE  # a bound or a service stopped it: the next time goes on
        if state.strayed is None:
            return None
        run_id, changes = state.strayed
        say(
            f"Run {run_id} was to be one more of the baseline, but is of another system: {changes}."
            f" Watch the system as it is now, with: {eval_line_here('compare', run_id, '--pin')}",
            stderr=True,
        )
        return INCOMPLETE

    def _announce_baseline(self, planned: NextRound) -> None:
        name, wanted = self._baseline.metadata.run_id, self._flags.baseline_runs
        n = wanted + 1 - planned.note.pass_number
        usage = read_usages(self._store_path, (name,)).get(name) if name is not None else None
        cost = None if usage is None else usage.cost_usd
        price = "" if not cost else f" of about {money(cost, '$')} each, as the pinned run cost"
        self._note(
            f"This watch begins with {counted(n, 'further run')} of its baseline{price}, so that "
            f"the luck of one is not the standard; then its rounds. --baseline-runs 1 leaves them "
            "out, and sees less."
        )

    def _tell_power(self, state: WatchState) -> None:
        lines = describe_power(state, self._watched(state))
        if lines:
            runs = counted(state.n_runs, "baseline run")
            self._say(f"What this watch is expected to see, with {runs} (simulated):")
        for line in lines:
            self._say(f"  {line}")

    def _watched(self, state: WatchState) -> list[MetricKey]:
        """Return the methods and metrics that the rounds will ask."""
        if self._flags.suite is not None:
            return list(state.baseline_answers)
        methods, metrics = self._methods(), self._place.read_config().metrics
        return [key for key in state.baseline_answers if key[0] in methods and key[1] in metrics]

    def _plan(self, state: WatchState) -> NextRound:
        if self._pool is None:  # a suite is asked whole, so every round is a pass of its own
            number = state.round_number + 1
            return NextRound((), RoundNote(state.baseline, number, number))
        return plan_round(state, self._pool, self._flags.sample, self._flags.seed)

    def _ask(self, planned: NextRound) -> int:
        flags = self._flags
        if flags.suite is not None:
            return self._run_suite(planned.note)
        run = RunFlags(
            methods=flags.methods,
            max_cost=flags.max_cost,
            verbose=flags.verbose,
            quiet=flags.quiet,
            round=planned,
        )
        return explained(lambda: evaluate(run, read_input(self._place, run)), flags.verbose)

    def _run_suite(self, note: RoundNote) -> int:
        suites = read_suites(str(self._flags.suite), self._place.root)
        check_baseline(self._baseline, suites)
        shown = SuiteFlags(verbose=self._flags.verbose, quiet=self._flags.quiet)
        return run_suite_round(self._place, suites, note, shown)

    def _check_shared(self) -> None:
        """Check that a round can be held against the baseline before it is paid for."""
        config, methods = self._place.read_config(), self._methods()
        held = list(dict.fromkeys(row.method for row in self._baseline.rows))
        if not set(methods) & set(held):
            msg = (
                f"The baseline {self._baseline.metadata.name} holds {', '.join(held)}, and none of "
                f"{', '.join(methods)}; name one of them with --methods."
            )
            raise UsageError(msg)
        shared_metrics(config.metrics, self._baseline.metrics)

    def _methods(self) -> list[str]:
        given = self._flags.methods
        return list(self._place.read_config().methods) if given is None else split_names(given)

    def _read_pool(self) -> list[str]:
        """Return the questions that the baseline holds as they are asked now."""
        config = self._place.read_config()
        samples, _ = read_questions(config)
        held = {row.question_id for row in self._baseline.rows}
        then = _asked_then(self._baseline, self._store_path)
        pool = [
            sample.id
            for sample in samples
            if sample.id in held
            and then.get(sample.id, (sample.question, sample.ground_truth))
            == (sample.question, sample.ground_truth)
        ]
        if not pool:
            msg = (
                f"The baseline {self._baseline.metadata.name} holds none of the questions in "
                f"{config.dataset_path} as they are now; pin a run of them."
            )
            raise UsageError(msg)
        if len(pool) < len(samples):
            left = len(samples) - len(pool)
            self._note(
                f"{counted(left, 'question')} that the baseline does not hold, or held with "
                "another text or answer, can't be watched."
            )
        return pool

    def _read_state(self) -> WatchState:
        with EvaluationStore(self._store_path) as store:
            return read_watch(store, self._baseline, self._pool)

    def _raise_alarm(self, state: WatchState) -> None:
        last = state.figures[0].run_id
        told = read_rows(last, self._store_path).metadata
        alarm = describe_alarm(state, told.embedded_models)
        say(f"ALARM: {alarm['message']}", "red", stderr=True)
        self._note(
            "It stands until another baseline is pinned. Look at what differs with: "
            f"{self._compare_line(last)}"
        )
        if self._flags.webhook is not None:
            why = post_alarm(self._flags.webhook, alarm)
            if why is not None:
                say(f"Warning: {why}", "yellow", stderr=True)
        if self._flags.alarm is not None:
            text = json.dumps(alarm, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
            write_file(self._flags.alarm, text)
            self._note(f"Alarm written to {self._flags.alarm}.")

    def _compare_line(self, run_id: str) -> str:
        return eval_line_here("compare", run_id, self._flags.baseline)

    def _wait_until(self, moment: float, n_done: int) -> bool:
        """Wait for the next round; return False when the user ended the watch."""
        left = moment - time.monotonic()
        due = datetime.now(UTC) + timedelta(seconds=left)
        try:
            with _interruptible():
                self._note(
                    f"The next round begins at {due:%Y-%m-%d %H:%M:%S} UTC; Ctrl-C ends the watch."
                )
                time.sleep(max(0.0, left))
        except KeyboardInterrupt:
            say(
                f"Interrupted between rounds; {counted(n_done, 'round')} of this watch "
                f"{'is' if n_done == 1 else 'are'} kept. Go on with: {again(instead=_SECRET)}",
                stderr=True,
            )
            return False
        return True

    def _say(self, text: str) -> None:
        say(text, quiet=self._flags.quiet)

    def _note(self, text: str) -> None:
        say(text, stderr=True, quiet=self._flags.quiet)


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C and SIGTERM interrupt, also where an event loop holds them still."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in kept:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _asked_then(baseline: RunRows, store_path: Path) -> dict[str, tuple[str, str]]:
    """Return id -> question and answer of the baseline's run; empty where it is not stored."""
    run_id = baseline.metadata.run_id
    if run_id is None:
        return {}
    with EvaluationStore(store_path) as store:
        return {s.id: (s.question, s.ground_truth) for s in store.samples(run_id)}
