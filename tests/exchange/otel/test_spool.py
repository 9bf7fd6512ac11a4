from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.otel.spool import Spool
from rageval_spec.exchange.shared.otlp.files import SpanFiles
from rageval_spec.exchange.shared.otlp.protobuf_spans import encode_spans
from rageval_spec.exchange.shared.spans import Span


def _request(number: int) -> bytes:
    return encode_spans([Span("1" * 32, f"{number:016x}")])


def _read(path: Path) -> list[int]:
    return [int(span.span_id, 16) for span in SpanFiles().read(path)]


def test_requests_can_be_read_as_a_file_of_a_collector(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "deep" / "a.otlp")
    assert all(spool.add(_request(number)) for number in (1, 2))
    assert _read(spool.path) == [1, 2]  # also before it is closed
    spool.close()
    assert not spool.add(_request(3)) and _read(spool.path) == [1, 2]


@pytest.mark.parametrize("cut", [1, 3, 4, 10])
def test_what_a_kill_left_of_a_request_is_removed(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.otlp"
    spool = Spool(path)
    spool.add(_request(1))
    whole = path.stat().st_size
    spool.add(_request(2))
    spool.close()
    path.write_bytes(path.read_bytes()[: whole + cut])
    again = Spool(path)
    assert again.found == 1
    again.add(_request(3))
    again.close()
    assert _read(path) == [1, 3]


def test_two_receivers_do_not_share_a_spool(tmp_path: Path) -> None:
    first = Spool(tmp_path / "a.otlp")
    with pytest.raises(RagevalError, match="another receiver is writing"):
        Spool(tmp_path / "a.otlp")
    first.close()
    Spool(tmp_path / "a.otlp").close()


def test_a_retired_spool_is_kept_until_the_next_one(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a.otlp")
    spool.add(_request(1))
    spool.retire()
    assert _read(tmp_path / "a.done") == [1] and not spool.path.exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RagevalError, match="cannot be written"):
        Spool(tmp_path / "file" / "a.otlp")
