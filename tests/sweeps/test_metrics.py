"""Declarations of metrics: every metric that workers report has one, and effects take their words
from it.
"""

import pytest

from sweeps.analysis.labels import effect_of
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS, find_metric, metric

REPORTED = {
    "latency": "ms",
    "zeroshot_piqa_acc": "1",
    "zeroshot_piqa_acc_norm": "1",
    "zeroshot_piqa_acc_drop": "1",
    "angle": "degree",
    "angle_block_11": "degree",
    "angle_last": "degree",
    "cka": "1",
    "cka_block_0": "1",
    "zeroshot_toy_bits_per_byte": "bit",
    "kernel_calls": "1",
    "gmacs_overhead_ttft": "GMAC",
    "kv_bytes_virtual": "B",
    "peak_rss_isolated": "MiB",
    "margin_change_p05": "logit",
    "agreement": "%",
}


@pytest.mark.parametrize("name", REPORTED)
def test_reported_metrics_are_declared(name: str) -> None:
    """Units are those that workers report; a family stands for all its members."""
    assert metric(name).unit == REPORTED[name]


def test_kinds_compare_by_declared_metrics() -> None:
    """Kinds of samples compare ratios, of profiles nothing, the others differences, of metrics of
    their own modality.
    """
    for kind in KINDS.values():
        how = "ratio" if kind.sampled else None if kind.timed else "difference"
        assert {metric(name).compared for name in kind.metrics} == {how}
        assert {metric(name).modality for name in kind.metrics} == {kind.modality}
    assert metric("zeroshot_piqa_acc").compared == "difference"
    assert metric("zeroshot_piqa_acc_norm").compared is None


def test_what_is_not_declared() -> None:
    """A method's own count has no declaration, and a lookup that needs one lists those there
    are.
    """
    assert find_metric("bananas") is None
    with pytest.raises(
        KeyError,
        match=r"'bananas' is not declared in sweeps/model/metrics\.py; declared are latency",
    ):
        metric("bananas")


def test_effects_take_words_from_declarations() -> None:
    """A time is faster or slower, everything else better or worse in its own unit, and what is not
    compared has no effect.
    """
    assert effect_of(METRICS["ttft"])[:2] == ("faster", "slower")
    found = effect_of(METRICS["top1"])
    assert (found.gain, found.loss, found.unit, found.digits, found.floor) == (
        "better",
        "worse",
        "points",
        2,
        0.2,
    )
    assert effect_of(METRICS["bits_per_byte"]).unit == "bits per byte"
    with pytest.raises(ValueError, match="throughput is not compared"):
        effect_of(METRICS["throughput"])
