import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from typing import Any

from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.metrics.shared import answer_metrics
from rageval_spec.plugin import InputFile, Measured, Measurement, MetricInfo

_MOST_ERRORS = 10
_LONGEST_MESSAGE = 300


class JsonSchemaNode(answer_metrics.ColumnNode):
    schema_: str | dict[str, Any] | None = Field(
        default=None, alias="schema", description="The JSON Schema, or the path of a JSON file with it."
    )
    fences: bool = Field(default=True, description="Whether a Markdown code fence around the whole answer is allowed.")


class JsonSchema(answer_metrics.ExpectationMetric[JsonSchemaNode]):
    known_as = ("schema", "json_schema_match", "json_correctness", "valid_schema")
    key = "schema_"
    hidden = ("schema",)
    info = MetricInfo(
        summary="Whether the answer is JSON that a schema allows; its mean is the share of such answers.",
        formula="json_schema = 1 if the answer can be read as JSON and the schema allows it, else 0",
        edge_cases=(
            "answer that is not JSON: 0, as with `is_json`",
            "draft: the one that `$schema` names, else 2020-12",
            "$ref: only inside of the schema; others are an error, because nothing is fetched",
            "format: not checked",
            "invalid schema: an error of the spec; in a column, status error for that question",
        ),
        source="JSON Schema 2020-12, https://json-schema.org; the library jsonschema",
    )

    def inputs(self) -> Sequence[InputFile]:
        schema = self.node.schema_
        return (InputFile(self.context.resolve(schema), ("schema",)),) if isinstance(schema, str) else ()

    def content(self) -> dict[str, Any]:
        files = [self.context.fingerprint(file) for file in self.inputs()]
        return {**super().content(), **({"files": files} if files else {})}

    def check_files(self) -> Iterator[FileFault]:
        if self.node.schema_ is None:
            return
        try:
            _build(self._schema)
        except ValueError as error:
            yield FileFault(("schema",), str(error), code="wrong-value")

    def prepare(self) -> None:
        import jsonschema

        del jsonschema

    def compute(self, samples: Sequence[Sample]) -> Measured:
        if self.node.column is None:
            _build(self._schema)
        return super().compute(samples)

    def read(self, expected: Any) -> str:
        schema = expected
        if isinstance(expected, str):
            try:
                schema = json.loads(expected)
            except ValueError as error:
                raise ValueError(f"holds text that is not JSON: {error}") from None
        if not isinstance(schema, (Mapping, bool)):
            raise ValueError("must hold a JSON Schema")
        text = json.dumps(schema)
        try:
            _build(text)
        except ValueError as error:
            raise ValueError(f"holds an invalid schema: {error}") from None
        return text

    def judge(self, answer: str, expected: Any) -> Measurement:
        from referencing.exceptions import Unresolvable

        try:
            value = answer_metrics.read_json(answer, unfence=self.node.fences)
        except ValueError as error:
            return Measurement.scored(False, str(error))
        validator = _build(expected if self.node.column is not None else self._schema)
        try:
            errors = [_describe(error) for error in islice(validator.iter_errors(value), _MOST_ERRORS)]
        except Unresolvable as error:
            raise DataError(f"the schema refers to something that is not in it: {error}") from error
        return Measurement.scored(not errors, errors[0] if errors else None, {"errors": errors} if errors else None)

    @cached_property
    def _schema(self) -> str:
        if not isinstance(self.node.schema_, str):
            return json.dumps(self.node.schema_)
        path = self.context.resolve(self.node.schema_)
        try:
            return json.dumps(json.loads(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path.name} is not JSON: {error}") from None


@cache
def _build(schema: str) -> Any:
    """The validator of a schema in JSON; a `ValueError` says what is wrong with an invalid schema, and where."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    content = json.loads(schema)
    kind = validator_for(content, default=Draft202012Validator)
    try:
        kind.check_schema(content)
    except SchemaError as error:
        raise ValueError(_describe(error)) from None
    return kind(content, registry=Registry())


def _describe(error: Any) -> str:
    """`$.items[0].price: -1 is less than the minimum of 0`."""
    message = str(error.message)
    return f"{error.json_path}: {message[:_LONGEST_MESSAGE]}{'…' * (len(message) > _LONGEST_MESSAGE)}"


PLUGIN = JsonSchema
