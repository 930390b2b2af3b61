"""What ``graphrag eval monitor`` does: rounds of questions, and an alarm when a metric fell."""

import json
import re
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graphrag.command_lines import again, eval_line_here
from graphrag.eval.cli.evaluate import CommandOptions, run_command
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.suite import SuiteOptions, check_baseline, read_suites, run_suite_round
from graphrag.eval.cli.terminal import (
    DONE,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    USAGE,
    explained,
    open_console,
)
from graphrag.eval.compare.compare import shared_metrics
from graphrag.eval.dataset.samples import read_dataset
from graphrag.eval.errors import UsageError
from graphrag.eval.monitoring.alarm import check_webhook, describe_alarm, post_alarm
from graphrag.eval.monitoring.watch import (
    BASELINE_RUNS,
    LEVEL,
    MetricKey,
    NextRound,
    RoundNote,
    WatchState,
    describe_figure,
    describe_power,
    plan_baseline_run,
    plan_round,
    read_watch,
)
from graphrag.eval.report.cells import money
from graphrag.eval.results.runs import RunRows, read_rows, read_usages
from graphrag.eval.stats.paired import MIN_COVERAGE
from graphrag.eval.stats.passes import LOOKS
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import PINNED
from graphrag.eval.store.whole_files import write_file
from graphrag.text.phrases import counted

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SECRET = {"--webhook": "URL"}


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """The flags of ``graphrag eval monitor``.

    ``every`` is a time such as 30m, 6h or 1d, None for a single round; ``rounds`` bounds their
    number. ``suite`` and ``sample`` exclude each other; without both a round asks every question
    that the baseline holds. ``max_cost_usd`` is of each round, and of each further run of the
    baseline; ``baseline_runs`` counts the pinned one.
    """

    every: str | None = None
    rounds: int | None = None
    suite: str | None = None
    sample: int | None = None
    seed: int = 0
    baseline: str = PINNED
    baseline_runs: int = BASELINE_RUNS
    alarm: Path | None = None
    webhook: str | None = None
    methods: str | None = None
    max_cost_usd: float | None = None
    verbose: bool = False
    quiet: bool = False


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


def run_monitor(place: Place, options: MonitorOptions | None = None) -> int:
    """Run rounds until an alarm, and return the exit code.

    100: a metric fell; 130: interrupted; without an alarm a single round has the code of what it
    ran, and with ``every`` the last one does. A round that failed does not end a watch.
    """
    chosen = options or MonitorOptions()
    return explained(lambda: _Monitor(place, chosen).run(), chosen.verbose)


class _Monitor:
    def __init__(self, place: Place, options: MonitorOptions) -> None:
        self._place = place
        self._options = options
        self._every = None if options.every is None else read_interval(options.every)
        self._console = open_console(quiet=options.quiet)
        self._errors = open_console(stderr=True)
        self._check()
        self._store_path = place.store_path()
        self._source = place.take_run(
            options.baseline, suites=options.suite is not None, quiet=options.quiet
        )
        self._baseline = read_rows(self._source, self._store_path)
        self._pool: list[str] | None = None

    def run(self) -> int:
        n_done, begin = 0, time.monotonic()
        while True:
            code = self._round()
            n_done += 1
            if code in (FAILED, INTERRUPTED, USAGE) or self._every is None:
                return code
            if self._options.rounds is not None and n_done >= self._options.rounds:
                return code
            # From the beginning of the round, so that a daily one stays at its hour.
            begin = max(begin + self._every, time.monotonic())
            if not self._wait_until(begin, n_done):
                return INTERRUPTED

    def _check(self) -> None:
        options = self._options
        if options.webhook is not None:
            check_webhook(options.webhook)
        if options.rounds is not None and self._every is None:
            msg = "--rounds needs --every; without it there is one round."
            raise UsageError(msg)
        given = {
            "--sample": options.sample,
            "--methods": options.methods,
            "--max-cost": options.max_cost_usd,
        }
        refused = [flag for flag, value in given.items() if value is not None]
        if options.suite is not None and refused:
            verb = "does not" if len(refused) == 1 else "do not"
            msg = f"{', '.join(refused)} {verb} apply to a suite; leave out one or the other."
            raise UsageError(msg)
        if not self._place.read_config().output.save_intermediate:
            msg = "output.save_intermediate is off, and a watch lives in what is kept; turn it on."
            raise UsageError(msg)

    def _round(self) -> int:
        """Run one round and look at the watch; return the exit code."""
        if self._options.suite is None:
            self._check_shared()
            self._pool = self._read_pool()
        before = self._read_state()
        if before.is_over(self._pool):
            self._errors.print(
                f"This watch was looked at for the last time after pass {LOOKS[-1]}; pin a run to "
                "begin another.",
                soft_wrap=True,
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
            self._errors.print("No verdict of this round can be held against the baseline.")
            return code or INCOMPLETE
        self._say(f"Round {state.round_number}, pass {state.pass_number} over the questions:")
        for figure in state.figures:
            self._say(f"  {describe_figure(figure)}")
        if not state.falls:
            level = f"level {100 * LEVEL:g} % over all looks"
            which = f"Round {state.round_number}: no" if self._options.quiet else "No"
            open_console().print(
                f"{which} metric has fallen beyond doubt ({level}).", soft_wrap=True
            )
            decided = all(figure.coverage >= MIN_COVERAGE for figure in state.figures)
            return code if decided else code or INCOMPLETE
        self._raise_alarm(state)
        return FAILED

    def _complete_baseline(self, before: WatchState) -> int | None:
        """Make the further runs of the baseline that are missing; None when there are all."""
        state, wanted = before, self._options.baseline_runs
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
        self._errors.print(
            f"Run {run_id} was to be one more of the baseline, but is of another system: {changes}."
            f" Watch the system as it is now, with: {eval_line_here('baseline', 'set', run_id)}",
            soft_wrap=True,
        )
        return INCOMPLETE

    def _announce_baseline(self, planned: NextRound) -> None:
        name, wanted = self._baseline.metadata.run_id, self._options.baseline_runs
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
        if self._options.suite is not None:
            return list(state.baseline_answers)
        methods, metrics = self._methods(), self._place.read_config().metrics
        return [key for key in state.baseline_answers if key[0] in methods and key[1] in metrics]

    def _plan(self, state: WatchState) -> NextRound:
        if self._pool is None:  # a suite is asked whole, so every round is a pass of its own
            number = state.round_number + 1
            return NextRound((), RoundNote(state.baseline, number, number))
        return plan_round(state, self._pool, self._options.sample, self._options.seed)

    def _ask(self, planned: NextRound) -> int:
        options = self._options
        if options.suite is not None:
            return self._run_suite(planned.note)
        return run_command(
            CommandOptions(
                root=self._place.root,
                config=self._place.config,
                output=self._place.output,
                methods=options.methods,
                max_cost_usd=options.max_cost_usd,
                verbose=options.verbose,
                quiet=options.quiet,
                round=planned,
            )
        )

    def _run_suite(self, note: RoundNote) -> int:
        suites = read_suites(str(self._options.suite), self._place.root)
        check_baseline(self._baseline, suites)
        shown = SuiteOptions(verbose=self._options.verbose, quiet=self._options.quiet)
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
        given = self._options.methods
        if given is None:
            return list(self._place.read_config().methods)
        return [method.strip() for method in given.split(",")]

    def _read_pool(self) -> list[str]:
        """Return the questions that the baseline holds as they are asked now."""
        config = self._place.read_config()
        keys = list(config.indexes)
        dataset = read_dataset(
            config.dataset_path, keys[0] if len(keys) == 1 else None, config.dataset.columns
        )
        held = {row.question_id for row in self._baseline.rows}
        then = _asked_then(self._baseline, self._store_path)
        pool = [
            sample.id
            for sample in dataset.samples
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
        if len(pool) < len(dataset.samples):
            left = len(dataset.samples) - len(pool)
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
        self._errors.print(f"ALARM: {alarm['message']}", style="red", soft_wrap=True)
        self._note(
            "It stands until another baseline is pinned. Look at what differs with: "
            f"{self._compare_line(last)}"
        )
        if self._options.webhook is not None:
            why = post_alarm(self._options.webhook, alarm)
            if why is not None:
                self._errors.print(f"Warning: {why}", style="yellow", soft_wrap=True)
        if self._options.alarm is not None:
            text = json.dumps(alarm, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
            write_file(self._options.alarm, text)
            self._note(f"Alarm written to {self._options.alarm}.")

    def _compare_line(self, run_id: str) -> str:
        return eval_line_here("compare", run_id, self._source)

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
            self._errors.print(
                f"Interrupted between rounds; {counted(n_done, 'round')} of this watch "
                f"{'is' if n_done == 1 else 'are'} kept. Go on with: {again(instead=_SECRET)}",
                soft_wrap=True,
            )
            return False
        return True

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def _note(self, text: str) -> None:
        open_console(stderr=True, quiet=self._options.quiet).print(text, soft_wrap=True)


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
