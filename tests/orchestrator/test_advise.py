"""`breakeven advise` and `export-policy` on stores of known truth: answers, evidence, refusals, and
a policy's round trip.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from store.open.engine import connect_readonly
from store.read.advice.advice import MethodFacts, condition_arms
from sweeps.analysis.policy import Policy
from sweeps.errors import UserError
from sweeps.language.confirmation import comparison_at
from sweeps.model.condition import Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair
from sweeps.model.outcome import Outcome
from tests.orchestrator import vision_fixtures as vision
from tests.orchestrator.commands import breakeven
from tests.store.conftest import a_job, an_outcome
from tests.webapp import simulated
from tests.webapp.simulated import store_outcomes
from workers.methods import purpose
from workers.methods.arm_labels import params_label

DEIT = ("--model", "deit_tiny_patch16_224")
DIGITS = ("--model", "digits_vit_64")


def advice(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """The parsed JSON of a command that answers."""
    done = breakeven("advise", *arguments, "--format", "json", folder=folder)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def kept(tmp_path: Path, *outcomes: Outcome) -> Path:
    """A folder with a store of these outcomes."""
    store_outcomes(tmp_path / "breakeven.db", "sweep", *outcomes)
    return tmp_path


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """Four arms with speed-ups and accuracy on digits; the faster, the more is lost."""
    arms = [vision.topk(rate) for rate in vision.RATES]
    return kept(
        tmp_path,
        vision.outcome(vision.job("latency", arms)),
        vision.outcome(vision.job("accuracy", arms)),
    )


def test_the_fastest_for_sure_is_advised(stored: Path) -> None:
    """At 196 tokens topk 0.5 gains most: it is named with its interval, among how many it was
    chosen, and its rows.
    """
    (found,) = advice(stored, *DEIT, "--tokens", "196", "--batch", "1")
    first = found["arms"][0]
    assert (first["arm"].split()[:2], first["verdict"], first["method"]) == (
        ["topk", "keep_rate=0.5"],
        "faster",
        "topk",
    )
    assert first["low"] < first["speedup"] < first["high"]
    assert found["compared"] == 5
    assert found["alpha_each"] == pytest.approx(found["alpha_together"] / 5)
    assert [row["tokens"] for row in first["evidence"]] == [196]
    names = [each["arm"] for each in found["arms"]]
    assert names.count("unmodified") == 1
    control = next(each for each in found["arms"] if each["arm"].startswith("random"))
    assert control["obstacle"] == "random is a control, not for use"
    assert names.index(control["arm"]) > names.index("unmodified")
    lows = [each["low"] for each in found["arms"]]
    assert lows[: lows.index(1.0)] == sorted(lows[: lows.index(1.0)], reverse=True)
    text = breakeven("advise", *DEIT, "--tokens", "196", "--batch", "1", folder=stored).stdout
    assert text.startswith("Use topk keep_rate=0.5")
    assert f"at least {int(100 * first['low']) / 100:.2f}x as fast" in text.splitlines()[0]
    assert f"{first['speedup']:.3f}" not in text, "the best estimate of five is too high"
    assert "Quality: not known; the weights are random" in text
    assert "--confirm measures it on fresh pairs" in text
    assert first["evidence"][0]["comparison_id"] in text
    assert "speed-up [99.8 % each]" in text
    assert (
        f"Its evidence: {'none' if not any(each['doubt'] for each in found['checks']) else ''}"
        in text
    )
    assert len(found["checks"]) == 9


def test_between_two_sizes_it_is_interpolated_and_marked(stored: Path) -> None:
    """121 tokens lie between 100 and 144: the cost model answers, with a wider interval and both
    rows as evidence.
    """
    (found,) = advice(stored, *DEIT, "--tokens", "121", "--batch", "1")
    first = found["arms"][0]
    assert first["interpolated"]
    assert [row["tokens"] for row in first["evidence"]] == [100, 144]
    widths = {
        size: advice(stored, *DEIT, "--tokens", str(size), "--batch", "1")[0] for size in (100, 144)
    }
    own = first["high"] / first["low"]
    for answer in widths.values():
        (same,) = [each for each in answer["arms"] if each["arm"] == first["arm"]]
        assert own > same["high"] / same["low"]
    text = breakeven("advise", *DEIT, "--tokens", "121", "--batch", "1", folder=stored).stdout
    assert "interpolated between measured sizes (100 and 144 tokens)" in text.splitlines()[0]
    assert found["checks"] is None  # of what was not measured at this size
    assert "interpolated between 100 and 144" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            (*DEIT, "--tokens", "300", "--batch", "1"),
            1,
            "measured at 4, 9, 16, 36, 64, 100, 144, 196 tokens",
        ),
        (
            (*DEIT, "--tokens", "196", "--batch", "3"),
            1,
            "at batch 3, and nothing is extrapolated; measured batches: 1",
        ),
        (
            (*DEIT, "--tokens", "196", "--batch", "1", "--runtime", "compile"),
            1,
            "nothing was measured with runtime 'compile'",
        ),
        (
            ("--model", "deit_tiny_patch16_225", "--tokens", "1", "--batch", "1"),
            2,
            "did you mean 'deit_tiny_patch16_224'?",
        ),
        (
            (*DEIT, "--tokens", "196", "--batch", "1", "--device", "cuda"),
            2,
            "that was timed on device cuda",
        ),
    ],
)
def test_what_was_not_measured_is_refused(
    stored: Path, arguments: Sequence[str], code: int, message: str
) -> None:
    """Beyond the measured sizes and batches there is no answer, and the nearest measured ones are
    named.
    """
    done = breakeven("advise", *arguments, folder=stored)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_accuracy_is_named_with_its_data_and_limits_the_choice(digits: Path) -> None:
    """Without a limit the fastest arm is advised with its cost; a limit leaves the one that keeps
    it by the upper end.
    """
    options = (*DIGITS, "--tokens", "64", "--batch", "1")
    (free,) = advice(digits, *options)
    assert free["arms"][0]["arm"] == "topk keep_rate=0.2"
    (cost,) = free["arms"][0]["quality"]
    assert (cost["metric"], cost["data"], cost["items"]) == ("top1", "digits", vision.IMAGES)
    assert 20 < cost["low"] < cost["worse"] < cost["high"]
    assert free["arms"][0]["pareto"] is None
    (marked,) = advice(digits, *options, "--pareto")
    surpassed = [each["arm"] for each in marked["arms"] if not each["pareto"]]
    assert surpassed == ["topk keep_rate=0.8"], "slower than those that lose as little"
    (limited,) = advice(digits, *options, "--max-drop", "1.0")
    assert limited["arms"][0]["arm"] == "topk keep_rate=0.6"
    refused = next(each for each in limited["arms"] if each["arm"] == "topk keep_rate=0.4")
    assert refused["obstacle"].startswith("it may lose ")
    text = breakeven("advise", *options, "--max-drop", "1.0", folder=digits).stdout
    assert "top-1 accuracy worse by " in text
    assert "on digits (4000 items). Of other data nothing is known." in text
    none = breakeven("advise", *options, "--max-drop", "0.0", folder=digits).stdout
    assert none.startswith("Use the unmodified model")


def test_runtimes_compete_and_conditions_do_not(tmp_path: Path) -> None:
    """An arm that runs compiled is ranked beside the others; another number of threads is another
    ranking.
    """
    arms = [
        vision.topk(0.4),
        Arm(overrides=Overrides(runtime="compile")),
        vision.topk(0.4, runtime="compile"),
    ]
    first = a_job().model_copy(
        update={"arms": (DENSE, *arms), "pairs": tuple(Pair(0, arm) for arm in (1, 2, 3))}
    )
    second = first.model_copy(
        update={"condition": first.condition.model_copy(update={"threads": 1})}
    )
    folder = kept(tmp_path, *(an_outcome(job, speedups=(2.0, 1.5, 1.2)) for job in (first, second)))
    options = (*DEIT, "--tokens", "196", "--batch", "1")
    found = advice(folder, *options)
    assert {each["condition"]["threads"] for each in found} == {None, 1}
    assert [each["runtime"] for each in found[0]["arms"] if "runtime" in each] == [
        "eager",
        "compile",
        "compile",
    ]
    (compiled, _) = advice(folder, *options, "--runtime", "compile")
    assert compiled["compared"] == 2
    done = breakeven("advise", *options, "--confirm", folder=folder)
    assert done.returncode == 2
    assert "measures one condition, and 2 match" in done.stderr


def test_wrong_and_short_measurements_are_not_ranked(tmp_path: Path) -> None:
    """A flag that makes figures wrong, and too few pairs, are named below the ranking; A/A
    replicates are left out.
    """
    flagged = an_outcome(a_job(64), flags=("state_changed",))
    few = an_outcome(a_job(128, keep_rates=(0.5, 0.7)), speedups=(1.5, 1.2), pairs=5)
    for number, (outcome, reason) in enumerate(
        (
            (flagged, "flagged as wrong: state_changed"),
            (few, "too few pairs"),
        )
    ):
        (tmp_path / str(number)).mkdir()
        folder = kept(tmp_path / str(number), outcome)
        tokens = str((outcome.job.condition.image_size or 0) ** 2 // 256)
        done = breakeven("advise", *DEIT, "--tokens", tokens, "--batch", "1", folder=folder)
        assert done.returncode == 1
        assert reason in done.stderr
    twice = Job(**{**dict(a_job(64)), "arms": (DENSE, Arm(replicate=1))})
    (tmp_path / "aa").mkdir()
    done = breakeven(
        "advise",
        *DEIT,
        "--tokens",
        "16",
        "--batch",
        "1",
        folder=kept(tmp_path / "aa", an_outcome(twice)),
    )
    assert "measured batches: none against the unmodified model" in done.stderr


def test_the_policy_repeats_the_advice(stored: Path, tmp_path: Path) -> None:
    """Written, read by the module that stands alone, and queried at every size: no arm where advice
    has none, none outside.
    """
    out = tmp_path / "policy.json"
    done = breakeven("export-policy", str(out), folder=stored)
    assert done.returncode == 0, done.stderr
    assert "1 rule (a condition and a batch each)" in done.stdout
    policy = Policy.load(out, model="deit_tiny_patch16_224", device="cpu")
    assert policy.batches == [1]
    for tokens in (4, 64, 196):
        choice = policy.choose(tokens=tokens, batch=1)
        (found,) = advice(stored, *DEIT, "--tokens", str(tokens), "--batch", "1")
        advised = {
            each["arm"]
            for each in found["arms"]
            if each["verdict"] == "faster" and not each["obstacle"]
        }
        assert choice.unmodified or choice.arm in advised
    assert policy.choose(tokens=196, batch=1).method == "topk"
    assert policy.choose(tokens=170, batch=1).evidence
    assert [
        policy.choose(tokens=size, batch=batch).unmodified
        for size, batch in ((3, 1), (197, 1), (196, 2))
    ] == [True] * 3
    (rule,) = json.loads(out.read_text())["rules"]
    assert rule["condition"]["host"] == "simulated"
    used = [span for span in rule["ranges"] if span["arm"] is not None]
    assert all(span["evidence"] and span["at_least"] > 1 for span in used)


def test_a_policy_that_cannot_be_written_or_made(stored: Path, digits: Path) -> None:
    """A folder that is not there is wrong usage; a limit that no known arm keeps leaves the
    unmodified model everywhere.
    """
    done = breakeven("export-policy", "missing/policy.json", folder=stored)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert (
        breakeven("export-policy", "policy.json", "--max-drop", "0", folder=digits).returncode == 0
    )
    policy = Policy.load(digits / "policy.json")
    assert policy.choose(tokens=64, batch=1).unmodified
    assert (
        breakeven("export-policy", "policy.json", "--max-drop", "1.0", folder=digits).returncode
        == 0
    )
    choice = Policy.load(digits / "policy.json").choose(tokens=64, batch=1)
    assert (choice.method, choice.params["keep_rate"]) == ("topk", 0.6)


def test_between_sizes_a_confirmation_measures_the_size_itself(stored: Path) -> None:
    """An interpolated winner is confirmed at the size that was requested, if an image has it."""
    engine = connect_readonly(str(stored / "breakeven.db"))
    (condition,) = condition_arms(
        engine, MethodFacts(params_label, purpose), model="deit_tiny_patch16_224", batch=1
    )
    engine.dispose()
    found = {each.label: each for each in condition.at(121).found}
    winner = next(each for label, each in found.items() if label.startswith("topk keep_rate=0.5"))
    assert winner.interpolated
    assert comparison_at(winner.comparison, 144, 121).condition.image_size == 176
    measured = next(each for each in condition.at(196).found)
    assert comparison_at(measured.comparison, 196, 196) == measured.comparison
    with pytest.raises(
        UserError,
        match="no square image has 120 patch tokens; request a square number, such as 100",
    ):
        comparison_at(winner.comparison, 144, 120)


def test_advice_elsewhere_is_not_confirmed_here(stored: Path) -> None:
    """What another host measured cannot be confirmed on this one."""
    done = breakeven("advise", *DEIT, "--tokens", "196", "--batch", "1", "--confirm", folder=stored)
    assert done.returncode == 2
    assert "this advice rests on host simulated" in done.stderr
    assert simulated.ENVIRONMENT.environment_id[:8] in done.stderr
