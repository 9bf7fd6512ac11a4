"""`rageval-spec init`: writes a commented spec to start from.

Without options, it writes samples: a spec for retrieval, one for answers, and their data. A file, `--answers` and
`--from` write a spec for files that are already there; `--url` has a service answer their questions.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rageval_spec.commands import console
from rageval_spec.errors import PASSED, UsageError

if TYPE_CHECKING:
    from rageval_spec.commands.init.first_spec import Findings


_USUAL_FILES = {"trec": "qrels.tsv", "otel": "traces.jsonl"}
TOOLS = ("ragas", "deepeval", "promptfoo", "beir", "trec", "otel", "autojudge")
_GIVEN = click.core.ParameterSource.COMMANDLINE
_file = click.Path(path_type=Path, exists=True)


@click.command("init")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE] [FOLDER]")
@click.option("--url", help="With FILE: the URL of the service that answers its questions.")
@click.option(
    "--answers", type=_file, metavar="FILE",
    help="Write a spec for this file of questions and answers: CSV, JSON, JSON Lines or Parquet.",
)  # fmt: skip
@click.option(
    "--golden", type=_file, metavar="FILE",
    help="With --answers: the file with the questions and gold answers, if the answers are in another one.",
)  # fmt: skip
@click.option(
    "--from", "source", type=(click.Choice(TOOLS), _file), metavar="TOOL PATH",
    help="Write a spec for the test set of another tool (ragas, deepeval, promptfoo), a BEIR folder, TREC judgements "
    "with the .run files beside them, a file of OpenTelemetry spans (otel), or TREC AutoJudge's workflow.yml.",
)  # fmt: skip
@click.option(
    "--column", "columns", multiple=True, metavar="PART=NAME",
    help="The name of a column that is not recognised, such as text=Frage; can be repeated.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.pass_context
def init(
    ctx: click.Context,
    paths: tuple[Path, ...],
    url: str | None,
    answers: Path | None,
    golden: Path | None,
    source: tuple[str, Path] | None,
    columns: tuple[str, ...],
    force: bool,
) -> int:
    """Write a spec for your own files, or one with sample data.

    It is commented, and ready to run. Without options, FOLDER gets two specs and sample data: one for retrieval, one
    for answers. With FILE, --answers or --from, it gets a spec for your files, with the metrics that their columns
    allow; the others are comments with what they need. FILE has questions, with their gold answers or judgements.
    FOLDER is the current folder by default. On a terminal, `rageval-spec init` alone asks what there is.

    \b
    rageval-spec init example
    rageval-spec init golden.xlsx --url http://localhost:8000/ask
    rageval-spec init --answers answers.csv
    rageval-spec init --answers answers.jsonl --golden golden.xlsx --column text=Frage evaluation
    rageval-spec init --from ragas testset.jsonl
    """
    if console.is_terminal() and not any(ctx.get_parameter_source(name) is _GIVEN for name in ctx.params):
        from rageval_spec.commands.init.terminal_questions import ask

        asked = ask(Path())
        init.main(asked, standalone_mode=False)
        console.show(f"\nThe same without questions:\n  {console.name_program()} init {shlex.join(asked)}\n")
        return PASSED
    from rageval_spec.commands.init.folder_proposals import RUN, guess
    from rageval_spec.reading.formats.text_files import format_of
    from rageval_spec.wording import list_names

    file, folder = _split_paths(paths)
    if file is not None and (answers is not None or source is not None):
        raise click.UsageError(f"'{file}' is a file; give it, --answers or --from, and a folder for the spec")
    if url is not None and file is None:
        raise click.UsageError("--url belongs to a file of questions: rageval-spec init golden.xlsx --url URL")
    if answers is not None and source is not None:
        raise click.UsageError("--answers and --from exclude each other; give one of them")
    if answers is None and golden is not None:
        raise click.UsageError("--golden belongs to --answers; for questions alone, use --from")
    if file is not None and url is None and (recorded := guess(file)) in ("trec", "otel"):
        source, file = (recorded, file), None
    elif file is not None and url is None and format_of(file) == RUN:
        source, file = ("trec", _find_judgements(file)), None
    tool, path = source or (None, file or answers)
    if path is None:
        if columns:
            raise click.UsageError("--column belongs to FILE, --answers or --from")
        spec = _write_sample(folder, force=force)
        told = f"{spec} and {spec.with_name(ANSWERS)}, their schema and sample data"
    else:
        is_answered = answers is not None
        spec, *others = _write_for_files(tool, path, golden, url, folder, columns, is_answered=is_answered, force=force)
        told = list_names([*map(str, (spec, *others))])
    console.show(f"wrote {told}; now try: {console.name_program()} run {spec}\n")
    return PASSED


def _find_judgements(run: Path) -> Path:
    """The judgements beside a file of rankings, if only one file can have them."""
    from rageval_spec.commands.init.folder_proposals import guess

    found = sorted(one for one in run.parent.iterdir() if one.is_file() and guess(one) == "trec")
    if len(found) != 1:
        named = shlex.quote(str(found[0] if found else run.with_name("qrels.tsv")))
        told = "name one of the judgements beside it" if found else "put the judgements beside it, and name them"
        raise UsageError(f"{run} has rankings; {told}: {console.name_program()} init --from trec {named}")
    return found[0]


def _split_paths(paths: Sequence[Path]) -> tuple[Path | None, Path]:
    """The file of questions, if there is one, and the folder of the spec."""
    from rageval_spec.commands.init.folder_proposals import TABLES
    from rageval_spec.reading.formats.text_files import format_of

    file = paths[0] if paths and (paths[0].is_file() or format_of(paths[0])) and not paths[0].is_dir() else None
    rest = paths[1:] if file is not None else paths
    if file is not None and not file.exists():
        raise click.UsageError(f"there is no file '{file}'{console.find_nearest(file)}")
    if len(rest) > 1 or (rest and rest[0].is_file()):
        raise click.UsageError(f"'{rest[-1]}' is one too many; write FILE and FOLDER, or one of them")
    meant = console.find_nearest(rest[0]) if rest and not rest[0].exists() else ""
    if meant.endswith(tuple(f".{one}'?" for one in TABLES)):
        raise click.UsageError(f"there is no file or folder '{rest[0]}'{meant}")
    return file, rest[0] if rest else Path()


SPEC, ANSWERS = "spec.yaml", "answers.yaml"
DATA = "data"
SCHEMA = "spec.schema.json"


def _write_sample(folder: Path, *, force: bool) -> Path:
    """Write both specs, their data and the JSON Schema for editors. Returns the path of the first spec.

    Raises UsageError: one of the files exists and `force` is false, or the folder cannot be written.
    """
    from rageval_spec.spec.json_schema import render_schema

    samples = Path(__file__).parent / "samples"
    with _writing(folder, (SPEC, ANSWERS, DATA, SCHEMA), force=force):
        for sample, spec in (("retrieval", SPEC), ("answers", ANSWERS)):
            source = samples / sample
            shutil.copytree(source, folder / DATA, ignore=shutil.ignore_patterns(SPEC), dirs_exist_ok=True)
            shutil.copyfile(source / SPEC, folder / spec)
        (folder / SCHEMA).write_text(render_schema(), encoding="utf-8")
    return folder / SPEC


@contextmanager
def _writing(folder: Path, names: Iterable[str], *, force: bool) -> Iterator[None]:
    """Make the folder, and refuse to write files that it has unless `force`."""
    there = [name for name in names if (folder / name).exists()]
    if there and not force:
        raise UsageError(f"{folder / there[0]} already exists; name another folder, or overwrite it with --force")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from error


_FUNCTION = '''\
"""Called by rageval-spec for each question. Replace the placeholder by a call of your system."""


def answer(question: str) -> dict[str, object]:
    """The answer, and what it is based on: `contexts` are texts, or objects with `id`, `text` and `score`."""
    return {"answer": f"There is no answer to {question!r} yet.", "contexts": []}
'''


def _write_for_files(
    tool: str | None,
    path: Path,
    golden: Path | None,
    url: str | None,
    folder: Path,
    columns: Sequence[str],
    *,
    is_answered: bool,
    force: bool,
) -> list[Path]:
    """Write a spec for a file, or the files of a tool, and return what was written.

    `golden` has the questions if the file does not. The answers are those of the service at `url`, or those in the
    file, which must have some if it `is_answered`, or else of a Python function to fill in.

    Raises UsageError: a file cannot be read, or has no answers, the URL is wrong, or the spec exists without `force`.
    """
    from rageval_spec.commands.init.first_spec import inspect_files, inspect_recorded

    if tool == "autojudge":
        from rageval_spec.commands.init.autojudge_workflow import write_text

        return _write_texts({SPEC: write_text(path, folder)}, folder, force=force)
    if tool in ("trec", "otel"):
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name the file in it, such as {path / _USUAL_FILES[tool]}")
        return _write(inspect_recorded(tool, path, folder), path, folder, tool, force=force)
    if tool == "beir" and not path.is_dir():
        raise UsageError(f"{path} is not a folder; a BEIR dataset is one with corpus.jsonl, queries.jsonl and qrels/")
    if tool not in ("beir", None) and path.is_dir():
        path = _find_config(tool, path)
    answers = None if tool == "beir" or url is not None else path
    are_answers = is_answered and golden is None
    findings = inspect_files(golden or path, answers, folder, _parse_columns(columns), url, are_answers=are_answers)
    if is_answered and findings.system is None:
        alone = f"{console.name_program()} init {shlex.quote(str(path))}"
        advice = f"name the column with --column answer=NAME, or write a spec for the questions alone: {alone}"
        raise UsageError(f"{path} has no answers of a system; {advice}")
    written = _write(findings, path, folder, tool, force=force)
    if url is not None and findings.unused:
        console.show(f"{_describe_unused(findings)}\n")
    return written


def _describe_unused(findings: Findings) -> str:
    from rageval_spec.reading.column_names import may_be_gold
    from rageval_spec.wording import list_choices

    said = f"the spec does not use {list_choices([*map(repr, findings.unused)])}"
    if "reference" in findings.has:
        return said
    gold = next(filter(may_be_gold, findings.unused), findings.unused[0])
    return f"{said}; if '{gold}' has the gold answers, add --column {shlex.quote(f'reference={gold}')}"


def _find_config(tool: str | None, folder: Path) -> Path:
    from rageval_spec.commands.init.folder_proposals import PROMPTFOO

    found = next((folder / name for name in PROMPTFOO if (folder / name).is_file()), None)
    if tool == "promptfoo" and found is not None:
        return found
    raise UsageError(f"{folder} is a folder; name the file with the questions")


def _parse_columns(columns: Sequence[str]) -> dict[str, str]:
    from rageval_spec.reading.column_names import AnswerColumns, QuestionColumns

    known = sorted({*QuestionColumns.model_fields, *AnswerColumns.model_fields, "relevant"} - {"doc_id", "score"})
    found: dict[str, str] = {}
    for column in columns:
        part, equals, name = (one.strip() for one in column.partition("="))
        if not (equals and part and name):
            raise UsageError(f"--column {column!r}: write PART=NAME, such as text=Frage")
        if part not in known:
            raise UsageError(f"--column {part}: there is no such part; write one of {', '.join(known)}")
        found[part] = name
    return found


def _write(findings: Findings, source: Path, folder: Path, tool: str | None, *, force: bool) -> list[Path]:
    """Write the spec, its schema, and a function to fill in if nothing answers the questions."""
    from rageval_spec.commands.init.first_spec import PLACEHOLDER, is_retrieval, write_text

    texts = {SPEC: write_text(findings, source.resolve().name.partition(".")[0] or "evaluation", SPEC, tool)}
    if findings.system is None and not is_retrieval(findings):
        texts[PLACEHOLDER] = _FUNCTION
    return _write_texts(texts, folder, force=force)


def _write_texts(texts: Mapping[str, str], folder: Path, *, force: bool) -> list[Path]:
    """Write files, the schema among them, and check the spec."""
    from rageval_spec.spec import load
    from rageval_spec.spec.json_schema import render_schema

    with _writing(folder, [*texts], force=force):
        for name, text in {**texts, SCHEMA: render_schema()}.items():
            (folder / name).write_text(text, encoding="utf-8")
    load(folder / SPEC)
    return [folder / name for name in (*texts, SCHEMA)]
