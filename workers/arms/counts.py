"""Counts of an arm that follow from its network, its methods and what was seen of its tokens: a
worker states them, and an outcome from elsewhere must state the same. Imports no torch.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from sweeps.geometry.llm_geometry import languages
from sweeps.geometry.model_families import TOKENS
from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import NAMED_WEIGHTS, Condition
from sweeps.model.job import Arm, Job
from sweeps.model.kinds import KINDS, KindSpec
from sweeps.model.method import BlockTokens, LanguageNetwork, Network
from sweeps.model.outcome import ArmOutcome, MetricValue, Outcome
from workers import methods
from workers.arms.budget import BudgetSolution, solve
from workers.errors import Unsupported
from workers.measure.samples import metric_value, possible_times, repeated_metrics

Macs = Callable[[int, int], float]
"""MACs of a sequence, by the tokens of its prompt and those decoded."""
MODELS: Mapping[str, Callable[[], Mapping[str, Any]]] = {"vision": networks, "language": languages}
"""The models whose counts are known, by modality."""
INCONSISTENT = "consistency_check_failed"
COUNT_RTOL = 1e-9
"""Two computations of one number may differ by rounding."""


def vision_counts(
    solved: BudgetSolution,
    network: Network,
    condition: Condition,
    blocks: Sequence[BlockTokens],
    final: int,
) -> dict[str, Any]:
    """Fields of `ArmOutcome` that follow from the tokens that the blocks of an arm saw; its `trace`
    is what its methods promise.
    """
    size = condition.pixels
    return {
        "trace": methods.promised_tokens(solved.arm, network, size),
        "tokens": network.patch_tokens(size),
        "gmacs": network.macs(size, blocks, final) / 1e9,
        "gmacs_overhead": methods.method_macs(solved.arm, network, size) / 1e9,
        "solved": solved.values,
    }


def stage_metrics(macs: Macs, overhead: Macs, prompt: int, decoded: int) -> list[MetricValue]:
    """GMACs of one sequence until its first token, and of each further one on average: the
    network's and the methods' own.
    """
    found = []
    for name, counted in (("gmacs", macs), ("gmacs_overhead", overhead)):
        first = counted(prompt, 0)
        further = (counted(prompt, decoded) - first) / max(decoded, 1)
        found += [
            metric_value(f"{name}_ttft", first / 1e9),
            metric_value(f"{name}_tpot", further / 1e9),
        ]
    return found


def unknown_names(job: Job) -> list[str]:
    """The model and the methods of a job whose counts are not known here; the code of a user is not
    among them. A method in an older version counts otherwise.
    """
    models = MODELS.get(KINDS[job.kind].modality)
    known = {(name, method.VERSION) for name, method in methods.all_methods().items()}
    used = {version for arm in job.arms for version in arm.versions if ":" not in version[0]}
    model = job.condition.model
    found = [] if models is None or model in models() else [f"model {model}"]
    return found + [f"method {name} {version}" for name, version in sorted(used - known)]


def wrong_counts(outcome: Outcome) -> Iterator[str]:
    """What an outcome states otherwise than it follows from its own data and from the networks and
    methods that are known here: a line each, with the field, its value, and what would be right.
    """
    for place, arm in enumerate(outcome.arms):
        stated = {**dict(arm), **_figures(arm.metrics), "flags": sorted(arm.flags)}
        try:
            for name, right in _counts(outcome, arm).items():
                if name in stated and not _equal(stated[name], right):
                    given, expected = json.dumps(stated[name]), json.dumps(right)
                    yield f"arms.{place}.{name}: {given:.60}, expected {expected:.300}"
        except (Unsupported, ValueError) as error:
            yield f"arms.{place}, which ran: {error}"


def _counts(outcome: Outcome, arm: ArmOutcome) -> dict[str, Any]:
    """What the fields and the metrics of an arm must be."""
    job, requested, samples = outcome.job, outcome.job.arms[arm.arm], outcome.samples
    own, kind, flags = requested.condition(job.condition), KINDS[job.kind], {*arm.flags}
    images = 1 if outcome.predictions is None else outcome.predictions.images
    counts: dict[str, Any] = {
        "threads": own.threads or arm.threads,
        "batch": own.batch_size if kind.timed else min(arm.batch, images),
    }
    if samples is not None and not possible_times(samples, arm.arm):
        flags.add(INCONSISTENT)
    if INCONSISTENT in arm.flags:
        del counts["batch"]
    network = MODELS[kind.modality]().get(own.model) if kind.modality in MODELS else None
    with suppress(methods.InvalidMethod):  # see `unknown_names`
        if isinstance(network, Network):
            solved = solve(requested, network, own.pixels)
            final = arm.trace[-1].mlp if arm.trace else network.patch_tokens(own.pixels)
            counts |= vision_counts(solved, network, own, arm.trace, final)
            counts["tokens_final"] = final
            if "token_trace_mismatch" in flags:
                del counts["trace"]
            if own.weights not in NAMED_WEIGHTS:  # a checkpoint may have another head
                del counts["gmacs"]
            idle = methods.without_effect(solved.arm, network, own.pixels)
            (flags.add if idle else flags.discard)("no_effect")
        elif isinstance(network, LanguageNetwork):
            counts |= _decoded_counts(arm, requested, network, own, kind)
        elif kind.modality == "own":
            counts |= {"tokens_final": None, "trace": ()}
            if own.x_axis and own.x_axis[0] != TOKENS:
                counts["tokens"] = dict(own.values or ()).get(own.x_axis[0])
    counts |= _figures(repeated_metrics(outcome, arm, own.batch_size))
    return {**counts, "flags": sorted(flags)}


def _decoded_counts(
    arm: ArmOutcome, requested: Arm, network: LanguageNetwork, own: Condition, kind: KindSpec
) -> dict[str, Any]:
    """Those of an arm of a language model. How many MACs a method left out was counted, and is
    bounded alone; tokens of a tokenizer that a method made are not known.
    """
    prompt, final = arm.tokens or 0, arm.tokens_final or 0
    counts: dict[str, Any] = {}
    if kind.required and own.decoding != "greedy" and not methods.retokenizes(requested):
        asked, new = own.prompt_tokens or 0, own.new_tokens or 0
        prompt = min(max(prompt, asked), asked + 1)  # perhaps with one that begins every text
        final = prompt + new - 1
        counts = {"metrics.tokens_decoded.value": float(new * arm.batch)}
    elif arm.batch > 1:
        return counts
    first, whole = (network.macs(prompt, more) for more in (0, final - prompt))
    macs = min(max((arm.gmacs or 0.0) * 1e9, first if requested.stack else whole), whole)
    overhead = partial(methods.method_macs, requested, network)
    stages = stage_metrics(
        lambda _, more: macs if more else first, overhead, prompt, final - prompt
    )
    counts |= {"tokens": prompt, "tokens_final": final, "gmacs": macs / 1e9}
    return {
        **counts,
        "gmacs_overhead": overhead(prompt, final - prompt) / 1e9,
        **_figures(stages),
    }


def _figures(metrics: Iterable[MetricValue]) -> dict[str, Any]:
    return {f"metrics.{each.name}.{field}": value for each in metrics for field, value in each}


def _equal(stated: Any, right: Any) -> bool:
    """Whether two values are one, but for rounding."""
    if isinstance(stated, float) and isinstance(right, float):
        return math.isclose(stated, right, rel_tol=COUNT_RTOL)
    return bool(stated == right)
