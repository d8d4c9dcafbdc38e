"""Sweeps sent from the page: checked, queued and cancelled where the app was started for it, and
refused by the server where it was not.
"""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from store.errors import StoreError
from store.open.engine import connect, connect_readonly, disposing
from store.write.submissions import find_submission, submissions, submit_to_queue
from sweeps.language.expand import refuse_files
from sweeps.language.yaml_reader import SweepError, read
from tests.orchestrator.commands import SWEEP
from tests.webapp.served import WAIT_MS, Watch, new_page, served_app
from tests.webapp.served import ended as run_ended
from webapp.widgets import queueing

STEPS = "schema: 1\nname: steps\n"


@pytest.fixture
def store(filled: str, tmp_path: Path) -> str:
    """A copy that may be written to."""
    return str(shutil.copy(filled, tmp_path / "store.db"))


def test_files_of_the_server() -> None:
    """They are refused by key and line, before anything looks for them."""
    for text, key in (
        ("defaults: {checkpoint: w.safetensors}", "defaults.checkpoint"),
        ("axes: {weights: [random, w.npz]}", "axes.weights[1]"),
        ("defaults: {model: ./folder}", "defaults.model"),
        ("defaults: {data: 'imagefolder:photos'}", "defaults.data"),
        ("include: [{data: 'text:notes', model: gpt2}]", "include[0].data"),
        ("methods: [{adaptivocab: {file: ngrams}}]", "methods[0].adaptivocab.file"),
        ("methods: [{stack: [{method: adaptivocab, data: [docs, '/x']}]}]", "stack[0].data[1]"),
        ("axes: {model: [gpt2, './unet.py:build']}", "axes.model[1]"),
        ("defaults: {model: 'unet.py:build'}", "defaults.model"),
        ("methods: [{callable: 'mine:model'}]", "methods[0].callable"),
        ("jobs: {quality: {tasks: [arc_easy, own.yaml]}}", "jobs.quality.tasks[1]"),
    ):
        with pytest.raises(SweepError, match="names a file or code of the server") as refused:
            queueing.check_sweep(STEPS + text)
        assert refused.value.key.endswith(key)
        assert str(refused.value).startswith("sweep.yaml:3: ")


def test_what_names_no_file() -> None:
    text = (
        "question: does /dev/null pay?\ndefaults: {weights: pretrained, model: [gpt2, org/name]}\n"
        "axes: {threads: [cores - 1], data: [digits]}\nzip: [[topk.keep_rate, image_size]]\n"
        "resources: {zone: a/b}"
    )
    refuse_files(read("sweep.yaml", STEPS + text))


def test_without_the_option(
    store: str, tmp_path: Path, context: BrowserContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no page to send a sweep, and what is queued has no button; neither a sweep nor a
    state is written, however it is called.
    """
    with disposing(connect(store)) as engine:
        submit_to_queue(engine, "waits", SWEEP, (), priority=3, by="me")
    with served_app(store, tmp_path) as address:
        page = new_page(context)
        page.goto(f"{address}/runs")
        expect(page.get_by_text("1 waits: queued")).to_be_visible(timeout=WAIT_MS)
        expect(page.get_by_text("priority 3 · by me")).to_be_visible()
        expect(page.get_by_text("Nodes and devices")).to_be_visible(timeout=WAIT_MS)
        for name in ("Cancel", "Pause", "Queue the failed ones again"):
            assert page.get_by_role("button", name=name).count() == 0
        page.goto(f"{address}/submit")
        expect(page.get_by_text("Page not found")).to_be_visible(timeout=WAIT_MS)
        assert page.get_by_role("textbox", name="Sweep").count() == 0
    monkeypatch.setenv("BREAKEVEN_DB", store)
    with pytest.raises(StoreError, match="this app only reads"):
        queueing.queue_sweep("tiny", SWEEP)
    with pytest.raises(StoreError, match="this app only reads"):
        queueing.change_submission(1, "cancelled")
    with disposing(connect_readonly(store)) as engine:
        found = submissions(engine)
    assert [(each.name, each.state) for each in found] == [("waits", "queued")]


def test_from_a_file_to_the_queue(store: str, tmp_path: Path, context: BrowserContext) -> None:
    """A wrong sweep has the message of `breakeven plan`, a right one its counts; it is queued as its
    sender, paused, resumed and cancelled; what failed is queued again from the page Runs. Nobody
    comes without the token, which is made up and printed.
    """
    with served_app(store, tmp_path, "--allow-submit") as address:
        (log,) = tmp_path.glob("*.log")
        token = re.search(r"\?token=([\w-]{32}) ", log.read_text())
        assert token is not None
        page = new_page(context)
        page.goto(f"{address}/submit")
        expect(page.get_by_text("This app needs its token")).to_be_visible(timeout=WAIT_MS)
        watch = Watch(page, address)
        page.goto(f"{address}/submit?token={token[1]}")
        wrong = tmp_path / "wrong.yaml"
        wrong.write_text(SWEEP.replace("keep_rate: 0.5", "keep_rate: 1.5"))
        page.locator("input[type=file]").set_input_files(wrong)
        field = page.get_by_role("textbox", name="Sweep")
        expect(field).to_have_value(wrong.read_text(), timeout=WAIT_MS)
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("sweep.yaml:")).to_contain_text("keep_rate", timeout=WAIT_MS)
        assert page.get_by_role("button", name="Queue it").count() == 0
        field.fill(SWEEP)
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("3 comparisons in 3 jobs")).to_be_visible(timeout=WAIT_MS)
        page.get_by_role("spinbutton", name="Priority").fill("7")
        page.get_by_role("textbox", name="Your name").fill("<b>Ann")
        page.get_by_role("button", name="Queue it").click()
        expect(page.get_by_text("1 tiny: queued")).to_be_visible(timeout=WAIT_MS)
        engine = connect_readonly(store)
        (sent,) = submissions(engine)
        assert (sent.name, sent.text, sent.priority) == ("tiny", SWEEP, 7)
        assert sent.submitted_by == "<b>Ann (page)"
        for button, state in (("Pause", "paused"), ("Resume", "queued")):
            page.get_by_role("button", name=button).click()
            card = page.get_by_text("priority 7 · by <b>Ann (page)")
            expect(card).to_contain_text(f"1 tiny: {state}", timeout=WAIT_MS)
            assert find_submission(engine, 1).state == state
        expect(page.get_by_text("Nothing is waiting or running")).to_have_count(0)
        page.get_by_role("button", name="Cancel").click()
        sure = page.get_by_role("button", name="Cancel 1 tiny")
        expect(sure).to_be_visible(timeout=WAIT_MS)
        assert find_submission(engine, 1).state == "queued"
        sure.click()
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0, timeout=WAIT_MS)
        ended = find_submission(engine, 1)
        assert (ended.state, ended.why.endswith("(page)")) == ("cancelled", True)
        run_ended(page)  # a page left while its parts are loaded reports an error
        page.goto(f"{address}/runs?sweep=quickstart")
        page.get_by_role("button", name="Queue the failed ones again").click(timeout=WAIT_MS)
        expect(page.get_by_text("2 quickstart: queued").first).to_be_visible(timeout=WAIT_MS)
        queued = find_submission(engine, 2)
        assert queued.options == ("--remeasure", "--only", "failed")
        assert queued.text == "name: quickstart"
        engine.dispose()
        watch.check()
