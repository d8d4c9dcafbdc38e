"""Outcomes of profile jobs as a worker would hand them back, with classes of time and kernels by
hand.
"""

from collections.abc import Mapping, Sequence

from sweeps.model.condition import Condition
from sweeps.model.job import Arm, Job, Pair, Step
from sweeps.model.outcome import ArmOutcome, Environment, Failure, Outcome
from sweeps.model.profile import Activities, ArmProfile, IntervalEstimate, Peaks, Phase, TimeClass

CPU = Environment(device="cpu", device_name="Imaginary CPU", facts={"cores": "2"})
GPU = Environment(device="cuda", device_name="Imaginary GPU")
NOW = 1_790_000_000.0
Classes = Mapping[TimeClass, float]


def a_profile_job(arms: Sequence[Arm] | None = None, **condition: object) -> Job:
    """Dense and, unless others are given, one arm with half of the tokens."""
    given = (
        (Arm(stack=(Step(method="topk", params={"keep_rate": 0.5}),)),)
        if arms is None
        else tuple(arms)
    )
    point = Condition(**{"model": "deit_tiny_patch16_224", "image_size": 224, **condition})
    return Job(
        kind="profile",
        condition=point,
        arms=(Arm(), *given),
        pairs=tuple(Pair(0, index + 1) for index in range(len(given))),
    )


def a_profile(
    arm: int,
    times_ms: Classes,
    launches: float = 200,
    phase: Phase = "forward",
    product: float = 0.5,
) -> ArmProfile:
    """A profile with these classes in ms, of whose device time matrix products are a share of
    `product`.
    """
    device = times_ms.get("device", 0.0) / 1e3
    return ArmProfile(
        arm=arm,
        tool="torch",
        phase=phase,
        forwards=10,
        wall_s=sum(times_ms.values()) / 1e3,
        profiled_wall_s=1.2 * sum(times_ms.values()) / 1e3,
        times={name: ms / 1e3 for name, ms in times_ms.items()},
        launches=launches,
        kernel_time_share=1.0,
        activities=(
            Activities(
                name="aten::addmm",
                activity="operator",
                count=48,
                seconds=product * device,
                gmacs=0.5,
                bytes_moved=2e7,
            ),
            Activities(
                name="aten::gelu",
                activity="operator",
                count=12,
                seconds=(1 - product) * device,
                bytes_moved=1e7,
            ),
        ),
        allocations=40,
        allocated_bytes=5e6,
    )


def a_profiled_outcome(
    job: Job,
    times_ms: Sequence[Classes],
    *,
    launches: Sequence[float] = (200, 225, 200, 200),
    environment: Environment = CPU,
    ended_at: float = NOW,
    failures: Sequence[Failure] = (),
    flags: Sequence[str] = (),
    host: str = "here",
) -> Outcome:
    """What a worker would return; arms that failed have no profile."""
    failed = {failure.arm for failure in failures}
    ran = [index for index in range(len(job.arms)) if index not in failed]
    tokens = ((job.condition.image_size or 224) // 16) ** 2
    known = {"gmacs_overhead": 0.0, "parameters": 1, "trainable_parameters": 1, "batch": 1}
    known |= {"tokens": tokens, "tokens_final": 1 + tokens // 2}
    return Outcome(
        job=job,
        environment=environment,
        host=host,
        started_at=ended_at - 10,
        ended_at=ended_at,
        arms=tuple(ArmOutcome(arm=index, gmacs=1.0, trace=(), threads=2, **known) for index in ran),
        failures=tuple(failures),
        profiles=tuple(a_profile(index, times_ms[index], launches[index]) for index in ran),
        peaks=(Peaks(gflops=100.0, gb_per_s=10.0, dtype="float32", threads=2),),
        flags=tuple(flags),
    )


def with_changes(
    outcome: Outcome,
    half: float = 0.01,
    *,
    slowed: float = 1.2,
    profiled: Mapping[int, float] | None = None,
) -> Outcome:
    """The outcome as if 30 rounds had been profiled: every difference with an interval of `half` of
    the wall to each side.

    Profiled forwards take `slowed` times as long; `profiled` names speed-ups of theirs by arm that
    are not those of the walls.
    """
    found = []
    baselines = {(each.arm, each.phase): each for each in outcome.profiles or ()}
    of = {pair.arm: pair.baseline for pair in reversed(outcome.job.pairs)}
    for profile in outcome.profiles or ():
        update: dict[str, object] = {
            "rounds": 30,
            "profiled_wall_s": slowed * (profile.wall_s or 0),
        }
        if (
            profile.arm in of
            and (base := baselines.get((of[profile.arm], profile.phase)))
            and base.wall_s
            and profile.wall_s
        ):
            shares = {
                name: (seconds - base.times.get(name, 0.0)) / base.wall_s
                for name, seconds in profile.times.items()
            }
            speedup, seen = (
                base.wall_s / profile.wall_s,
                (profiled or {}).get(profile.arm, base.wall_s / profile.wall_s),
            )
            changes = {
                name: IntervalEstimate(value=share, low=share - half, high=share + half)
                for name, share in shares.items()
            }
            ratios = [
                IntervalEstimate(value=each, low=each / (1 + half), high=each * (1 + half))
                for each in (speedup, seen)
            ]
            update |= {
                "baseline": base.arm,
                "speedup": ratios[0],
                "profiled_speedup": ratios[1],
                "changes": changes,
            }
        found.append(profile.model_copy(update=update))
    return outcome.model_copy(update={"profiles": tuple(found)})
