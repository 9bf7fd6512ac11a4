"""`rageval-spec schema`: the JSON Schema of a spec, including all installed plugins."""

from __future__ import annotations

import json

import click

from rageval_spec.commands import console
from rageval_spec.commands.front import Command
from rageval_spec.errors import PASSED


def render_schema() -> str:
    """The JSON Schema as indented JSON that ends with a newline."""
    from rageval_spec.spec import schema

    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


@click.command("schema", cls=Command)
def print_schema() -> int:
    """Print the JSON Schema of a spec.

    Editors use it to complete and check specs. It covers all installed plugins.

    \b
    rageval-spec schema > spec.schema.json
    """
    console.write(render_schema())
    return PASSED
