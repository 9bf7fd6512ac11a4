"""Checks one answer before a user sees it, also over HTTP: accept it, hold it back for a person, or reject it.

The spec's metrics of answers measure it, and its gates decide: below a gate's `min` (above its `max`) the answer is
rejected, short of its `target` a person decides. A judge of stages, such as `waterfall`, decides by itself. What cannot
be measured, because a judge fails or a part is missing, goes to a person: nothing unknown is accepted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.judging.composition import TO_A_PERSON
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.answer_values import compute, list_usable
from rageval_spec.plugin import AnswerMetric
from rageval_spec.serving.server import Page, make_app
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.blocks.spec_node import Spec

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Outcome: TypeAlias = Literal["accept", "person", "reject"]
_WORST: Sequence[Outcome] = ("reject", "person", "accept")
REJECTED = "rejected at"
"""How the reason of an answer begins that a judge of stages rejected."""


class MetricOutcome(NamedTuple):
    """What one metric came to: its outcome, why, its value, and the stage of a judge that decided."""

    metric: str
    outcome: Outcome
    reason: str
    value: float | None = None
    stage: str | None = None


@dataclass(frozen=True)
class AnswerCheck:
    """The check that a spec describes.

    Attributes:
        gates: those without a slice or a baseline, by metric.
    """

    metrics: Mapping[str, AnswerMetric[Any]]
    gates: Mapping[str, Sequence[GateNode]]

    @classmethod
    def of(cls, spec: Spec, parts: SpecPlugins) -> AnswerCheck:
        """The check of a spec, with what its metrics need loaded.

        Raises:
            UsageError: no metric can measure an answer by itself.
        """
        metrics = {name: one for name, one in parts.answer_metrics.items() if not {"reference", "relevant"} & one.needs}
        if not metrics:
            raise UsageError(
                f"{spec.path}: no metric measures an answer by its question and contexts alone; "
                "add one: metrics: [{use: faithfulness, judge: overlap}]"
            )
        for one in metrics.values():
            one.prepare()
        plain = [gate for gate in spec.gates if gate.slice is None and gate.baseline is None]
        return cls(metrics, {name: [gate for gate in plain if gate.metric == name] for name in metrics})

    def check(self, question: str, contexts: Sequence[str] | None, answer: str) -> dict[str, Any]:
        """The outcome as JSON types: `outcome`, `reasons`, `checks` (one for each metric) and `seconds`."""
        begun = time.perf_counter()
        sample = Sample("check", question, answer, None if contexts is None else tuple(contexts))
        checks = [self._measure(name, metric, sample) for name, metric in self.metrics.items()]
        outcome = next(one for one in _WORST if any(check.outcome == one for check in checks))
        return {
            "outcome": outcome,
            "reasons": [f"{one.metric}: {one.reason}" for one in checks if one.outcome == outcome],
            "checks": [one._asdict() for one in checks],
            "seconds": round(time.perf_counter() - begun, 6),
        }

    def _measure(self, name: str, metric: AnswerMetric[Any], sample: Sample) -> MetricOutcome:
        is_usable = bool(list_usable(metric, [sample]))
        _, value, status, reason, details = compute(name, metric, [sample]).values.row(0)
        stage = _find_stage(details)
        told = reason or ""
        if status == "error":
            return MetricOutcome(name, "person", f"it could not be measured: {told}", None, stage)
        if status != "scored":
            is_open = not is_usable or told.startswith(TO_A_PERSON)
            return MetricOutcome(name, "person" if is_open else "accept", told or "nothing to judge", None, stage)
        if told.startswith(REJECTED):
            return MetricOutcome(name, "reject", told, value, stage)
        outcome, why = self._apply_gates(name, value)
        return MetricOutcome(name, outcome, why or told or f"{value:.3g}", value, stage)

    def _apply_gates(self, name: str, value: float) -> tuple[Outcome, str]:
        lower_is_better = self.metrics[name].higher_is_better is False
        for gate in self.gates[name]:
            if gate.min is not None and value < gate.min:
                return "reject", f"{value:.3g} is below {gate.min:g}"
            if gate.max is not None and value > gate.max:
                return "reject", f"{value:.3g} is above {gate.max:g}"
        for gate in self.gates[name]:
            if gate.target is not None and (value > gate.target if lower_is_better else value < gate.target):
                return "person", f"{value:.3g} misses the target {gate.target:g}"
        return "accept", ""


def _find_stage(details: str | None) -> str | None:
    found = {} if details is None else json.loads(details)
    stage = found.get("decided_by") if isinstance(found, dict) else None
    return stage if isinstance(stage, str) else None


LARGEST = 1024 * 1024
"""The most bytes of a request."""
_TEXT = {"type": "string"}
_REQUEST = {
    "type": "object",
    "required": ["question", "answer"],
    "properties": {
        "question": _TEXT,
        "answer": _TEXT,
        "contexts": {"type": "array", "items": _TEXT, "description": "The texts that the answer was written from."},
    },
}
_METRIC = {
    "metric": _TEXT,
    "outcome": {"enum": ["accept", "person", "reject"]},
    "reason": _TEXT,
    "value": {"type": ["number", "null"]},
    "stage": {"type": ["string", "null"], "description": "The stage or judge that decided, if there are several."},
}
_REPLY = {
    "type": "object",
    "required": ["outcome", "reasons", "checks", "seconds"],
    "properties": {
        "outcome": {"enum": ["accept", "person", "reject"], "description": "The worst outcome of all metrics."},
        "reasons": {"type": "array", "items": _TEXT},
        "checks": {"type": "array", "items": {"type": "object", "properties": _METRIC}},
        "seconds": {"type": "number"},
    },
}


class UnusableRequest(ValueError):  # noqa: N818 - an answer, not a fault of the program
    """A request that is not one; the text says what to send."""


def make_check_app(check: AnswerCheck, name: str, token: str | None) -> Starlette:
    """The application: `POST /check`, `/openapi.json`, `/healthz` and `/ready`."""
    pages = {
        "/openapi.json": lambda: Page(json.dumps(describe_api(name, token)).encode(), "application/json"),
        "/healthz": lambda: Page(b"ok\n"),
        "/ready": lambda: Page(b"ok\n"),
    }
    app = make_app(pages, token=token)
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse

    async def answer(request: Request) -> Response:
        try:
            asked = read_request(await _read_body(request))
        except UnusableRequest as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(await run_in_threadpool(lambda: check.check(*asked)))

    app.add_route("/check", answer, methods=["POST"])
    return app


async def _read_body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST:
            raise UnusableRequest(f"a request has at most {LARGEST:,} bytes; send fewer or shorter contexts")
        parts.append(part)
    return b"".join(parts)


def read_request(body: bytes) -> tuple[str, list[str] | None, str]:
    """The question, the contexts and the answer of a request. Raises `UnusableRequest` if it is not one."""
    example = '{"question": "...", "contexts": ["..."], "answer": "..."}'
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise UnusableRequest(f"the body is not JSON; send {example}") from None
    if not isinstance(found, Mapping):
        raise UnusableRequest(f"the body is not an object; send {example}")
    for key in ("question", "answer"):
        if not isinstance(found.get(key), str):
            raise UnusableRequest(f"'{key}' is missing or not a text; send {example}")
    contexts = found.get("contexts")
    if contexts is not None and not (isinstance(contexts, list) and all(isinstance(one, str) for one in contexts)):
        raise UnusableRequest(f"'contexts' is not a list of texts; send {example}")
    if unknown := sorted(set(found) - {"question", "answer", "contexts"}):
        raise UnusableRequest(f"the key '{unknown[0]}' is not known; send {example}")
    return found["question"], contexts, found["answer"]


def describe_api(name: str, token: str | None) -> dict[str, Any]:
    """The OpenAPI document."""
    secured: dict[str, Any] = {} if token is None else {"security": [{"token": []}]}
    replies = {
        "200": {"description": "The outcome.", "content": {"application/json": {"schema": _REPLY}}},
        "400": {"description": "The request is not one; `error` says what to send."},
        **({} if token is None else {"401": {"description": "The token is missing or wrong."}}),
    }
    check = {
        "summary": "Check an answer before a user sees it.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}},
        "responses": replies,
        **secured,
    }
    components = {} if token is None else {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Checks of {name}", "version": "1"},
        "paths": {"/check": {"post": check}},
        "components": components,
    }
