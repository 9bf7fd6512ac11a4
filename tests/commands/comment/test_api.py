from __future__ import annotations

import time

import pytest

from rageval_spec.commands.comment.api import Api, ApiError
from rageval_spec.plugin.secret import Secret
from tests.commands.comment.server import TOKEN, CodeHostServer

PATH = "/repos/owner/app/issues/7/comments"


def ask(server: CodeHostServer, token: str = TOKEN) -> ApiError:
    api = Api(server.url, {"authorization": Secret(f"Bearer {token}", "Bearer ${secret:TOKEN}")})
    with pytest.raises(ApiError) as caught:
        api.request("GET", PATH, query="page=1")
    return caught.value


@pytest.mark.parametrize(
    ("status", "headers", "told", "is_temporary"),
    [
        (401, {}, "the token is wrong or has expired", False),
        (403, {}, "the token may not do this", False),
        (404, {}, "there is no such pull request", False),
        (422, {}, "answered 422", False),
        (429, {"Retry-After": "2"}, "too many requests", True),
        (403, {"Retry-After": "2"}, "too many requests", True),
        (502, {}, "answered 502", True),
    ],
)
def test_a_refusal_says_what_is_wrong_and_shows_no_token(
    server: CodeHostServer, status: int, headers: dict[str, str], told: str, is_temporary: bool
) -> None:
    server.refusals = {"GET": [(status, headers)]}
    error = ask(server)
    assert told in str(error)
    assert PATH in str(error)
    assert (error.status, error.is_temporary) == (status, is_temporary)
    assert TOKEN[:12] not in str(error)
    assert "***" in str(error)


def test_github_says_when_it_counts_anew(server: CodeHostServer) -> None:
    reset = str(int(time.time()) + 60)
    server.refusals = {"GET": [(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})]}
    error = ask(server)
    assert error.is_temporary
    assert error.wait is not None
    assert 30 < error.wait <= 60


def test_a_wait_of_an_hour_is_too_long(server: CodeHostServer) -> None:
    reset = str(int(time.time()) + 3600)
    server.refusals = {"GET": [(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})]}
    error = ask(server)
    assert not error.is_temporary
    assert "too long" in str(error)


def test_a_wrong_token_is_refused(server: CodeHostServer) -> None:
    assert ask(server, "another-token-0815").status == 401


def test_a_server_that_is_not_there_is_worth_another_try() -> None:
    error = ask(CodeHostServer(url="http://127.0.0.1:9"))
    assert error.status is None
    assert error.is_temporary
