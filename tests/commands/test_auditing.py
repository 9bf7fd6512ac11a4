from __future__ import annotations

from tests.command_line import invoke


def test_the_help_says_what_fails() -> None:
    done = invoke("audit", "--help")
    assert done.exit_code == 0
    assert "The exit code is 1 if there are errors." in " ".join(done.stdout.split())


def test_a_spec_is_needed() -> None:
    assert invoke("audit").exit_code == 2
