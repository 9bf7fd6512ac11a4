"""`rageval-spec init --answers` and `--from`: a commented spec for files that are already there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from rageval_spec.commands.first_spec.inspection import Findings


Tool = Literal["ragas", "deepeval", "promptfoo", "beir"]
TOOLS: tuple[Tool, ...] = ("ragas", "deepeval", "promptfoo", "beir")
SPEC = "spec.yaml"
SCHEMA = "spec.schema.json"
_PROMPTFOO = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")
_FUNCTION = '''\
"""Called by rageval-spec for each question. Replace the placeholder by a call of your system."""


def answer(question: str) -> dict[str, object]:
    """The answer, and what it is based on: `contexts` are texts, or objects with `id`, `text` and `score`."""
    return {"answer": f"There is no answer to {question!r} yet.", "contexts": []}
'''


def write_for_answers(
    answers: Path, golden: Path | None, folder: Path, columns: Sequence[str], schema: str, *, force: bool = False
) -> list[Path]:
    """Write a spec for a file of answers; `golden` has the questions if the file does not. Returns what was written.

    Raises:
        UsageError: a file cannot be read, or has no answers, or the spec exists and `force` is false.
    """
    from rageval_spec.commands.first_spec.inspection import inspect_files

    findings = inspect_files(golden or answers, answers, folder, _parse_columns(columns))
    if findings.system is None:
        advice = "name the column with --column answer=NAME, or write a spec for the questions alone with --from"
        raise UsageError(f"{answers} has no answers of a system; {advice}")
    return _write(findings, answers, folder, None, schema, force=force)


def write_for_tool(
    tool: Tool, path: Path, folder: Path, columns: Sequence[str], schema: str, *, force: bool = False
) -> list[Path]:
    """Write a spec for the files of another tool. Returns what was written.

    Raises:
        UsageError: they cannot be read, or the spec exists and `force` is false.
    """
    from rageval_spec.commands.first_spec.inspection import inspect_files

    if tool == "beir" and not path.is_dir():
        raise UsageError(f"{path} is not a folder; a BEIR dataset is one with corpus.jsonl, queries.jsonl and qrels/")
    if tool != "beir" and path.is_dir():
        path = _find_config(tool, path)
    findings = inspect_files(path, None if tool == "beir" else path, folder, _parse_columns(columns))
    return _write(findings, path, folder, tool, schema, force=force)


def _find_config(tool: Tool, folder: Path) -> Path:
    found = next((folder / name for name in _PROMPTFOO if (folder / name).is_file()), None)
    if tool != "promptfoo" or found is None:
        raise UsageError(f"{folder} is a folder; name the file with the questions")
    return found


def _parse_columns(columns: Sequence[str]) -> dict[str, str]:
    from rageval_spec.reading.answer_columns import AnswerColumns
    from rageval_spec.reading.questions import QuestionColumns

    known = sorted({*QuestionColumns.model_fields, *AnswerColumns.model_fields, "relevant"} - {"doc_id", "score"})
    found = dict(_split_column(column) for column in columns)
    for part in found:
        if part not in known:
            raise UsageError(f"--column {part}: there is no such part; write one of {', '.join(known)}")
    return found


def _split_column(column: str) -> tuple[str, str]:
    part, equals, name = column.partition("=")
    if not (equals and part.strip() and name.strip()):
        raise UsageError(f"--column {column!r}: write PART=NAME, such as text=Frage")
    return part.strip(), name.strip()


def _write(
    findings: Findings, source: Path, folder: Path, tool: Tool | None, schema: str, *, force: bool
) -> list[Path]:
    """Write the spec, its schema, and a function to fill in if nothing answers the questions."""
    from rageval_spec.commands.first_spec.text import PLACEHOLDER, is_retrieval, write_text
    from rageval_spec.spec import load

    texts = {SPEC: write_text(findings, source.resolve().name.partition(".")[0] or "evaluation", SPEC, tool)}
    if findings.system is None and not is_retrieval(findings):
        texts[PLACEHOLDER] = _FUNCTION
    there = [name for name in texts if (folder / name).exists()]
    if there and not force:
        raise UsageError(f"{folder / there[0]} already exists; name another folder, or overwrite it with --force")
    texts[SCHEMA] = schema
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from error
    load(folder / SPEC)
    return [folder / name for name in texts]
