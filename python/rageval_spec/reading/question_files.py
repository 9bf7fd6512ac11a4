"""Reads what files say about questions besides their text: gold answers, contexts, answerability, conditions.

The names are those of ragas (old and new), DeepEval (both spellings) and common question answering sets. Columns that
no part is read from are kept as they are: difficulty, category, tags, expectations.

Duplicate ids in small files are found before anything runs.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from rageval_spec.data.tables import references_of
from rageval_spec.errors import DataError
from rageval_spec.reading.formats import column_layouts
from rageval_spec.reading.rows import parse_list, refuse_absent
from rageval_spec.recorded.answers_and_steps import UnusableReplyError, is_missing, read_contexts, read_text

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.samples import Part


REFERENCES = (
    "reference", "ground_truth", "ground_truths", "expected_output", "expectedOutput", "reference_answer", "answers",
    "expected_answer", "ground_truth_answer", "expected_response",
)  # fmt: skip
"""And `answer`, unless it is a system's answer."""
REFERENCE_CONTEXTS = ("reference_contexts", "ground_truth_contexts")
"""And `context`, unless a system retrieved it."""
RELEVANT = ("relevant", "relevant_doc_ids", "reference_context_ids", "qrels", "chunk_id")
ANSWERABLE, UNANSWERABLE = ("answerable", "is_answerable"), ("unanswerable", "is_impossible")
ANSWERS = ("response", "actual_output", "actualOutput", "prediction", "generated_answer", "output", "completion")
"""And `answer`."""
CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "retrievalContext")
"""And `context`, unless it is a reference context."""
_MEASURED = (
    *("latency", "latency_ms", "latencyMs", "seconds", "cost"),
    *("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens"),
)
"""Columns that only files of answers have: what an answer took."""
_PARTS = ("reference", "reference_contexts", "answerable", "unanswerable", "group", "condition")
KNOWN_NAMES = frozenset(
    (*REFERENCES, "answer", *REFERENCE_CONTEXTS, "context", *ANSWERABLE, *UNANSWERABLE, "group", "condition")
)
_DEEPEVAL = frozenset({"expected_output", "expectedOutput", "actual_output", "actualOutput", *CONTEXTS[2:]})
_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


class QuestionColumns(column_layouts.QueryColumns):
    """The names of the columns of the questions."""

    query_id: str | None = Field(
        default=None, description="The query's id. Default: `query_id`, `_id`, `id`, `question_id` or `qid`."
    )
    text: str | None = Field(
        default=None,
        description="The query's text. Default: `query`, `question`, `text`, `user_input`, `input` or `prompt`.",
    )
    reference: str | None = Field(
        default=None,
        description=(
            "The gold answer, or a list of alternatives. Default: `reference`, `ground_truth`, `ground_truths`, "
            "`expected_output`, `expectedOutput`, `reference_answer`, `answers`, `expected_answer`, "
            "`ground_truth_answer` or `expected_response`, and `answer` unless it is a system's."
        ),
    )
    reference_contexts: str | None = Field(
        default=None,
        description=(
            "The texts that contain the gold answer. Default: `reference_contexts` or `ground_truth_contexts`, and "
            "`context` unless a system retrieved it."
        ),
    )
    answerable: str | None = Field(
        default=None,
        description="Whether the documents contain an answer: true or false. Default: `answerable` or `is_answerable`.",
    )
    unanswerable: str | None = Field(
        default=None, description="The opposite of `answerable`. Default: `unanswerable` or `is_impossible`."
    )
    group: str | None = Field(
        default=None, description="The group of variants of one question under different conditions. Default: `group`."
    )
    condition: str | None = Field(
        default=None, description="The condition of a question within its group: clean, noisy. Default: `condition`."
    )


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def normalise(name: str) -> str:
    """A name in snake case: `Ground Truth`, `groundTruth` and `ground-truth` are `ground_truth`."""
    return "_".join(_HUMP.sub(" ", name).casefold().replace("-", " ").replace("_", " ").split())


def spell_alike(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with their names in snake case beside their own; a name that is there already keeps its value."""
    return {**{normalise(name): value for name, value in values.items()}, **values}


_GOLD = frozenset({*column_layouts.GOLD_WORDS, "golden", "ideal", "correct", "reply", "response", "output"})
_SHORT, _LONG = ("|".join(sorted(word for word in _GOLD if (len(word) > 4) == is_long)) for is_long in (False, True))
_GOLD_NOUN = re.compile(rf"(?:^(?:{_SHORT})|(?:{_LONG}))(?:|s|es|n|en)$")
"""Long ones may end a compound: `goldanswers`, `Musterantwort`."""
_NOT_A_KIND = frozenset({"text", "texts", "value", "values", "string", "content", "standard", "label", "field"})
_ABOUT = frozenset({"is", "has", "num", "n", "no", "by", "at", "id", "nr"})
"""Words that make a column one about answers, and not one of answers: `has_answer`, `answer_id`."""
_PEOPLE = frozenset({"expert", "experts", "human", "humans", "annotator", "annotators", "specialist", "sme"})
_WRITTEN = frozenset({"summary", "version", "wording", "written", "text"})


def may_be_gold(name: str) -> bool:
    """Whether a column of this name may hold gold answers, by the noun that its name ends in.

    `gold_standard`, `answer2` and `answer_de` may, `answer_start`, `has_answer` and `expected_tools` may not.
    """
    words = re.findall(r"[^\W\d_]+", normalise(name))
    if not words or words[0] in _ABOUT:
        return False
    if _is_of_people(words):
        return True
    while len(words) > 1 and (words[-1] in _NOT_A_KIND or (len(words[-1]) == 2 and words[-1] not in _ABOUT)):
        words.pop()
    return _GOLD_NOUN.search(words[-1]) is not None


def _is_of_people(words: Sequence[str]) -> bool:
    """Whether the words of a name say that people wrote the text: `summary_by_expert`, but not `checked_by_expert`."""
    *before, last = words
    if last in _PEOPLE and before:
        is_written = before[-1] == "by" and not (len(before) > 1 and before[-2].endswith("ed"))
        return is_written or _GOLD_NOUN.search(before[-1]) is not None
    return words[0] in _PEOPLE and last in _WRITTEN


def find_rivals(present: Collection[str], part: str = "reference") -> list[str]:
    """The columns that may be the gold answers as well as `answer`, which no other column shows to be a system's.

    None of them has a known name. Without rivals, `answer` is the gold answer. Where several columns beside `answer`
    have known names of gold answers, these are the rivals of the `reference`: one may be a source.
    """
    known = [name for name in REFERENCES if name in present]
    if part == "reference" and "answer" in present and len({normalise(name).removesuffix("s") for name in known}) > 1:
        return known
    if "answer" not in present or "answer" in answers_in(present) or any(name in present for name in REFERENCES):
        return []
    taken = {"answer", "context", *ANSWERS, *CONTEXTS, *RELEVANT, *REFERENCE_CONTEXTS, *column_layouts.QUESTIONS}
    labels = ("label", "labels") if "prediction" in present else ()
    return [name for name in present if normalise(name) not in taken and (may_be_gold(name) or name in labels)]


def explain_rivals(rivals: Sequence[str], part: str, setting: str = "columns") -> tuple[str, str]:
    """Why a file with rivals of `answer` is refused, and what to write.

    Args:
        rivals: the columns besides `answer`.
        part: what is read from the file: the `reference` of a dataset, or the `answer` of a system.
        setting: the key of the spec that gives names to columns.
    """
    if rivals[0] in REFERENCES:
        ways = [column_layouts.write_mapping(setting.split("."), {part: name}) for name in rivals]
        listed = " or ".join(map(repr, rivals))
        return f"the gold answers may be in {listed}, and nothing says which", f"write {' or '.join(ways)}"
    says, other = ("gold answers", "a system's") if part == "reference" else ("system's answers", "the gold answer")
    listed = " or ".join(map(repr, ("answer", *rivals)))
    rival, own = (column_layouts.write_mapping(setting.split("."), {part: name}) for name in (rivals[0], "answer"))
    return (
        f"the {says} may be in {listed}, and nothing shows which",
        f"write {rival} if 'answer' is {other}, or else {own}",
    )


def answers_in(present: Collection[str]) -> tuple[str, ...]:
    """The names of a file's columns with a system's answers, best first.

    Without a column of references, contexts, traces, or of what an answer took, `answer` is a gold answer, as in
    question answering sets.
    """
    found = tuple(name for name in ANSWERS if name in present)
    shows = (*REFERENCES, *CONTEXTS, "trace", *_MEASURED)
    if "answer" in present and not found and any(name in present for name in shows):
        return ("answer",)
    return found


def contexts_in(present: Collection[str]) -> tuple[str, ...]:
    """The names of a file's columns with the contexts that a system retrieved."""
    found = tuple(name for name in CONTEXTS if name in present)
    if "context" in present and not found and not _DEEPEVAL & set(present):
        return ("context",)
    return found


def _names(present: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Find the parts of questions in a file with these columns."""
    references = tuple(name for name in REFERENCES if name in present)
    if not references and "answer" in present and "answer" not in answers_in(present):
        references = ("answer",)
    contexts = tuple(name for name in REFERENCE_CONTEXTS if name in present)
    if "context" in present and not (answers_in(present) and "context" in contexts_in(present)):
        contexts = (*contexts, "context")
    return {
        "reference": references,
        "reference_contexts": contexts,
        "answerable": ANSWERABLE,
        "unanswerable": UNANSWERABLE,
        "group": ("group",),
        "condition": ("condition",),
    }


def list_other_names(present: Collection[str], columns: QuestionColumns, others: Collection[str]) -> list[str]:
    """The names of a question file's columns that no part is read from and that hold nothing that a system made.

    Args:
        present: the names of all columns.
        columns: the names that the spec gives to parts.
        others: the columns that the ids, the texts and the relevant documents are read from.
    """
    read = {name for known in find_question_names(columns, present).values() for name in known}
    taken = {*read, *others, *answers_in(present), *contexts_in(present)}
    return [name for name in dict.fromkeys(present) if name not in taken]


class QuestionRow(NamedTuple):
    """One row: its line, its question, and its values by name."""

    place: str
    query_id: str
    values: Mapping[str, Any]


def references_table(
    path: Path, rows: Iterable[QuestionRow], columns: QuestionColumns, setting: str
) -> pl.DataFrame | None:
    """`tables.REFERENCES`, one row per question; None if no question has any of these fields.

    `setting` is the key of the spec that gives names to columns. A gold answer that is empty is none.

    Raises:
        DataError: a column that the spec names is nowhere; a value that is not what it should be.
    """
    read, present = _keep_usable(rows, columns)
    names = _choose(path, columns, present, setting)
    if not any(name in present for known in names.values() for name in known):
        return None
    return references_of(_known(row, names) for row in read)


def _keep_usable(rows: Iterable[QuestionRow], columns: QuestionColumns) -> tuple[list[QuestionRow], set[str]]:
    """The rows without fields that no part is read from, such as a system's answers; and the names of all fields."""
    usable = {name for part in _PARTS if (name := getattr(columns, part)) is not None} | KNOWN_NAMES
    present: set[str] = set()
    read: list[QuestionRow] = []
    for row in rows:
        present.update(row.values)
        kept = {name: value for name, value in row.values.items() if name in usable}
        read.append(QuestionRow(row.place, row.query_id, kept))
    return read, present


def _choose(path: Path, columns: QuestionColumns, present: Collection[str], setting: str) -> dict[str, tuple[str, ...]]:
    mapped = {part: name for part in _PARTS if (name := getattr(columns, part)) is not None}
    refuse_absent(path, mapped, present, setting, "")
    if columns.reference is None and (rivals := find_rivals(present)):
        raise DataError(f"{path}: {'; '.join(explain_rivals(rivals, 'reference', setting))}")
    return find_question_names(columns, present)


def find_question_names(columns: QuestionColumns, present: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The columns of each part in a file with these columns: the one that the spec names, or those with known names."""
    names = _names(present)
    names.update((part, (name,)) for part in _PARTS if (name := getattr(columns, part)) is not None)
    if columns.answerable is not None and columns.unanswerable is None:
        names["unanswerable"] = ()
    return names


_PARTS_OF_SAMPLES: Mapping[str, Part] = {
    "reference": "reference",
    "reference_contexts": "reference_contexts",
    "answerable": "answerable",
    "unanswerable": "answerable",
    "group": "group",
    "condition": "condition",
    "relevant": "relevant",
}


def find_filled(rows: Iterable[Mapping[str, Any]], names: Mapping[str, Sequence[str]]) -> frozenset[Part]:
    """The parts of samples that any row has a value for.

    Args:
        rows: the rows.
        names: the columns of each part, as `find_question_names` gives them, and those of `relevant`.
    """
    wanted = {part: names.get(part, ()) for part in _PARTS_OF_SAMPLES}
    filled: set[Part] = set()
    for row in rows:
        for part, known in [*wanted.items()]:
            if any(not is_missing(value := row.get(name)) and value not in ([], {}) for name in known):
                filled.add(_PARTS_OF_SAMPLES[part])
                del wanted[part]
        if not wanted:
            break
    return frozenset(filled)


def _known(row: QuestionRow, names: Mapping[str, tuple[str, ...]]) -> tuple[Any, ...]:
    return (
        row.query_id,
        _read(row, names["reference"], _read_references) or [],
        _read(row, names["reference_contexts"], _read_contexts),
        _read_answerable(row, names),
        _read(row, names["group"], _read_label),
        _read(row, names["condition"], _read_label),
    )


def _read(row: QuestionRow, names: Iterable[str], read: Callable[[Any, str], Any]) -> Any:
    """The first of the named values that is neither null nor an empty text."""
    for name in names:
        value = row.values.get(name)
        if is_missing(value):
            continue
        try:
            return read(parse_list(row.place, f"'{name}'", value), f"'{name}'")
        except UnusableReplyError as error:
            raise DataError(f"{row.place}: {error}") from error
    return None


def _read_references(value: Any, what: str) -> list[str]:
    if isinstance(value, Mapping) and isinstance(value.get("text"), (list, tuple)):  # SQuAD: texts and their places
        value = value["text"]
    items = value if isinstance(value, (list, tuple)) else [value]
    texts = [read_text(item, f"{what}[{place}]" if items is value else what) for place, item in enumerate(items)]
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _read_contexts(value: Any, what: str) -> list[str]:
    if isinstance(value, Mapping):  # a data frame's columns in the place of its rows, as hubs keep HotpotQA, PubMedQA
        value = next((value[key] for key in ("sentences", "contexts") if isinstance(value.get(key), list)), value)
    if isinstance(value, (list, tuple)):
        value = [_join_sentences(item) for item in value]
    return list(read_contexts(value, what).texts)


def _join_sentences(item: Any) -> Any:
    """A list of sentences, or a title and such a list, as HotpotQA has them, become the sentences' text."""
    is_pair = isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[1], (list, tuple))
    sentences = item[1] if is_pair else item
    is_text = isinstance(sentences, (list, tuple)) and all(isinstance(text, str) for text in sentences)
    return "".join(sentences) if is_text else item


def _read_answerable(row: QuestionRow, names: Mapping[str, tuple[str, ...]]) -> bool | None:
    found = _read(row, names["answerable"], _read_truth)
    if found is not None:
        return bool(found)
    contrary = _read(row, names["unanswerable"], _read_truth)
    return None if contrary is None else not contrary


def _read_truth(value: Any, what: str) -> bool:
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().lower()
    if text in _YES or text in _NO:
        return text in _YES
    raise UnusableReplyError(f"{what} must be true or false, not {str(value)[:60]!r}")


def _read_label(value: Any, what: str) -> str:
    return read_text(value, what)


_ROWS_AT_ONCE = 4096


def other_columns_table(rows: Iterable[tuple[str, Mapping[str, Any]]], names: Collection[str]) -> pl.DataFrame | None:
    """`query_id, columns`: for each row, the values of the columns `names` as a JSON object with sorted keys.

    A name that a row lacks is not in its object. None if there are no names.

    Args:
        rows: the query id and the named values of each row.
        names: the columns to keep.
    """
    import polars as pl

    if not names:
        return None
    schema = {"query_id": pl.String, "columns": pl.String}
    frames = [pl.DataFrame(schema=schema)]
    kept = ((query_id, dump_columns({name: row[name] for name in names if name in row})) for query_id, row in rows)
    while block := list(islice(kept, _ROWS_AT_ONCE)):  # Python's texts take more memory than the table
        frames.append(pl.DataFrame(block, schema=schema, orient="row"))
    return pl.concat(frames)


def dump_columns(values: Mapping[str, Any]) -> str:
    """The values as a compact JSON object with sorted keys.

    Numbers that JSON does not have (NaN, infinity) become null, bytes become base64, and dates and other values become
    text. Half of a surrogate pair stays an escape.
    """
    try:
        text = _dump(values)
    except ValueError:
        text = _dump(_without_infinities(values))
    return text.encode("utf-8", "backslashreplace").decode()


def _dump(values: Any) -> str:
    return json.dumps(
        values, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_as_text
    )


def _as_text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _without_infinities(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_infinities(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_MOST_BYTES = 8_000_000
"""Larger files are checked when they are read: at this size, the check takes as long as `validate` itself."""
_COMPRESSED = (".gz", ".zst")


def find_twice(path: Path, rows: Iterable[tuple[str, Mapping[str, Any]]], keys: Sequence[str]) -> str | None:
    """The first duplicate query id and where it is; None if there is no duplicate or the file is too large.

    Args:
        path: the file, for its size.
        rows: the place of each row (`file:line`) and its values by name.
        keys: the names the id may have; the first one in a row is used. Rows without any of them are skipped.
    """
    try:
        if path.stat().st_size > (_MOST_BYTES // 8 if path.suffix in _COMPRESSED else _MOST_BYTES):
            return None
        seen: dict[str, str] = {}
        for place, row in rows:
            query_id = next((row[key] for key in keys if key in row), None)
            if isinstance(query_id, str | int) and (first := seen.setdefault(str(query_id), place)) != place:
                return f"{place}: the query {str(query_id)!r} is listed twice, first at {first}"
    except (DataError, OSError):
        pass  # reported when the file is read
    return None
