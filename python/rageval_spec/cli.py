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

PURPOSES: Mapping[str, Sequence[Later]] = {
    "Begin": (
        Later("demo", "rageval_spec.commands.demo.command:demo",
              "Show a change that breaks an answer, and the gate that finds it."),
        Later("init", "rageval_spec.commands.init.command:init",
              "Write a spec for your own files, or one with sample data."),
        Later("status", "rageval_spec.commands.status:status",
              "Show what is in this folder, and the command to type next."),
    ),
    "Evaluate": (
        Later("validate", "rageval_spec.commands.spec_checks:validate",
              "Check a spec and the files it names, without running anything."),
        Later("plan", "rageval_spec.commands.plan:plan", "Show the steps of an evaluation, and what they would cost."),
        Later("run", "rageval_spec.commands.run:run", "Run an evaluation and check its gates."),
        Later("merge", "rageval_spec.commands.merge:merge",
              "Put the shards of an evaluation together, and check its gates."),
        Later("benchmark", "rageval_spec.commands.benchmark.command:benchmark",
              "Compare retrieval systems on BEIR folders."),
        Later("score", "rageval_spec.commands.score:score", "Score one run as trec_eval does, in trec_eval's layout."),
    ),
    "Look at results": (
        Later("show", "rageval_spec.commands.show:show_questions",
              "Show the questions behind the numbers, worst first."),
        Later("compare", "rageval_spec.commands.compare.command:compare_results",
              "Compare two results, in numbers and question by question."),
        Later("history", "rageval_spec.commands.history:records", "Show and manage the records of evaluations."),
    ),
    "Decide": (
        Later("comment", "rageval_spec.commands.comment.command:comment_results",
              "Post results as a comment on a pull or merge request."),
        Later("monitor", "rageval_spec.commands.monitor.command:monitor", "Judge production as it runs."),
        Later("serve", "rageval_spec.commands.serve:serve",
              "Check answers over HTTP before users see them, until Ctrl-C."),
    ),
    "Trust the numbers": (
        Later("review", "rageval_spec.commands.review.command:review",
              "Choose answers for people to judge, and work with their labels."),
        Later("calibrate", "rageval_spec.commands.calibrate.command:calibrate",
              "Show how close a judge's values come to people's labels."),
        Later("drift", "rageval_spec.commands.drift.command:drift",
              "Ask a judge again about frozen answers, to see if it changed."),
    ),
    "Make and check test sets": (
        Later("generate", "rageval_spec.commands.generate.command:generate",
              "Make a test set from your own documents."),
        Later("audit", "rageval_spec.commands.audit.command:audit",
              "Check test sets: questions, references, judgements, mix, size."),
    ),
    "Tools": (
        Later("import", "rageval_spec.commands.exchange:import_",
              "Read questions, answers and traces from another tool."),
        Later("export", "rageval_spec.commands.exchange:export", "Send the values of an evaluation to another tool."),
        Later("models", "rageval_spec.commands.models.listing:models", "Show, fetch, export and measure models."),
        Later("store", "rageval_spec.commands.store:store", "Show or remove what is stored between evaluations."),
        Later("list", "rageval_spec.commands.plugin_words:list_words", "List the words that `use:` accepts in a spec."),
        Later("explain", "rageval_spec.commands.plugin_words:explain",
              "Explain a word of a spec, and how to write it."),
        Later("schema", "rageval_spec.commands.spec_checks:print_schema", "Print the JSON Schema of a spec."),
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
