"""promptfoo: results in, and tests with the answers already in them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.data.traces import Feedback, TraceLink
from rageval_spec.exchange.shared.connections import read_object
from rageval_spec.exchange.shared.contracts import FileTarget, TargetNode
from rageval_spec.exchange.shared.row_files import RowFileSource
from rageval_spec.exchange.shared.scores import drop_unknown, list_rows
from rageval_spec.reading.column_meanings import unwrap
from rageval_spec.reading.column_names import QUESTIONS, REFERENCES
from rageval_spec.recorded.answers_and_steps import UnusableReplyError

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_CONTEXTS = ("contexts", "context")
_GOLD = frozenset({"equals", "contains", "icontains", "similar", "factuality", "answer-relevance", "context-recall"})
"""The assertions whose value is a gold answer, if it is a text."""


class PromptfooSource(RowFileSource):
    tool = "promptfoo"
    summary = "Read the results of promptfoo: what `promptfoo eval -o results.json` wrote."
    examples = ("import promptfoo results.json -o answers.jsonl",)

    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        variables = row.get("vars")
        if not isinstance(variables, Mapping):
            raise UnusableReplyError("the row has no 'vars'; name the file that promptfoo eval -o results.json wrote")
        response = row.get("response")
        reply = response if isinstance(response, Mapping) else {"output": response}
        tokens = read_object(reply.get("tokenUsage"))
        milliseconds = row.get("latencyMs")
        others = {"question", *QUESTIONS, *REFERENCES, *_CONTEXTS}
        provider = row.get("provider")
        flat = unwrap({**row, "response": reply})
        return {
            "id": row.get("id"),
            "link": _find_link(row),
            "question": _first(variables, QUESTIONS) or _raw_prompt(row),
            "answer": flat["response"],
            "contexts": _first(variables, _CONTEXTS),
            "reference": _first(variables, REFERENCES) or _find_gold(row),
            "error": flat.get("error") or None,
            "seconds": milliseconds / 1000 if isinstance(milliseconds, (int, float)) else None,
            "input_tokens": tokens.get("prompt"),
            "output_tokens": tokens.get("completion"),
            "cost": row.get("cost"),
            "model": provider.get("id") if isinstance(provider, Mapping) else provider,
            "feedback": [*_list_grades(row.get("gradingResult"))],
            "metadata": {name: value for name, value in variables.items() if name not in others},
        }


def _find_link(row: Mapping[str, Any]) -> TraceLink | None:
    if not isinstance(row.get("id"), str):
        return None
    places = {name: str(row[key]) for name, key in (("test", "testIdx"), ("prompt", "promptIdx")) if key in row}
    return TraceLink("promptfoo", row["id"], others=places)


def _first(variables: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((variables[name] for name in names if variables.get(name) not in (None, "")), None)


def _raw_prompt(row: Mapping[str, Any]) -> str | None:
    prompt = row.get("prompt")
    raw = prompt.get("raw") if isinstance(prompt, Mapping) else prompt
    return raw if isinstance(raw, str) else None


def _find_gold(row: Mapping[str, Any]) -> str | None:
    """The value of the first assertion that compares with a gold answer."""
    asserts = read_object(row.get("testCase")).get("assert")
    for one in asserts if isinstance(asserts, list) else ():
        if isinstance(one, Mapping) and one.get("type") in _GOLD and isinstance(one.get("value"), str):
            return str(one["value"])
    return None


def _list_grades(found: Any) -> Iterator[Feedback]:
    parts = read_object(found).get("componentResults")
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, Mapping):
            continue
        asked = read_object(part.get("assertion"))
        score = part.get("score")
        yield Feedback(
            str(asked.get("metric") or asked.get("type") or "assert"),
            float(score) if isinstance(score, (int, float)) else None,
            label={True: "pass", False: "fail"}.get(part.get("pass")),  # type: ignore[arg-type]  # None has no label
            comment=part.get("reason") or None,
            source="program",
        )


class PromptfooTarget(FileTarget[TargetNode]):
    """Writes tests that hold the answers, so that promptfoo's assertions grade them without asking a provider."""

    filename = "promptfoo.yaml"
    suffixes = (".yaml", ".yml")
    summary = (
        "Write answers as tests of promptfoo, each with its answer as `providerOutput` and its values as metadata."
    )
    examples = ("export promptfoo rageval-results -o promptfoo.yaml",)

    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        import yaml

        tests = []
        for sample, values in list_rows(evaluation):
            variables = {
                "question": sample["question"],
                "contexts": sample["contexts"],
                "reference": next(iter(sample["references"]), None),
            }
            scored: dict[str, Any] = {metric: one["value"] for metric, one in values.items()}
            test = {
                "description": sample["query_id"],
                "vars": drop_unknown(variables),
                "providerOutput": sample["answer"],
                "metadata": {"dataset": sample["dataset"], "system": sample["system"], **scored},
            }
            tests.append(drop_unknown(test))
        text: str = yaml.safe_dump({"tests": tests}, allow_unicode=True, sort_keys=False, width=120)
        yield "", text.encode()


SOURCE = PromptfooSource
TARGET = PromptfooTarget
