"""What acceptance measures, in which order, and how long: jobs of the shipped sweeps with few pairs
and a short protocol, none of which changes an identity.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sweeps.geometry.llm_geometry import languages
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import expand_file
from sweeps.language.yaml_reader import SweepError
from sweeps.model.condition import UNCOMPILED, Condition, Device, square_side
from sweeps.model.job import Job, Pair, Protocol
from sweeps.model.outcome import Outcome
from workers.data import data_hash
from workers.data.corruptions import CORRUPTIONS
from workers.methods import all_methods
from workers.training.recipes import recipe_hash

SWEEPS = Path(__file__).parents[2] / "sweeps"
TIMEOUT_S = 90.0
PROTOCOL = Protocol(
    pairs_min=10,
    pairs_max=60,
    half_width=0.01,
    budget_s=1.0,
    timeout_s=TIMEOUT_S,
    compile_timeout_s=TIMEOUT_S,
    images=64,
    characters=4000,
)
JOBS_EACH = 4
"""Of a sweep that is requested by name at most: the smallest job of each kind, runtime, dtype,
attention and cache."""
PAIRS_EACH = 4
"""Of such a job at most."""


class Planned(NamedTuple):
    """A job of a sweep."""

    sweep: str
    number: int
    job: Job

    @property
    def stem(self) -> str:
        """Of its files."""
        return f"{self.sweep}-{self.number}"

    @property
    def name(self) -> str:
        """What it is about."""
        kept = self.job.condition
        size = f"{kept.image_size} px" if kept.image_size else f"{kept.prompt_tokens} tokens"
        return (
            f"{kept.model} {size} batch {kept.batch_size} {kept.dtype} {kept.attention}"
            f" {kept.runtime} {self.job.kind}"
        )


class Phase(NamedTuple):
    """A part of the acceptance."""

    name: str
    seconds: float
    """Its limit, of nine minutes for all."""
    sweeps: Mapping[Device, str]
    visits: int = 1
    kinds: tuple[str, ...] = ("latency", "generation")
    models: tuple[str, ...] = ()
    """Only these, if there are any."""
    largest: int | None = None
    """Patch or prompt tokens at most: pixels of a side or tokens of a prompt."""


PHASES = (
    Phase("report", 150, {"cuda": "gpu_report", "cpu": "tr_batch_and_size_cpu"}),
    Phase(
        "language",
        90,
        {"cuda": "llm_gpu_decode", "cpu": "decode_competitors_cpu"},
        models=("llama-1b", "llama-8b"),
        largest=128,
    ),
    Phase("quickstart", 80, {"cuda": "quickstart_gpu", "cpu": "quickstart"}, visits=2),
    Phase(
        "profiles",
        20,
        {"cuda": "explain_gpu", "cpu": "explain_cpu"},
        kinds=("profile",),
        largest=224,
    ),
)
REQUESTED = Phase("requested", 340, {})
"""Sweeps that are requested by name."""


def planned_parts(
    device: Device, wanted: list[str] | tuple[str, ...] | None
) -> tuple[dict[str, list[Planned]], list[str]]:
    """The jobs of each part in the order in which they run, and what cannot be planned."""
    parts: dict[str, list[Planned]] = {}
    problems: list[str] = []
    if wanted is None:
        for phase in PHASES:
            parts[phase.name] = list(_jobs_of(phase, device))
        return parts, problems
    known = {path.stem: path for path in SWEEPS.glob("*.yaml")}
    parts[REQUESTED.name] = []
    for name in wanted:
        if name not in known:
            problems.append(f"there is no sweep {name}")
            continue
        try:
            jobs = reduced(planned(known[name], device), device)
        except SweepError as error:
            problems.append(f"{name} cannot be planned: {error}")
            continue
        parts[REQUESTED.name] += [Planned(name, number, job) for number, job in enumerate(jobs)]
    return parts, problems


def _jobs_of(phase: Phase, device: Device) -> Iterator[Planned]:
    """The jobs of a part: visit by visit, the smallest models first."""
    name = phase.sweeps[device]
    jobs = [
        job
        for job in planned(SWEEPS / f"{name}.yaml", device)
        if job.condition.device == device
        and job.kind in phase.kinds
        and job.round < phase.visits
        and (device == "cpu" or not phase.models or job.condition.model in phase.models)
        and (phase.largest is None or _size(job.condition) <= phase.largest)
    ]
    for number, job in enumerate(sorted(jobs, key=lambda job: (job.round, work(job)))):
        yield Planned(name, number, job.model_copy(update={"protocol": PROTOCOL}))


def _size(condition: Condition) -> float:
    return condition.prompt_tokens or square_side(condition.image_size or 224)


def shipped(device: Device) -> dict[str, Path]:
    """The sweep files with jobs for `device`, by name; those for whatever device is there count."""
    found = {}
    for path in sorted(SWEEPS.glob("*.yaml")):
        if any(job.condition.device == device for job in planned(path, device)):
            found[path.stem] = path
    return found


def planned(path: Path, device: Device) -> tuple[Job, ...]:
    """All jobs of the sweep, with the identities that `breakeven run` and `breakeven import` give
    them. Raises `SweepError`.
    """

    def contents(condition: Condition) -> Mapping[str, str]:
        return {**recipe_hash(condition), **data_hash(condition)}

    expansion = expand_file(
        path,
        methods=all_methods(),
        networks=networks(),
        auto=device,
        contents=contents,
        corruptions=tuple(CORRUPTIONS),
    )
    return expansion.jobs


def reduced(jobs: tuple[Job, ...], device: Device) -> list[Job]:
    """Few and small jobs of a sweep, each with few pairs and a short protocol."""
    smallest: dict[tuple[object, ...], Job] = {}
    for job in sorted(
        (job for job in jobs if job.condition.device == device and job.round == 0), key=work
    ):
        kept = job.condition
        smallest.setdefault(
            (job.kind, kept.runtime, kept.dtype, kept.attention, kept.kv_cache), job
        )
    return [brief(job) for job in list(smallest.values())[:JOBS_EACH]]


def work(job: Job) -> float:
    """Roughly the MACs of one run of the baseline, to compare the jobs of a sweep."""
    kept = job.condition
    if (language := languages().get(kept.model)) is not None:
        return (
            float(language.macs(kept.prompt_tokens or 128, kept.new_tokens or 32)) * kept.batch_size
        )
    network = networks().get(kept.model)
    width = network.width * network.depth if network else 1
    return float(kept.batch_size * square_side(kept.image_size or 224) ** 2 * width)


def brief(job: Job) -> Job:
    """The job with `PAIRS_EACH` pairs at most, of different methods first, and a short protocol."""
    pairs = sorted(_by_turns(job), key=lambda entry: entry[0])[:PAIRS_EACH]
    kept = {pair for _, pair in pairs}
    shorter = (
        job.only([pair for pair in map(_pair, job.pairs) if pair in kept]) if job.pairs else job
    )
    return shorter.model_copy(update={"protocol": PROTOCOL})


def _by_turns(job: Job) -> Iterator[tuple[tuple[int, int], Pair]]:
    """The pairs with their order of preference: the first pair of each method, then the second of
    each, and so on.
    """
    seen: dict[str, int] = {}
    for number, pair in enumerate(map(_pair, job.pairs)):
        arm = job.arms[pair.arm]
        name = "+".join(step.method for step in arm.stack) + str(
            arm.overrides.model_dump(exclude_none=True).keys()
        )
        seen[name] = seen.get(name, 0) + 1
        yield (seen[name], number), pair


def _pair(pair: tuple[int, int]) -> Pair:
    return Pair(*pair)


def compiled_arms(job: Job) -> list[int]:
    """Arms of a timed vision job that torch compiles."""
    if job.kind != "latency":
        return []
    return [
        index
        for index, arm in enumerate(job.arms)
        if arm.condition(job.condition).runtime not in UNCOMPILED
    ]


def ready_part(one: Planned, ready: set[tuple[str, int]]) -> Planned | None:
    """The job with the pairs whose arms were compiled in time, or `None` if there are none."""
    late = {arm for arm in compiled_arms(one.job) if (one.job.job_id, arm) not in ready}
    if not late:
        return one
    pairs = [pair for pair in map(_pair, one.job.pairs) if not late & {*pair}]
    return one._replace(job=one.job.only(pairs)) if pairs else None


def left_part(one: Planned, answered: set[tuple[int, str]]) -> Planned | None:
    """The job with the pairs that no outcome of an earlier run answers (visit and comparison), or
    `None` if there are none.
    """
    job, ids = one.job, one.job.comparison_ids()
    pairs = [
        _pair(pair)
        for pair, comparison in zip(job.pairs, ids, strict=True)
        if (job.round, comparison) not in answered
    ]
    if len(pairs) == len(ids):
        return one
    return one._replace(job=job.only(pairs)) if pairs else None


def answers(outcomes: Iterable[Outcome]) -> set[tuple[int, str]]:
    """Visits and comparisons that have an answer."""
    return {
        (outcome.job.round, comparison)
        for outcome in outcomes
        for comparison in outcome.job.comparison_ids()
    }


def compile_arm(place: Path, index: int) -> None:
    """In a process of its own: the first call of one arm, which fills the compiler's cache."""
    import torch

    from workers.arms.vision import build_vision
    from workers.models.vision import example_input, shared_vision

    job = Job.model_validate_json(place.read_bytes())
    loaded = shared_vision(job.condition, job.content_hashes)
    own = job.arms[index].condition(job.condition)
    with torch.inference_mode():
        build_vision(loaded, job.condition, job.arms[index])(example_input(own, loaded.network))


def read_outcomes(file: Path | None, start: int = 0) -> list[Outcome]:
    """The outcomes in a file, from a byte on; none without a file."""
    if file is None:
        return []
    lines = file.read_bytes()[start:].splitlines(keepends=True)
    return [Outcome.model_validate_json(line) for line in lines if line.endswith(b"\n")]


def cut_partial_line(file: Path) -> None:
    """Take away what a killed process wrote of a line."""
    content = file.read_bytes()
    file.write_bytes(content[: content.rfind(b"\n") + 1])
