"""What labels showed about judges, as `calibration.json` holds it: how to read their scores, and where to decide.

`schemas/calibration.schema.json` describes the file. It holds no time and no path, so the same results and labels give
the same bytes.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from itertools import pairwise
from typing import Any, Literal

from rageval_spec.data.json_documents import build_document_schema, dump_document, parse_document
from rageval_spec.dataclass import asdict, dataclass

MOST_BYTES = 16 * 2**20
_ABSENT: tuple[object, ...] = (None, (), {})


@dataclass(frozen=True)
class ScoreMap:
    """Turns a judge's score into the probability that people say yes; calibrated judges apply it.

    Attributes:
        kind: platt: the logistic function of `slope * score + intercept` (Platt, 1999); isotonic: a rising line
            through points, level before the first and after the last.
        slope: of platt: above 0.
        values, results: of isotonic: the scores at the points, ascending, and the probabilities there.
    """

    kind: Literal["isotonic", "platt"]
    slope: float | None = None
    intercept: float | None = None
    values: tuple[float, ...] = ()
    results: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no map, or a map that falls."""
        slope, intercept = self.slope or 0.0, math.nan if self.intercept is None else self.intercept
        if self.kind == "platt" and not (slope > 0 and math.isfinite(slope + intercept)):
            raise ValueError("a 'platt' map needs the numbers 'slope' (above 0) and 'intercept'")
        rises = all(a < b for a, b in pairwise(self.values)) and all(a <= b for a, b in pairwise(self.results))
        is_finite = all(map(math.isfinite, (*self.values, *self.results)))
        are_points = 0 < len(self.values) == len(self.results) and rises and is_finite
        if self.kind == "isotonic" and not are_points:
            raise ValueError("an 'isotonic' map needs 'values' and 'results', equally long and in ascending order")

    def apply(self, score: float) -> float:
        """The probability at a score."""
        if self.kind == "platt":
            number = (self.slope or 0.0) * score + (self.intercept or 0.0)
            grown = math.exp(-abs(number))  # cannot overflow
            return 1 / (1 + grown) if number >= 0 else grown / (1 + grown)
        after = bisect_right(self.values, score)
        if after in (0, len(self.values)):
            return self.results[min(after, len(self.values) - 1)]
        low, high = self.values[after - 1], self.values[after]
        part = (score - low) / (high - low)
        return self.results[after - 1] + part * (self.results[after] - self.results[after - 1])


@dataclass(frozen=True)
class CalibratedThreshold:
    """From where on a score means yes, and the criterion that chose it: `youden`, `f1`, or `precision >= 0.9`."""

    value: float
    criterion: str


@dataclass(frozen=True)
class Guaranteed:
    """A promise: of the answers with a score from `threshold` on, at most the share `limit` is wrong.

    Attributes:
        confidence: the probability with which the promise is kept; None for crc, which limits a mean.
        sent, wrong: how many of the labelled answers would be sent, and how many of these are wrong.
        labels: the labelled answers that the promise was made with, one of each question.
        control: ltt: the share is below the limit with this confidence; crc: of all answers, on average, at most the
            share `limit` is wrong and sent.
        threshold: None if the bounds of the steps keep the promise together.
    """

    limit: float
    sent: int
    wrong: int
    labels: int
    confidence: float | None = None
    threshold: float | None = None
    control: Literal["ltt", "crc"] = "ltt"


@dataclass(frozen=True)
class StepBounds:
    """Where a step of a cascade, or a stage of a waterfall, decides by itself.

    Attributes:
        step: the place of the step in its judge, from 0; the name of a stage.
        low, high: of a cascade's step: it decides scores up to `low`, and from `high` up; None if it never does.
        reject, person, accept: of a waterfall's stage; None disables an outcome.
    """

    step: int | str
    low: float | None = None
    high: float | None = None
    reject: float | None = None
    person: float | None = None
    accept: float | None = None


@dataclass(frozen=True)
class Figure:
    """A number with its 95% interval; None where it is not defined."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class CalibrationLabels:
    """The labels of a calibration.

    Attributes:
        by: people, or the last step of a cascade, whose decisions served as labels.
        digest: the sha256 of what was labelled and how.
        items: the labelled answers or claims; `yes` of them are right, `no` are wrong.
    """

    by: Literal["people", "last step"]
    digest: str
    items: int
    yes: int
    no: int
    questions: int
    labels: int
    annotators: int


@dataclass(frozen=True)
class JudgeCalibration:
    """What labels showed about one judge on one question that a metric puts to it.

    Attributes:
        judge, metric: their names in the spec whose results were labelled.
        criterion: the sha256 of the question that the metric puts to the judge.
        of: what was labelled: whole answers, or single claims.
        scale: the lowest and the highest score of the judge; scores below are placed on 0 to 1.
        identity, digest: what the judge's scores depend on (settings, prompts, models and judges that it asks), and its
            sha256.
        map: turns a score into the probability that people say yes; null if scores are best left as they are.
        threshold: from where on a score means yes.
        guarantee: from where on it can be promised that few answers are wrong.
        steps: where the steps of a composed judge decide by themselves.
        held_out: how good decisions and probabilities are on questions that had no part in choosing them.
    """

    judge: str
    metric: str
    criterion: str
    of: Literal["answers", "claims"]
    scale: tuple[float, float]
    identity: dict[str, Any]
    digest: str
    labelled: CalibrationLabels
    map: ScoreMap | None = None
    threshold: CalibratedThreshold | None = None
    guarantee: Guaranteed | None = None
    steps: tuple[StepBounds, ...] = ()
    held_out: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class CalibrationFile:
    """The content of a `calibration.json`.

    Attributes:
        made_with: the version of rageval-spec that wrote the file.
        evaluation, spec_digest: the name of the evaluation whose answers were labelled, and the sha256 of its spec.
        judges: one entry for each metric and judge.
    """

    format_version: int
    made_with: str
    evaluation: str
    spec_digest: str
    judges: tuple[JudgeCalibration, ...]

    @classmethod
    def parse(cls, content: bytes, path: str) -> CalibrationFile:
        """Read a file's content; `path` is its name in errors.

        Raises:
            DataError: the content is not JSON, not a calibration, or has another format version.
        """
        remedy = "write it again with: rageval-spec calibrate --labels labels.csv -o calibration.json"
        found: CalibrationFile = parse_document(cls, content, path, "a calibration", remedy)
        return found

    def dump(self) -> bytes:
        """The file as JSON text, in UTF-8, without keys that hold nothing."""
        return dump_document(_drop_absent(asdict(self)))


def _drop_absent(content: Any) -> Any:
    """The content without null and empty values at its own keys; what an identity holds stays as it is."""
    if isinstance(content, dict):
        return {
            key: value if key == "identity" else _drop_absent(value)
            for key, value in content.items()
            if not any(value is absent or value == absent for absent in _ABSENT)
        }
    return [_drop_absent(one) for one in content] if isinstance(content, (list, tuple)) else content


def build_schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    return build_document_schema(CalibrationFile, "Calibration of rageval-spec")


if __name__ == "__main__":
    print(json.dumps(build_schema(), indent=2))
