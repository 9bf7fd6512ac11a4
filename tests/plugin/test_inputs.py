from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from rageval_spec.plugin import InputFile, digest_content


def test_a_files_digest_is_the_sha256_of_its_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"x" * 300_000)
    second.write_bytes(first.read_bytes())
    expected = hashlib.sha256(b"x" * 300_000).hexdigest()
    assert digest_content(InputFile(first, ("path",))) == digest_content(InputFile(second, ("other",))) == expected


def test_a_missing_file_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        digest_content(InputFile(tmp_path / "absent", ("path",)))
