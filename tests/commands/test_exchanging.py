"""The commands `import` and `export` have a command for each tool, whose options are the fields of its node."""

from __future__ import annotations

from rageval_spec.exchange.shared.finding import load, words
from tests.command_line import invoke


def test_every_tool_is_listed_and_has_help_with_an_example() -> None:
    for command, part in (("import", "source"), ("export", "target")):
        listed = invoke(command, "--help").stdout
        for word in words():
            offered = getattr(load(word), part) is not None
            assert (f"\n  {word} " in listed) == offered
            if offered:
                help = invoke(command, word, "--help").stdout
                assert f"rageval-spec {command} {word}" in help


def test_an_unknown_tool_is_refused() -> None:
    done = invoke("import", "phonix", "x")
    assert done.exit_code == 2
    assert "there is no tool 'phonix' to import from; did you mean 'phoenix'?" in done.stderr
    assert "there is no tool 'zzz' to export to; the tools are braintrust, " in invoke("export", "zzz").stderr
