from __future__ import annotations

import subprocess
import sys

from rageval_spec.exchange import langfuse
from rageval_spec.exchange.shared.contracts import load


def test_the_word_names_a_source_and_a_target() -> None:
    tool = load("langfuse")
    assert (tool.source, tool.target) == (langfuse.SOURCE, langfuse.TARGET)


def test_the_help_of_commands_needs_no_connection_and_no_table() -> None:
    heavy = "{'polars', 'http.client', 'sqlite3'}"
    code = f"import rageval_spec.exchange.langfuse, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
