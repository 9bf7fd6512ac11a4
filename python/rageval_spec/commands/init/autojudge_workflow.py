"""Writes a spec for a workflow of TREC AutoJudge, whose judge becomes metrics of ours.

A `workflow.yml` names the code of a judge and no data: topics and runs are in a list of datasets, such as the starter
kit's `datasets.yml`, in its folder or one above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec.commands.init.first_spec import path_from
from rageval_spec.errors import UsageError
from rageval_spec.reading.row_sources import RowFile

_KEYS = ("judge_class", "nugget_class", "qrels_class", "create_nuggets", "create_qrels", "judge")
_MOST_ABOVE = 5
_HEAD = """\
# yaml-language-server: $schema=spec.schema.json
# Run it with `rageval-spec run spec.yaml`. It needs no model and no network.
# In AutoJudge, the code {judge} judges these runs.
# That code is not run, and its settings are not read. The metrics below judge the same runs.
{compared}
version: 1
"""
_MODEL = """
# A language model judges better than shared words. Remove the number signs; AutoJudge reads the same variables.
# Nuggets: rageval-spec generate nuggets spec.yaml --system NAME, and `nuggets: nuggets.jsonl` in the dataset.
# models:
#   llm: {use: chat, base_url: "${OPENAI_BASE_URL}", model: "${OPENAI_MODEL}", api_key: "${secret:OPENAI_API_KEY}"}
# judges:
#   assign: {use: assignment, model: llm}
#   support: {use: claims, model: llm, split: sentences}
"""
_JUDGED = """\
# - {use: nuggets, judge: assign}
# - {use: citation_support, judge: support, as: support}
"""


class _Data(NamedTuple):
    """The topics of a dataset, the file of each run by its id, whether runs have texts, and what people found."""

    name: str
    topics: Path
    runs: Mapping[str, Path]
    has_texts: bool
    truth: Path


def write_text(path: Path, folder: Path) -> str:
    """The YAML of the spec in `folder`. Raises UsageError: it is no workflow, or there are no topics or no runs."""
    import yaml

    workflow = _read(path)
    if not any(key in workflow for key in _KEYS):
        raise UsageError(f"{path} is no workflow of AutoJudge: it has none of the keys {', '.join(_KEYS)}")
    data = next(_find_data(path), None)
    if data is None:
        told = "names topics and responses that are there; write one: datasets: [{name, topics, responses}]"
        raise UsageError(f"no file such as datasets.yml beside {path} or above it {told}")
    settings = workflow.get("settings")
    filebase = settings.get("filebase") if isinstance(settings, dict) else None
    board = f"{str(filebase or path.resolve().parent.name).replace('{_name}', 'default')}.eval.txt"
    nuggets = path.parent / str(workflow.get("nugget_input") or "")
    dataset = {"use": "trec", "queries": path_from(data.topics, folder)}
    dataset |= {"nuggets": path_from(nuggets, folder)} if nuggets.is_file() else {}
    words = (("citation_support", data.has_texts), ("nuggets", nuggets.is_file()))
    metrics = ["citation_validity", *({"use": use, "judge": "overlap"} for use, has in words if has), "error_rate"]
    reports = ["terminal", "json", {"use": "leaderboard", "form": "ir_measures", "path": board}]
    systems = {name: {"use": "file", "path": path_from(run, folder)} for name, run in data.runs.items()}
    compared = f"rageval-spec calibrate --leaderboards {path_from(data.truth, folder)} rageval-results/{board}"
    compared = f"# Compare with people: {compared}\n" if data.truth.is_file() else ""
    head = _HEAD.format(judge=workflow.get("judge_class") or "a class of Python", compared=compared)
    asked, measured, told = (
        yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=10**6)
        for block in (
            {"name": data.name, "datasets": {data.name: dataset}, "systems": systems},
            {"metrics": metrics},
            {"reports": reports},
        )
    )
    return f"{head}{asked}{_MODEL}\n{measured}{_JUDGED}\n{told}"


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    return content if isinstance(content, Mapping) else {}


def _find_data(path: Path) -> Iterator[_Data]:
    """The datasets whose topics and runs are there, the nearest first."""
    for folder in path.resolve().parents[:_MOST_ABOVE]:
        for listing in sorted(folder.glob("*dataset*.y*ml")):
            listed = _read(listing).get("datasets")
            for named in filter(lambda one: isinstance(one, Mapping), listed if isinstance(listed, list) else ()):
                topics, responses, truth = (
                    folder / str(named.get(key, "")) for key in ("topics", "responses", "truth")
                )
                files = sorted(responses.rglob("*.jsonl*")) if "responses" in named else []
                if topics.is_file() and files:
                    rows = {one: next(RowFile(one, "json").read())[1] for one in files}
                    runs: dict[str, Path] = {}
                    for one, row in rows.items():
                        if runs.setdefault(name := str(row.get("run_id") or one.stem), one) != one:
                            raise UsageError(f"{one} and {runs[name]} have the run_id {name!r}; keep one of them")
                    has_texts = any("contexts" in row for row in rows.values())
                    yield _Data(str(named.get("name") or "runs"), topics, runs, has_texts, truth)
