from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from rageval_spec.cli import cli
from tests.command_line import invoke


def walk(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    """The words of every command, `("models", "bench")` among them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        yield (*above, name)
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from walk(command, *above, name)


COMMANDS = tuple(walk(cli))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_of_every_command_has_an_example(words: tuple[str, ...]) -> None:
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    assert f"  rageval-spec {' '.join(words)}" in result.output


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_explains_every_option(words: tuple[str, ...]) -> None:
    command: click.Command | None = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_help_lists_every_command() -> None:
    listed = invoke("--help").output.partition("Commands:\n")[2]
    assert re.findall(r"^  (\w+)  ", listed, re.MULTILINE) == sorted(cli.list_commands(click.Context(cli)))


def test_version() -> None:
    assert re.fullmatch(r"rageval-spec, version \d+\.\d+\.\d+\S*\n", invoke("--version").output)


ENDING = """
import atexit, gc, sys
from rageval_spec.cli import main
atexit.register(lambda: print("frozen" if gc.get_freeze_count() > 10_000 else "not frozen"))
sys.argv = ["rageval-spec", "--version"]
main()
"""


def test_a_command_ends_without_a_search_for_cycles() -> None:
    """The interpreter's last collection would visit every object, only to throw all of them away."""
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "frozen"
