"""The options of the commands that look at questions."""

from __future__ import annotations

import pytest

from tests.command_line import invoke


@pytest.mark.parametrize("command", ["show", "compare"])
def test_the_help_has_examples_and_every_option_says_what_it_does(command: str) -> None:
    told = invoke(command, "--help").stdout
    assert f"rageval-spec {command} " in told
    assert "At most N questions" in told


def test_a_limit_below_1_is_refused() -> None:
    result = invoke("show", "--limit", "0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "0 is not in the range" in result.stderr
