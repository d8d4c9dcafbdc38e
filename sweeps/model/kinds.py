"""Declarations of the kinds of jobs: modality, condition fields, payload and metrics.

Every layer iterates over these declarations; none branches on the name of a kind or modality. To
add a kind, declare it here, write `workers/kinds/NAME.py`, and give it a section in
`sweeps/language/file_schema.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Modality = Literal["vision", "language", "own"]
"""`own` are models and functions from files of the user."""
Payload = Literal["samples", "predictions", "text_scores", "profiles"]

DATA_FIELDS = ("data", "corruption", "severity")
THREAD_FIELDS = ("threads", "spare_cores", "wait_policy", "pinning")
"""What `threads` of a sweep file sets."""
SPEED_FIELDS = ("batch_size", *THREAD_FIELDS, "runtime", "exclusive", "inputs")
IMAGE_FIELDS = ("image_size", "corruption", "severity", "inputs")
WORKLOAD_FIELDS = ("prompt_tokens", "new_tokens", "kv_cache", "decoding")
OWN_FIELDS = ("values", "x_axis")
CALL_INDEPENDENT = (
    *("weights", "image_size", "attention", "inputs"),
    *DATA_FIELDS,
    *WORKLOAD_FIELDS,
)
"""Of the kinds for models and functions of the user."""


@dataclass(frozen=True, kw_only=True)
class KindSpec:
    """What is known of a kind of job."""

    name: str
    modality: Modality
    payload: Payload
    """Field of `Outcome` that holds its raw data."""
    metrics: tuple[str, ...]
    """Metrics by which arms are compared; the first is shown first. An arm is answered when it has
    all of them."""
    independent_of: tuple[str, ...]
    """Condition fields that its answers do not depend on; they are no part of its questions."""
    required: tuple[str, ...] = ()
    """Condition fields that a sweep must set, besides the model."""
    protocol_version: int = 1
    """Raised whenever the way of measuring changes, so that older answers count as stale."""
    shared_section: str | None = None
    """The section of a sweep file that requests it where that has another name: one section for a
    kind of each modality."""

    @property
    def section(self) -> str:
        """The section of a sweep file that requests it."""
        return self.shared_section or self.name

    @property
    def timed(self) -> bool:
        """Whether other work on the host would change its answers."""
        return self.payload in {"samples", "profiles"}

    @property
    def sampled(self) -> bool:
        """Whether its answers are ratios of times with intervals, which more pairs narrow and
        curves are made of.
        """
        return self.payload == "samples"


_KINDS = (
    KindSpec(
        name="latency",
        modality="vision",
        payload="samples",
        metrics=("latency",),
        protocol_version=2,
        independent_of=(*DATA_FIELDS, *WORKLOAD_FIELDS, *OWN_FIELDS),
    ),
    KindSpec(
        name="accuracy",
        modality="vision",
        payload="predictions",
        metrics=("top1",),
        independent_of=(*SPEED_FIELDS, *WORKLOAD_FIELDS, *OWN_FIELDS),
    ),
    KindSpec(
        name="generation",
        modality="language",
        payload="samples",
        metrics=("time_per_char", "tpot", "ttft"),
        protocol_version=3,
        independent_of=(*IMAGE_FIELDS, *OWN_FIELDS),
        required=("prompt_tokens", "new_tokens"),
    ),
    KindSpec(
        name="quality",
        modality="language",
        payload="text_scores",
        metrics=("bits_per_byte",),
        independent_of=(*SPEED_FIELDS, *IMAGE_FIELDS, *WORKLOAD_FIELDS, *OWN_FIELDS),
    ),
    KindSpec(
        name="profile",
        modality="vision",
        payload="profiles",
        metrics=("forward_wall",),
        protocol_version=2,
        independent_of=(*DATA_FIELDS, *WORKLOAD_FIELDS, *OWN_FIELDS),
    ),
    KindSpec(
        name="generation_profile",
        modality="language",
        payload="profiles",
        metrics=("decode_wall", "prefill_wall"),
        protocol_version=3,
        independent_of=(*IMAGE_FIELDS, *OWN_FIELDS),
        required=("prompt_tokens", "new_tokens"),
        shared_section="profile",
    ),
    KindSpec(
        name="call",
        modality="own",
        payload="samples",
        metrics=("latency",),
        independent_of=CALL_INDEPENDENT,
        shared_section="latency",
    ),
    KindSpec(
        name="call_profile",
        modality="own",
        payload="profiles",
        metrics=("forward_wall",),
        independent_of=CALL_INDEPENDENT,
        shared_section="profile",
    ),
)
KINDS: Mapping[str, KindSpec] = {kind.name: kind for kind in _KINDS}
"""By name, in the order in which jobs are planned."""


def kinds_of(modality: Modality) -> tuple[KindSpec, ...]:
    """The kinds for models of a modality, the one that times them first."""
    return tuple(kind for kind in KINDS.values() if kind.modality == modality)
