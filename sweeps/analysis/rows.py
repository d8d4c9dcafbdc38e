"""Rows of the store's views as frozen values, with `None` for NULL, made by
`store.rows.frames.rows_of`. Columns that no program reads row by row are left out; a reader that
needs one adds it.

What a column means, and its unit, is in docs/views.md.
"""

from dataclasses import dataclass
from typing import Literal

ComparisonState = Literal["measured", "queued", "failed", "not measured", "not requested"]
"""Of the comparison behind an effect. `not measured`: requested by the sweep, but neither answered
nor in the queue."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentRow:
    """Where something was measured."""

    environment: str
    device: str
    device_name: str


@dataclass(frozen=True, kw_only=True)
class SizedRow:
    """The size of an input: pixels (and their shape where that is no square) or tokens of a prompt,
    and the tokens that a model makes of it.
    """

    image_size: float | None = None
    image_shape: str | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None
    x_axis: str | None = None
    axis_values: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConditionRow(SizedRow):
    """A condition of the sweep; what does not belong to its kind of job is None."""

    model: str
    weights: str
    dtype: str
    attention: str
    batch_size: int | None = None
    runtime: str | None = None
    threads: int | None = None
    data: str | None = None
    corruption: str | None = None
    severity: int | None = None
    new_tokens: int | None = None
    kv_cache: str | None = None
    decoding: str | None = None
    exclusive: str | None = None
    spare_cores: int | None = None
    fixed_values: str | None = None


@dataclass(frozen=True, kw_only=True)
class ComparedRow(EnvironmentRow, ConditionRow):
    """An arm beside its baseline; `params` is canonical JSON."""

    kind: str
    method: str
    params: str
    baseline: str
    baseline_id: str


@dataclass(frozen=True, kw_only=True)
class MeasuredRow(ComparedRow):
    """What views of answers share."""

    baseline_method: str
    comparison_id: str
    question_id: str
    arm_id: str
    condition_id: str
    measured_at: str
    quality_pair_id: str
    verdict: str | None = None
    floor: float | None = None
    flags: str


@dataclass(frozen=True, kw_only=True)
class WorkRow:
    """Tokens after the last reduction and GMACs of an arm and its baseline."""

    tokens_final: int | None = None
    gmacs_baseline: float | None = None
    gmacs: float | None = None
    gmacs_overhead: float | None = None
    gmacs_total: float | None = None


@dataclass(frozen=True, kw_only=True)
class TimedRow(MeasuredRow, WorkRow):
    """What views of timings share."""

    host: str
    metric: str
    curve_id: str
    rounds: int | None = None
    implementation: str | None = None
    ratio_of_means: float | None = None
    host_speed: float | None = None


@dataclass(frozen=True, kw_only=True)
class SpeedupRow(TimedRow):
    """View `speedup`."""

    baseline_ms: float | None = None
    arm_ms: float | None = None
    speedup: float
    speedup_low: float | None = None
    speedup_high: float | None = None
    speedup_slow: float | None = None
    speedup_macs: float | None = None
    realised_share: float | None = None
    pairs: int | None = None
    pairs_min: int | None = None


@dataclass(frozen=True, kw_only=True)
class AdviceRow(SpeedupRow):
    """View `speedup` with the question (JSON) and the error of the logarithm: what is ranked."""

    tokens: int
    baseline_ms: float
    arm_ms: float
    payload: str
    effect_se: float | None = None
    effect_freedom: float | None = None


@dataclass(frozen=True, kw_only=True)
class CeilingRow(SpeedupRow):
    """View `speedup` with the speed-up of the same tokens cut for nothing."""

    ceiling: float | None = None
    ceiling_low: float | None = None
    ceiling_high: float | None = None
    ceiling_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class EffectRow(TimedRow):
    """View `effect`."""

    unit: str
    baseline_value: float | None = None
    arm_value: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    n: int | None = None


@dataclass(frozen=True, kw_only=True)
class JoinedQuality:
    """What `store.read.quality` joins to a row of the view `speedup`: the quality of its arm, where
    its comparison stands, and the change against the control of the arm's tuning.
    """

    state: ComparisonState = "measured"
    reason: str | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    quality_verdict: str | None = None
    quality_floor: float | None = None
    control: str | None = None
    control_params: str | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class CurveRow(ComparedRow):
    """What views of curves share."""

    host: str
    sweep: str | None = None
    metric: str
    curve_id: str
    points: int
    verdict: str


@dataclass(frozen=True, kw_only=True)
class ClaimRow(SizedRow):
    """What a curve claims at one of its crossings."""

    host: str = ""
    metric: str
    points: int
    verdict: str
    axis: str
    varied_parameter: str | None = None
    x: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    x_first: float | None = None
    x_last: float | None = None
    direction: str | None = None
    left_out: str | None = None
    points_missing: int = 0
    worst_loss: float | None = None
    largest_gain: float | None = None
    why: str


@dataclass(frozen=True, kw_only=True)
class BreakEvenRow(CurveRow, ClaimRow):
    """View `break_even`."""

    floor: float


@dataclass(frozen=True, kw_only=True)
class CostModelRow(CurveRow):
    """View `cost_model`."""

    work_unit: str
    misfit_p: float | None = None
    alpha_baseline: float | None = None
    alpha_baseline_low: float | None = None
    alpha_baseline_high: float | None = None
    beta_baseline: float | None = None
    beta_baseline_low: float | None = None
    beta_baseline_high: float | None = None
    alpha: float | None = None
    alpha_low: float | None = None
    alpha_high: float | None = None
    beta: float | None = None
    beta_low: float | None = None
    beta_high: float | None = None
    predicted_x: float | None = None
    predicted_x_low: float | None = None
    predicted_x_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class FailureRow(ComparedRow):
    """View `failures`."""

    host: str
    comparison_id: str
    reason: str
    message: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class AccuracyRow(MeasuredRow, WorkRow):
    """View `accuracy`."""

    top1_drop: float | None = None
    top1_drop_low: float | None = None
    top1_drop_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class ArmRow(EnvironmentRow, ConditionRow):
    """View `arm`, of which `generation` has the rows of language models."""

    host: str
    arm_id: str
    method: str
    params: str
    achieved_gb_per_s: float | None = None
    peak_gb_per_s: float | None = None
    arm_flags: str | None = None
    job_flags: str | None = None
    implementation: str | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedRow:
    """What views of profiles share; a profile of an imported file may have no job."""

    profile_id: str
    attempt: int | None = None
    arm: int
    tool: str
    phase: str
    environment: str | None = None
    host: str | None = None
    device: str | None = None
    device_name: str | None = None
    file: str | None = None
    label: str | None = None
    arm_id: str | None = None
    condition_id: str | None = None
    method: str | None = None
    params: str | None = None


@dataclass(frozen=True, kw_only=True)
class ProfileRow(RecordedRow):
    """View `profile`."""

    model: str | None = None
    weights: str | None = None
    dtype: str | None = None
    attention: str | None = None
    batch_size: int | None = None
    runtime: str | None = None
    image_size: float | None = None
    image_shape: str | None = None
    threads: int | None = None
    data: str | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    kv_cache: str | None = None
    decoding: str | None = None
    exclusive: str | None = None
    inputs: str | None = None
    wait_policy: str | None = None
    pinning: str | None = None
    time_class: str
    ms: float | None = None
    wall_ms: float | None = None
    profiled_wall_ms: float | None = None
    forwards: int
    launches: float
    rounds: int | None = None
    kernel_time_share: float | None = None
    gmacs: float | None = None
    bytes_moved: float | None = None
    product_share: float | None = None
    peak_gflops: float | None = None
    peak_gb_per_s: float | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    profiled_speedup: float | None = None
    profiled_speedup_low: float | None = None
    profiled_speedup_high: float | None = None
    baseline_arm_id: str | None = None
    arm_flags: str | None = None
    job_flags: str | None = None


@dataclass(frozen=True, kw_only=True)
class KernelRow(RecordedRow):
    """View `kernel`."""

    name: str
    count: float
    ms: float | None = None
    kernel_time_share: float | None = None
