"""Why a call to a model, or a question to a system, brought no reply."""

from __future__ import annotations

from rageval_spec.errors import RagevalError


class CallError(RagevalError):
    """A call failed, and retries failed or would be useless. One sample has no verdict; the others are not affected.

    Attributes:
        is_temporary: True if the endpoint can be expected to answer if the question is rephrased: it was busy or broken
            (429, 5xx), or its reply was incomplete. False if it refuses (401, 404) or is considered dead.
        is_lasting: True if the next evaluation would fail in the same way: the endpoint refuses (401, 404).
    """

    def __init__(self, message: str, *, is_temporary: bool = True, is_lasting: bool = False) -> None:
        """Create the error with the message that reports show."""
        super().__init__(message)
        self.is_temporary = is_temporary
        self.is_lasting = is_lasting


class UnfinishedError(RagevalError):
    """The evaluation stopped before a reply came. This is not a failure of the model or the system."""


class LimitError(UnfinishedError):
    """The evaluation reached a limit of the spec and asks nothing more. The replies it already has are kept."""


class InterruptedCallError(UnfinishedError):
    """The evaluation was interrupted, for example by Ctrl-C, while a call was waiting or in flight."""
