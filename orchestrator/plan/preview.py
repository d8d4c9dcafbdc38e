"""Preview: what each arm of a sweep does to tokens and MACs, and which arms cannot run; without
torch.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import exp
from typing import Any, NamedTuple

from orchestrator.text_table import table_lines
from sweeps.analysis.job_estimate import known_images, llm_geometry
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.confirmation import plain_size
from sweeps.language.expand import Expansion
from sweeps.language.yaml_reader import SweepError
from sweeps.model.condition import Condition, ImageSize, square_side
from sweeps.model.identity import canonical
from sweeps.model.job import Arm, Step
from sweeps.model.kinds import KINDS
from sweeps.model.method import LanguageNetwork, Network
from sweeps.model.outcome import SCORED
from sweeps.number_format import count
from sweeps.stats.pooling import SpeedUp
from sweeps.stats.quality import MIN_DOCUMENTS, TOP1_FLOOR, images_for_same, smallest_drop
from sweeps.stats.visits import FLOOR
from workers import methods
from workers.arms.budget import solve
from workers.errors import Unsupported
from workers.methods.arm_labels import arm_label

COUNTED_LATER = "counted when run"
"""For an arm whose tokens or MACs depend on what only the worker reads."""
MAX_ARMS = 1000
"""Arms of one model and size that are counted, so that a plan of a hundred thousand comparisons
stays a matter of seconds."""
MAX_ROWS = 24
"""Rows that are printed for one model and size."""


class ArmWorkload(NamedTuple):
    """A model and the size of its input: pixels, or tokens of the prompt and new ones of each
    sequence.
    """

    model: str
    size: ImageSize
    new_tokens: int | None = None
    sequences: int = 1

    def __str__(self) -> str:
        size = (
            f"{self.size} pixels"
            if self.new_tokens is None
            else f"{self.size} + {self.new_tokens} token{'' if self.new_tokens == 1 else 's'}"
        )
        return f"{self.model}, {size}" + (f", batch {self.sequences}" if self.sequences > 1 else "")


class CountedArm(NamedTuple):
    """What an arm does with a workload. MACs are 1e9 of one image or sequence; `None` where only
    the worker can count.
    """

    arm: Arm
    workload: ArmWorkload
    tokens: tuple[int, ...] | None
    """The fewest tokens in each block, prefix tokens included."""
    gmacs: float | None
    gmacs_overhead: float | None
    reduces: bool = False
    capped: int = 0
    """Blocks in which fewer tokens go than requested, because at most half of them can."""
    refused: str | None = None
    """Why the arm cannot run with this workload."""


@dataclass(frozen=True)
class Preview:
    """The arms at the smallest and the largest size of each model, and what is wrong with them."""

    counted: tuple[CountedArm, ...]
    left_out: int
    """Arms that were not counted because there are so many."""
    warnings: tuple[str, ...]
    """Each with file, line and key; those of the expansion go first."""
    limits: tuple[str, ...] = ()
    """What the jobs cannot show, however equal the arms are."""


ArmsByWorkload = Mapping[ArmWorkload, Mapping[str, Arm]]
"""The arms of each workload by their ids."""


def preview(expansion: Expansion) -> Preview:
    """Count every arm at the smallest and the largest size of each model. Raises `SweepError` for a
    budget never in reach.
    """
    workloads = _arms_by_workload(expansion)
    counted: list[CountedArm] = []
    left_out = 0
    for _, group in groupby(sorted(workloads, key=_by_size), key=lambda workload: workload.model):
        sizes = list(group)
        for workload in dict.fromkeys((sizes[0], sizes[-1])):
            arms = list(workloads[workload].values())
            left_out += max(0, len(arms) - MAX_ARMS)
            counted += [_counted(arm, workload) for arm in arms[:MAX_ARMS]]
    by_arm: dict[str, list[CountedArm]] = {}
    for one in counted:
        by_arm.setdefault(one.arm.arm_id, []).append(one)
    findings = [
        *_refused(expansion, by_arm, workloads),
        *_without_effect(expansion, by_arm),
        *_equal(expansion, by_arm),
        *_capped(expansion, by_arm),
        *_of_random_weights(expansion),
    ]
    return Preview(
        tuple(counted),
        left_out,
        (*expansion.warnings, *dict.fromkeys(map(str, findings))),
        tuple(_limits(expansion)),
    )


def preview_lines(shown: Preview) -> Iterator[str]:
    """The preview as lines: for each model and size the arms, those with equal tokens and MACs
    together.
    """
    for workload, group in groupby(shown.counted, key=lambda one: one.workload):
        rows: dict[tuple[Any, ...], list[str]] = {}
        for one in group:
            rows.setdefault(_figures(one), []).append(arm_label(one.arm))
        yield f"{workload}:"
        listed = [
            (
                ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""),
                *figures,
            )
            for figures, names in rows.items()
        ]
        columns = (
            "arm",
            "tokens per block" if workload.new_tokens is None else "tokens",
            "GMACs",
            "of the method",
        )
        yield from (f"  {line}" for line in table_lines(columns, listed[:MAX_ROWS]))
        if len(listed) > MAX_ROWS:
            yield f"  … and {count(len(listed) - MAX_ROWS, 'more row')}; --format json has all"
    if shown.left_out:
        yield f"… and {count(shown.left_out, 'more arm')}, {COUNTED_LATER}"
    yield from shown.limits


def preview_as_list(shown: Preview) -> list[dict[str, Any]]:
    """The preview as plain data, for `breakeven plan --format json`."""
    return [
        {
            "model": one.workload.model,
            **(
                {"image_size": plain_size(one.workload.size)}
                if one.workload.new_tokens is None
                else {"prompt_tokens": one.workload.size, "new_tokens": one.workload.new_tokens}
            ),
            "arm": arm_label(one.arm),
            "tokens": one.tokens,
            "gmacs": one.gmacs,
            "gmacs_overhead": one.gmacs_overhead,
            "cannot_run": one.refused,
        }
        for one in shown.counted
    ]


def _arms_by_workload(expansion: Expansion) -> ArmsByWorkload:
    """The arms of the jobs that are timed, or that evaluate images."""
    # arms are shared between jobs, and their ids take time
    by_object: dict[ArmWorkload, dict[int, Arm]] = {}
    for job in expansion.jobs:
        if job.round == 0 and (workload := _workload(job.condition)) is not None:
            by_object.setdefault(workload, {}).update((id(arm), arm) for arm in job.arms)
    return {
        workload: {arm.arm_id: arm for arm in arms.values()} for workload, arms in by_object.items()
    }


def _workload(condition: Condition) -> ArmWorkload | None:
    if condition.image_size is not None:
        return ArmWorkload(condition.model, condition.image_size)
    if condition.prompt_tokens is None:
        return None
    return ArmWorkload(
        condition.model, condition.prompt_tokens, condition.new_tokens or 0, condition.batch_size
    )


def _by_size(workload: ArmWorkload) -> tuple[str, float, int, int]:
    return workload.model, square_side(workload.size), workload.new_tokens or 0, workload.sequences


def _counted(arm: Arm, workload: ArmWorkload) -> CountedArm:
    unknown = CountedArm(arm, workload, None, None, None)
    if workload.new_tokens is None:
        vision = networks().get(workload.model)
        return unknown if vision is None else _counted_vision(unknown, vision)
    network = llm_geometry(workload.model)
    return unknown if network is None else _counted_language(unknown, network, workload.new_tokens)


def _counted_vision(unknown: CountedArm, network: Network) -> CountedArm:
    """An arm of a vision model, its budget solved."""
    arm, size = unknown.arm, unknown.arm.overrides.image_size or unknown.workload.size
    try:
        solved, values = solve(arm, network, size)
    except Unsupported as reason:
        return unknown._replace(refused=str(reason))
    trace = methods.promised_tokens(solved, network, size)
    added = methods.method_macs(solved, network, size) / 1e9
    fewest = tuple(min(block) for block in trace)
    reduces = trace != network.dense_tokens(size)
    capped = int(values.get("r_capped_blocks", 0))
    counted = unknown._replace(
        tokens=fewest, gmacs=network.macs(size, trace) / 1e9, gmacs_overhead=added
    )
    return counted._replace(reduces=reduces, capped=capped)


def _counted_language(unknown: CountedArm, network: LanguageNetwork, new_tokens: int) -> CountedArm:
    """An arm of a language model; the prompt pass generates the first of the new tokens."""
    arm, decoded = unknown.arm, max(0, new_tokens - 1)
    prompt = int(square_side(unknown.workload.size))
    if (reason := methods.stack_refusal(arm, network)) is not None:
        return unknown._replace(refused=reason)
    if not network.described or methods.retokenizes(arm):
        return unknown
    own = (
        network.macs(prompt, decoded)
        - methods.skipped_macs(arm, network, decoded, unknown.workload.sequences)
    ) / 1e9
    return unknown._replace(
        gmacs=own, gmacs_overhead=methods.method_macs(arm, network, prompt, decoded) / 1e9
    )


def _refused(
    expansion: Expansion, by_arm: Mapping[str, list[CountedArm]], workloads: ArmsByWorkload
) -> Iterator[SweepError]:
    """Arms that cannot run with some workload. Raises `SweepError` for one that cannot run with
    any.
    """
    for arm_id, found in by_arm.items():
        reasons = [one.refused for one in found if one.refused is not None]
        if not reasons:
            continue
        arm = found[0].arm
        budgets = [step.params.get("budget") is not None for step in arm.stack]
        problem = partial(
            expansion.problem, arm, step=budgets.index(True) if any(budgets) else 0, key="budget"
        )
        requested = [workload for workload, arms in workloads.items() if arm_id in arms]
        if len(reasons) == len(found) and all(
            _counted(arm, workload).refused for workload in requested
        ):
            raise problem(reasons[0])
        yield problem(f"{reasons[0]}; there it will be `unsupported`")


def _without_effect(
    expansion: Expansion, by_arm: Mapping[str, list[CountedArm]]
) -> Iterator[SweepError]:
    """Amounts that are more than nothing and still leave all tokens everywhere."""
    for found in by_arm.values():
        arm = found[0].arm
        for index, step in enumerate(arm.stack):
            amounts = _amounts(step)
            if (
                amounts
                and not any(one.reduces or one.tokens is None for one in found)
                and not any(_is_nothing(step, *amount) for amount in amounts.items())
            ):
                name, value = next(iter(amounts.items()))
                where = " and at ".join(str(one.workload) for one in found)
                yield expansion.problem(
                    arm,
                    f"{name}={canonical(value)} removes no token at {where}",
                    step=index,
                    key=name,
                )


def _equal(expansion: Expansion, by_arm: Mapping[str, list[CountedArm]]) -> Iterator[SweepError]:
    """Arms that differ in their amounts, and leave the same tokens everywhere."""
    alike: dict[tuple[Any, ...], list[CountedArm]] = {}
    for found in by_arm.values():
        arm = found[0].arm
        if all(one.tokens is not None for one in found) and any(one.reduces for one in found):
            rest = [
                (
                    step.method,
                    {k: v for k, v in step.params.items() if k not in _known_amounts(step)},
                )
                for step in arm.stack
            ]
            same = canonical([rest, arm.overrides, arm.replicate])
            alike.setdefault((same, *((one.workload, one.tokens) for one in found)), []).append(
                found[-1]
            )
    for group in alike.values():
        if len(group) > 1:
            arm, workload = group[-1].arm, group[-1].workload
            index = next(index for index, step in enumerate(arm.stack) if _amounts(step))
            values = [
                f"{k}={canonical(v)}"
                for one in group
                for k, v in _amounts(one.arm.stack[index]).items()
            ]
            merged = (
                f"{', '.join(values[:-1])} and {values[-1]} leave the same tokens in every block at"
                f" {workload}"
            )
            key = next(iter(_amounts(arm.stack[index])))
            times = f"they are one arm measured {len(group)} times"
            yield expansion.problem(arm, f"{merged}: {times}", step=index, key=key)


def _capped(expansion: Expansion, by_arm: Mapping[str, list[CountedArm]]) -> Iterator[SweepError]:
    """Amounts of which less is done at every size in some blocks, because more than half of the
    tokens cannot go at once.
    """
    for found in by_arm.values():
        arm, capped = found[0].arm, [one for one in found if one.capped]
        index = next((index for index, step in enumerate(arm.stack) if _amounts(step)), 0)
        amounts = _amounts(arm.stack[index]) if len(capped) == len(found) else {}
        if amounts and not any(step.params.get("budget") for step in arm.stack):
            (name, value), *_ = amounts.items()
            where = " and ".join(
                f"in {one.capped} of {count(len(one.tokens or ()), 'block')} at {one.workload}"
                for one in capped
            )
            problem = (
                f"{name}={canonical(value)} is more than half of the patch tokens {where}: half of"
                " them go there"
            )
            yield expansion.problem(arm, problem, step=index, key=name)


def _of_random_weights(expansion: Expansion) -> Iterator[SweepError]:
    """Kinds of jobs that evaluate what a model gives, of models with random weights."""
    evaluated = {
        (job.kind, job.condition.model)
        for job in expansion.jobs
        if job.condition.weights == "random"
    }
    for kind, model in sorted(evaluated):
        if not KINDS[kind].timed:
            problem = (
                f"of {model} would be that of random weights, which has no meaning; name trained or"
                " pretrained weights"
            )
            yield expansion.document.at("jobs", KINDS[kind].section).error(problem)


def _limits(expansion: Expansion) -> Iterator[str]:
    """A line where one stretch is measured alone, and for each data set of which too little is read
    for the verdict `same`.
    """
    if (
        any(KINDS[job.kind].sampled and job.protocol.turns == 1 for job in expansion.jobs)
        and expansion.sweep.search is None
    ):
        least = SpeedUp(0.0, FLOOR.sd, FLOOR.freedom, 0).half_width
        yield (
            "measured in one stretch, no interval of a speed-up is narrower than"
            f" ±{100 * (exp(least) - 1):.2g} %: `passes: 12` under `jobs` spreads the same time"
            " over twelve visits, which show how far they differ"
        )
    read = {
        (job.kind, job.condition.data, known_images(job), job.protocol.characters)
        for job in expansion.jobs
    }
    for kind, data, images, characters in sorted(read, key=str):
        payload = KINDS[kind].payload
        if payload == "predictions" and images < images_for_same():
            drop, enough = min(100, smallest_drop(int(images))), images_for_same()
            yield (
                f"{kind} on {count(int(images), 'image')} of {data}: no drop below {drop:.2g}"
                f" points can be shown, and `same` (within {TOP1_FLOOR:g} points) takes"
                f" {enough:,} images or more"
            )
        elif (
            payload == "text_scores"
            and characters is not None
            and characters <= (MIN_DOCUMENTS - 1) * SCORED
        ):
            yield (
                f"{kind} on {count(characters, 'character')} of {data}: no interval, and no"
                f" difference can be shown; it takes windows of {SCORED} characters from"
                f" {MIN_DOCUMENTS} documents"
            )


def _amounts(step: Step) -> dict[str, Any]:
    """The parameters that only set how much is reduced."""
    return {
        name: step.params[name]
        for name in _known_amounts(step)
        if step.params.get(name) is not None
    }


def _known_amounts(step: Step) -> Mapping[str, Any]:
    return methods.all_methods()[step.method].Params.amounts


def _is_nothing(step: Step, name: str, value: Any) -> bool:
    """Whether nothing is to be removed on purpose (as a control of what the method itself costs),
    or a budget gives the amount.
    """
    nothing = _known_amounts(step)[name]
    return nothing is None or value == nothing or (isinstance(value, list) and not any(value))


def _figures(one: CountedArm) -> tuple[str, str, str]:
    if one.refused is not None:
        return f"cannot run: {one.refused}", "", ""
    if one.gmacs is None:
        return COUNTED_LATER, COUNTED_LATER, ""
    tokens = f"{one.workload.size}" if one.tokens is None else _runs(one.tokens)
    return tokens, f"{one.gmacs:.4g}", f"{one.gmacs_overhead:.3g}" if one.gmacs_overhead else ""


def _runs(tokens: Iterable[int]) -> str:
    """`197 x3, 99 x9`: numbers of tokens and in how many blocks one after the other."""
    runs = [(count, len(list(same))) for count, same in groupby(tokens)]
    return ", ".join(f"{count} x{blocks}" if blocks > 1 else str(count) for count, blocks in runs)
