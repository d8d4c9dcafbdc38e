"""Profile jobs on real models on a CPU: classes of time that add up, MACs that agree with the
model's, peaks, and phases.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from sweeps.model.condition import Condition, Device, Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from sweeps.model.outcome import WORKER_UNFIT, Outcome
from sweeps.model.profile import ArmProfile
from sweeps.stats.roofline import roofline
from tests.workers.saved_llm import saved, written
from tests.workers.scripted_arm import scripted_arm as method_files
from tests.workers.vision_jobs import MODEL, SIZE, TOPK, job, metrics
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.generation_profile import PROFILED_STEPS
from workers.kinds.profile import PhaseProfiler
from workers.measure.profiling import FEWEST, ROUNDS
from workers.run import run

LARGER = "deit_tiny_patch16_224"
"""Its operators take longer than what the profiler adds."""
QUICK = Protocol(pairs_min=6, pairs_max=6)
FREE = Arm(stack=(Step(method="truncate", params={"keep_rate": 0.5, "layers": [1, 2, 3]}),))

scripted_arm = pytest.fixture(method_files)


NOTHING = Arm(stack=(Step(method="truncate", params={"keep_rate": 1.0, "layers": [1, 2, 3]}),))
"""The same token counts as the unmodified model."""
TRIALS = 3
"""Intervals of 99 % exclude a difference of nothing at times, and so does where one process has laid
out both models; a bias makes all of three processes do so."""


def profile_job(*arms: Arm, **condition: object) -> Job:
    return job(arms, QUICK, **condition).model_copy(update={"kind": "profile"})


@pytest.fixture(scope="module")
def vision() -> Outcome:
    """Dense, TopK and the same tokens cut for nothing, on 64 pixels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workers.kinds.profile.ROUNDS_S", 1.0)
        return run(profile_job(DENSE, TOPK, FREE, image_size=64, model=LARGER))


def test_a_vision_model_is_profiled(vision: Outcome) -> None:
    """One profile for each arm, whose classes add up to the unprofiled wall."""
    assert not vision.failures
    assert vision.samples is None
    assert vision.profiles is not None
    assert [(profile.arm, profile.phase, profile.tool) for profile in vision.profiles] == [
        (arm, "forward", "torch") for arm in range(3)
    ]
    for profile, arm in zip(vision.profiles, vision.arms, strict=True):
        assert profile.wall_s is not None
        assert profile.wall_s == pytest.approx(metrics(arm)["forward_wall"] / 1e3)
        assert profile.wall_s == pytest.approx(metrics(arm)["latency"] / 1e3, rel=0.5)
        assert set(profile.times) == {"device", "host"}
        assert sum(profile.times.values()) == pytest.approx(profile.wall_s)
        assert profile.times["device"] > 0
        assert sum(each.seconds for each in profile.activities) == pytest.approx(
            profile.times["device"]
        ), "one clock for both"
        assert profile.rounds is not None
        assert FEWEST <= profile.rounds <= ROUNDS
        assert profile.forwards == profile.rounds * (2 if profile.arm == 0 else 1), (
            "the baseline has two columns"
        )
        assert profile.launches > 50
        assert profile.allocations is not None
        assert profile.allocated_bytes is not None
        assert profile.allocated_bytes > profile.allocations > 0
        assert [each.seconds for each in profile.activities] == sorted(
            (each.seconds for each in profile.activities), reverse=True
        )
        assert {each.activity for each in profile.activities} == {"operator"}
    assert Outcome.model_validate_json(vision.model_dump_json()) == vision


def test_differences_stand_beside_the_first_arm(vision: Outcome) -> None:
    """They add up to that of the walls, and fewer tokens save time in operators."""
    assert vision.profiles is not None
    dense, *others = vision.profiles
    assert (dense.baseline, dense.speedup, dense.changes) == (None, None, {})
    for profile in others:
        assert profile.baseline == 0
        assert profile.speedup is not None
        assert dense.wall_s is not None
        assert profile.wall_s == pytest.approx(dense.wall_s / profile.speedup.value)
        assert sum(each.value for each in profile.changes.values()) == pytest.approx(
            1 / profile.speedup.value - 1
        )
        for name, change in profile.changes.items():
            seconds = profile.times[name] - dense.times[name]
            assert change.value == pytest.approx(seconds / dense.wall_s, abs=1e-6)


def differing(profile: ArmProfile) -> list[str]:
    """Classes whose interval excludes no difference."""
    return [
        name
        for name, each in profile.changes.items()
        if each.low is not None and each.high is not None and not each.low <= 0 <= each.high
    ]


def language_job(folder: Path, *arms: Arm, protocol: Protocol, **condition: object) -> Job:
    """A profile of a small language model that is saved in the folder."""
    place = {"model": str(saved(folder / "model")), "data": written(folder / "text")}
    return Job(
        kind="generation_profile",
        condition=Condition(
            threads=1,
            prompt_tokens=24,
            new_tokens=6,
            decoding="teacher_forcing",
            **place,
            **condition,
        ),
        arms=arms,
        pairs=(Pair(0, 1),),
        protocol=protocol,
    )


@pytest.mark.alone
def test_nothing_saved_is_nothing_found(tmp_path: Path) -> None:
    """`truncate` that keeps all tokens beside the unmodified model, on 64 pixels, and a replicate of
    a language model: no class of any phase differs, and none is missing.
    """
    protocol = Protocol(pairs_min=30, pairs_max=30)
    vision = job([DENSE, NOTHING], protocol, image_size=64, model=LARGER)
    planned = {
        "vision.json": vision.model_copy(update={"kind": "profile"}),
        "language.json": language_job(
            tmp_path, DENSE, Arm(replicate=1), protocol=Protocol(pairs_min=20, pairs_max=20)
        ),
    }
    phases = {"vision.json": {"forward"}, "language.json": {"prefill", "decode"}}
    for _ in range(TRIALS):
        command = [sys.executable, "-m", "workers.run", "--quiet", "--out", str(tmp_path / "out")]
        for name, each in planned.items():
            (tmp_path / name).write_text(each.model_dump_json())
            command.append(str(tmp_path / name))
        subprocess.run(command, check=True)
        for name in list(planned):
            outcome = Outcome.model_validate_json((tmp_path / "out" / name).read_text())
            assert not outcome.failures
            assert outcome.same_work(Pair(0, 1))
            found = {each.phase: each for each in outcome.profiles or () if each.arm == 1}
            assert set(found) == phases[name]
            assert all(set(each.changes) == {"device", "host"} for each in found.values())
            if not any(differing(each) for each in found.values()):
                del planned[name]
        if not planned:
            return
    pytest.fail(f"a class differs in each of {TRIALS} processes: {sorted(planned)}")


def gmacs_of(profile: ArmProfile) -> float:
    """GMACs of a forward by the shapes of its operators."""
    return sum(each.gmacs or 0.0 for each in profile.activities)


def test_macs_from_shapes_are_those_of_the_model(vision: Outcome) -> None:
    """What shapes give agrees with the formulas, for the unmodified model to a per mille."""
    assert vision.profiles is not None
    dense, topk, free = (gmacs_of(profile) for profile in vision.profiles)
    assert dense == pytest.approx(vision.arms[0].gmacs, rel=1e-3)
    assert free == pytest.approx(vision.arms[2].gmacs, rel=1e-3)
    assert topk == pytest.approx(vision.arms[1].gmacs + vision.arms[1].gmacs_overhead, rel=0.02)
    assert vision.arms[1].gmacs == vision.arms[2].gmacs, "the same tokens"
    assert vision.arms[2].gmacs_overhead == 0


def test_rates_stay_below_the_peaks(vision: Outcome) -> None:
    """Peaks are those of the arms' dtype and threads, and no arm multiplies faster."""
    (peaks,) = vision.peaks
    assert (peaks.dtype, peaks.threads) == ("float32", 1)
    assert peaks.gflops > 1
    assert peaks.gb_per_s > 0.1
    for profile in vision.profiles or ():
        products = sum(each.seconds for each in profile.activities if each.gmacs)
        share = products / sum(each.seconds for each in profile.activities)
        gmacs = gmacs_of(profile)
        found = roofline(profile, peaks, gmacs=gmacs, bytes_moved=None, products=share)
        assert found is not None
        assert found.compute_share is not None
        assert 0 < found.compute_share < 1.2
        assert found.ceiling is not None
        assert found.ceiling > 1


def test_a_language_model_is_profiled_in_two_phases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefill and a decode step apart, each with its own wall, with two caches."""
    monkeypatch.setattr("workers.kinds.profile.ROUNDS_S", 1.0)
    arms = (DENSE, Arm(overrides=Overrides(kv_cache="static")))
    outcome = run(language_job(tmp_path, *arms, protocol=QUICK, kv_cache="dynamic"))
    assert not outcome.failures
    assert outcome.profiles is not None
    assert [(profile.arm, profile.phase) for profile in outcome.profiles] == [
        (arm, phase) for arm in (0, 1) for phase in ("prefill", "decode")
    ]
    steps = min(PROFILED_STEPS, 5)
    for profile in outcome.profiles:
        assert profile.wall_s is not None
        assert sum(profile.times.values()) == pytest.approx(profile.wall_s)
        assert profile.rounds is not None
        runs = 2 * profile.rounds
        assert profile.forwards == (runs if profile.phase == "prefill" else runs * steps)
        assert gmacs_of(profile) > 0
        assert sum(each.seconds for each in profile.activities) == pytest.approx(
            profile.times["device"]
        )
    prefill, decode = outcome.profiles[:2]
    assert gmacs_of(prefill) > 5 * gmacs_of(decode)
    assert metrics(outcome.arms[0])["decode_wall"] == pytest.approx(1e3 * (decode.wall_s or 0))
    macs = metrics(outcome.arms[0])
    assert gmacs_of(decode) == pytest.approx(macs["gmacs_tpot"], rel=0.1)


def test_an_arm_that_fails_under_the_profiler(
    scripted_arm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of its own, and the others are profiled, in rounds without it."""
    monkeypatch.setattr("workers.kinds.profile.ROUNDS_S", 0.1)
    outcome = run(
        profile_job(
            DENSE,
            scripted_arm("shy", "if torch.autograd._profiler_enabled(): raise ValueError('seen')"),
            TOPK,
        )
    )
    assert [(failure.arm, "profiling shy" in failure.message) for failure in outcome.failures] == [
        (1, True)
    ]
    assert [profile.arm for profile in outcome.profiles or ()] == [0, 2]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_process_that_profiled_a_gpu_times_no_more(device: Device) -> None:
    """CUPTI stays attached, so the next job gets a new process; not on a CPU."""
    requested = Job(
        kind="profile",
        condition=Condition(model=MODEL, image_size=SIZE, device=device),
        arms=(DENSE,),
        pairs=(),
    )
    result = PhaseProfiler(FailureCollector(requested), lambda *_: None).result(KindResult())
    assert (WORKER_UNFIT in result.system_metrics) == (device == "cuda")
