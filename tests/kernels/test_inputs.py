""""""

from __future__ import annotations

import gzip
import io
import os
import socket
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

from rageval_spec import evaluate, kernels
from rageval_spec.errors import DataError
from rageval_spec.kernels import read_qrels, read_run
from rageval_spec.kernels.inputs import (
    ALWAYS_READ,
    as_vector,
    as_vectors,
    check_bounds,
    check_count,
    check_seed,
    check_threads,
    name_special,
)
from rageval_spec.reading.formats.text_files import text_lines


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("q1 0 d1 1\nq2 0 d1 1\nq1 0 d1 0\n", "qrels:3: document 'd1' is judged twice for query 'q1'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t1\n", "qrels:3: document 'd1' is judged twice"),
        ("q1 0 d1 99999999999\n", "qrels:1: the relevance '99999999999' does not fit in 32 bits"),
        ("q1 0 d1 0.5\n", "qrels:1: the relevance '0.5' is not a whole number"),
    ],
)
def test_a_bad_judgement_is_named_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        kernels.read_qrels(path)


QRELS = b"q1 0 d1 1\n"
MEBIBYTE = 2**20
LARGE = ALWAYS_READ // MEBIBYTE + 1


def gzip_bomb() -> bytes:
    """A gzip member of 257 MiB, compressed to 260 KB, before a member that looks like a normal file."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as stream:
        for _ in range(LARGE):
            stream.write(bytes(MEBIBYTE))
    return gzip.compress(QRELS, mtime=0) + packed.getvalue()


def zstd_bomb(*, tells_size: bool) -> bytes:
    """The same content as Zstandard, in a few kilobytes."""
    size = LARGE * MEBIBYTE if tells_size else -1
    packed = io.BytesIO()
    with zstandard.ZstdCompressor(write_content_size=tells_size).stream_writer(packed, size=size, closefd=False) as to:
        for _ in range(LARGE):
            to.write(bytes(MEBIBYTE))
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + bytes(5)
    return zstandard.compress(QRELS) + skipped + packed.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": gzip_bomb,
    "zstd": lambda: zstd_bomb(tells_size=True),
    "zstd that does not tell its size": lambda: zstd_bomb(tells_size=False),
}
READERS: dict[str, Callable[[Path], object]] = {
    "qrels": read_qrels,
    "run": read_run,
    "evaluate": lambda path: evaluate({"q1": {"d1": 1}}, path, ["rr"]),
    "lines": lambda path: list(text_lines(path)),
}


@pytest.fixture(scope="module", params=BOMBS)
def bomb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bombs") / "bomb.txt"
    path.write_bytes(BOMBS[request.param]())
    assert path.stat().st_size < MEBIBYTE
    return path


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_bomb_is_refused_by_every_reader(bomb: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(
        DataError,
        match=r"bomb\.txt: the compressed file expands to more than 256 MiB; if this is intended, decompress it first",
    ):
        read(bomb)


def test_a_bomb_takes_no_memory(bomb: Path) -> None:
    code = f"""
import resource
from rageval_spec.kernels.inputs import check_bounds
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    check_bounds({str(bomb)!r})
except Exception as error:
    print(type(error).__name__, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    name, mebibytes = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    assert name == "DataError"
    assert int(mebibytes) < 32


def test_files_that_compress_like_text_are_read(tmp_path: Path) -> None:
    text = b"".join(b"q%d Q0 d%d 1 %d.5 tag\n" % (n % 97, n, n) for n in range(60_000))
    for name, content in (("run.gz", gzip.compress(text, mtime=0)), ("run.zst", zstandard.compress(text))):
        path = tmp_path / name
        path.write_bytes(content + content)
        check_bounds(path)
        assert read_run(path).height == 120_000


@pytest.mark.parametrize(
    "content",
    [
        b"\x1f\x8b",
        b"\x1f\x8b" + bytes(300_000),
        b"\x28\xb5\x2f\xfd" + bytes(300_000),
        gzip.compress(os.urandom(400_000), mtime=0)[:-9],
        zstandard.compress(os.urandom(400_000))[:-9],
    ],
)
def test_damaged_files_are_left_to_their_readers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(content)
    check_bounds(path)


def test_a_changed_file_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(gzip.compress(os.urandom(300_000), mtime=0))
    check_bounds(path)
    path.write_bytes(gzip_bomb())
    with pytest.raises(DataError):
        check_bounds(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_devices_and_named_pipes_are_refused_at_once(tmp_path: Path, read: Callable[[Path], object]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match=r"pipe: this is a named pipe, not a file; write its content to a file"):
        read(pipe)
    with pytest.raises(DataError, match="/dev/zero: this is a device, not a file"):
        read(Path("/dev/zero"))


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="has no /dev/fd")
def test_a_pipe_from_the_shell_is_read() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, QRELS)
        os.close(writing)
        path = Path(f"/dev/fd/{reading}")
        assert name_special(path) is None
        assert read_qrels(path).rows() == [("q1", "d1", 1)]
    finally:
        os.close(reading)


def test_special_files_are_named(tmp_path: Path) -> None:
    assert name_special(tmp_path) is None
    assert name_special(tmp_path / "absent") is None
    assert name_special("a\0b") is None
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert name_special(tmp_path / "s") == "a socket"


def test_an_array_of_doubles_is_passed_on_unchanged() -> None:
    values = array("d", [0.5, 1.0])
    assert as_vector("values", values) is values


def test_other_numbers_become_doubles() -> None:
    assert as_vector("values", [1, 2]).tolist() == [1.0, 2.0]
    assert as_vector("values", array("f", [0.5])).tolist() == [0.5]
    assert as_vector("values", np.array([[1, 2], [3, 4]])[:, 1]).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(("values", "dimensions"), [(1.5, 0), ([[1.0]], 2)])
def test_values_of_other_dimensions_are_refused(values: object, dimensions: int) -> None:
    with pytest.raises(ValueError, match=f"^values must have one dimension, not {dimensions}$"):
        as_vector("values", values)  # type: ignore[arg-type]


def test_a_bad_row_is_named_by_its_number() -> None:
    with pytest.raises(ValueError, match=r"^sample 1 must have one dimension"):
        as_vectors("sample", [[1.0], 2.0])


@pytest.mark.parametrize("value", [0, -1, 2**63])
def test_a_count_that_the_core_cannot_take_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"depth must be .*, not {value}$"):
        check_count("depth", value)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_seed_has_64_bits(value: int) -> None:
    with pytest.raises(ValueError, match="seed must be between 0 and 18446744073709551615"):
        check_seed(value)


def test_none_threads_stay_none() -> None:
    assert check_threads(None) is None
    assert check_threads(3) == 3
    with pytest.raises(ValueError, match=r"threads must be .*, not 0$"):
        check_threads(0)
