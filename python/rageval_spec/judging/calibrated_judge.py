"""A judge whose scores are read as its calibration, a `calibration.json`, says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rageval_spec.data.findings import Assessment, Claim, Criterion, Failed, Finding
from rageval_spec.data.judge_calibration import MOST_BYTES, CalibrationFile, JudgeCalibration
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.judging.grade_scores import scale_score, unscale_score
from rageval_spec.judging.segments import score_claims
from rageval_spec.kernels.inputs import name_special
from rageval_spec.plugin import Context, Judge, judge_identity
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.plugin import CalibrationUse
from rageval_spec.store.disk import InputFile
from rageval_spec.wording import count_noun, list_choices

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import UsedCalibration


_AGAIN = "calibrate again with: rageval-spec calibrate --labels labels.csv -o {path}"


def find_entries(judge: Judge[Any]) -> Mapping[str, JudgeCalibration]:
    """What the calibration that a judge's node names holds for this judge, by the criterion's digest.

    Empty if the node names none.

    Raises:
        DataError: the file cannot be read, or was made for another judge; the message says what differs.
    """
    use = judge.node.calibrated
    if use is None:
        return {}
    entries = _read(judge).content.judges
    identity = judge_identity.identify_judge(judge, find_surroundings(judge))
    digest = judge_identity.digest_identity(identity)
    mine = {entry.criterion: entry for entry in entries if entry.digest == digest}
    if mine:
        return mine
    name = judge.context.name
    like = [entry for entry in entries if entry.judge == name]
    like = like or [entry for entry in entries if entry.identity.get("use") == judge.node.use]
    if not like:
        kept = list_choices(list(dict.fromkeys(entry.judge for entry in entries))) if entries else "nothing"
        raise DataError(f"{use.path} holds no calibration of the judge '{name}'; it holds {kept}")
    why = judge_identity.explain_difference(identity, like[0].identity) or "made for a judge with other settings"
    raise DataError(f"{use.path} does not fit the judge '{name}': it was {why}; {_AGAIN.format(path=use.path)}")


def find_surroundings(judge: Judge[Any]) -> judge_identity.Surroundings:
    judges = judge.context.judges
    return judge_identity.Surroundings(judges, judge.context.models, None, dict(_digest_calibrations(judge, judges)))


def digest_calibration(judge: Judge[Any]) -> str | None:
    """The sha256 of the calibration that a judge's node names, and of what it takes from it; None if it names none."""
    use = judge.node.calibrated
    return None if use is None else f"{use.score}:{_read(judge).digest}"


def _digest_calibrations(judge: Judge[Any], judges: Mapping[str, Judge[Any]]) -> Iterator[tuple[str, str]]:
    for name in names_in(judge.node, "judges"):
        if (digest := digest_calibration(judges[name])) is not None:
            yield name, digest
        yield from _digest_calibrations(judges[name], judges)


def _read(judge: Judge[Any]) -> ReadCalibration:
    use = judge.node.calibrated
    return read_calibration(judge.context.resolve(use.path), use.path)


class CalibratedJudge(Judge[Any]):
    """Asks a judge, and turns its scores into what its calibration says they mean.

    A calibration holds for one criterion. Other criteria keep their scores, and a note says so.
    """

    def __init__(self, judge: Judge[Any]) -> None:
        super().__init__(judge.node, judge.context)
        self.plain = judge

    @cached_property
    def entries(self) -> Mapping[str, JudgeCalibration]:
        return find_entries(self.plain)

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """The judge's findings with calibrated scores, and a note on the labels behind them."""
        entry = self.entries.get(judge_identity.digest_criterion(criterion))
        if entry is not None and (fault := _find_fault(entry, self._use)) is not None:
            raise DataError(f"judges.{self.context.name}: {fault}")
        found = self.plain.assess(criterion, samples)
        if entry is None:
            return Assessment(found.findings, (*found.notes, self._remark_on_others(criterion)))
        reading = _Reading(entry, self._use.score, criterion)
        findings = [reading.read(finding) for finding in found.findings]
        return Assessment(findings, (*found.notes, self._remark(entry)))

    def check_files(self) -> Iterable[FileFault]:
        yield from self.plain.check_files()
        key = next((file.key for file in Judge.inputs(self)), ("calibration",))
        path = self.context.resolve(self._use.path)
        if not path.is_file():
            return  # reported with all other missing files
        try:
            faults = [_find_fault(entry, self._use) for entry in self.entries.values()]
        except RagevalError as error:
            yield FileFault(key, str(error), code="unusable-calibration")
            return
        if all(faults):
            yield FileFault(key, str(faults[0]), code="unusable-calibration")

    def describe(self) -> UsedCalibration:
        from rageval_spec.data.evaluation import UsedCalibration

        labels = {entry.metric: entry.labelled.items for entry in self.entries.values()}
        return UsedCalibration(_read(self).digest, self._use.score, labels)

    def _remark(self, entry: JudgeCalibration) -> Note:
        whose = "people" if entry.labelled.by == "people" else "its last step"
        items = count_noun(entry.labelled.items, "label")
        message = f"the judge '{self.context.name}' is calibrated with {items} of {whose}"
        if self._use.score == "probability" and entry.map is None and not entry.steps:
            message += "; its scores stay as they are, because no map is certain to improve them"
        return Note("calibrated", message, count=entry.labelled.items)

    def _remark_on_others(self, criterion: Criterion) -> Note:
        known = list_choices(sorted({entry.metric for entry in self.entries.values()}))
        message = f"the judge '{self.context.name}' is not calibrated for '{criterion.name}', only for {known}"
        return Note("not_calibrated", message, level="warning")

    @property
    def _use(self) -> CalibrationUse:
        use: CalibrationUse | None = self.node.calibrated
        assert use is not None, "only judges with a calibration are wrapped"
        return use

    def inputs(self) -> Sequence[InputFile]:
        return tuple(dict.fromkeys((*Judge.inputs(self), *self.plain.inputs())))

    def copy_with(self, context: Context) -> Judge[Any]:
        return CalibratedJudge(self.plain.copy_with(context))

    def list_reversals(self) -> Mapping[str, Judge[Any]]:
        return {part: CalibratedJudge(judge) for part, judge in self.plain.list_reversals().items()}


_AS_PLAIN = (
    "abilities", "decides_refusals", "holds_back", "scale", "values", "levels", "reads_criteria", "shows_references",
    "content", "check", "describe_files", "check_columns", "expect", "claims", "questions", "entities", "estimate",
    "estimate_writing", "prompt_digests",
)  # fmt: skip
"""What a judge does in the same way without its calibration."""
for _name in _AS_PLAIN:
    setattr(CalibratedJudge, _name, property(attrgetter(f"plain.{_name}")))


def _find_fault(entry: JudgeCalibration, use: CalibrationUse) -> str | None:
    """Why an entry cannot give what the spec wants of it; None if it can."""
    labels = count_noun(entry.labelled.items, "label")
    if use.score == "decision" and entry.threshold is None:
        return f"score: decision needs a threshold, which {use.path} ({labels}) does not have; label more answers"
    if use.score == "guarantee" and (entry.guarantee is None or not (entry.steps or entry.guarantee.threshold)):
        return f"score: guarantee needs a guarantee, which {use.path} does not have; make it with --guarantee '5%'"
    return None


@dataclass(frozen=True)
class _Reading:
    """Reads scores by one entry of a calibration."""

    entry: JudgeCalibration
    wanted: Literal["probability", "decision", "guarantee"]
    criterion: Criterion

    def read(self, finding: Finding | Failed) -> Finding | Failed:
        if isinstance(finding, Failed) or finding.score is None:
            return finding
        if self.entry.of == "claims":
            return self._read_claims(finding)
        score = self._place(scale_score(finding.score, self.criterion))
        return replace(finding, score=unscale_score(score, self.criterion))

    def _place(self, score: float) -> float:
        if self.wanted == "probability":
            return score if self.entry.map is None else self.entry.map.apply(score)
        least = self._least
        return score if least is None else float(score >= least)

    @property
    def _least(self) -> float | None:
        """From which score on a yes is decided; None if the bounds of the steps decide everything."""
        guarantee, threshold = self.entry.guarantee, self.entry.threshold
        if self.wanted == "guarantee":
            return None if guarantee is None else guarantee.threshold
        return None if threshold is None else threshold.value

    def _read_claims(self, finding: Finding) -> Finding:
        """The mean of the claims' calibrated scores; a claim's verdict follows the threshold."""
        if not finding.claims:
            return finding
        claims = tuple(map(self._read_claim, finding.claims))
        return replace(finding, score=score_claims(claims), claims=claims)

    def _read_claim(self, claim: Claim) -> Claim:
        verdict, least = claim.verdict, self._least
        if least is not None and verdict is not None:
            refuted = "not_enough_info" if verdict == "supported" else verdict
            verdict = "supported" if claim.score >= least else refuted
        return replace(claim, score=self._place(claim.score), verdict=verdict)


class ReadCalibration(NamedTuple):
    content: CalibrationFile
    digest: str


def read_calibration(path: Path, shown: str) -> ReadCalibration:
    """Read a calibration; `shown` is its name in errors.

    Raises:
        DataError: the file cannot be read, or is not a calibration of this format.
    """
    try:
        if kind := name_special(path):
            raise DataError(f"{shown} is {kind}, not a calibration")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{shown} cannot be read: {reason}") from error
    if len(content) > MOST_BYTES:
        raise DataError(f"{shown} is larger than {MOST_BYTES:,} bytes; is it a calibration?")
    return ReadCalibration(CalibrationFile.parse(content, shown), hashlib.sha256(content).hexdigest())
