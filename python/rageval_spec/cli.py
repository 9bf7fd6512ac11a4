"""The command line: the table of all commands, and the group that calls one of them.

A command is a file of `commands/`, with its options, its help and its work. Only the file of the command that is called
is imported, and the list of all commands imports none, which keeps `--help` and `validate` fast.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import click

from rageval_spec import signals
from rageval_spec.commands.console import PROGRAM, Front, Later, warn_of_little_room


def _list(name: str, place: str, help: str) -> Later:
    return Later(name, f"rageval_spec.commands.{place}", help)


PURPOSES: Mapping[str, Sequence[Later]] = {
    "Begin": (
        _list("demo", "demo.command:demo", "Show a change that breaks an answer, and the gate that finds it."),
        _list("init", "init.command:init", "Write a spec for your own files, or one with sample data."),
        _list("status", "status:status", "Show what is in this folder, and the command to type next."),
    ),
    "Evaluate": (
        _list("validate", "spec_checks:validate", "Check a spec and the files it names, without running anything."),
        _list("plan", "plan:plan", "Show the steps of an evaluation, and what they would cost."),
        _list("run", "run:run", "Run an evaluation and check its gates."),
        _list("merge", "merge:merge", "Put the shards of an evaluation together, and check its gates."),
        _list("benchmark", "benchmark.command:benchmark", "Compare retrieval systems on BEIR folders."),
        _list("score", "score:score", "Score one run as trec_eval does, in trec_eval's layout."),
    ),
    "Look at results": (
        _list("show", "show:show_questions", "Show the questions behind the numbers, worst first."),
        _list("compare", "compare.command:compare_results", "Compare two results in numbers and question by question."),
        _list("history", "history:records", "Show and manage the records of evaluations."),
        _list("view", "view.command:view", "Look at records in a browser, side by side, and label answers."),
    ),
    "Decide": (
        _list("comment", "comment.command:comment_results", "Post results as a comment on a pull or merge request."),
        _list("monitor", "monitor.command:monitor", "Judge production as it runs."),
        _list("serve", "serve:serve", "Check answers over HTTP before users see them, until Ctrl-C."),
    ),
    "Trust the numbers": (
        _list("review", "review.command:review", "Choose answers for people to judge, and work with their labels."),
        _list("calibrate", "calibrate.command:calibrate", "Show how close a judge's values come to people's labels."),
        _list("drift", "drift.command:drift", "Ask a judge again about frozen answers, to see if it changed."),
    ),
    "Make and check test sets": (
        _list("generate", "generate.command:generate", "Make a test set from your own documents."),
        _list("audit", "audit.command:audit", "Check test sets: questions, references, judgements, mix, size."),
    ),
    "Tools": (
        _list("import", "exchange:import_", "Read questions, answers and traces from another tool."),
        _list("export", "exchange:export", "Send the values of an evaluation to another tool."),
        _list("models", "models.listing:models", "Show, fetch, export and measure models."),
        _list("store", "store:store", "Show or remove what is stored between evaluations."),
        _list("list", "plugin_words:list_words", "List the words that `use:` accepts in a spec."),
        _list("explain", "plugin_words:explain", "Explain a word of a spec, and how to write it."),
        _list("upgrade", "spec_checks:upgrade", "Rewrite keys of a spec that have another name today, in place."),
        _list("schema", "spec_checks:print_schema", "Print the JSON Schema of a spec."),
    ),
}  # fmt: skip
"""The commands by what they are for: each with its name, its place, and the first sentence of its help."""


@click.group(
    cls=Front,
    purposes=PURPOSES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Set RAGEVAL_DEBUG=1 to see the traceback of an error, and NO_COLOR=1 to turn colours off.",
)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
def cli() -> None:
    """Evaluate retrieval and RAG systems declared in a YAML spec, and check the results against gates.

    Exit codes: 0 passed, 1 a gate failed, 2 the spec or the command line is wrong, 3 the evaluation broke,
    4 nothing could be scored, 130 interrupted (143 by SIGTERM, 129 by SIGHUP).

    \b
    Start here:
      rageval-spec demo
      rageval-spec init
    """


def main() -> NoReturn:
    """Run `rageval-spec` with the arguments of the process, and exit with its exit code."""
    gc.set_threshold(200_000, 20, 20)  # at the default of 700 objects, looking for cycles takes a tenth of a short run
    signals.watch(PROGRAM)
    warn_of_little_room()
    _skip_plugins_of_pydantic()
    try:
        cli.main(prog_name=PROGRAM)
    except SystemExit as ending:
        if ending.code in signals.ENDED:
            os._exit(int(ending.code))  # threads that still compute would keep the process alive
        raise
    finally:
        gc.freeze()  # the interpreter looks for cycles as it ends, which takes a fifth of a short run


def _skip_plugins_of_pydantic() -> None:
    """If no package has a plugin for pydantic, keep it from searching for one, which takes a tenth of `validate`."""
    infos = (one for folder in sys.path if Path(folder).is_dir() for one in os.scandir(folder or "."))
    files = (Path(one, "entry_points.txt") for one in infos if one.name.endswith((".dist-info", ".egg-info")))
    try:
        has_any = any(file.is_file() and b"[pydantic]" in file.read_bytes() for file in files)
    except OSError:  # a folder that this user cannot read, which Python itself skips
        return
    if not has_any:
        loader = sys.modules["pydantic.plugin._loader"] = ModuleType("pydantic.plugin._loader")
        vars(loader)["get_plugins"] = tuple


if __name__ == "__main__":
    main()
