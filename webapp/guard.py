"""What the web app refuses, and the headers of its answers: an ASGI middleware around Streamlit.

Without a token it answers requests for this machine's own names alone, so that no page of another
host reaches it by a name that resolves to this machine. With a token it answers requests that have
it, as Jupyter does: the first visit has the token in its address, later ones have a cookie.
"""

import base64
import hmac
import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from html import escape
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlencode

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REFUSED = 403
NEEDED = (
    "This app needs its token: open the address with ?token=... that 'breakeven app' printed.\n"
)
FOREIGN = (
    "A page of {origin} may not read this app at {host}; a proxy must pass on the Host that the"
    " browser sends (nginx: proxy_set_header Host $http_host), and a path with --base-path /PATH.\n"
)
OTHER_NAME = (
    "This app answers to localhost only; 'breakeven app --host ADDRESS' opens it, with a token;"
    " behind a proxy on this machine --token TOKEN does.\n"
)
NOTHING_HERE = (
    "Nothing is at {path}; behind a proxy that passes this app on below a path, start it with"
    " 'breakeven app --base-path /PATH'.\n"
)
PLACES = {"_stcore", "app", "component", "media", "static"} | {
    path.stem for path in Path(__file__).with_name("screens").glob("[!_]*.py")
}
"""First parts of paths below the app's own: Streamlit's and the pages."""
ENDED = "The app has ended, or cannot be reached. On its machine this starts it again:"
_STREAMLIT = Path(streamlit.__file__).with_name("static")
_QUESTIONS = re.compile(
    r"`Is Streamlit still running\?[^`]*`,codeBlock:`[^`]*`"
    r"|`Streamlit server is not responding[^`]*`"
)
"""In Streamlit's script: what a page shows whose server is lost, on this machine and elsewhere."""


def is_local(host: str) -> bool:
    """Whether a host, without a port, is this machine under a name that nobody else can take."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Answers with 403 what comes from elsewhere, and adds headers of security to all answers.

    `token` is empty where the app listens on this machine alone. `cookie` is the name of the
    cookie: browsers share cookies between the ports of a host. `say` takes a refusal of another
    page, once, which a browser does not show where it is that of a WebSocket. `command` starts the
    app: pages show it where they have lost their server. `base` is the path of the app.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        say: Callable[[str], None],
        token: str = "",
        cookie: str,
        command: str,
        base: str = "",
    ) -> None:
        self.base = base and f"/{base}"
        self.scripts = scripts_that_ask(command)
        self.app, self.say, self.token, self.cookie = app, lru_cache(say), token, cookie
        self.pass_word = sha256(token.encode()).hexdigest()
        self.headers = {
            "Content-Security-Policy": content_policy(),
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_secured(message: Message) -> None:
            if message["type"].endswith("http.response.start"):
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        answer = None if scope["type"] == "lifespan" else self._answer(HTTPConnection(scope))
        await (answer or self.app)(scope, receive, send_secured)

    def _answer(self, request: HTTPConnection) -> Response | None:
        """Instead of that of the app; `None` where the app may answer."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            text = FOREIGN.format(origin=origin, host=host)
            self.say(text.strip())
            return PlainTextResponse(text, REFUSED)
        if not self.token:
            local = is_local(re.sub(r":\d+$", "", host))
            return self._own(request) if local else PlainTextResponse(OTHER_NAME, REFUSED)
        if _equal(request.cookies.get(self.cookie, ""), self.pass_word):
            return self._own(request)
        if not _equal(request.query_params.get("token", ""), self.token):
            return PlainTextResponse(NEEDED, REFUSED)
        # A redirect would not have the cookie where a link of another site leads here.
        others = [each for each in request.query_params.multi_items() if each[0] != "token"]
        again = escape(f"?{urlencode(others)}")
        answer = HTMLResponse(
            f'<meta http-equiv="refresh" content="0; url={again}">',
            headers={"Cache-Control": "no-store"},
        )
        answer.set_cookie(self.cookie, self.pass_word, httponly=True, samesite="strict")
        return answer

    def _own(self, request: HTTPConnection) -> Response | None:
        """Of those who may read: Streamlit's scripts with our words, and what is nowhere."""
        path = request.url.path.removeprefix(self.base).strip("/")
        if path.partition("/")[0] not in {"", *PLACES} and ("/" in path or "." not in path):
            return PlainTextResponse(NOTHING_HERE.format(path=request.url.path), 404)
        text = self.scripts.get(request.url.path.rpartition("/")[2])
        if text is None:
            return None
        # another app at this port may have the same script with another command
        return Response(text, headers={"Cache-Control": "no-cache"}, media_type="text/javascript")


def scripts_that_ask(command: str) -> dict[str, str]:
    """Streamlit's scripts, by the names of their files, that would ask whether it still runs; with
    what to start instead.
    """
    quoted = re.sub(r"([\\`$])", r"\\\1", command)
    shown = f"`{ENDED}`,codeBlock:`{quoted}`"
    texts = {path.name: path.read_text("utf-8") for path in _STREAMLIT.rglob("index.*.js")}
    return {
        name: _QUESTIONS.sub(lambda _: shown, text)
        for name, text in texts.items()
        if _QUESTIONS.search(text)
    }


def _equal(given: str, right: str) -> bool:
    """Whether two texts are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(errors="replace"), right.encode())


def content_policy() -> str:
    """The Content-Security-Policy: everything comes from the app itself; no page may frame it.

    Of inline scripts those of Streamlit's own page alone run; Vega compiles its expressions, and
    Streamlit writes its styles into the page.
    """
    page = (_STREAMLIT / "index.html").read_text(encoding="utf-8")
    inline = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(sha256(text.encode()).digest()).decode() for text in inline]
    allowed = {
        "default-src": "'self'",
        "script-src": " ".join(["'self' 'unsafe-eval'", *(f"'sha256-{each}'" for each in hashes)]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in allowed.items())
