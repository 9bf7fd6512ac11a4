"""Makes all checks of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rageval_spec.audit import item_analysis, mix_and_size
from rageval_spec.audit.audit_findings import CheckContent, DatasetContent
from rageval_spec.audit.coverage import check_age, check_gold, check_judgements, check_questions, check_references
from rageval_spec.audit.duplicates import Embed, check_leaks, check_overlap, check_repeats
from rageval_spec.audit.question_set import AuditedQuestions, MetricValues, Outputs

if TYPE_CHECKING:
    from rageval_spec.generation.documents import DocumentSet
    from rageval_spec.plugin import Dataset


@dataclass(frozen=True)
class Material:
    """What an audit of a dataset works with besides the dataset.

    Attributes:
        count: how many questions are wanted.
        types, difficulties: the wanted shares.
        train: the questions that a system was trained on, and their file.
        documents: the documents that questions were made from, as they are now; None if they are not named.
        embed: gives the vectors of questions; None to compare only words.
        compared: how questions are compared, if that is not plain.
        powers: what the questions can show; None without an evaluation.
        measured: the values of systems, of the metric that tells which questions they fail; None without any.
        outputs: what systems made of each question; None without an evaluation.
        why_none: why there are no values, and what to do.
        why_no_powers: why there are values, but no powers; "" if there are.
        origin: where the dataset comes from, in words; "" if it does not say.
    """

    count: int = mix_and_size.COUNT
    types: mix_and_size.WantedMix = mix_and_size.TYPE
    difficulties: mix_and_size.WantedMix = mix_and_size.DIFFICULTY
    train: tuple[AuditedQuestions, str] | None = None
    documents: DocumentSet | None = None
    embed: Embed | None = None
    compared: str = ""
    powers: Sequence[mix_and_size.Power] | None = None
    measured: MetricValues | None = None
    outputs: Outputs | None = None
    why_none: str = ""
    why_no_powers: str = ""
    origin: str = ""


def audit_dataset(questions: AuditedQuestions, dataset: Dataset[Any], material: Material) -> DatasetContent:
    train = material.train
    checks = (
        check_questions(questions),
        *check_repeats(questions, material.embed, material.compared),
        check_references(questions),
        check_gold(questions),
        check_judgements(questions),
        check_leaks(questions),
        check_overlap(questions, train and train[0], train[1] if train else ""),
        check_age(questions, dataset, material.documents),
        mix_and_size.check_languages(questions),
        mix_and_size.check_mix(questions, material.types),
        mix_and_size.check_mix(questions, material.difficulties),
        mix_and_size.check_size(
            questions, material.count, material.powers, material.why_no_powers or material.why_none
        ),
        *_check_evaluated(questions, material),
    )
    every = questions.questions
    return DatasetContent(
        questions.name,
        len(every),
        sum(bool(question.references) for question in every),
        sum(bool(question.relevant_ids) for question in every),
        material.origin,
        checks,
    )


def _check_evaluated(questions: AuditedQuestions, material: Material) -> tuple[CheckContent, ...]:
    measured, why = material.measured, material.why_none
    if material.outputs is None:
        unjudged = CheckContent("unjudged", item_analysis.UNJUDGED, skipped=why)
    else:
        unjudged = item_analysis.check_unjudged(questions, material.outputs)
    if measured is not None and len(measured.systems) > 1:
        return (
            unjudged,
            item_analysis.check_failed(questions, measured, material.outputs or {}),
            item_analysis.check_solved(questions, measured),
            item_analysis.check_discrimination(questions, measured),
        )
    if measured is not None:
        why = f"the results have one system, '{measured.systems[0]}'; this takes two or more"
    titles = {
        "every_system_fails": item_analysis.FAILED,
        "every_system_solves": item_analysis.SOLVED,
        "discrimination": item_analysis.DISCRIMINATION,
    }
    return unjudged, *(CheckContent(name, title, skipped=why) for name, title in titles.items())
