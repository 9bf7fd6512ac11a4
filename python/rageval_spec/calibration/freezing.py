"""Freezes labelled answers with what the judge said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec.calibration.recorded import check_scores, find_judge
from rageval_spec.calibration.samples import read_samples
from rageval_spec.data.anchors import FORMAT_VERSION, Anchor, AnchorSet
from rageval_spec.errors import UsageError
from rageval_spec.plugin.identity import digest_criterion, digest_identity

if TYPE_CHECKING:
    from rageval_spec.calibration.joining import Joined
    from rageval_spec.calibration.measuring import Calibration
    from rageval_spec.data.evaluation import Evaluation

_BETWEEN = 0.5


def freeze_anchors(evaluation: Evaluation, joined: Joined, measured: Calibration) -> AnchorSet:
    """The labelled answers of one metric as anchors.

    A yes is a score from the best threshold on, or from 0.5 on if the labels show none.

    Raises:
        UsageError: claims are labelled; the values are not the scores of one judge, or the judge has a calibration.
        DataError: the results lack the answers' texts.
    """
    if any(item[3] is not None for item in joined.items):
        raise UsageError("labels of claims cannot be frozen; label whole answers")
    behind = find_judge(evaluation, joined.metric)
    check_scores(evaluation, joined)
    low, high = (0.0, 1.0) if joined.bounds == behind.scale else behind.scale
    samples = read_samples(evaluation, [item[:3] for item in joined.items])
    chosen = None if measured.threshold is None else measured.threshold.threshold
    anchors = []
    for item, value, label in zip(joined.items, joined.judged, joined.labelled, strict=True):
        sample = samples[item[:3]]
        anchors.append(
            Anchor(
                *item[:3],
                sample.question,
                sample.answer or "",
                label,
                (value - low) / (high - low),
                sample.contexts,
                sample.context_ids,
                sample.references,
                sample.reference_contexts,
                None if sample.columns is None else dict(sample.columns),
            )
        )
    return AnchorSet(
        FORMAT_VERSION,
        behind.judge.context.name,
        joined.metric,
        digest_criterion(behind.criterion),
        dict(behind.identity),
        digest_identity(behind.identity),
        _BETWEEN if chosen is None else (chosen - low) / (high - low),
        tuple(anchors),
    )
