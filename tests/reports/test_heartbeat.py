"""A step that lasts shows that it goes on, and never in the middle of what else is printed."""

import io
import os
import sys
import threading
from contextlib import nullcontext

import pytest

from graphrag.eval.report.heartbeat import (
    DOT_AFTER_S,
    LINE_AFTER_S,
    SAME_LINE_AFTER_S,
    Pulse,
    beating,
)


class Log:
    """What is shown, by a clock that goes on by hand."""

    def __init__(self, text: str) -> None:
        self.now = 0.0
        self.stream = io.StringIO()
        self.pulse = Pulse(self.stream.write, text, lambda: self.now)

    def lasts(self, seconds: float) -> None:
        """Beat as often as the pulse asks for it."""
        end = self.now + seconds
        while self.now < end:
            self.now += self.pulse.beat()

    def prints(self, line: str) -> None:
        with self.pulse.interrupted():
            self.stream.write(f"{line}\n")

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_a_step_is_said_at_once_and_then_a_dot_for_less_than_two_seconds():
    log = Log("Reading the indexes ...")
    log.pulse.say()
    assert log.stream.getvalue() == "Reading the indexes ..."
    log.lasts(20)
    log.pulse.end()
    (line,) = log.lines
    assert DOT_AFTER_S < 2
    assert line == "Reading the indexes ..." + "." * int(20 / DOT_AFTER_S)
    assert log.stream.getvalue().endswith("\n")
    log.lasts(20)
    assert log.lines == [line]  # a beat that comes too late shows nothing


def test_a_run_has_a_line_for_ten_seconds_and_dots_between():
    log = Log("Evaluating ...")
    log.pulse.say("0/90")
    for done in range(1, 31):
        log.pulse.update(f"{done}/90")
        log.lasts(1)
    log.pulse.say("90/90")
    log.pulse.say("90/90")
    log.pulse.end()
    told, dots = zip(*(line.partition(" ")[::2] for line in log.lines), strict=True)
    assert told[0] == "0/90"
    assert told[-1] == "90/90"
    between = len(told) - 2
    assert log.now / (LINE_AFTER_S + 2 * DOT_AFTER_S) <= between <= log.now / LINE_AFTER_S
    assert all(set(each) == {"."} for each in dots[:-1])
    assert dots[-1] == ""


def test_a_line_that_says_nothing_new_is_seldom_begun_anew_with_its_time():
    log = Log("Building index clock ...")
    log.pulse.say()
    log.lasts(3 * SAME_LINE_AFTER_S + LINE_AFTER_S)
    log.pulse.end()
    assert len(log.lines) == 4  # so that a log of an hour is readable
    assert log.lines[1].startswith("Building index clock ... (6")
    assert max(map(len, log.lines)) < 100


def test_what_else_is_printed_stands_on_lines_of_its_own():
    log = Log("Running the suites ...")
    log.pulse.say()
    log.lasts(4)
    log.prints("Warning: something")
    log.lasts(1)
    assert log.lines[-1] == "Warning: something"  # it was a sign as well
    log.lasts(4)
    log.prints("Warning: more")
    log.prints("and more")
    log.pulse.end()
    first, *rest = log.lines
    assert first.rstrip(".") == "Running the suites "
    assert rest[0] == "Warning: something"
    assert rest[1].rstrip(".") == "Running the suites ... (7 s) "
    assert rest[2:] == ["Warning: more", "and more"]


def test_a_quick_step_is_not_spoken_of_unless_it_is_to_be_said_at_once():
    log = Log("Looking ...")
    log.lasts(DOT_AFTER_S)
    assert log.stream.getvalue() == ""
    log.lasts(DOT_AFTER_S)
    assert log.stream.getvalue() == "Looking ..."


def test_a_reader_that_goes_away_ends_the_showing_and_not_the_step():
    shown: list[str] = []

    def write(text: str) -> None:
        shown.append(text)
        raise BrokenPipeError

    now = [0.0]
    pulse = Pulse(write, "Reading ...", lambda: now[0])
    pulse.say()
    now[0] += 5
    assert pulse.beat() > 0
    pulse.end()
    assert shown == ["Reading ..."]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, ValueError])
def test_streams_are_guarded_while_a_step_lasts_and_its_line_is_ended(
    error: type[BaseException] | None, capfd: pytest.CaptureFixture[str]
):
    before = sys.stdout, sys.stderr
    threads = set(threading.enumerate())
    with pytest.raises(error) if error else nullcontext(), beating(sys.stderr, "Reading ..."):
        sys.stdout.write("an answer\n")
        sys.stdout.flush()
        sys.stderr.write("")  # nothing is no reason to end a line
        assert sys.stderr.fileno() == before[1].fileno()
        if error is not None:
            raise error
    assert (sys.stdout, sys.stderr) == before
    for thread in set(threading.enumerate()) - threads:
        thread.join(5)
        assert not thread.is_alive()
    out, err = capfd.readouterr()
    assert (out, err) == ("an answer\n", "Reading ...\n")


def test_both_streams_in_one_file_are_in_order():
    read, write = os.pipe()
    with os.fdopen(write, "w") as stderr, os.fdopen(os.dup(write), "w") as stdout:
        kept = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = stdout, stderr
        try:
            with beating(stderr, "Reading ..."):
                sys.stdout.writelines(["one\n", "two\n"])
                sys.stdout.flush()
        finally:
            sys.stdout, sys.stderr = kept
    with os.fdopen(read) as found:
        assert found.read() == "Reading ...\none\ntwo\n"
