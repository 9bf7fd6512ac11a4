from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO

import pytest

from rageval_spec.progress import ProgressDisplay


class Terminal(StringIO):
    """A standard error stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Tests must call this themselves, because pytest restores its own stream between a fixture and the test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return stream


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def test_a_line_is_drawn_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with ProgressDisplay(patience=0.0) as display:
        show = display.counting("bm25")
        show(30, 100)
        wait_for(lambda: "bm25" in terminal.getvalue() and "30/100" in terminal.getvalue())
        show(70, 100)
        wait_for(lambda: "70/100" in terminal.getvalue())
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is erased


def test_a_step_that_cannot_be_counted_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with ProgressDisplay(patience=0.0) as display:
        display.announce("read golden")
        wait_for(lambda: "read golden" in terminal.getvalue())
        display.announce("evaluate [bold]bm25[/bold]")
        wait_for(lambda: "evaluate [bold]bm25[/bold]" in terminal.getvalue())


def test_short_work_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with ProgressDisplay(patience=60.0) as display:
        display.announce("read golden")
        display.counting("bm25")(1, 2)
    assert terminal.getvalue() == ""


def test_nothing_is_drawn_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with ProgressDisplay(patience=1.0) as display:
        show = display.counting("bm25")
    show(1, 2)
    time.sleep(1.2)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("quiet", "term"), [(True, "xterm"), (False, "dumb")])
def test_quiet_and_dumb_terminals(monkeypatch: pytest.MonkeyPatch, quiet: bool, term: str) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setenv("TERM", term)
    with ProgressDisplay(quiet=quiet, patience=0.0) as display:
        display.announce("read golden")
        time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    with ProgressDisplay(patience=0.0) as display:
        display.counting("bm25")(30, 100)
        wait_for(lambda: "30/100" in terminal.getvalue())
    assert "\x1b[3" not in terminal.getvalue()  # no foreground colour


def test_a_pipe_gets_nothing_and_rich_is_not_imported() -> None:
    code = (
        "import sys, time; from rageval_spec.progress import ProgressDisplay\n"
        "with ProgressDisplay(patience=0.0) as display:\n"
        "    display.announce('x'); time.sleep(0.1)\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_unit_is_counted_with_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    moments = iter([100.0, 100.0, 102.0, 102.0, 102.0])
    monkeypatch.setattr("rageval_spec.progress.time.monotonic", lambda: next(moments, 102.0))
    with ProgressDisplay(patience=0.0) as display:
        show = display.counting("minilm", "texts")
        show(1000, 5000)
        wait_for(lambda: "1,000/5,000 texts" in terminal.getvalue())
        show(1400, 5000)
        wait_for(lambda: "1,400/5,000 texts, 200/s, 18 s left" in terminal.getvalue())


def test_the_time_left_is_shown_without_a_unit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    moments = iter([100.0, 100.0])
    monkeypatch.setattr("rageval_spec.progress.time.monotonic", lambda: next(moments, 110.0))
    with ProgressDisplay(patience=0.0) as display:
        show = display.counting("bm25")
        show(0, 6000)
        show(10, 6000)
        wait_for(lambda: "10/6,000, 1 h 40 min left" in terminal.getvalue())


class Log(StringIO):
    """A standard error stream that is not a terminal."""


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Log]:
    def open_log() -> Log:
        stream = Log()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return open_log


def test_a_pipe_gets_a_plain_line_at_each_interval(log: Callable[[], Log]) -> None:
    stream = log()
    with ProgressDisplay(interval=0.01) as display:
        display.announce("retrieve dense on fruit")
        wait_for(lambda: "retrieve dense on fruit: 0 s so far\n" in stream.getvalue())
        display.counting("minilm", "texts")(1200, 5000)
        wait_for(lambda: "retrieve dense on fruit: 0 s so far; minilm: 1,200/5,000 texts\n" in stream.getvalue())
    written = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == written
    assert "\x1b" not in written


def test_a_pipe_gets_nothing_when_quiet(log: Callable[[], Log]) -> None:
    stream = log()
    with ProgressDisplay(quiet=True, interval=0.01) as display:
        display.announce("read golden")
        display.tell("reusing 3 answers")
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_a_sentence_stays(monkeypatch: pytest.MonkeyPatch, log: Callable[[], Log]) -> None:
    stream = log()
    with ProgressDisplay() as display:
        display.tell("app on rows: reusing 3 [answers]")
    assert stream.getvalue() == "app on rows: reusing 3 [answers]\n"
    terminal = open_terminal(monkeypatch)
    with ProgressDisplay(patience=0.0) as display:
        display.announce("ask app")
        wait_for(lambda: "ask app" in terminal.getvalue())
        display.tell("app on rows: reusing 3 [answers]")
        wait_for(lambda: "app on rows: reusing 3 [answers]" in terminal.getvalue())


class CellOutput(Log):
    """Standard error in a notebook."""

    __module__ = "ipykernel.iostream"

    def lines(self) -> list[str]:
        """What the cell shows: a carriage return goes back to the start of the line and overwrites it."""
        shown = []
        for line in self.getvalue().split("\n"):
            seen = ""
            for part in line.split("\r"):
                seen = part + seen[len(part) :]
            shown.append(seen.rstrip())
        return shown


def test_a_notebook_shows_one_line_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = CellOutput()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressDisplay(interval=0.01) as display:
        display.announce("retrieve dense on fruit")
        wait_for(lambda: stream.lines()[-1] == "retrieve dense on fruit: 0 s so far")
        display.tell("reusing 3 answers")
        display.announce("brief")
        wait_for(lambda: stream.lines()[-1] == "brief: 0 s so far")
    assert stream.lines() == ["reusing 3 answers", ""]
    written = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == written


def test_a_short_evaluation_leaves_nothing_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = CellOutput()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressDisplay() as display:
        display.announce("read golden")
    assert stream.getvalue() == ""


def test_what_was_spent_stands_beside_the_count(capfd: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(interval=0.05) as display:
        display.describe_spending = lambda: "$0.12 so far"
        display.counting("judge")(3, 10)
        wait_for(lambda: "judge: 3/10, $0.12 so far" in capfd.readouterr().err)


def test_a_step_is_shown_while_it_lasts_and_nothing_is_drawn_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with ProgressDisplay(patience=0.0) as display:
        with display.showing("read live"):
            wait_for(lambda: "read live" in terminal.getvalue())
        idle = terminal.getvalue()
        assert "\x1b[2K" in idle.partition("read live")[2]  # it was erased
        with display.showing("read tickets"):
            wait_for(lambda: "read tickets" in terminal.getvalue())
        assert terminal.getvalue().startswith(idle)
