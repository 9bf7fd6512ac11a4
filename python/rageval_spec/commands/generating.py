"""The command `generate`: its options and its help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Command
from rageval_spec.commands.generate.command import generate_test_set
from rageval_spec.commands.generate.request import Request, read_columns

_KEYS = (
    "count", "types", "difficulty", "multi_hop", "unanswerable", "language", "style", "seed", "attempts", "per_chunk",
    "within", "closed_book", "chunk_words", "steer_difficulty",
    "columns",
)  # fmt: skip
_OFFLINE = frozenset(
    {"corpus", "output", "count", "seed", "split", "chunk_words", "columns", "force", "form", "no_model"}
)
"""What can be said with --no-model."""
_LIMITS = ("max_cost", "max_calls", "concurrency")


def _decorate(command: shared.F, options: Sequence[Callable[[shared.F], shared.F]]) -> shared.F:
    """The command with options, which `--help` shows in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def _model_options(command: shared.F) -> shared.F:
    """Add the options that say which models to ask."""
    options = (
        click.option("--model", metavar="NAME", help="The chat model that writes the questions: a block under models: "
                     "of --spec, or else a model at an endpoint."),
        click.option("--no-model", is_flag=True, help="Make questions from the documents' own sentences, titles and "
                     "headings, offline, to compare retrievers. They have no answers."),
        click.option("--spec", type=click.Path(path_type=Path, dir_okay=False), metavar="SPEC",
                     help="Take models, judges and limits from this spec."),
        click.option("--base-url", metavar="URL", help="Without --spec: the endpoint.  [default: OpenAI's, or "
                     "Anthropic's for claude]"),
        click.option("--dialect", type=click.Choice(["openai", "azure", "anthropic"]),
                     help="Without --spec: the endpoint's API."),
        click.option("--api-key-env", metavar="VARIABLE", help="Without --spec: the environment variable with the "
                     "endpoint's key.  [default: OPENAI_API_KEY or ANTHROPIC_API_KEY; none with --base-url]"),
        click.option("--price", metavar="IN/OUT", help="Without --spec: US dollars per million tokens, such as "
                     "0.15/0.60."),
        click.option("--checker", metavar="NAME", help="The chat model that checks the questions.  [default: the one "
                     "that writes them]"),
        click.option("--judge", metavar="NAME", help="The judge that decides whether documents support an answer.  "
                     "[default: a yes or no of the checking model]"),
        click.option("--embedding", metavar="NAME", help="An embedding model, such as minilm: finds chunks and "
                     "near-duplicates by meaning, and measures difficulty."),
    )  # fmt: skip
    return _decorate(command, options)


def _mix_options(command: shared.F) -> shared.F:
    """Add the options that say what questions to make."""
    options = (
        click.option("--count", type=click.IntRange(1, 100_000), default=200, show_default=True,
                     help="How many questions to make."),
        click.option("--types", metavar="SHARES", help="The mix of types.  [default: factual:40,analytical:35,"
                     "comparative:15,procedural:10]"),
        click.option("--difficulty", metavar="SHARES", help="The mix of difficulties to ask for.  [default: easy:30,"
                     "medium:50,hard:20]"),
        click.option("--steer-difficulty", is_flag=True, default=None, help="Try other questions in place of those of "
                     "whose measured difficulty there are enough. Costs more replies."),
        click.option("--multi-hop", metavar="SHARE", help="The share of questions over several chunks: 25%."),
        click.option("--unanswerable", metavar="SHARE", help="The share of questions without an answer in the "
                     "documents: 10%."),
        click.option("--language", metavar="CODE", help="The language to write in, such as de.  [default: that of the "
                     "documents]"),
        click.option("--style", metavar="SHARES", help="The mix of plain, informal, typos, keywords and polite: "
                     "informal,typos shares equally.  [default: plain]"),
        click.option("--seed", type=click.IntRange(0), default=13, show_default=True, help="Chooses the chunks."),
        click.option("--attempts", type=click.IntRange(1, 20), default=4, show_default=True,
                     help="How many questions may be tried for each one that is wanted."),
        click.option("--per-chunk", type=click.IntRange(1, 100), default=2, show_default=True,
                     help="The most questions about one chunk."),
        click.option("--within", type=click.IntRange(0, 1000), default=20, show_default=True,
                     help="Reject a question if no retriever ranks its source this high; 0 accepts all."),
        click.option("--closed-book", is_flag=True, default=None, help="Reject questions that the checking model "
                     "answers without the documents."),
        click.option("--chunk-words", type=click.IntRange(20, 5000), default=200, show_default=True,
                     help="The most words of a chunk."),
        click.option("--columns", metavar="MAP", help="The keys of a JSON Lines corpus with other names: 'doc_id: url, "
                     "text: body'."),
    )  # fmt: skip
    return _decorate(command, options)


def _limit_options(command: shared.F) -> shared.F:
    """Add the options that limit what is spent."""
    options = (
        click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Spend at most this."),
        click.option("--max-calls", type=click.IntRange(1), metavar="N", help="Make at most N calls."),
        click.option("--concurrency", type=click.IntRange(1, 1024), metavar="N", help="Calls at the same time."),
        click.option("--dry-run", is_flag=True, help="Only show what it would cost."),
    )
    return _decorate(command, options)


@click.command("generate", cls=Command)
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("golden.jsonl"),
              show_default=True, metavar="FILE", help="The file for the questions. What was rejected and the chunks "
              "go beside it.")  # fmt: skip
@_model_options
@_mix_options
@_limit_options
@click.option("--split", metavar="SHARES", help="Divide the questions into validation and test, such as 30:70. No "
              "document is in both; each set gets a file beside FILE.")  # fmt: skip
@shared.set_option
@shared.store_options
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@shared.form_option
def generate(form: str, **options: Any) -> int:
    """Make a test set from your own documents: questions, answers, sources and evidence.

    CORPUS is a folder of Markdown, text, HTML and PDF files, a JSON Lines corpus or a BEIR folder. A chat model writes
    each question about one chunk or several. Every question is then checked: its evidence must stand in the chunk,
    the chunk must answer it and support the answer, it must make sense alone, and a retriever must find its source.

    The cost is shown before anything is asked. Every reply is stored, so a run that was stopped continues where it
    was, and pays nothing twice. The exit code is 3 if a limit or the endpoint stopped it.

    \b
    rageval-spec generate docs/ --no-model --count 100
    rageval-spec generate docs/ --model gpt-5-mini --dry-run
    rageval-spec generate docs/ -o golden.jsonl --model gpt-5-mini --count 200 --max-cost 5
    rageval-spec generate docs/ --model llama3.1:8b --base-url http://localhost:11434 --language de
    rageval-spec generate docs/ --model writer --judge strict --spec spec.yaml --multi-hop 25% --unanswerable 10%
    """
    if options.pop("no_model"):
        _check_offline()
        from rageval_spec.commands.generate.offline import OfflineRequest, generate_offline

        chosen = {name: options[name] for name in ("corpus", "output", "count", "seed", "split")}
        columns = None if options["columns"] is None else read_columns(options["columns"])
        offline = OfflineRequest(**chosen, words=options["chunk_words"], columns=columns)
        return generate_offline(offline, form, force=options["force"])
    if options["model"] is None:
        raise click.UsageError("name the chat model with --model, or make questions without one with --no-model")
    keys = {name: options.pop(name) for name in _KEYS}
    limits = {name: options.pop(name) for name in _LIMITS}
    rest = {name: options.pop(name) for name in ("output", "force", "dry_run", "store", "no_store", "split")}
    return generate_test_set(Request(**options, keys=keys, limits=limits), form=form, **rest)


def _check_offline() -> None:
    """Refuse options that say what a model is to do."""
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in _OFFLINE
        and context.get_parameter_source(option.name or "") == ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{' and '.join(given)} cannot be used with --no-model, which asks no model")
