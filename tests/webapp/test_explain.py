"""The page Explain: the reasons of a profiled sweep, of one without a profile, the audit, and what
is not known.
"""

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from orchestrator.report.data import load_report
from orchestrator.report.why import why_sections
from store.open.engine import connect, connect_readonly
from store.read.audits import audit_of_sweep
from store.read.profiling import ProfiledCondition, explain_profiles
from store.read.queries import sweep_rows
from store.rows.profiles import keep_peaks
from sweeps.model.profile import Peaks
from tests.webapp import simulated, stored
from tests.webapp.conftest import Open
from tests.webapp.explained_store import TIMES, explained_store, import_impossible_trace
from tests.webapp.page_elements import charts, page_text
from webapp.display import texts
from webapp.screens import explain
from workers.methods.arm_labels import params_label

PAGE = "screens/explain.py"
TOPK = "topk keep_rate=0.5"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    return explained_store(tmp_path_factory.mktemp("explained") / "explain.db")


def conditions(url: str) -> list[ProfiledCondition]:
    engine = connect_readonly(url)
    profiles, effects = (sweep_rows(engine, "explained", view) for view in ("profile", "effect"))
    engine.dispose()
    return explain_profiles(profiles, effects, params_label)


def sides(url: str) -> list[explain.Sides]:
    found = conditions(url)
    by_label = {arm.label: arm.row.arm_id for each in found for arm in each.arms}
    return explain.sides_of(found, by_label[TOPK], by_label["dense"])


def test_the_reasons_are_those_of_the_report(opened: Open, profiled: str) -> None:
    """Every sentence of the report on an arm stands on its page, word for word."""
    page = opened(profiled, PAGE, sweep="explained", arm=TOPK, more="In words")
    words = unescape(page_text(page))
    lines = [
        line.text
        for section in why_sections(load_report(profiled, "explained"))
        for line in section.lines
    ]
    own = [line.partition(": ")[2] for line in lines if line.startswith(f"{TOPK}: ")]
    assert len(own) == 2
    assert all(f"{texts.typeset(text)}." in words for text in own)
    assert "At 64 px (16 tokens): " in words
    assert "At 224 px (196 tokens): " in words
    assert "profile: {}" not in words


def test_the_unmodified_model_stands_beside_the_peak(
    opened: Open, filled: str, tmp_path: Path
) -> None:
    """What it reaches at its best size, the peak with its kernel, and where it is far below what to
    try; nothing where no peak is known.
    """
    assert "GFLOP/s" not in page_text(opened(filled, PAGE, sweep="quickstart", more="In words"))
    url = explained_store(tmp_path / "s.db")
    engine = connect(url)
    rows = sweep_rows(engine, "explained", "speedup")
    rates = 2e3 * rows["gmacs_baseline"] * rows["batch_size"] / rows["baseline_ms"]
    (threads,) = set(rows["threads"])
    best = rates.max()

    def line(gflops: float, kernel: str) -> str:
        peak = Peaks(gflops=gflops, gb_per_s=1, dtype="float32", threads=threads, kernel=kernel)
        keep_peaks(engine, simulated.ENVIRONMENT, "simulated", [peak])
        page = opened(url, PAGE, sweep="explained", arm=TOPK, more="In words")
        words = unescape(page_text(page))
        return words.partition("The unmodified model reaches ")[2].partition("\n")[0]

    own = f"{best:.3g} of this CPU's"
    near = f"{own} {best / 0.8:.3g} GFLOP/s in float32 (80 %; peak by torch.mm)."
    assert line(best / 0.8, "torch.mm").startswith(near)
    assert line(4 * best, "oneDNN").startswith(
        f"{own} {4 * best:.3g} GFLOP/s in float32 (25 %; peak by oneDNN): another runtime"
    )
    engine.dispose()


def test_the_size_that_needs_a_reason_comes_first(opened: Open, profiled: str) -> None:
    """The largest at which the arm does not pay; a size of the address is shown instead, with the
    operators of its profile.
    """
    app = opened(profiled, PAGE, sweep="explained", arm=TOPK)
    assert app.select_slider(key="size").value == "16"
    assert "64 px (16 tokens): totals" in page_text(app)
    words = page_text(opened(profiled, PAGE, sweep="explained", arm=TOPK, size="196"))
    assert "224 px (196 tokens): totals" in words


def test_a_profile_explains_where_it_agrees_with_the_timing(tmp_path: Path) -> None:
    """Steps are the classes of time where differences have intervals; else those of the cost
    model, or one rest; the last one ends at the time that was measured.
    """
    for rounds in (False, True):
        url = explained_store(tmp_path / f"{rounds}.db", rounds=rounds)
        points, _ = stored.labelled_speedups("explained", url)
        own = points[points["arm"] == TOPK].sort_values("tokens")
        for row in texts.point_rows(explain.with_promises(own)):
            steps = explain.steps_of(row, sides(url), None)
            kinds = [step.kind for step in steps]
            assert kinds[:2] == ["baseline", "promise"]
            assert ("class" in kinds) == rounds
            assert steps[-1].end == row.arm_ms
            assert steps[-2].end == pytest.approx(row.arm_ms, rel=0.005)
            few = replace(row, verdict="insufficient")
            assert explain.steps_of(few, sides(url), None) == []


def test_without_a_profile_what_is_known_is_labelled(opened: Open, filled: str) -> None:
    """Promise and reach, the method's own work, the fit with its misfit and both break-evens; and
    the lines that profile it.
    """
    query = {"sweep": "quickstart", "arm": "tome r_ratio=0.02"}
    words = page_text(opened(filled, PAGE, **query, more="In words"))
    assert "At 224 px (196 tokens): 0.8" in words
    assert "the method itself adds 0.0013 GMACs, 0.1 % of the baseline" in words
    assert "is not known without a profile" in words
    assert "add the method truncate with the same counts" in words
    app = opened(filled, PAGE, **query, more="Cost model")
    assert "Fixed cost: " in page_text(app)
    assert any("jobs:\n  profile: {}<" in each.proto.body for each in app.get("html"))
    labels = charts(app)[0]["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert {"fixed cost added (model)", "measured"} <= set(labels)


def test_the_arm_that_falls_short_most_comes_first(opened: Open, filled: str) -> None:
    """Without an arm in the address; one that does not exist is reported."""
    app = opened(filled, PAGE, sweep="quickstart")
    assert app.selectbox(key="arm").value == "tome r_ratio=0.02"
    words = page_text(opened(filled, PAGE, sweep="quickstart", arm="tomme"))
    assert "The address has arm=tomme, which is not known here; " in words


def test_the_badge_lists_doubts_about_this_arm_alone(opened: Open, tmp_path: Path) -> None:
    """An imported trace that cannot be true is found on the arm that it is of, and no other."""
    url = explained_store(tmp_path / "s.db")
    import_impossible_trace(url)
    engine = connect_readonly(url)
    report = audit_of_sweep(engine, "explained", params_label)
    engine.dispose()
    for arm in ("tome r_ratio=0.06", TOPK):
        words = page_text(opened(url, PAGE, sweep="explained", arm=arm))
        own = [each for each in report.findings if arm in each.arms]
        assert words.count("To settle it: ") == len(own)
        shown = [each.rule for each in report.findings if f"{each.severity}: {each.rule} " in words]
        assert sorted(shown) == sorted(each.rule for each in own)
        assert ("contradiction: device_within_wall" in words) == (arm == TOPK)
        assert f"{len(report.findings) - len(own)} finding" in words


def test_parts_add_up_to_the_wall(profiled: str) -> None:
    """Classes of baseline and arm side by side, one pair for each size, smallest first."""
    parts = explain.wall_parts(sides(profiled))
    assert list(dict.fromkeys(parts["place"])) == ["64 px (16 tokens)", "224 px (196 tokens)"]
    sums = parts.groupby(["place", "side"])["ms"].sum()
    assert sums["224 px (196 tokens)", "arm"] == pytest.approx(sum(TIMES[224][1].values()))
    assert list(parts["wall_ms"].unique()) == pytest.approx([0.8, 0.9, 3.6, 2.4])


def test_roofline_names_both_sides(profiled: str) -> None:
    """Of three arms the two that are compared are named; rates are known of all."""
    points = explain.roofline_points(sides(profiled)[-1])
    assert dict(zip(points["label"], points["side"], strict=True)) == {
        "dense": "baseline",
        TOPK: "arm",
        "tome r_ratio=0.06": "other arm",
    }
    assert points[["gflops", "gb_per_s"]].notna().all().all()


def test_promise_and_ceiling_stand_beside_the_points() -> None:
    """The promise follows from MACs, the ceiling from an arm that only cuts and leaves the same
    tokens.
    """
    rows = [
        {
            "method": method,
            "tokens": 196,
            "tokens_final": 99,
            "gmacs": 0.6,
            "gmacs_baseline": 1.2,
            "gmacs_total": 0.6,
            "speedup": ratio,
        }
        for method, ratio in (("topk", 1.4), ("truncate", 1.7))
    ]
    ends = {"speedup_low": [1.3, 1.6], "speedup_high": [1.5, 1.8]}
    points = stored.point_frame(*rows).assign(
        batch_size=1, arm=["topk", "truncate"], verdict="faster", **ends
    )
    points = points.drop(columns=["ceiling", "ceiling_low", "ceiling_high", "ceiling_id"])
    found = explain.with_promises(points)
    assert list(found["promised"]) == [2.0, 2.0]
    assert list(found["ceiling"]) == [1.7, 1.7]
    assert list(found["ceiling_low"]) == [1.6, 1.6]
    for verdict, flags in (
        ("insufficient", ""),
        ("quarantined", ""),
        ("faster", "thermal_slowdown"),
    ):
        few = explain.with_promises(points.assign(verdict=["faster", verdict], flags=["", flags]))
        assert few[["ceiling", "ceiling_low", "ceiling_high"]].isna().all(axis=None)
    assert explain.most_surprising(found) == "topk"
