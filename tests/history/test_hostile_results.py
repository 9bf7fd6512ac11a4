"""Results folders whose files somebody or something damaged: a command says what is wrong, and never breaks itself."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
import yaml

from rageval_spec import load_results
from rageval_spec.data.datasets import FINGERPRINTS_KEY
from rageval_spec.errors import DataError, RagevalError
from tests.command_line import invoke

ROUNDS = int(os.environ.get("RAGEVAL_FUZZ", "40"))
"""How many damaged folders are tried; each has its own seed."""
DEEP: list[Any] = []
for _ in range(900):
    DEEP = [DEEP]
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**30, 1e308, -1e308, 0.1, "", "x", "\ud800", "\0", "é" * 300, "2026-99-99", [], {},
    [None], {"x": None}, {"x": {"x": 1}}, [[["x"]]], DEEP, "__proto__", "../x", "\x1b[2J", float("nan"), float("inf"),
)  # fmt: skip
NESTED = pl.Struct({"a": pl.List(pl.Int8), "b": pl.String})


def write_questions(folder: Path) -> Path:
    """A spec with all that results hold: claims, contexts, slices, gates and an earlier evaluation."""
    texts = [f"The bridge number {number} is {number + 100} m long." for number in range(8)]
    rows: list[dict[str, Any]] = [
        {
            "query_id": f"q{number}",
            "question": f"How long is bridge {number}?",
            "reference": text,
            "kind": "ab"[number % 2],
        }
        for number, text in enumerate(texts)
    ]
    (folder / "golden.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, step in (("old", 3), ("new", 2)):
        answers = [
            {
                "query_id": f"q{number}",
                "answer": text if number % step else "It is 7 m long.",
                "contexts": [text, "Else."],
            }
            for number, text in enumerate(texts)
        ]
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    content = {
        "version": 1,
        "name": "bridges",
        "datasets": {"golden": {"use": "golden", "path": "golden.jsonl"}},
        "systems": {name: {"use": "file", "path": f"{name}.jsonl"} for name in ("old", "new")},
        "judges": {"words": {"use": "overlap"}},
        "metrics": [{"use": "faithfulness", "judge": "words"}, "token_f1", "exact_match"],
        "slices": ["kind"],
        "gates": [
            {"metric": "token_f1", "min": 0.2},
            {"metric": "token_f1", "system": "new", "baseline": "main", "max_drop": 0.5},
        ],
        "statistics": {"resamples": 100, "permutations": 100},
        "reports": ["json"],
        "diagnosis": {},
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(content))
    return folder / "spec.yaml"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec's folder with the results `out`, whose tables do not say to which evaluation they belong."""
    folder = tmp_path_factory.mktemp("hostile")
    spec = write_questions(folder)
    for output, more in (("first", ("--set", "gates=[]")), ("out", ())):
        result = invoke("run", spec, "-o", folder / output, "--save-as", "main", "--no-store", *more)
        assert result.exit_code == 0, result.stderr
    for path in (folder / "out").glob("*.parquet"):
        metadata = pl.read_parquet_metadata(path)
        kept = {key: text for key, text in metadata.items() if key == FINGERPRINTS_KEY}
        pl.read_parquet(path).write_parquet(path, metadata=kept)
    return folder


def list_commands(folder: Path, results: Path, whole: Path) -> list[tuple[Any, ...]]:
    """Commands that read results, each of which may write into `folder`."""
    return [
        ("show", results),
        ("show", "q2", results),
        ("show", results, "--format", "json"),
        ("compare", results, results),
        ("compare", whole / "first", results),
        ("compare", results, whole / "first", "--html", folder / "compare.html"),
        ("comment", results, "--dry-run", "--baseline", whole / "first"),
        ("audit", whole / "spec.yaml", "--results", results),
        ("calibrate", results),
        ("review", "select", results, "-o", folder / "form.html", "--random", "5"),
        ("history", "import", results, "--history", folder / "history.db"),
        ("export", "ragas", results, "-o", folder / "rows.jsonl"),
    ]


def damage_json(path: Path, random: Random) -> str:
    """Replace, remove or repeat values anywhere in a JSON file, and say which."""
    content = json.loads(path.read_bytes())
    told = []
    for _ in range(random.choice((1, 1, 2, 5))):
        places = list(_walk(content, ()))
        way = random.choice(places)
        inner: Any = content
        for step in way[:-1]:
            inner = inner[step]
        odd = random.choice(ODD)
        match random.randrange(4):
            case 0:
                del inner[way[-1]]
            case 1 if isinstance(inner, list):
                inner *= 2
            case 1:
                inner[random.choice(("x", "__proto__", ""))] = odd
            case _:
                inner[way[-1]] = odd
        told.append(f"{'.'.join(map(str, way))} = {str(odd)[:40]!r}")
        if not content:
            break
    path.write_text(json.dumps(content))
    return "; ".join(told)


def _walk(value: Any, way: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in pairs:
        yield (*way, step)
        if len(way) < 12:
            yield from _walk(inner, (*way, step))


def damage_table(path: Path, random: Random) -> str:
    """Change a column of a Parquet file, and say how."""
    metadata = pl.read_parquet_metadata(path)
    kept = {key: text for key, text in metadata.items() if key == FINGERPRINTS_KEY}
    table = pl.read_parquet(path)
    name = random.choice(table.columns)
    column, dtype = pl.col(name), table.schema[name]
    height = max(1, table.height)
    text = random.choice(
        ("", "{}", "[1]", "{" * 3_000, '{"a":' * 900 + "1" + "}" * 900, "x\0y", "é" * 300, "null", "1e999")
    )
    number = random.choice((-1, 2**62, 7, 0))
    changes: dict[str, Callable[[], pl.DataFrame]] = {
        "dropped": lambda: table.drop(name),
        "null": lambda: table.with_columns(pl.lit(None, dtype).alias(name)),
        "untyped": lambda: table.with_columns(pl.lit(None).alias(name)),
        "text": lambda: table.with_columns(pl.lit(text).alias(name)),
        "integers": lambda: table.with_columns(pl.lit(number).alias(name)),
        "floats": lambda: table.with_columns(pl.lit(random.choice((float("nan"), float("inf"), -1e308))).alias(name)),
        "lists": lambda: table.with_columns(pl.lit([[1], None]).alias(name)),
        "nested": lambda: table.with_columns(pl.lit({"a": [1], "b": text}, NESTED).alias(name)),
        "binary": lambda: table.with_columns(pl.lit(b"\xff\xfe").alias(name)),
        "times": lambda: table.with_columns(pl.lit(datetime(9999, 12, 31)).alias(name)),
        "categories": lambda: table.with_columns(pl.lit("x").cast(pl.Categorical).alias(name)),
        "wrapped": lambda: table.with_columns(pl.concat_list(column, column).alias(name)),
        "shuffled": lambda: table.with_columns(column.shuffle(seed=1)),
        "filled": lambda: table.with_columns(column.forward_fill().backward_fill()),
        "first": lambda: table.with_columns(column.first()),
        "twice": lambda: pl.concat([table, table]),
        "none": table.clear,
        "some": lambda: table.sample(height // 2, seed=1),
        "renamed": lambda: table.rename({name: f"{name} "}),
    }  # fmt: skip
    kind = random.choice([*changes])
    try:
        changed = changes[kind]()
    except pl.exceptions.PolarsError:
        return damage_table(path, random)
    changed.write_parquet(path, metadata=kept)
    return f"{name} {kind} {text[:20] if kind in ('text', 'nested') else number if kind == 'integers' else ''}"


def damage_bytes(path: Path, random: Random) -> str:
    """Cut, change or replace the bytes of a file, and say how."""
    content = path.read_bytes()
    at = random.randrange(len(content))
    kinds: dict[str, Callable[[], bytes]] = {
        "cut": lambda: content[:at],
        "beheaded": lambda: content[at:],
        "empty": lambda: b"",
        "flipped": lambda: content[:at] + bytes([content[at] ^ (1 << random.randrange(8))]) + content[at + 1 :],
        "flipped near the end": lambda: (
            content[: -(end := random.randrange(9, min(900, len(content) - 1)))]
            + bytes([random.randrange(256)])
            + content[-end + 1 :]
        ),
        "zeros": lambda: content[:at] + bytes(64) + content[at + 64 :],
        "UTF-16": lambda: "{}".encode("utf-16") + content,
        "JSON": lambda: json.dumps([DEEP]).encode(),
        "deep": lambda: b"[" * 100_000,
        "huge": lambda: content.replace(b"1", b"1" * 6_000, 1),
    }
    kind = random.choice([*kinds])
    path.write_bytes(kinds[kind]())
    return f"{kind} at {at}"


def damage_place(path: Path, random: Random) -> str:
    """Put something else in the place of a file, and say what."""
    kind = random.choice(("removed", "folder", "link to itself", "link to a device", "link out", "pipe"))
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "link to itself":
        path.symlink_to(path.name)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "link out":
        path.symlink_to("/etc/passwd")
    elif kind == "pipe":
        os.mkfifo(path)
    return kind


def damage(results: Path, random: Random) -> str:
    """Damage one or two files of a results folder."""
    told = []
    for _ in range(random.choice((1, 1, 1, 2))):
        path = random.choice(sorted(path for path in results.iterdir() if path.is_file()))
        ways = [damage_bytes, damage_place] + [damage_json if path.suffix == ".json" else damage_table] * 4
        try:
            told.append(f"{path.name}: {random.choice(ways)(path, random)}")
        except (ValueError, RecursionError, pl.exceptions.PolarsError, OSError):
            continue  # damaged beyond what can be damaged in this way
    return " / ".join(told)


def read_all(results: Path) -> None:
    """Read all that a program can ask of loaded results."""
    evaluation = load_results(results)
    _ = evaluation.gates, evaluation.values, evaluation.samples, evaluation.findings, evaluation.documents
    _ = evaluation.aggregates, evaluation.comparisons
    evaluation._repr_html_()
    evaluation.questions()._repr_html_()
    for word in ("html", "markdown", "csv", "parquet", "samples", "junit", "json"):
        evaluation.report(word)
    evaluation.save(results.parent / "again")


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_damaged_results_end_in_a_message(whole: Path, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    results = tmp_path / "results"
    shutil.copytree(whole / "out", results)
    what = damage(results, random)
    commands = list_commands(tmp_path, results, whole)
    for command in random.sample(commands, 3):
        ended = invoke(*command)
        assert not isinstance(ended.exception, Exception), (what, command, ended.exception)
        assert "internal error" not in ended.stderr, (what, command, ended.stderr)
    with suppress(RagevalError):
        read_all(results)


def test_what_is_no_file_is_named(whole: Path, tmp_path: Path) -> None:
    for name in ("results.json", "values.parquet", "samples.parquet", "documents.parquet"):
        results = tmp_path / f"with {name}"
        shutil.copytree(whole / "out", results)
        (results / name).unlink()
        os.mkfifo(results / name)
        with pytest.raises(RagevalError, match=f"{name}: this is a named pipe|is not a results folder"):
            load_results(results)


def test_a_context_that_is_no_document_is_an_error(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "out", tmp_path / "out")
    path = tmp_path / "out" / "documents.parquet"
    pl.read_parquet(path).head(2).write_parquet(path)
    with pytest.raises(
        DataError, match=r"samples.parquet: .* a context is document \d+, which the table of documents lack"
    ):
        _ = load_results(tmp_path / "out").samples


def test_deep_nesting_is_an_error(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "out", tmp_path / "out")
    (tmp_path / "out" / "results.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"results\.json is not a JSON report"):
        load_results(tmp_path / "out")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_lacks_is_an_error(whole: Path, tmp_path: Path, constant: str) -> None:
    shutil.copytree(whole / "out", tmp_path / "out")
    path = tmp_path / "out" / "results.json"
    path.write_text(path.read_text().replace('"mean": 1.0', f'"mean": {constant}'))
    assert constant in path.read_text()
    with pytest.raises(DataError, match=rf"results\.json is not a JSON report of rageval-spec: {constant}"):
        load_results(tmp_path / "out")
