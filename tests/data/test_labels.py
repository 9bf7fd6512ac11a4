from __future__ import annotations

from rageval_spec.data.labels import Label, digest_answer


def test_a_label_belongs_to_the_text_that_it_was_given_to() -> None:
    assert digest_answer("Paris.") == digest_answer("Paris.")
    assert digest_answer("Paris.") != digest_answer("Paris")
    assert len(digest_answer("\ud800")) == 16


def test_labels_of_one_claim_by_two_people_judge_the_same_item() -> None:
    ann, bob = (Label("q1", "faithfulness", 1.0, name, system="bot", claim=2) for name in ("ann", "bob"))
    assert ann.item == bob.item == ("", "q1", "bot", "", 2)
    assert Label("q1", "faithfulness", 1.0, "ann", system="bot", claim=3).item != ann.item
