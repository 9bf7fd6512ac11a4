from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rageval_spec.commands.models.model_process import Trial, TriedModel
from rageval_spec.errors import RagevalError, UsageError
from tests.models.endpoint import TEXTS, Answer, Server, answer_well, embeddings, vector_of


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    started = Server(answer_well)
    yield started
    started.close()


def contend(server: Server, **keys: Any) -> TriedModel:
    return TriedModel("remote", {"use": "http", "base_url": server.url, "model": "tiny", **keys}, Path())


def test_another_process_embeds_and_reports_progress(server: Server) -> None:
    seen: list[tuple[int, int]] = []
    with Trial(contend(server, batch=1, query_prefix="q ")) as trial:
        found = trial.ask("embed", TEXTS, progress=lambda done, total, unit=None: seen.append((done, total)))
        asked = trial.ask("embed", ["cat"], "query")
    assert_array_equal(found.answer.vectors, np.array([vector_of(text) for text in TEXTS], np.float32))
    assert_array_equal(asked.answer.vectors[0], vector_of("q cat"))
    assert found.seconds > 0
    assert 5_000_000 < found.start_bytes <= found.peak_bytes < 1_000_000_000
    assert seen[-1] == (3, 3)


def test_a_trial_stores_no_vectors(server: Server) -> None:
    with Trial(contend(server)) as trial:
        trial.ask("embed", TEXTS)
        assert trial.ask("embed", TEXTS).answer.reused == 0
    assert len(server.calls) == 2


def test_model_errors_are_passed_on_and_the_process_goes_on(server: Server) -> None:
    server.script = lambda number, texts: Answer({}, 400) if number == 0 else Answer(embeddings(texts))
    with Trial(contend(server)) as trial:
        with pytest.raises(RagevalError, match=r"^models\.remote: .* answered 400"):
            trial.ask("embed", TEXTS)
        assert len(trial.ask("embed", TEXTS).answer.vectors) == 3
    bad = TriedModel("bad", {"use": "http", "base_url": server.url, "model": "x", "headers": {"a b": "c"}}, Path())
    with Trial(bad) as trial, pytest.raises(UsageError, match="is not a valid header name"):
        trial.ask("embed", TEXTS)


def test_a_process_that_is_killed_is_an_error(server: Server) -> None:
    victims: list[int] = []
    with Trial(contend(server)) as trial:
        trial.ask("embed", ["a"])
        victims.append(trial.process_id)
        os.kill(victims[0], signal.SIGKILL)
        with pytest.raises(RagevalError, match=r"^remote: its process was killed by SIGKILL; .* out of memory"):
            trial.ask("embed", TEXTS)


def test_the_process_ends_with_the_trial(server: Server) -> None:
    with Trial(contend(server)) as trial:
        trial.ask("embed", ["a"])
        process = trial.process_id
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
