"""Label Studio's JSON export: tasks with the annotations that people made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rageval_spec.errors import DataError
from rageval_spec.wording import list_choices

_VALUES: Mapping[str, str] = {"choices": "choices", "rating": "rating", "number": "number"}
"""The types of results that hold a value, and the key of the value."""
_TEXT = "textarea"
_OTHER_TYPES = "labels of answers come from Choices, Rating and Number, and comments from TextArea"
_CRITERIA = ("metric", "criterion", "aspect")


def is_task(row: Mapping[str, Any]) -> bool:
    """Whether an object is a task of an export."""
    return isinstance(row.get("annotations"), list) and isinstance(row.get("data"), dict)


def flatten_tasks(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a place and a row for each value that a person gave.

    A row has what the task's `data` has, and `value`, `metric`, `annotator`, `time`, `comment` and `adjudicated`. The
    criterion is the task's own (`metric`) if an annotation has one value, else the `name` of the control. Text boxes
    are the comment on all values of their annotation. An annotation that is marked as ground truth is adjudicated.
    Skipped tasks, drafts and predictions are left out.

    Raises:
        DataError: an object is not a task, a result is of a type that holds no label, or several choices were made.
    """
    for place, task in rows:
        if not is_task(task):
            raise DataError(
                f"{place}: this is not a task of Label Studio with 'data' and 'annotations'; export the project as JSON"
            )
        where = f"{place}: task {task['id']}" if "id" in task else place
        for annotation in task["annotations"]:
            if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
                yield from _flatten(where, task["data"], annotation)


def _flatten(
    place: str, data: Mapping[str, Any], annotation: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    found = annotation.get("result")
    results = [one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict)]
    results = [{**one, "type": str(one.get("type"))} for one in results]
    values = {str(one.get("from_name")): _read_value(place, one) for one in results if one.get("type") in _VALUES}
    other = next((one for one in results if one.get("type") not in (*_VALUES, _TEXT)), None)
    if other is not None:
        raise DataError(f"{place}: '{other.get('from_name')}' is of the type {other.get('type')}; {_OTHER_TYPES}")
    own = next((data[name] for name in _CRITERIA if data.get(name)), None) if len(values) == 1 else None
    for name, value in values.items():
        yield (
            place,
            {
                **data,
                "value": value,
                "metric": name if own is None else own,
                "annotator": _name_person(annotation.get("completed_by")),
                "time": annotation.get("created_at"),
                "comment": "\n".join(_list_texts(results)),
                "adjudicated": bool(annotation.get("ground_truth")),
            },
        )


def _read_value(place: str, result: Mapping[str, Any]) -> Any:
    held = result.get("value")
    found = held.get(_VALUES[str(result["type"])]) if isinstance(held, dict) else None
    if not isinstance(found, list):
        return found
    if len(found) > 1:
        raise DataError(
            f"{place}: '{result.get('from_name')}' has the choices {list_choices([*map(str, found)])}; "
            'a label is one: write choice="single" in the labelling configuration'
        )
    return found[0] if found else None


def _list_texts(results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for result in results:
        held = result.get("value")
        if result.get("type") == _TEXT and isinstance(held, dict):
            texts = held.get("text")
            yield from map(str, texts if isinstance(texts, list) else [texts or ""])


def _name_person(person: Any) -> str:
    """Who annotated: an id, or an object with an e-mail address."""
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    return "" if person is None else str(person)
