from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

import rageval_spec.commands
from rageval_spec.cli import PURPOSES, cli
from rageval_spec.commands.console import Later
from rageval_spec.commands.generate.command import OTHERS
from tests.command_line import invoke

ROOT = Path(__file__).parents[1]


def walk(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    """The words of every command, `("models", "bench")` among them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        yield (*above, name)
        command = group.resolve_command(context, [name])[1]
        if isinstance(command, click.Group):
            yield from walk(command, *above, name)


def find(words: tuple[str, ...]) -> click.Command:
    """The command with these words."""
    command: click.Command | None = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.resolve_command(click.Context(command), [word])[1]
    assert command is not None
    return command


COMMANDS = tuple(walk(cli))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_of_every_command_has_an_example(words: tuple[str, ...]) -> None:
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    assert f"  rageval-spec {' '.join(words)}" in result.output


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_explains_every_option(words: tuple[str, ...]) -> None:
    command = find(words)
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_help_lists_every_command() -> None:
    listed = invoke("--help").output.partition("Begin:\n")[2]
    assert sorted(re.findall(r"^  (\w+)  ", listed, re.MULTILINE)) == sorted(cli.list_commands(click.Context(cli)))


def test_help_groups_commands_by_purpose() -> None:
    titles = re.findall(r"^(\w.*):$", invoke("--help").output, re.MULTILINE)
    assert titles[1:] == [*PURPOSES]
    assert [one.name for one in PURPOSES["Begin"]] == ["demo", "init", "status"]


GROUPS = ((), *(words for words in COMMANDS if isinstance(find(words), click.Group)))
OF_ANY_LENGTH = (("import",), ("export",))
"""Groups whose commands are tools, which describe themselves."""


@pytest.mark.parametrize("words", GROUPS, ids=lambda words: " ".join(words) or "all")
def test_lists_of_commands_are_not_cut(words: tuple[str, ...]) -> None:
    group = cli if not words else find(words)
    assert isinstance(group, click.Group)
    for columns in ("80", "40"):
        told = invoke(*words, "--help", env={"COLUMNS": columns}).output
        assert "..." not in told.partition("Show this message and exit.")[2]
        for name in group.list_commands(click.Context(group)):
            sentence = find((*words, name)).get_short_help_str(1000)
            assert " ".join(sentence.split()) in " ".join(told.split())
            if columns == "80" and words not in OF_ANY_LENGTH:
                assert re.search(rf"^  {name} +{re.escape(sentence)}$", told, re.MULTILINE), f"too long: {sentence}"


def list_groups() -> Iterator[click.Group]:
    """The program, and every group of commands below it."""
    yield cli
    for words in COMMANDS:
        command = find(words)
        if isinstance(command, click.Group):
            yield command


TABLE = tuple(one for group in list_groups() for one in group.commands.values() if isinstance(one, Later))


@pytest.mark.parametrize("listed", TABLE, ids=lambda listed: listed.place)
def test_the_table_has_the_name_and_the_help_of_each_command(listed: Later) -> None:
    command = listed.find()
    assert command.name == listed.name
    for width in range(10, 120):
        assert listed.get_short_help_str(width) == command.get_short_help_str(width)


def test_every_command_can_be_called() -> None:
    """A command that is in no table and no group cannot."""
    known = {id(command) for group in list_groups() for command in group.commands.values()}
    known |= {id(listed.find()) for listed in TABLE}
    known |= {id(Later(word, place, "").find()) for word, place in OTHERS.items()}
    for found in pkgutil.walk_packages(rageval_spec.commands.__path__, "rageval_spec.commands."):
        for name, value in vars(import_module(found.name)).items():
            assert not isinstance(value, click.Command) or id(value) in known, f"{found.name}.{name}"


HELP = """
import json, sys
from rageval_spec.cli import cli
try:
    cli.main(["--help"])
finally:
    print(json.dumps([name for name in sys.modules if name.startswith("rageval_spec.commands.")]), file=sys.stderr)
"""


def test_the_list_of_commands_imports_none() -> None:
    listed = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert set(json.loads(listed.stderr)) == {"rageval_spec.commands.console"}


VALIDATING = """
import json, sys
from rageval_spec.cli import main
sys.argv = ["rageval-spec", "validate", "specs/quickstart.yaml"]
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
DEAR = {
    "concurrent.futures", "email", "http.client", "httpx", "importlib.metadata", "jinja2", "numpy", "onnxruntime",
    "polars", "pyarrow", "rich", "sqlite3", "ssl", "subprocess", "urllib.request", "xml.etree",
    *(f"rageval_spec.{name}" for name in ("audit", "calibration", "drawing", "generation", "history", "monitoring")),
    *(f"rageval_spec.{name}" for name in ("pipeline.execution", "pipeline.results", "pipeline.values", "runner")),
}  # fmt: skip


def test_validating_imports_nothing_that_takes_long() -> None:
    """benches/start.py measures what that is worth; docs/decisions/start.md tells why each is late."""
    ended = subprocess.run([sys.executable, "-c", VALIDATING], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stdout.startswith("specs/quickstart.yaml: valid")
    assert DEAR & set(json.loads(ended.stderr.splitlines()[-1])) == set()


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
