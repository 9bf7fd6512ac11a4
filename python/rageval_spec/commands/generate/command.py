"""`rageval-spec generate`: shows the cost, makes the questions, writes them and says what came out.

The command line becomes a spec whose dataset makes the questions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec import registry
from rageval_spec.commands import console, options
from rageval_spec.commands.generate.narrowed_spec import cost_options, narrow, open_parts, show_plan
from rageval_spec.data.findings import Estimate
from rageval_spec.dataclass import replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import PASSED, UsageError, expand_home
from rageval_spec.generation import question_sets
from rageval_spec.generation.documents import read_documents
from rageval_spec.generation.question_mix import read_percentage, read_shares
from rageval_spec.libraries import compile_later
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reading.column_names import CorpusColumns
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.datasets.generated import Generated
    from rageval_spec.plugin import Node
    from rageval_spec.spec.blocks.spec_node import Spec


_OFFLINE = frozenset(
    {"corpus", "output", "count", "seed", "split", "split_by", "chunk_words", "columns", "force", "form", "no_model"}
)
"""What can be said with --no-model."""

_model_options = options.together(
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

_mix_options = options.together(
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

OTHERS = {
    "nuggets": "rageval_spec.commands.generate.nuggets:generate_nuggets",
    "qrels": "rageval_spec.commands.generate.qrels:generate_qrels",
}
"""What else the command makes, by the word that comes first, and the command that makes it."""


class GenerateCommand(console.OutputCommand):
    """Makes questions, or what the first argument names. A folder of that name is written `./nuggets`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if not args or args[0] not in OTHERS:
            return super().make_context(info_name, args, parent, **extra)
        other = console.Later(args[0], OTHERS[args[0]], "").find()
        return other.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)


@click.command("generate", cls=GenerateCommand)
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("golden.jsonl"),
              show_default=True, metavar="FILE", help="The file for the questions. What was rejected and the chunks "
              "go next to it.")  # fmt: skip
@_model_options
@_mix_options
@cost_options
@click.option("--concurrency", type=click.IntRange(1, 1024), metavar="N", help="Calls at the same time.")
@click.option("--split", metavar="SHARES", help="Divide the questions into validation and test, such as 30:70. Each "
              "set gets a file next to FILE.")  # fmt: skip
@click.option("--split-by", type=click.Choice(["document", "question"]), default="document", show_default=True,
              help="document: no document is in both sets; question: the same share of each document's questions is in "
              "each.")  # fmt: skip
@options.set_option
def generate(
    corpus: Path,
    output: Path,
    form: str,
    *,
    no_model: bool,
    force: bool,
    dry_run: bool,
    store: Path | None,
    no_store: bool,
    split: str | None,
    split_by: question_sets.SplitUnit,
    **options: Any,
) -> int:
    """Make a test set from your own documents.

    Each question has an answer, its sources and its evidence. CORPUS is a folder of Markdown, text, HTML and PDF files,
    a JSON Lines corpus or a BEIR folder. A chat model writes each question about one chunk or several. Every question
    is then checked: its evidence must be in the chunk, the chunk must answer it and support the answer, it must make
    sense alone, and a retriever must find its source.

    The cost is shown before anything is asked. Every reply is stored, so a run that was stopped continues where it
    was, and pays nothing twice. The exit code is 3 if a limit or the endpoint stopped it.

    \b
    rageval-spec generate docs/ --no-model --count 100
    rageval-spec generate docs/ --model gpt-5-mini --dry-run
    rageval-spec generate docs/ -o golden.jsonl --model gpt-5-mini --count 200 --max-cost 5
    rageval-spec generate docs/ --model llama3.1:8b --base-url http://localhost:11434 --language de
    rageval-spec generate docs/ --model writer --judge strict --spec spec.yaml --multi-hop 25% --unanswerable 10%
    rageval-spec generate nuggets spec.yaml -o nuggets.jsonl
    rageval-spec generate qrels spec.yaml --judge relevance -o qrels.txt
    """
    source = click.get_current_context().get_parameter_source("split_by")
    if split is None and source == click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--split-by says what --split keeps together; add --split, such as --split 30:70")
    from rageval_spec.commands.generate.output import check_output, count_sorts, summarize, tell_unread, write_set

    if no_model:
        from rageval_spec.generation.offline_questions import MADE_BY, make_offline_set

        _check_offline()
        check_output(output, force=force)
        columns = None if options["columns"] is None else read_columns(options["columns"])
        with ProgressDisplay() as display:
            display.announce("read the documents")
            documents = read_documents(corpus, columns)
            tell_unread(documents, display)
            display.announce("make the questions")
            how: dict[str, Any] = {"split": split, "split_by": split_by, "size": options["chunk_words"]}
            offline = make_offline_set(documents, options["count"], seed=options["seed"], **how)
        made = question_sets.GeneratedTestSet(offline.rows, offline.rejected)
        more: dict[str, Any] = {"shares": count_sorts(made.rows), "made_by": MADE_BY, "cost": 0.0}
        summary = summarize(made, documents, len(offline.corpus), options["count"], offline.remarks, **more)
        return summary.report(form, output, [*write_set(output, made.rows, offline.corpus, made.rejected)])

    if options["model"] is None:
        raise click.UsageError("name the chat model with --model, or make questions without one with --no-model")
    if not expand_home(corpus).exists():
        raise UsageError(f"{corpus}: there is no such file or folder")
    check_output(output, force=force, dry_run=dry_run)
    if split is not None:
        question_sets.read_shares(split)
    spec = build_spec(corpus, **options)
    with ProgressDisplay() as display, open_parts(spec, display, store, no_store=no_store) as parts:
        dataset: Generated = parts.datasets[DATASET]  # type: ignore[assignment]
        display.announce("read the documents")
        documents, chunks = dataset.source.documents, dataset.source.chunks
        tell_unread(documents, display)
        counts = {"documents": len(documents.documents), "chunks": len(chunks)}
        estimate = Estimate() if dataset.find() is not None else dataset.foresee_calls()
        remark = "each question that fails a check is replaced, which costs about as much again"
        if show_plan(display, parts, estimate, counts, form, dry_run=dry_run, remark=remark):
            return PASSED
        display.announce("make the questions")
        made = dataset.produce()
        rows, unmet = (made.rows, ()) if split is None else question_sets.divide_rows(made.rows, split, split_by)
        shares = made.count_shares(dataset.node.mix) if made.rows else []
        budget = dataset.context.budget
        spent = None if budget.unpriced else budget.cost
        wanted = dataset.node.count
        more = {"shares": shares, "shortages": made.shortages, "stopped": made.stopped, "cost": spent}
        summary = summarize(made, documents, len(chunks), wanted, unmet, **more)
        chunk_rows, is_finished = dataset.source.list_rows(), made.stopped is None
        written = [*write_set(output, rows, chunk_rows, made.rejected, is_finished=is_finished)]
    code = summary.report(form, output, written)
    if budget.calls:
        console.tell(budget.describe())
    return code


def _check_offline() -> None:
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in _OFFLINE
        and context.get_parameter_source(option.name or "") == click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{' and '.join(given)} cannot be used with --no-model, which asks no model")


DATASET = "golden"
"""The name of the dataset in the spec that is made up."""
KEYS = {"openai": "OPENAI_API_KEY", "azure": "AZURE_OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""The variable with the key of each API's own endpoint."""
_SHARES = {"types": "--types", "difficulty": "--difficulty", "style": "--style"}
_PERCENTAGES = {"multi_hop": "--multi-hop", "unanswerable": "--unanswerable"}
_ENDPOINT = ("base_url", "dialect", "api_key_env", "price")
"""The options that describe a model without a spec."""
_PRICE = compile_later(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*")


def build_spec(corpus: Path, *, spec: Path | None = None, overrides: Sequence[str] = (), **options: Any) -> Spec:
    """The spec with the dataset that was asked for, and with nothing else to evaluate.

    The models, judges and limits are those of `spec`, with `overrides`; without one, options describe the model.
    The other options are keys of `limits:` and of the dataset's block, whose shares are texts. None means the default.
    """
    from rageval_spec.spec import load, load_dict
    from rageval_spec.spec.blocks.spec_node import LimitsNode

    given = {name: value for name, value in options.items() if value is not None}
    limits = {name: given.pop(name) for name in LimitsNode.model_fields if name in given}
    endpoint = {name: given.pop(name) for name in _ENDPOINT if name in given}
    keys = _read_keys(corpus, given)
    if spec is not None:
        loaded = load(spec, overrides=overrides, check_files=False)
        if endpoint:
            option = f"--{next(iter(endpoint)).replace('_', '-')}"
            raise UsageError(f"{option} describes a model; with --spec, write it in the block of the model")
        return _extend(loaded, spec, limits, keys)
    if overrides:
        raise UsageError("--set overrides values of a spec; give --spec too")
    described = load_dict(_describe(keys, limits, endpoint), path="generate")
    return replace(described, systems={}, metrics=())


def _read_keys(corpus: Path, keys: dict[str, Any]) -> dict[str, Any]:
    from rageval_spec.datasets.generated import NAMES

    for name, option in _SHARES.items():
        if name in keys:
            keys[name] = read_shares(keys[name], NAMES[name], option)
    for name, option in _PERCENTAGES.items():
        if name in keys:
            keys[name] = read_percentage(keys[name], option)
    if keys.get("multi_hop", 0) + keys.get("unanswerable", 0) > 100:
        raise UsageError("--multi-hop and --unanswerable are shares of the same questions, and sum to more than 100%")
    if "columns" in keys:
        keys["columns"] = read_columns(keys["columns"]).model_dump(exclude_none=True)
    return {"use": "generated", "path": str(Path.cwd() / expand_home(corpus)), **keys}


def read_columns(text: str) -> CorpusColumns:
    """The names of the keys of a corpus in a text such as `doc_id: url, text: body`, with or without braces."""
    import yaml

    try:
        names = yaml.safe_load("{" + text.strip().removeprefix("{").removesuffix("}") + "}")
    except yaml.YAMLError:
        names = None
    known = tuple(CorpusColumns.model_fields)
    if not names or any(not isinstance(name, str) for name in names.values()):
        raise UsageError(f"--columns: '{text}' names no keys; write 'doc_id: url, text: body'")
    for key in names:
        if key not in known:
            hint = suggest(str(key), known) or f"a document has {list_names(known)}"
            raise UsageError(f"--columns: unknown name '{key}'; {hint}")
    return CorpusColumns.model_validate(names)


def _extend(spec: Spec, path: Path, limits: Mapping[str, Any], keys: Mapping[str, Any]) -> Spec:
    """The spec with only this dataset, and with the limits that were given."""
    from rageval_spec.datasets.generated import GeneratedNode

    models, judges = {**spec.models}, {**spec.judges}
    for option in ("model", "checker", "embedding"):
        _declare("models", keys.get(option), models, f"--{option}", path)
    _declare("judges", keys.get("judge"), judges, "--judge", path)
    asked = {keys["judge"]: judges[keys["judge"]]} if "judge" in keys else {}
    whole = replace(spec, models=models, judges=judges)
    return narrow(whole, {DATASET: GeneratedNode.model_validate(keys)}, (), asked, {**limits})


def _declare(section: Any, name: str | None, blocks: dict[str, Node], option: str, spec: Path | None) -> None:
    """Add the block that a name means without being declared."""
    from rageval_spec.spec.blocks.spec_node import default_block

    if name is None or name in blocks:
        return
    block = default_block(section, name)
    if block is None:
        known = list(blocks)
        hint = suggest(name, known) or (f"it has {list_names(known)}" if known else "it has none")
        raise UsageError(f"{option}: {spec} has no {section.removesuffix('s')} '{name}'; {hint}")
    blocks[name] = registry.load(section, block["use"]).node_type.model_validate(block)


def _describe(keys: dict[str, Any], limits: dict[str, Any], endpoint: Mapping[str, str]) -> dict[str, Any]:
    """The spec of a model that only the command line describes."""
    from rageval_spec.spec.blocks.spec_node import NAME_PATTERN, default_block

    models: dict[str, Any] = {}
    for option in ("model", "checker"):
        if option in keys:
            name = keys[option] if re.fullmatch(NAME_PATTERN, keys[option]) else option
            models[name] = _describe_model(keys[option], **endpoint)
            keys[option] = name
    if "judge" in keys and default_block("judges", keys["judge"]) is None:
        raise UsageError(f"--judge: '{keys['judge']}' is not a judge that needs no settings; declare it in a spec, and "
                         "give --spec")  # fmt: skip
    if "embedding" in keys and default_block("models", keys["embedding"]) is None:
        models["embedding"] = {"use": "onnx", "model": keys["embedding"]}
        keys["embedding"] = "embedding"
    return {
        "version": 1,
        "name": "generate",
        "datasets": {DATASET: keys},
        "models": models,
        "systems": {"bm25": {"use": "bm25"}},
        "metrics": ["ndcg@10"],
        "limits": limits,
    }


def _describe_model(
    model: str,
    base_url: str | None = None,
    dialect: str | None = None,
    api_key_env: str | None = None,
    price: str | None = None,
) -> dict[str, Any]:
    dialect = dialect or ("anthropic" if model.startswith("claude") and not base_url else "openai")
    block: dict[str, Any] = {"use": "chat", "model": model, "dialect": dialect}
    if base_url is not None:
        block["base_url"] = base_url
    elif dialect == "azure":
        raise UsageError("--dialect azure needs --base-url: https://NAME.openai.azure.com")
    variable = api_key_env or (None if base_url else KEYS[dialect])
    if variable is not None:
        if not os.environ.get(variable):
            raise UsageError(
                f"--model {model}: the variable {variable} with the key of the endpoint is not set; set it, give "
                "--base-url for an endpoint of your own, or give --spec with a spec that declares the model"
            )
        block["api_key"] = f"${{secret:{variable}}}"
    if price is not None:
        if (found := _PRICE.fullmatch(price)) is None:
            example = "write US dollars per million tokens in and out: 0.15/0.60"
            raise UsageError(f"--price: '{price}' is not a price; {example}")
        block["price"] = {"input": float(found[1]), "output": float(found[2])}
    return block
