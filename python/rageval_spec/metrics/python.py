import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from functools import cached_property, partial
from typing import Any, Literal

from pydantic import Field, field_validator

from rageval_spec.data.samples import Part, Sample
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError, UsageError
from rageval_spec.libraries import pl
from rageval_spec.metrics.shared.answer_metrics import OwnValuesMetric, OwnValuesNode
from rageval_spec.plugin import Context, InputFile, Measured, Measurement, MetricInfo
from rageval_spec.user_functions import NamedFunction, Workers, check_name, describe_error, finish
from rageval_spec.wording import count_noun

_PARTS = (
    "query_id", "question", "answer", "contexts", "context_ids", "reference", "references", "reference_contexts",
    "columns",
)  # fmt: skip
_WHOLE = ("sample", "row")
_FRAMES = ("frame", "df", "dataframe", "samples")
"""Names of an argument that is all samples."""
_VALUE_KEYS = ("value", "score")


class PythonMetricNode(OwnValuesNode):
    function: str = Field(
        description=(
            "`module:function`. The module is looked up next to the spec first. The function gets the arguments that "
            f"it names: {', '.join(f'`{name}`' for name in _PARTS)}, `sample` (an object with all of these) or `row` "
            "(the same as a dict); with one argument of another name, that is the sample. It returns a number, a bool, "
            "None if there is no value, or a dict with `value` and `reason`. It can be async."
        )
    )
    takes: Literal["sample", "frame"] = Field(
        default="sample",
        description="sample: the function is called for each sample. frame: it is called once, with a polars frame of "
        "all samples, and returns a list or Series of values, or a frame with `value` and `reason`, in the same order.",
    )
    concurrency: int = Field(
        default=1, ge=1, le=1024, description="How many samples are measured at once; above 1 it must be thread-safe."
    )
    needs: tuple[Literal["answer", "contexts", "reference", "reference_contexts"], ...] = Field(
        default=("answer",), description="The parts that a sample must have; one without them has no value."
    )

    @field_validator("function")
    @classmethod
    def _check_function(cls, text: str) -> str:
        return check_name(text, "'checks:cites' for the function cites in checks.py")


class PythonMetric(OwnValuesMetric[PythonMetricNode]):
    known_as = ("function", "callable", "custom", "custom_metric", "javascript", "code")
    hidden = ("function",)
    info = MetricInfo(
        summary="A metric of your own: a Python function of a sample, or of a frame of all samples.",
        formula="python = what the function returns; true is 1, false is 0",
        edge_cases=(
            "None: no value",
            "exception, sys.exit, or a result that is not a number: status error for that query",
            "NaN and infinity, or a number outside `range`: status error",
            "takes: frame: an exception is an error for every query",
            "name: that of the function, unless `as` is given",
        ),
        source="rageval-spec: a call of your function, since 2026",
        bounds=(float("-inf"), None),
    )

    def __init__(self, node: PythonMetricNode, context: Context) -> None:
        """Prepare to call the function; `prepare` imports its module."""
        super().__init__(node, context)
        self._named = NamedFunction(node.function, context.resolve("."), f"metrics.{self.name}.function")
        self._workers = Workers()

    @property
    def name(self) -> str:
        return self.node.as_ or self.node.function.rpartition(":")[2]

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        return frozenset[Part](self.node.needs)

    @property
    def is_separable(self) -> bool:
        return self.node.takes == "sample"

    def inputs(self) -> Sequence[InputFile]:
        return self._named.inputs()

    def content(self) -> dict[str, Any]:
        """The node, and the digest of the module's file, so that another function gives other tables."""
        return {**super().content(), "files": [self.context.fingerprint(file) for file in self.inputs()]}

    def check(self) -> str | None:
        """Whether the module has the function, as far as its text tells; imports nothing."""
        try:
            absence = self._named.explain_absence()
        except DataError as error:
            return f"function: {error}"
        return None if absence is None else f"function: {absence}"

    def prepare(self) -> None:
        if self.node.takes == "sample":
            _ = self._arguments
        elif (name := self._find_part()) is not None:
            raise self._named.complain(
                f"takes the argument {name!r}, a part of one sample, but 'takes: frame' gives it a frame of all "
                "samples; remove 'takes: frame', or name the argument 'frame'"
            )

    def compute(self, samples: Sequence[Sample]) -> Measured:
        if self.node.takes == "frame":
            return Measured(self._measure_frame(samples))
        workers = min(self.node.concurrency, len(samples))
        shares = [samples[start::workers] for start in range(workers)]
        futures = [self._workers.submit(partial(self._measure_all, share)) for share in shares]
        wait(futures)
        measurements: list[Any] = [None] * len(samples)
        for start, future in enumerate(futures):
            measurements[start::workers] = future.result()
        return Measured(measurements)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return self._workers.submit(self._named.load).result()  # type: ignore[no-any-return]

    @cached_property
    def _arguments(self) -> Callable[[Sample], dict[str, Any]]:
        """What the function is called with for a sample, by name; a lone argument of another name is the sample."""
        function = self._function
        try:
            parameters = [*inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            raise self._named.complain("its arguments are not known; wrap it in a function of your own") from None
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        given = [name for name in names if name in (*_PARTS, *_WHOLE)]
        odd = [p.name for p in parameters if p.default is p.empty and p.name in names and p.name not in given]
        if not given and len(odd) == 1:
            annotation = str(getattr(function, "__annotations__", {}).get(odd[0], ""))
            if odd[0] in _FRAMES or "DataFrame" in annotation or "LazyFrame" in annotation:
                raise self._named.complain(
                    f"takes a frame of all samples ({odd[0]!r}), but is called for each sample; add 'takes: frame' to "
                    "the metric, or name the argument 'sample'"
                )
            return lambda sample: {odd[0]: sample}
        if odd or not given:
            wanted = f"needs the argument {odd[0]!r}" if odd else "takes no part of a sample"
            raise self._named.complain(f"{wanted}; it is given {', '.join((*_PARTS, *_WHOLE))} by name")
        return lambda sample: {name: _give(sample, name) for name in given}

    def _find_part(self) -> str | None:
        """The first argument of a function of a frame, if it names a part of a sample; None if that is not known."""
        try:
            first = next(iter(inspect.signature(self._function).parameters), None)
        except (TypeError, ValueError):
            return None
        return first if first in (*_PARTS, *_WHOLE) else None

    def _measure_all(self, samples: Sequence[Sample]) -> list[Measurement]:
        return [*map(self._measure, samples)]

    def _measure(self, sample: Sample) -> Measurement:
        try:
            told = self._arguments(sample)
            return self._read(finish(self._function(**told)))
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            reason = describe_error(self.node.function, error)
            if isinstance(error, (AttributeError, TypeError)) and f"'{Sample.__name__}' object" in reason:
                reason += "; if it is a function of a frame, add 'takes: frame'"
            return Measurement.error(reason)

    def _measure_frame(self, samples: Sequence[Sample]) -> list[Measurement]:
        frame = pl.DataFrame([_list_row(sample) for sample in samples], infer_schema_length=None)
        try:
            result = self._workers.submit(lambda: finish(self._function(frame))).result()
        except Exception as error:
            raise DataError(describe_error(self.node.function, error)) from error
        if hasattr(result, "to_dicts") or (hasattr(result, "to_dict") and hasattr(result, "columns")):
            rows = result.to_dicts() if hasattr(result, "to_dicts") else result.to_dict("records")
        elif isinstance(result, (str, bytes, Mapping)) or not hasattr(result, "__iter__"):
            raise DataError(f"{self.node.function} returned {_name_type(result)}, not a list, a Series or a frame")
        else:
            rows = [*result]
        if len(rows) != len(samples):
            values = count_noun(len(rows), "value")
            raise DataError(f"{self.node.function} returned {values} for {count_noun(len(samples), 'sample')}")
        return [self._read(row) for row in rows]

    def _read(self, result: Any) -> Measurement:
        """The measurement that a result of the function means."""
        reason = None
        if isinstance(result, Mapping):
            key = next((key for key in _VALUE_KEYS if key in result), None)
            if key is None:
                keys = ", ".join(map(repr, result)) or "nothing"
                return Measurement.error(f"{self.node.function} returned a dict without 'value'; it has {keys}")
            found = result.get("reason")
            reason = None if found is None else make_visible(str(found), keep="\n")
            result = result[key]
        result = result.item() if getattr(result, "shape", None) == () and hasattr(result, "item") else result
        if result is None:
            return Measurement.unscorable(reason or f"{self.node.function} returned None")
        if isinstance(result, (bool, int, float)):
            return self.keep_in_range(float(result), reason)
        return Measurement.error(f"{self.node.function} returned {_name_type(result)}, not a number, a bool or a dict")


def _give(sample: Sample, name: str) -> Any:
    if name in _WHOLE:
        return sample if name == "sample" else _list_row(sample)
    found = getattr(sample, name)
    if name == "columns":
        return dict(found or {})
    return list(found) if isinstance(found, tuple) else found


def _list_row(sample: Sample) -> dict[str, Any]:
    return {name: _give(sample, name) for name in _PARTS}


def _name_type(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


PLUGIN = PythonMetric
