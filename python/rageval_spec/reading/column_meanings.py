"""What the columns of a file mean: which have questions, gold answers, or what a system made."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rageval_spec.reading.column_names import (
    ANSWERABLE,
    ANSWERS,
    CONTEXT_IDS,
    CONTEXTS,
    KNOWN_NAMES,
    MEASURED,
    MILLISECONDS,
    NUMBERS,
    QUESTION_IDS,
    QUESTIONS,
    REFERENCE_CONTEXTS,
    REFERENCES,
    RELEVANT,
    RUN,
    SCORES,
    UNANSWERABLE,
    AnswerColumns,
    QuestionColumns,
    RecordColumn,
    may_be_gold,
    normalise,
)
from rageval_spec.recorded.messages import MESSAGES


def chosen_names(columns: Iterable[RecordColumn], present: Collection[str]) -> set[str]:
    """The names that `choose_keys` gives to the columns that the file has."""
    found = (next((name for name in column.known if name in present), None) for column in columns)
    return {name for name in found if name is not None}


_DEEPEVAL = frozenset({"expected_output", "expectedOutput", "actual_output", "actualOutput", *CONTEXTS[2:]})


def answers_in(present: Collection[str]) -> tuple[str, ...]:
    """The names of a file's columns with a system's answers, best first.

    Without a column of references, contexts, traces, or of what an answer took, `answer` is a gold answer, as in
    question answering sets.
    """
    found = tuple(name for name in ANSWERS if name in present)
    shows = (*REFERENCES, *CONTEXTS, "trace", *MEASURED)
    if "answer" in present and not found and any(name in present for name in shows):
        return ("answer",)
    return found


def contexts_in(present: Collection[str]) -> tuple[str, ...]:
    """The names of a file's columns with the contexts that a system retrieved."""
    found = tuple(name for name in CONTEXTS if name in present)
    if "context" in present and not found and not _DEEPEVAL & set(present):
        return ("context",)
    return found


def find_question_names(columns: QuestionColumns, present: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The columns of each part in a file with these columns: the one that the spec names, or those with known names."""
    references = tuple(name for name in REFERENCES if name in present)
    if not references and "answer" in present and "answer" not in answers_in(present):
        references = ("answer",)
    contexts = tuple(name for name in REFERENCE_CONTEXTS if name in present)
    if "context" in present and not (answers_in(present) and "context" in contexts_in(present)):
        contexts = (*contexts, "context")
    names: dict[str, tuple[str, ...]] = {
        "reference": references,
        "reference_contexts": contexts,
        "answerable": ANSWERABLE,
        "unanswerable": UNANSWERABLE if columns.answerable is None else (),
        "group": ("group",),
        "condition": ("condition",),
    }
    return names | {part: (name,) for part in names if (name := getattr(columns, part)) is not None}


def list_other_names(present: Collection[str], columns: QuestionColumns, others: Collection[str]) -> list[str]:
    """The names of a question file's columns that no part is read from and that hold nothing that a system made.

    `others` are the columns that the ids, the texts and the relevant documents are read from.
    """
    read = {name for known in find_question_names(columns, present).values() for name in known}
    taken = {*read, *others, *answers_in(present), *contexts_in(present)}
    return [name for name in dict.fromkeys(present) if name not in taken]


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
    taken = {"answer", "context", *ANSWERS, *CONTEXTS, *RELEVANT, *REFERENCE_CONTEXTS, *QUESTIONS}
    labels = ("label", "labels") if "prediction" in present else ()
    return [name for name in present if normalise(name) not in taken and (may_be_gold(name) or name in labels)]


def find_answer_names(
    columns: AnswerColumns, present: Sequence[str], steps: Sequence[str] = ()
) -> dict[str, tuple[str, ...]]:
    """The names of each part in a file with these columns: the one that the spec gives, or those with known names.

    `milliseconds` are where `seconds` has no name of its own. `steps` are the usual names of what an agent did.
    """

    def names(part: str, usual: Iterable[str]) -> tuple[str, ...]:
        mapped = getattr(columns, part)
        return tuple(name for name in usual if name in present) if mapped is None else (mapped,)

    is_conversation = not contexts_in(present) and "error" not in present
    answer = names("answer", answers_in(present) or ("answer", *([MESSAGES] if is_conversation else [])))
    contexts, ids = names("contexts", contexts_in(present)), names("context_ids", CONTEXT_IDS)
    return {
        "query_id": names("query_id", QUESTION_IDS),
        "question": names("question", (name for name in QUESTIONS if name not in answer)),
        "answer": answer,
        "contexts": contexts,
        "context_ids": ids,
        "scores": names("scores", SCORES if contexts or ids else ()),
        "error": names("error", ("error",)),
        "steps": names("steps", steps),
        "named_steps": names("steps", ()),  # only the one that the spec gives
        **{part: names(part, usual) for part, usual in NUMBERS.items()},
        "milliseconds": () if columns.seconds else tuple(name for name in MILLISECONDS if name in present),
    }


def list_other_answer_columns(names: Mapping[str, Sequence[str]], present: Iterable[str]) -> list[str]:
    """The columns of a file that no part is read from, and `scores`, in which other scores can be."""
    read = {name for part, known in names.items() if part != "scores" for name in known}
    return [name for name in present if name not in read]


def holds_answers(present: Collection[str], columns: AnswerColumns) -> bool:
    """Whether a file with these columns contains answers rather than a run."""
    if columns.answer is not None or columns.contexts is not None:
        return True
    if any(name in present for name in (columns.doc_id, *RUN[1].known)):
        return False
    return bool(answers_in(present) or contexts_in(present) or {"answer", "error", "messages"} & set(present))


_PROVIDER_FAILED = 2
"""What promptfoo writes as `failureReason` if the provider failed, and not an assertion."""


def unwrap(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Flatten a row of promptfoo, whose `response` contains the output and the tokens.

    Where a response has an output, the row's error only says which assertion failed, so it is left out.
    """
    response = row.get("response")
    if not isinstance(response, Mapping):
        return row
    usage = response.get("tokenUsage")
    tokens = usage if isinstance(usage, Mapping) else {}
    flat = {"input_tokens": tokens.get("prompt"), "output_tokens": tokens.get("completion")}
    found = {key: value for key, value in flat.items() if value is not None}
    output = response.get("output")
    if output is not None and row.get("failureReason") != _PROVIDER_FAILED and "error" in row:
        found["error"] = None
        row = {key: value for key, value in row.items() if key != "error"}
    is_text = output is None or isinstance(output, str)
    return {**found, **row, "response": output if is_text else json.dumps(output, ensure_ascii=False)}


_EXACT = frozenset({*QUESTIONS, *ANSWERS, "answer"})
_FOLDED = frozenset({*QUESTION_IDS, *QUESTIONS, *KNOWN_NAMES, *ANSWERS, *CONTEXTS, *RELEVANT})
_ALIASED: Mapping[str, frozenset[str]] = {
    "query_id": frozenset(QUESTION_IDS),
    "text": frozenset(QUESTIONS),
    "reference": frozenset(REFERENCES),
    "reference_contexts": frozenset(REFERENCE_CONTEXTS),
    "answerable": frozenset(ANSWERABLE[1:]),
    "unanswerable": frozenset(UNANSWERABLE[1:]),
    "relevant": frozenset(RELEVANT),
    "answer": frozenset({*ANSWERS, "answer"}),
    "contexts": frozenset(CONTEXTS),
}
"""The names of parts that columns in other spellings are read as even beside exact names of other parts."""


def spells_freely(names: Iterable[str], named: Collection[str]) -> bool:
    """Whether all known names may be spelled in another way: no question or answer is named or has an exact name."""
    return {"text", "answer"}.isdisjoint(named) and _EXACT.isdisjoint(names)


def find_spellings(names: Iterable[str], named: Collection[str], kept: Collection[str] = ()) -> dict[str, str]:
    """The columns whose names differ from known ones only in case, spaces or hyphens, each with the known name.

    Beside exact names of questions or answers, only parts without an exact name are read so: `ID` beside `question` is
    the id, but `Group` is not the group. Of several columns that stand for one name, the first has it.

    `named` are the parts for which the spec names a column, and `kept` the columns that stay as they are.
    """
    present = list(names)
    parts = [words for part, words in _ALIASED.items() if part not in named and words.isdisjoint(present)]
    wanted = (_FOLDED if spells_freely(present, named) else frozenset[str]().union(*parts)) - {*present}
    found: dict[str, str] = {}
    for name in present:
        known = normalise(name)
        if known in wanted and name not in _FOLDED and name not in kept and known not in found.values():
            found[name] = known
    return found
