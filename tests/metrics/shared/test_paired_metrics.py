from __future__ import annotations

import pytest

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.paired_metrics import PairedMetric, PairedNode, holds
from rageval_spec.plugin import Context, Measured, Measurement, MetricInfo


class Loss(PairedMetric[PairedNode]):
    """The loss from the clean question to the noisy one."""

    node_type = PairedNode
    info = MetricInfo("Loss.", "", (), "")

    def measure_pair(self, first: float, second: float) -> Measurement:
        return Measurement.scored(first - second)

    def measured(self, *samples: Sample) -> Measured:
        return self.compare(samples, "clean", "noisy")


LOSS = Loss(PairedNode(use="loss"), Context("loss"))


def asked(query_id: str, condition: str, answer: str, group: str = "g") -> Sample:
    return Sample(query_id, "?", answer=answer, references=("Ulm",), group=group, condition=condition)


def test_the_first_query_of_a_group_gets_the_value_and_the_others_refer_to_it() -> None:
    measured = LOSS.measured(asked("q1", "clean", "In Ulm."), asked("q2", "noisy", "In Bonn."))
    first, second = measured.measurements
    assert (first.value, first.details and first.details["right"]) == (1.0, {"clean": 1.0, "noisy": 0.0})
    assert second.reason == "the value of group 'g' is at its query q1"
    assert [note.message for note in measured.written_notes] == [
        "answers are right: 1.000 under 'clean', 0.000 under 'noisy', over 1 group"
    ]


def test_a_group_that_lacks_a_condition_has_no_value_and_no_note() -> None:
    measured = LOSS.measured(asked("q1", "clean", "Ulm"), asked("q2", "other", "Ulm"))
    assert [one.reason for one in measured.measurements] == [
        "group 'g' has no answer under 'noisy'",
        "its condition 'other' is neither 'clean' nor 'noisy'",
    ]
    assert measured.written_notes == ()


@pytest.mark.parametrize(
    ("answer", "references", "held"),
    [
        ("It was in Ulm.", ("ulm",), True),
        ("It was in Neu-Ulm.", ("Ulm",), False),
        ("The New York office", ("new york",), True),
        ("New, or old, York", ("new york",), False),
        ("anything", ("the",), False),
        ("首都は東京です", ("東京",), True),
    ],
)
def test_an_answer_contains_a_reference_word_for_word(answer: str, references: tuple[str, ...], held: bool) -> None:
    assert holds(answer, references) is held
