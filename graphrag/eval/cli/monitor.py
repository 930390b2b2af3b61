"""``graphrag eval monitor``: rounds of questions, and an alarm when a metric fell."""

import signal
import time
from datetime import UTC, datetime, timedelta
from functools import partial

from graphrag.eval.cli.command import MonitorFlags, RunFlags, split_names
from graphrag.eval.cli.evaluate import evaluate
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.run_input import read_input, read_questions
from graphrag.eval.cli.terminal import DONE, FAILED, INCOMPLETE, INTERRUPTED, USAGE, explained
from graphrag.eval.compare.compare import shared_metrics
from graphrag.eval.errors import UsageError
from graphrag.eval.monitoring.watch import (
    LEVEL,
    NextRound,
    WatchState,
    describe_alarm,
    describe_figure,
    describe_power,
    plan_baseline_run,
    plan_round,
    read_watch,
)
from graphrag.eval.report.cells import money
from graphrag.eval.results.runs import read_rows, read_usages
from graphrag.eval.stats.paired import MIN_COVERAGE
from graphrag.eval.stats.passes import LOOKS
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.whole_files import write_file
from graphrag.text.command_lines import again, eval_line_here
from graphrag.text.console import say
from graphrag.text.json_records import whole_json
from graphrag.text.phrases import counted


def watch(place: Place, flags: MonitorFlags, baseline: str) -> int:
    """Run the rounds of a watch, and return the exit code of the last one."""
    rounds, every = _Watch(place, flags, baseline), flags.every_s
    n_done, begin = 0, time.monotonic()
    while True:
        code = rounds.run_round()
        n_done += 1
        if code in (FAILED, INTERRUPTED, USAGE) or every is None or n_done == flags.rounds:
            return code
        # From the beginning of the round, so that a daily one stays at its hour.
        begin = max(begin + every, time.monotonic())
        if not _wait_until(begin, n_done, flags.quiet):
            return INTERRUPTED


class _Watch:
    """The rounds of one watch; a round that failed does not end it."""

    def __init__(self, place: Place, flags: MonitorFlags, baseline: str) -> None:
        self._place, self._flags, self._source = place, flags, baseline
        self._say = partial(say, quiet=flags.quiet)
        self._note = partial(say, stderr=True, quiet=flags.quiet)
        if not place.read_config().output.save_intermediate:
            msg = "output.save_intermediate is off, and a watch lives in what is kept; turn it on."
            raise UsageError(msg)
        self._store_path = place.store_path()
        self._baseline = read_rows(baseline, self._store_path)

    def run_round(self) -> int:
        """Run one round and look at the watch; return the exit code of :func:`monitor`."""
        flags = self._flags
        methods, metrics = self._watched()
        pool = self._read_pool()
        before = self._read_state(pool)
        if before.is_over(pool):
            text = f"This watch was looked at for the last time after pass {LOOKS[-1]}; "
            say(f"{text}pin a run to begin another.", stderr=True)
            return FAILED if before.falls else INCOMPLETE
        if not before.round_number:
            code = self._complete_baseline(before, pool, methods, metrics)
            if code is not None:
                return code
            before = self._read_state(pool)
            self._tell_power(before, methods, metrics)
        code = self._ask(plan_round(before, pool, flags.sample, flags.seed), methods, metrics)
        if code in (INTERRUPTED, USAGE):
            return code
        state = self._read_state(pool)
        if state.round_number == before.round_number:  # it got nowhere, and has said why
            return code
        if not state.figures:
            say("No verdict of this round can be held against the baseline.", stderr=True)
            return code or INCOMPLETE
        number = state.round_number
        self._say(f"Round {number}, pass {state.pass_number} over the questions:")
        for figure in state.figures:
            self._say(f"  {describe_figure(figure)}")
        if state.falls:
            self._raise_alarm(state)
            return FAILED
        which = f"Round {number}: no" if flags.quiet else "No"
        say(f"{which} metric has fallen beyond doubt (level {100 * LEVEL:g} % over all looks).")
        decided = all(figure.coverage >= MIN_COVERAGE for figure in state.figures)
        return code if decided else code or INCOMPLETE

    def _complete_baseline(
        self, state: WatchState, pool: list[str], methods: list[str], metrics: list[str]
    ) -> int | None:
        """Make the further runs of the baseline that are missing; None when there are all."""
        n_runs, last, code = self._flags.baseline_runs, 0, DONE
        while state.strayed is None:
            planned = plan_baseline_run(state, n_runs, pool)
            if planned is None:
                return None
            if planned.note.pass_number == last:
                return code or INCOMPLETE  # a bound or a service stopped it: the next time goes on
            if not last:
                self._announce_baseline(planned)
            code, last = self._ask(planned, methods, metrics), planned.note.pass_number
            if code not in (DONE, INCOMPLETE):
                return code
            state = self._read_state(pool)
        run_id, changes = state.strayed
        say(
            f"Run {run_id} was to be one more of the baseline, but is of another system: {changes}."
            f" Watch the system as it is now, with: {eval_line_here('compare', run_id, '--pin')}",
            stderr=True,
        )
        return INCOMPLETE

    def _announce_baseline(self, planned: NextRound) -> None:
        name = self._baseline.metadata.run_id
        n = self._flags.baseline_runs + 1 - planned.note.pass_number
        usage = read_usages(self._store_path, (name,)).get(name) if name is not None else None
        cost = None if usage is None else usage.cost_usd
        price = "" if not cost else f" of about {money(cost, '$')} each, as the pinned run cost"
        self._note(
            f"This watch begins with {counted(n, 'further run')} of its baseline{price}, because "
            f"one run may have been lucky. Then its rounds begin. --baseline-runs 1 leaves them "
            "out and sees less."
        )

    def _tell_power(self, state: WatchState, methods: list[str], metrics: list[str]) -> None:
        keys = [key for key in state.baseline_answers if key[0] in methods and key[1] in metrics]
        lines = describe_power(state, keys)
        if lines:
            runs = counted(state.n_runs, "baseline run")
            self._say(f"What this watch is expected to see, with {runs} (simulated):")
        for line in lines:
            self._say(f"  {line}")

    def _ask(self, planned: NextRound, methods: list[str], metrics: list[str]) -> int:
        flags = self._flags
        run = RunFlags(
            methods=",".join(methods),
            metrics=",".join(metrics),
            max_cost=flags.max_cost,
            verbose=flags.verbose,
            quiet=flags.quiet,
            round=planned,
        )
        return explained(lambda: evaluate(run, read_input(self._place, run)), flags.verbose)

    def _watched(self) -> tuple[list[str], list[str]]:
        """Return the methods and metrics of a round: those that the baseline holds as well.

        Others would be paid for and held against nothing. UsageError if it holds none.
        """
        config, names = self._place.read_config(), self._flags.methods
        methods = list(config.methods) if names is None else split_names(names)
        held = list(dict.fromkeys(row.method for row in self._baseline.rows))
        if not set(methods) & set(held):
            raise UsageError(
                f"The baseline {self._baseline.metadata.name} holds {', '.join(held)}, and none of "
                f"{', '.join(methods)}; name one of them with --methods, or pin another run: "
                f"{eval_line_here('compare', 'latest', '--pin')}"
            )
        metrics = shared_metrics(config.metrics, self._baseline.metrics)
        return [method for method in methods if method in held], metrics

    def _read_pool(self) -> list[str]:
        """Return the questions that the baseline holds as they are asked now."""
        config, metadata = self._place.read_config(), self._baseline.metadata
        samples, _ = read_questions(config)
        then: dict[str, tuple[str, str]] = {}
        if metadata.run_id is not None:
            with EvaluationStore(self._store_path) as store:
                then = {s.id: (s.question, s.ground_truth) for s in store.samples(metadata.run_id)}
        held = {row.question_id for row in self._baseline.rows}
        as_now = ((s.id, (s.question, s.ground_truth)) for s in samples if s.id in held)
        pool = [key for key, wording in as_now if then.get(key, wording) == wording]
        if not pool:
            raise UsageError(
                f"The baseline {metadata.name} holds none of the questions in "
                f"{config.dataset_path} as they are now; pin a run of them."
            )
        if len(pool) < len(samples):
            self._note(
                f"{counted(len(samples) - len(pool), 'question')} that the baseline does not hold, "
                "or held with another text or answer, can't be watched."
            )
        return pool

    def _read_state(self, pool: list[str]) -> WatchState:
        with EvaluationStore(self._store_path) as store:
            return read_watch(store, self._baseline, pool)

    def _raise_alarm(self, state: WatchState) -> None:
        last = state.figures[0].run_id
        embedded_models = read_rows(last, self._store_path).metadata.embedded_models
        alarm = describe_alarm(state, embedded_models)
        say(f"ALARM: {alarm['message']}", "red", stderr=True)
        self._note(
            "It stands until another baseline is pinned. Look at what differs with: "
            f"{eval_line_here('compare', last, self._source)}"
        )
        if self._flags.alarm is not None:
            write_file(self._flags.alarm, whole_json(alarm))
            self._note(f"Alarm written to {self._flags.alarm}.")


def _wait_until(moment: float, n_done: int, quiet: bool) -> bool:
    """Wait for the next round; return False when the user ended the watch."""
    left = moment - time.monotonic()
    due = datetime.now(UTC) + timedelta(seconds=left)
    try:
        # A shell lets what it runs in the background ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        at = f"{due:%Y-%m-%d %H:%M:%S} UTC"
        say(f"The next round begins at {at}; Ctrl-C ends the watch.", stderr=True, quiet=quiet)
        time.sleep(max(0.0, left))
    except KeyboardInterrupt:
        say(
            f"Interrupted between rounds; {counted(n_done, 'round')} of this watch "
            f"{'is' if n_done == 1 else 'are'} kept. Go on with: {again()}",
            stderr=True,
        )
        return False
    return True
