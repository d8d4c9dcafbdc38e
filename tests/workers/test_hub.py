"""Models of the hub: found in its cache without a network, downloaded from a server, and a clear
message where there is none.
"""

import functools
import json
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

from sweeps.model.condition import Condition
from tests.workers.saved_llm import saved
from tests.workers.tiny_vits import calm
from workers.errors import Unsupported
from workers.models.language import load_language

calm = pytest.fixture(autouse=True)(calm)
COMMIT = "c0ffee" + "0" * 34
REFUSALS = {
    "gated": (403, "GatedRepo"),
    "nobody": (404, "RepoNotFound"),
    "bare": (404, "EntryNotFound"),
}


def point(name: str) -> Condition:
    return Condition(model=name, weights="pretrained")


def cached(home: Path, name: str, commit: str = COMMIT) -> Path:
    """A small model in a cache of the hub below `home`, laid out as `huggingface_hub` does; returns
    its folder.
    """
    place = home / "hub" / f"models--{name.replace('/', '--')}"
    folder = place / "snapshots" / commit
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    folder.mkdir(parents=True)
    return saved(folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache without a network."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


class Hub(BaseHTTPRequestHandler):
    """Hands out the files of a folder as `org/name`; of other owners, the hub's answers for models
    that are not available.
    """

    def __init__(self, *arguments: object, folder: Path) -> None:
        self.folder = folder
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.wfile.write(self.answer())

    def answer(self) -> bytes:
        _, owner, _, _, _, name = self.path.split("/", 5)
        file = self.folder / name
        status, error = REFUSALS.get(owner, (200, "") if file.is_file() else REFUSALS["bare"])
        body = b"" if error else file.read_bytes()
        self.send_response(status)
        fields = {"X-Error-Code": error} if error else {"ETag": f'"{sha256(body).hexdigest()}"'}
        for key, value in {
            **fields,
            "X-Repo-Commit": COMMIT,
            "Content-Length": str(len(body)),
        }.items():
            self.send_header(key, value)
        self.end_headers()
        return body

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A hub on this machine; the folder holds what it hands out."""
    folder = home / "served"
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Hub, folder=saved(folder))
    ) as server:
        at = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", at)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            at + "/{repo_id}/resolve/{revision}/{filename}",
        )
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folder
        server.shutdown()


def test_a_cached_model_needs_no_network(home: Path) -> None:
    """It is what was saved there; another commit with the same weights is another origin."""
    folder = cached(home, "org/name")
    cached(home, "org/newer", "d" * 40)
    lm, newer = load_language(point("org/name")), load_language(point("org/newer"))
    assert (lm.network.name, lm.network.architecture) == ("org/name", "llama")
    tokens = torch.tensor([lm.tokenizer.encode("an assignment")])
    assert torch.equal(
        lm.model(tokens).logits, load_language(point(str(folder))).model(tokens).logits
    )
    assert lm.weights_hash != newer.weights_hash


def test_a_model_is_downloaded_once(hub: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the hub hands out is loaded, and from then on needs no network."""
    lm = load_language(point("org/name"))
    assert lm.tokenizer.size == lm.network.vocabulary
    assert (
        home / "hub" / "models--org--name" / "snapshots" / COMMIT / "model.safetensors"
    ).is_file()
    assert hub.is_dir()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_language(point("org/name")).weights_hash == lm.weights_hash


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gated/one", "gated/one: the model is gated: accept the terms .* set HF_TOKEN"),
        (
            "nobody/has-this",
            "nobody/has-this: the hub has no such model, or it is private: correct the name",
        ),
        ("bare/one", "bare/one: config.json or tokenizer.json is missing"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_what_the_hub_refuses(name: str, message: str) -> None:
    """Each answer of the hub becomes one line that names what would be right."""
    with pytest.raises(OSError, match=message):
        load_language(point(name))


def test_what_a_cache_lacks(home: Path) -> None:
    """A model, or a file of one, that is neither here nor to be had."""
    with pytest.raises(
        OSError, match=r"org/none: it is not complete in .*hub, .* connect the workers to a network"
    ):
        load_language(point("org/none"))
    (cached(home, "org/silent") / "tokenizer.json").unlink()
    with pytest.raises(OSError, match="org/silent: it is not complete in"):
        load_language(point("org/silent"))
    folder = cached(home, "org/pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(OSError, match=r"org/pickled: there are no weights \(\*.safetensors\)"):
        load_language(point("org/pickled"))


def test_code_of_others_is_not_run(home: Path) -> None:
    """A model that brings its own code is unsupported, and no question appears on the terminal."""
    file = cached(home, "org/code") / "config.json"
    file.write_text(json.dumps({"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}}))
    with pytest.raises(Unsupported, match="org/code contains custom code"):
        load_language(point("org/code"))
