from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from rageval_spec.cli import cli


def list_all() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.resolve_command(context, [name])[1] for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


COMMANDS = list_all()


@pytest.mark.parametrize("command", ["run", "plan", "benchmark"])
def test_commands_that_evaluate_share_the_options_for_queries_and_store(command: str) -> None:
    found = {option for parameter in COMMANDS[command].params for option in parameter.opts}
    assert {"--limit", "--set", "--store", "--no-store"} <= found


@pytest.mark.parametrize("command", [name for name, one in COMMANDS.items() if not isinstance(one, click.Group)])
def test_every_option_has_help(command: str) -> None:
    options = [one for one in COMMANDS[command].params if isinstance(one, click.Option)]
    assert all(option.help for option in options)


def test_limit_must_be_at_least_1() -> None:
    result = CliRunner().invoke(cli, ["plan", "spec.yaml", "--limit", "0"], standalone_mode=True)
    assert result.exit_code == 2
    assert result.exception is not None
