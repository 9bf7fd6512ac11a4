import urllib.request
from collections.abc import Iterator

import pytest

from tests.local_view.viewing import TOKEN, Client, make_project, viewing


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("project")
    make_project(folder)
    with viewing(folder) as client:
        yield client


def test_only_requests_with_the_token_are_answered(client: Client) -> None:
    assert client.get("/")[0] == 200
    for cookie in ("", "x=y", f"rageval-view-1={TOKEN}", f"rageval-view-{client.url.rpartition(':')[2]}=t0kem", '"'):
        assert client.get("/", cookie=cookie)[0] == 403
    assert client.get("/?token=wrong", cookie="")[0] == 403
    assert "ends with a token" in client.get("/", cookie="")[1]


def test_the_printed_address_sets_a_cookie_that_scripts_and_other_sites_do_not_get(client: Client) -> None:
    with urllib.request.urlopen(f"{client.url}//evil.example/?token={TOKEN}") as reply:
        cookie, refresh = reply.headers["set-cookie"], reply.headers["refresh"]
    assert cookie.endswith(f"={TOKEN}; Path=/; HttpOnly; SameSite=Strict")
    assert refresh == "0; url=/evil.example/"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80"])
def test_a_name_that_only_leads_here_is_refused(client: Client, host: str) -> None:
    assert client.get("/", host=host)[0] == 403


def test_an_action_of_another_site_is_refused(client: Client) -> None:
    for origin in ("http://evil.example", "null", "", client.url + ".evil.example"):
        assert client._send("/compare", b"{}", {"origin": origin})[0] == 403
    assert client._send("/compare", b"{}", {"origin": client.url})[0] == 405


def test_pages_cannot_be_framed_or_kept(client: Client) -> None:
    cookie = f"rageval-view-{client.url.rpartition(':')[2]}={TOKEN}"
    with urllib.request.urlopen(urllib.request.Request(client.url, headers={"cookie": cookie})) as reply:
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cache-control"] == "no-store"
