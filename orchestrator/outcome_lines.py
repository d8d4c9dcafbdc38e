"""Lines of progress: a job in a few words, and one line for each comparison of its outcome."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from rich.text import Text

from orchestrator.report.section import style_of
from sweeps.job import Job, Pair
from sweeps.kinds import KINDS, Payload
from sweeps.labels import BITS, SPEEDUP, TOP1, Conclusion, conclude
from sweeps.outcome import Outcome
from sweeps.stats import text_stats
from sweeps.stats.classification import compare_predictions
from sweeps.stats.timing import speedup, verdict
from workers.methods.arm_labels import arm_label

Results = dict[Pair, tuple[str, Conclusion]]
"""For each pair that was measured its numbers as text, and the conclusion whose word follows them."""


def job_label(job: Job) -> str:
    """Model, workload and device of a job: `deit_tiny_patch16_224 224 px, batch 1, cpu, round 2`."""
    condition, kind = job.condition, KINDS[job.kind]
    size = "" if condition.image_size is None else f" {condition.image_size} px"
    size += "" if condition.prompt_tokens is None else f" {condition.prompt_tokens} + {condition.new_tokens} tokens"
    corruption = f", {condition.corruption} {condition.severity}" if condition.corruption else ""
    work = f"batch {condition.batch_size}" if kind.timed else f"{kind.name} on {condition.data}{corruption}"
    current_round = f", round {job.round + 1}" if job.protocol.rounds > 1 else ""
    return f"{condition.model}{size}, {work}, {condition.device}{current_round}"


def comparison_lines(outcome: Outcome) -> Iterator[Text]:
    """One line for each comparison of an outcome: its numbers and verdict, or why there are none."""
    failures = {failure.arm: failure for failure in outcome.failures}
    several = len({pair.baseline for pair in outcome.job.pairs}) > 1
    results = RESULTS[KINDS[outcome.job.kind].payload](outcome)
    for pair in outcome.job.pairs:
        arm, baseline = outcome.job.arms[pair.arm], outcome.job.arms[pair.baseline]
        label = f"  {arm_label(arm)}" + (f" against {arm_label(baseline)}" if several else "")
        failure = next((failures[index] for index in (pair.arm, pair.baseline, None) if index in failures), None)
        if failure is not None or pair not in results:
            yield Text(f"{label}: {f'{failure.reason}: {failure.message}' if failure else 'no samples'}", style="red")
        else:
            numbers, conclusion = results[pair]
            yield Text(f"{label}: {numbers} {conclusion.word}", style=style_of(conclusion.word))


def _speedups(outcome: Outcome) -> Results:
    """Speed-ups by every metric, and the conclusion on the first metric of the kind."""
    if outcome.samples is None:
        return {}
    metrics = KINDS[outcome.job.kind].metrics
    series: Mapping[str, Sequence[Sequence[float]]] = outcome.samples.series or {metrics[0]: outcome.samples.seconds}
    column = {arm: index for index, arm in enumerate(outcome.samples.arms)}
    found: Results = {}
    for pair in outcome.job.pairs:
        if {pair.arm, pair.baseline} <= column.keys():
            ratios = {}
            for metric in (name for name in metrics if name in series):
                seconds = np.asarray(series[metric])
                estimate = speedup(seconds[:, column[pair.baseline]], seconds[:, column[pair.arm]])
                word = verdict(estimate, pairs_min=outcome.job.protocol.pairs_min)
                ratios[metric] = conclude(SPEEDUP, estimate.value, estimate.low or None, estimate.high, verdict=word)
            texts = [f"{metric} {ratio.numbers}" if len(metrics) > 1 else ratio.numbers for metric, ratio in ratios.items()]
            found[pair] = ", ".join(texts), next(iter(ratios.values()))
    return found


def _top1_drops(outcome: Outcome) -> Results:
    """Top-1 accuracy and its drop."""
    predictions = outcome.predictions
    found: Results = {}
    if predictions is not None:
        evaluated = {images.arm for images in predictions.arms}
        for pair in (pair for pair in outcome.job.pairs if {pair.baseline, pair.arm} <= evaluated):
            compared = compare_predictions(predictions, pair.baseline, pair.arm)
            drop = conclude(TOP1, *compared.drop[:3], verdict=compared.verdict())
            top1 = f"top-1 {compared.top1_baseline.value:.2f} > {compared.top1.value:.2f} %"
            found[pair] = f"{top1}, drop {drop.numbers} points", drop
    return found


def _text_changes(outcome: Outcome) -> Results:
    """Bits per byte and their change."""
    found: Results = {}
    if outcome.text_scores is not None:
        for pair in outcome.job.pairs:
            if all(text_stats.scored(outcome.text_scores, arm) for arm in pair):
                compared = text_stats.compare_texts(outcome.text_scores, pair.baseline, pair.arm)
                change = conclude(BITS, *compared.change[:3], verdict=compared.verdict())
                levels = f"{compared.bits_per_byte_baseline:.4f} > {compared.bits_per_byte:.4f} bits per byte"
                found[pair] = f"{levels}, change {change.numbers}", change
    return found


RESULTS: Mapping[Payload, Callable[[Outcome], Results]] = {
    "samples": _speedups,
    "predictions": _top1_drops,
    "text_scores": _text_changes,
}
"""How the raw data of each payload are compared."""
