from __future__ import annotations

import pickle

from rageval_spec.data.call_errors import CallError, InterruptedCallError, LimitError, UnfinishedError


def test_a_stopped_evaluation_is_not_an_error_of_the_model() -> None:
    assert issubclass(LimitError, UnfinishedError)
    assert issubclass(InterruptedCallError, UnfinishedError)
    assert not issubclass(CallError, UnfinishedError)


def test_a_call_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(CallError("refused", is_temporary=False)))
    assert (str(error), error.is_temporary) == ("refused", False)
