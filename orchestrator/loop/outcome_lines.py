"""Lines of progress: a job in a few words, and one line for each comparison of its outcome."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from rich.text import Text

from orchestrator.report.section import style_of
from sweeps.analysis.labels import BITS, SPEEDUP, TOP1, Conclusion, conclude
from sweeps.model.flags import quarantine_reasons, warmup_converged
from sweeps.model.job import Job, Pair
from sweeps.model.kinds import KINDS, Payload
from sweeps.model.outcome import Outcome
from sweeps.stats.quality import compare_predictions, compare_texts, scored
from sweeps.stats.visits import Visit, pool_visits
from sweeps.text.explanation import explain_wall
from workers.methods.arm_labels import arm_label

_Result = tuple[str, Conclusion | None] | None
"""Of a pair: its numbers as text, and the conclusion whose word follows them, if there is one;
`None` if it was not measured."""


def job_label(job: Job) -> str:
    """Model, workload and device of a job: `deit_tiny_patch16_224 224 px, batch 1, cpu, round
    2`.
    """
    condition, kind = job.condition, KINDS[job.kind]
    size = "" if condition.image_size is None else f" {condition.image_size} px"
    size += (
        ""
        if condition.prompt_tokens is None
        else f" {condition.prompt_tokens} + {condition.new_tokens} tokens"
    )
    corruption = f", {condition.corruption} {condition.severity}" if condition.corruption else ""
    work = (
        f"batch {condition.batch_size}"
        if kind.timed
        else f"{kind.name} on {condition.data}{corruption}"
    )
    turn = "pass" if job.protocol.passes > 1 else "round"
    current_round = (
        f", {turn} {job.round + 1} of {job.protocol.turns}" if job.protocol.turns > 1 else ""
    )
    return f"{condition.model}{size}, {work}, {condition.device}{current_round}"


def comparison_lines(outcome: Outcome) -> Iterator[Text]:
    """One line for each comparison of an outcome: its numbers and verdict, or why there are none.

    Of one of several visits the failures alone: it has too few rounds for a verdict of its own.
    """
    failures = {failure.arm: failure for failure in outcome.failures}
    several = len({pair.baseline for pair in outcome.job.pairs}) > 1
    result_of = RESULTS[KINDS[outcome.job.kind].payload]
    for pair in outcome.job.pairs:
        arm, baseline = outcome.job.arms[pair.arm], outcome.job.arms[pair.baseline]
        label = f"  {arm_label(arm)}" + (f" against {arm_label(baseline)}" if several else "")
        failure = next(
            (failures[index] for index in (pair.arm, pair.baseline, None) if index in failures),
            None,
        )
        if failure is not None:
            yield Text(f"{label}: {failure.reason}: {failure.message}", style="red")
        elif (result := result_of(outcome, pair)) is None:
            yield Text(f"{label}: no samples", style="red")
        elif outcome.job.protocol.passes == 1:
            numbers, conclusion = result
            word = "" if conclusion is None else conclusion.word
            yield Text(f"{label}: {numbers} {word}".rstrip(), style=style_of(word))


def _speedups(outcome: Outcome, pair: Pair) -> _Result:
    """Speed-ups by every metric, and the conclusion on the first metric of the kind."""
    samples, metrics = outcome.samples, KINDS[outcome.job.kind].metrics
    if samples is None or not set(pair) <= set(samples.arms):
        return None
    series: Mapping[str, Sequence[Sequence[float]]] = samples.series or {
        metrics[0]: samples.seconds
    }
    ratios = {}
    for metric in (name for name in metrics if name in series):
        table = np.asarray(series[metric])[
            0 if warmup_converged(outcome.flags) else len(series[metric]) // 2 :
        ]
        sides = (table[:, np.asarray(samples.arms) == arm] for arm in pair)
        ratio = pool_visits([Visit(*sides)], [0]).speedup
        slowed = quarantine_reasons(outcome.flags)
        fewest = outcome.job.protocol.pairs_min
        word = "quarantined" if slowed else ratio.verdict(pairs_min=fewest)
        ratios[metric] = conclude(
            SPEEDUP,
            ratio.value,
            ratio.low or None,
            ratio.high,
            verdict=word,
            pairs=(ratio.pairs, fewest),
        )
    texts = [
        f"{metric} {ratio.numbers}" if len(metrics) > 1 else ratio.numbers
        for metric, ratio in ratios.items()
    ]
    return ", ".join(texts), next(iter(ratios.values()))


def _top1_drop(outcome: Outcome, pair: Pair) -> _Result:
    predictions = outcome.predictions
    if predictions is None or not set(pair) <= {images.arm for images in predictions.arms}:
        return None
    compared = compare_predictions(predictions, pair.baseline, pair.arm)
    drop = conclude(TOP1, *compared.drop[:3], verdict=compared.verdict())
    return (
        (
            f"top-1 {compared.top1_baseline.value:.2f} → {compared.top1.value:.2f} %, drop"
            f" {drop.numbers} points"
        ),
        drop,
    )


def _text_change(outcome: Outcome, pair: Pair) -> _Result:
    scores = outcome.text_scores
    if scores is None or not all(scored(scores, arm) for arm in pair):
        return None
    compared = compare_texts(scores, pair.baseline, pair.arm)
    change = conclude(BITS, *compared.change[:3], verdict=compared.verdict())
    levels = f"{compared.bits_per_byte_baseline:.4f} → {compared.bits_per_byte:.4f} bits per byte"
    return f"{levels}, change {change.numbers}", change


def _reasons(outcome: Outcome, pair: Pair) -> _Result:
    """Why the arm takes as long as it does, phase by phase."""
    profiles = {(profile.arm, profile.phase): profile for profile in outcome.profiles or ()}
    found = [
        explain_wall(profiles[pair.baseline, phase], profile, outcome.job.condition.device)
        for (arm, phase), profile in profiles.items()
        if arm == pair.arm and (pair.baseline, phase) in profiles
    ]
    return ("; ".join(each or "no classes of time" for each in found), None) if found else None


RESULTS: Mapping[Payload, Callable[[Outcome, Pair], _Result]] = {
    "samples": _speedups,
    "predictions": _top1_drop,
    "text_scores": _text_change,
    "profiles": _reasons,
}
"""How the raw data of each payload are compared."""
