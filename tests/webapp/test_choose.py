"""The page Choose on real stores: the same answers as `breakeven advise`, refusals with choices,
and what can be taken along.
"""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from store.read.advice.advice import AdviceRequest
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import expand_file
from sweeps.text.advice_text import advice_dict
from tests.fixtures.nightly import chain
from tests.orchestrator import vision_fixtures as vision
from tests.orchestrator.commands import breakeven
from tests.webapp import stored
from tests.webapp.conftest import Made, Open
from tests.webapp.page_elements import page_text, point_tables
from tests.webapp.simulated import store_outcomes
from webapp.display import texts
from webapp.screens import choose
from workers.methods import all_methods

DEIT = "deit_tiny_patch16_224"
PAGE = "screens/choose.py"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four arms with speed-ups and accuracy on digits; the faster, the more is lost."""
    arms = [vision.topk(rate) for rate in vision.RATES]
    outcomes = [vision.outcome(vision.job(kind, arms)) for kind in ("latency", "accuracy")]
    path = tmp_path_factory.mktemp("digits") / "breakeven.db"
    return store_outcomes(path, "sweep", *outcomes)


@pytest.mark.parametrize("requested", [(DEIT, 121, None), ("digits_vit_64", 64, 1.0)])
def test_page_and_terminal_agree(
    opened: Open, filled: str, digits: str, requested: tuple[str, int, float | None]
) -> None:
    """The sentence, every cell of the ranking, every note and every number are those of the command
    line; a measured arm has a link to its point, an interpolated one to both of its neighbours.
    """
    model, tokens, drop = requested
    options = {} if drop is None else {"max_drop": drop}
    url = filled if drop is None else digits
    arguments = ["--model", model, "--tokens", str(tokens), "--batch", "1", "--db", url, "--pareto"]
    arguments += [] if drop is None else ["--max-drop", str(drop)]
    folder = Path(url).parent
    printed = texts.typeset(breakeven("advise", *arguments, folder=folder).stdout)
    query = {name: str(value) for name, value in options.items()}
    page = opened(url, PAGE, model=model, tokens=str(tokens), batch="1", **query)
    words = page_text(page)
    sentence, title, *_ = printed.splitlines()
    for line in (sentence, title, *printed.split("\n\n")[-1].splitlines()):
        assert line in words
    (table,) = point_tables(page, "Ranking")
    cells = set(table.drop(columns="").to_numpy().ravel())
    assert not [cell for cell in cells if cell.replace("–", "-") not in printed]
    (found,) = json.loads(breakeven("advise", *arguments, "--format", "json", folder=folder).stdout)
    request = AdviceRequest(model, tokens, 1, pareto=True, **options)
    (here,), _ = stored.read(url, choose.advice, request)
    here = stored.read(url, choose.checked_advice, here)
    assert json.loads(json.dumps(advice_dict(here))) | {"confirmed": None} == found
    measured = table["arm"] != "the unmodified model"
    assert set(table.loc[~measured, ""]) == {""}
    body = next(each.proto.body for each in page.get("html") if "Ranking" in each.proto.body)
    links = re.findall(r'href="(point\?id=\w+&amp;environment=\w+&amp;host=\w+)"', body)
    assert len(set(links)) == (1 + (drop is None)) * measured.sum()


SMALL = "deit_small_patch16_224"


def test_runtimes_are_ranked_together(opened: Open, h100: str) -> None:
    """The link of the page Answer from a panel with a CUDA graph leads to the runtime whose first
    arm takes the least time, as the command does; the others follow, and none is chosen with
    `--runtime`.
    """
    answer = opened(h100, sweep="quickstart_gpu", runtime="cudagraph", batch="32")
    bodies = "".join(element.proto.body for element in answer.get("html"))
    (link,) = re.findall(r'href="choose\?([^"]*)"', bodies)
    query = dict(part.split("=", 1) for part in link.replace("&amp;", "&").split("&"))
    assert (query["tokens"], query["batch"]) == ("196", "32")
    arguments = ("--model", SMALL, "--tokens", "196", "--batch", "32", "--db", h100)
    folder = Path(h100).parent
    done = breakeven("advise", *arguments, "--format", "json", folder=folder)
    quick, slow = json.loads(done.stdout)
    assert [each["runtime"] for each in quick["runtimes"]] == ["cudagraph", "eager"]
    times = [each["ms"] for each in quick["runtimes"]]
    assert times == [quick["arms"][0]["arm_ms"], pytest.approx(3.87, abs=0.01)]
    assert times[0] == pytest.approx(1.27, abs=0.01)
    assert (quick["arms"][0]["arm"], slow["arms"][0]["arm"]) == ("topk keep_rate=0.5", "unmodified")
    assert quick["compared"] == slow["compared"] == 6
    words = page_text(opened(h100, "screens/choose.py", **query))
    assert "Use topk keep_rate=0.5 with cudagraph: at least " in words
    assert texts.typeset(quick["answer"]) in words
    assert "eager 3.874 ms (the unmodified model)" in words
    eager = opened(h100, "screens/choose.py", **query, condition="eager")
    assert "Otherwise use the unmodified model with eager: no arm is clearly faster" in page_text(
        eager
    )
    assert eager.query_params["condition"] == "eager"
    done = breakeven("advise", *arguments, "--runtime", "eager", "--format", "json", folder=folder)
    (alone,) = json.loads(done.stdout)
    assert alone["answer"].startswith("Use the unmodified model: no arm")
    assert alone["compared"] == 3


def test_between_sizes_a_time_lies_between_those_of_the_neighbours(filled: str) -> None:
    """So that runtimes have an order there too."""
    (found,), _ = stored.read(filled, choose.advice, AdviceRequest(DEIT, 121, 1))
    assert found.winner is not None
    left, right = sorted(row.arm_ms for row in found.winner.rows)
    assert left < found.time.ms < right


def test_the_newest_environment_comes_first(opened: Open, made: Made) -> None:
    """Of a host that has changed its torch the answer rests on what was measured since, which it
    names; what was measured before follows.
    """
    url = str(made("nightly.db", lambda path: chain(path, 3, falls=6)))
    page = opened(url, PAGE, model=DEIT, tokens="196", batch="1")
    words = page_text(page)
    assert "Use topk keep_rate=0.5: at least 1.4" in words
    newest = "Measured in the newest of 2 environments of host here: torch 2.15.0."
    assert newest in words
    (first, second), _ = stored.read(url, choose.advice, AdviceRequest(DEIT, 196, 1))
    assert first.environments == second.environments == (first.environment, second.environment)
    arguments = ("--model", DEIT, "--tokens", "196", "--batch", "1", "--db", url)
    printed = breakeven("advise", *arguments, folder=Path(url).parent).stdout
    assert printed.index(newest) < printed.index("Otherwise use topk")
    assert "Measured in an older one of 2 environments of host here: torch 2.14.0" in printed
    done = breakeven("advise", *arguments, "--confirm", folder=Path(url).parent)
    assert "this advice rests on host here" in done.stderr


def test_what_was_not_measured_is_refused_with_choices(opened: Open, filled: str) -> None:
    """Beyond the measured sizes the page explains why, and a button leads to the nearest one."""
    for query, reason, nearest in (
        ({"tokens": "300", "batch": "1"}, "measured at 4, 9, 16, 36, 64,", "196 tokens"),
        ({"tokens": "196", "batch": "3"}, "Nothing was measured at batch 3", "batch 1"),
    ):
        page = opened(filled, PAGE, model=DEIT, **query)
        assert reason in page_text(page)
        next(each for each in page.button if each.label == nearest).click().run()
        assert "Use topk keep_rate=0.5" in page_text(page)
        assert page.number_input(key="tokens").value == 196


def test_files_of_the_page(opened: Open, filled: str, tmp_path: Path) -> None:
    """Command lines, sweep and policy are shown on request, with the options of the page; the
    policy is that of the command, but for the time at which it is written.
    """
    page = opened(filled, PAGE, model=DEIT, tokens="196", batch="1", max_drop="0.5")
    request = f"--model {DEIT} --tokens 196 --batch 1 --max-drop 0.5"
    assert f"breakeven advise {request} --db {filled}\n" in page_text(page)
    page = opened(filled, PAGE, model=DEIT, tokens="196", batch="1")
    page.segmented_control(key="take").set_value("Measure the first again").run()
    assert "name: confirm-" in page.code[0].value
    page.segmented_control(key="take").set_value("Policy").run()
    assert "1 rule (a condition and a batch each)" in page_text(page)
    file = tmp_path / "policy.json"
    done = breakeven("export-policy", str(file), "--model", DEIT, "--db", filled, folder=tmp_path)
    made = stored.read(filled, choose.policy, AdviceRequest(DEIT, 196, 1), 0.0)
    written = json.loads(file.read_text())
    assert json.loads(made.text) | {"created": 0} == written | {"created": 0}
    assert list(made.lines) == done.stdout.splitlines()[1:]


def test_sweeps_measure_what_they_promise(filled: str) -> None:
    """The generated files request the winner's question, and all optimisations that are missing at
    a size.
    """

    def questions(text: str) -> list[tuple[str, int | None, int]]:
        found = expand_file(
            "made.yaml", methods=all_methods(), networks=networks(), auto="cpu", text=text
        ).comparisons
        return [
            (each.arm.method, each.condition.image_size, each.condition.batch_size)
            for each in found
        ]

    sweep_for = choose.sweep_for_missing_points
    (answer,), _ = stored.read(filled, choose.advice, AdviceRequest(DEIT, 121, 1, pareto=True))
    assert questions(choose.winner_sweep(answer)) == [("topk", 176, 1)]
    missing = questions(stored.read(filled, sweep_for, AdviceRequest(DEIT, 121, 1), answer))
    assert sorted(missing) == [*(("tome", 176, 1),) * 2, *(("topk", 176, 1),) * 2]
    elsewhere = stored.read(filled, sweep_for, AdviceRequest(DEIT, 196, 8), None, (1,))
    assert {(size, batch) for _, size, batch in questions(elsewhere)} == {(224, 8)}
    (exact,), _ = stored.read(filled, choose.advice, AdviceRequest(DEIT, 196, 1, pareto=True))
    assert stored.read(filled, sweep_for, AdviceRequest(DEIT, 196, 1), exact) == ""


def test_arms_differ_by_intervals() -> None:
    """Those that overlap do not; figures without an interval differ by more than a little."""
    for value, ends, expected in (
        (1.3, [(0.9, 1.1), (1.05, 1.5)], False),
        (1.3, [(0.9, 1.1), (1.2, 1.5)], True),
        (1.3, [(None, None), (None, None)], True),
        (1.001, [(None, None), (None, None)], False),
    ):
        rows = pd.DataFrame(ends, columns=["low", "high"], dtype=float)
        assert choose.differ(rows.assign(value=[1.0, value])) == expected
