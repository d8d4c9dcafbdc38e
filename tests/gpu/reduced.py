"""Every shipped sweep of a device at reduced size: which of its jobs are run for acceptance, and
how short.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sweeps.geometry.llm_geometry import languages
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import expand_file
from sweeps.model.condition import Condition, Device, square_side
from sweeps.model.job import Job, Pair, Protocol
from workers.data import data_hash
from workers.data.corruptions import CORRUPTIONS
from workers.methods import all_methods
from workers.training.recipes import recipe_hash

SWEEPS = Path(__file__).parents[2] / "sweeps"
JOBS_EACH = 4
"""Of a sweep at most: the smallest job of each kind, runtime, dtype, attention and cache."""
PAIRS_EACH = 4
"""Of a job at most."""
TIMEOUT_S = 90.0
PROTOCOL = Protocol(
    pairs_min=10,
    pairs_max=30,
    half_width=0.05,
    budget_s=1.0,
    timeout_s=TIMEOUT_S,
    compile_timeout_s=TIMEOUT_S,
    images=64,
    characters=4000,
)


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
    """The job with `PAIRS_EACH` pairs at most, of different methods first, and a short protocol.
    Neither changes an identity.
    """
    pairs = sorted(_by_turns(job), key=lambda entry: entry[0])[:PAIRS_EACH]
    kept = {pair for _, pair in pairs}
    reduced_job = (
        job.only([pair for pair in map(_pair, job.pairs) if pair in kept]) if job.pairs else job
    )
    return reduced_job.model_copy(update={"protocol": PROTOCOL})


def _by_turns(job: Job) -> Iterator[tuple[tuple[int, int], Pair]]:
    """The pairs with their order of preference: the first pair of each method, then the second of
    each, and so on.
    """
    seen: dict[str, int] = {}
    for place, pair in enumerate(map(_pair, job.pairs)):
        arm = job.arms[pair.arm]
        name = "+".join(step.method for step in arm.stack) + str(
            arm.overrides.model_dump(exclude_none=True).keys()
        )
        seen[name] = seen.get(name, 0) + 1
        yield (seen[name], place), pair


def _pair(pair: tuple[int, int]) -> Pair:
    return Pair(*pair)
