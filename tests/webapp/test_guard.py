"""Who may read the app: pages of its own address alone; with `--host`, those who know its token."""

import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.webapp.proxy import proxied
from tests.webapp.served import WAIT_MS, Watch, ended, new_page, served_app
from webapp.guard import ENDED, is_local

TOKEN = "só secret&=" * 3
QUOTED = "s%C3%B3+secret%26%3D" * 3
OPEN = ("_stcore/health", "_stcore/host-config", "runs", "static/index.html")


@pytest.fixture(scope="module")
def guarded(filled: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app with a token, as it is with `--host`."""
    folder = tmp_path_factory.mktemp("guarded")
    with served_app(filled, folder, "--host", "0.0.0.0", "--token", TOKEN) as address:
        (log,) = folder.glob("*.log")
        assert "whoever reaches this address and has the token" in log.read_text()
        yield address.replace("localhost", "127.0.0.1")


def answer(address: str, **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers in small letters, and text."""
    asked = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=10) as found:
            status, got, content = found.status, found.headers, found.read()
    except urllib.error.HTTPError as refused:
        status, got, content = refused.code, refused.headers, refused.read()
    return status, {key.lower(): value for key, value in got.items()}, content.decode()


def shake_hands(address: str, path: str = "_stcore/stream", **headers: str) -> int:
    """Status of a WebSocket's handshake with the app."""
    url = f"{address.replace('http', 'ws', 1)}/{path}"
    try:
        with connect(url, additional_headers=headers):
            return HTTPStatus.SWITCHING_PROTOCOLS
    except InvalidStatus as refused:
        return refused.response.status_code


def test_this_machine() -> None:
    """Names that nobody else can take, and those under which others reach it, or whose owner may
    change what they are.
    """
    assert all(map(is_local, ("localhost", "127.0.0.1", "127.0.0.2", "::1", "[::1]")))
    others = ("0.0.0.0", "::", "192.0.2.7", "lab.example", "localhost.x", "")
    assert not any(map(is_local, others))


def test_headers(served: Callable[[str], str], filled: str) -> None:
    """Of every answer: no frame, no guessed types, scripts of the app alone."""
    for path in ("", *OPEN):
        _, headers, _ = answer(f"{served(filled)}/{path}")
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert re.search(r"script-src 'self' 'unsafe-eval' 'sha256-[\w+/=]+';", policy)


def test_a_proxy_without_its_path(served: Callable[[str], str], filled: str) -> None:
    """A request below a path that the app was not given is answered with the option."""
    for path in ("breakeven", "lab/breakeven/", "lab/breakeven/runs", "lab/static/js/index.js"):
        status, _, text = answer(f"{served(filled)}/{path}")
        assert status == HTTPStatus.NOT_FOUND
        assert f"Nothing is at /{path}; behind a proxy" in text
        assert "--base-path /PATH" in text
    for path in ("runs", "static/index.html", "runs/_stcore/health"):
        assert "Nothing is at" not in answer(f"{served(filled)}/{path}")[2]


def test_own_origin_alone(served: Callable[[str], str], filled: str) -> None:
    """Without a token: no request, and no WebSocket, of a page of another address or port, or to
    another name of this machine.
    """
    address = served(filled)
    own = address.removeprefix("http://")
    assert shake_hands(address, Origin=address) == HTTPStatus.SWITCHING_PROTOCOLS
    for foreign in ("http://evil.example", "http://localhost:1", "null", f"http://evil.{own}"):
        assert shake_hands(address, Origin=foreign) == HTTPStatus.FORBIDDEN
        assert answer(address, Origin=foreign)[0] == HTTPStatus.FORBIDDEN
    status, _, text = answer(address, Host="evil.example", Origin="http://evil.example")
    assert (status, "localhost only" in text) == (HTTPStatus.FORBIDDEN, True)
    assert answer(address)[0] == HTTPStatus.OK


def test_without_the_token(guarded: str) -> None:
    """Nothing is answered, whatever the path, and the line says what is missing."""
    for token in ("", "?token=", "?token=wrong", f"?token={QUOTED}x"):
        for path in ("", *OPEN):
            status, _, text = answer(f"{guarded}/{path}{token}", Cookie="breakeven=1")
            assert (status, "?token=" in text) == (HTTPStatus.FORBIDDEN, True)
        stream = f"_stcore/stream{token}"
        assert shake_hands(guarded, stream, Origin=guarded) == HTTPStatus.FORBIDDEN


def test_with_the_token(guarded: str, context: BrowserContext) -> None:
    """The page comes up, its address keeps all but the token, and later visits need none; the
    cookie is no script's and no other site's.
    """
    _, headers, _ = answer(f"{guarded}/?token={QUOTED}")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert answer(f"{guarded}/runs", Cookie=cookie.partition(";")[0])[0] == HTTPStatus.OK
    page = new_page(context)
    watch = Watch(page, guarded)
    page.goto(f"{guarded}/runs?sweep=quickstart&token={QUOTED}")
    expect(page.get_by_text("Nodes and devices").first).to_be_visible(timeout=WAIT_MS)
    assert "token" not in page.url
    assert "sweep=quickstart" in page.url
    page.goto(f"{guarded}/?sweep=quickstart")
    expect(page.get_by_text("Patch tokens").first).to_be_attached(timeout=WAIT_MS)
    watch.check()


def test_behind_a_proxy(filled: str, context: BrowserContext, tmp_path: Path) -> None:
    """Below the path of a proxy that passes on path and Host all works: the navigation, a link, a
    reload; other paths are not the app's. A page whose app has ended names what starts it again.
    """
    with (
        served_app(filled, tmp_path, "--base-path", "/lab/breakeven") as app,
        proxied(app, "/lab/breakeven") as address,
    ):
        (log,) = tmp_path.glob("*.log")
        assert f"Breakeven is at {app}/lab/breakeven/ ;" in log.read_text()
        page = new_page(context, 1700)
        page.goto(f"{address}?sweep=quickstart")
        expect(page.get_by_role("region", name="Arms")).to_be_visible(timeout=WAIT_MS)
        page.get_by_role("link", name="Why?").first.click()
        page.wait_for_url(f"{address}/explain?sweep=quickstart*", timeout=WAIT_MS)
        ended(page)
        page.get_by_role("link", name="Runs").click()
        page.wait_for_url(f"{address}/runs?sweep=quickstart*", timeout=WAIT_MS)
        page.reload()
        expect(page.get_by_text("Nodes and devices").first).to_be_visible(timeout=WAIT_MS)
        assert answer(f"{app}/_stcore/stream")[0] == HTTPStatus.NOT_FOUND
    lost = page.get_by_role("dialog")
    expect(lost).to_contain_text(ENDED, timeout=2 * WAIT_MS)
    expect(lost).to_contain_text(f"breakeven app --no-browser --port {app.rpartition(':')[2]} --db")
    expect(lost).to_contain_text("--base-path /lab/breakeven")


def test_a_proxy_that_changes_the_host(
    filled: str, context: BrowserContext, tmp_path: Path
) -> None:
    """Its pages get nothing of the app, which prints a line that states what to do, once."""
    with served_app(filled, tmp_path) as app:
        host = app.removeprefix("http://")
        with proxied(app, "/", host=host) as address:
            (log,) = tmp_path.glob("*.log")
            page = new_page(context)
            with page.expect_event("console", lambda message: "403" in message.text):
                page.goto(address)
            refused = f"A page of {address.rstrip('/')} may not read this app at {host}; a proxy"
            assert refused in log.read_text()
            status, _, text = answer(address, Origin="http://lab.example")
            assert (status, "proxy_set_header Host" in text) == (HTTPStatus.FORBIDDEN, True)
            answer(address, Origin="http://lab.example")
            assert log.read_text().count("http://lab.example") == 1
