from __future__ import annotations

import pickle
from pathlib import Path

from onnx_from_checkpoints.errors import DamagedFile


def test_a_file_to_download_again_is_advice_after_the_problem() -> None:
    error = DamagedFile("m.safetensors: is damaged", file=Path("m.safetensors"))
    assert str(error) == "m.safetensors: is damaged; download it again"
    assert error.problem == "m.safetensors: is damaged"


def test_without_such_a_file_the_message_is_the_problem() -> None:
    error = DamagedFile("config.json: 'layers' is missing")
    assert str(error) == error.problem == "config.json: 'layers' is missing"
    assert error.file is None


def test_another_process_can_raise_it() -> None:
    error = pickle.loads(pickle.dumps(DamagedFile("x: is damaged", file=Path("x"))))
    assert (str(error), error.problem, error.file) == ("x: is damaged; download it again", "x: is damaged", Path("x"))
