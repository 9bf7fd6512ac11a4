"""What can be wrong with a checkpoint that a graph or a tokenizer is built from."""

from __future__ import annotations

from pathlib import Path

OTHER_READER = "the package sentence-transformers"
"""What runs models that cannot be built; a program that can call it may say in its place how it is asked to."""


class CheckpointError(Exception):
    """A checkpoint cannot be read or built. The message says where and what to do."""


class UnsupportedModel(CheckpointError):  # noqa: N818 - it says what the error is
    """The files are sound, but the model has a part that cannot be built; the message names it, and what is supported.

    What is asked of a model counts as well, such as replies of a model that writes no text.
    """


class DamagedFile(CheckpointError):  # noqa: N818
    """A file is missing, damaged or truncated, has an impossible value, or belongs to another model than the others.

    Attributes:
        problem: the message without the advice to download a file again.
        file: the file to download again; None if that would not help. A program that knows where the file is from can
            give better advice.
    """

    def __init__(self, problem: str, file: Path | None = None) -> None:
        """The message is `problem`, followed by the advice to download `file` again, if it is given."""
        super().__init__(problem if file is None else f"{problem}; download it again")
        self.problem = problem
        self.file = file
