"""Profile jobs: what those of vision and of language models have in common."""

from collections.abc import Sequence

from sweeps.job import Job
from sweeps.profile import ArmProfile, Phase
from workers.arms.prepared import PreparedArm, raised
from workers.kinds import KindResult
from workers.kinds.timed_job import ArmMetrics
from workers.measure.metric_values import metric_value
from workers.measure.peaks import measure_peaks
from workers.measure.profiler import profile_phase
from workers.measure.recording import Recorded

PROFILE_S = 5.0
"""Kept free of each job's time for the passes under the profiler, which take about as long."""
FEWEST, MOST = 3, 10
"""Forwards under the profiler, besides a first one that does not count."""


class PhaseProfiler:
    """Profiles of a job's arms, each by the walls of its phases without a profiler, which are set before."""

    def __init__(self) -> None:
        self.walls: dict[int, dict[Phase, float]] = {}
        """By arm: median seconds of each phase in the rounds."""
        self.found: list[ArmProfile] = []

    def forwards(self, arm: int) -> int:
        """How many forwards of an arm fit into half of `PROFILE_S`, within bounds."""
        return max(FEWEST, min(MOST, int(PROFILE_S / 2 / sum(self.walls[arm].values()))))

    def add(self, arm: PreparedArm, timed: Sequence[Recorded], detailed: Sequence[Recorded]) -> ArmMetrics:
        """Keep the profile of every phase of an arm; the flag where its device time cannot be that of its wall.

        Nothing sees inside what is compiled for a CPU, so that such an arm has no classes of time.
        """
        condition = arm.condition
        visible = (condition.device, condition.runtime) != ("cpu", "compile")
        metrics, possible = [], True
        for phase, wall_s in self.walls[arm.index].items():
            profile, sound = profile_phase(
                phase,
                arm=arm.index,
                device=condition.device,
                wall_s=wall_s,
                timed=timed,
                detailed=detailed,
                visible=visible,
            )
            self.found.append(profile)
            metrics.append(metric_value(f"{phase}_wall", 1e3 * wall_s))
            possible = possible and sound
        return ArmMetrics(metrics, raised(consistency_check_failed=not possible))

    def result(self, job: Job, measured: KindResult) -> KindResult:
        """The result of the job: profiles in place of samples, with the peaks of the machine for the dtypes of its arms."""
        dtypes = [arm.condition(job.condition).dtype for arm in job.arms]
        peaks = measure_peaks(job.condition.device, dtypes) if self.found else ()
        return measured._replace(samples=None, profiles=tuple(self.found), peaks=peaks)
