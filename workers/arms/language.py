"""Arms of language models made ready: built, run once, and checked."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sweeps.geometry.llm_geometry import LanguageNetwork
from sweeps.job import Arm, Attention, Condition, Job
from sweeps.outcome import ArmOutcome, MetricValue
from sweeps.stats.timing import median, outliers
from workers import methods
from workers.arms import compiled_decode
from workers.arms.generation_workload import Passage, Run, Workload, passages
from workers.data.text import DOCS, corpus
from workers.errors import DataError, NotANumberError, Unsupported
from workers.measure.metric_values import row
from workers.measure.timeout import compiling
from workers.models.language import DTYPES, LanguageModel, loaded
from workers.models.share_weights import twin

PROMPT_TOKENS, NEW_TOKENS = 128, 32
"""Where a condition does not say."""


ATTENTIONS: Mapping[Attention, str] = {"sdpa": "sdpa", "eager": "eager"}
"""transformers' names; `eager` forms the attention matrix."""


@dataclass
class PreparedLanguageArm:
    """An arm that has run once, with its timed runs; `condition` is its own, overrides applied."""

    index: int
    arm: Arm
    condition: Condition
    base: LanguageModel
    """The unmodified model."""
    speaker: LanguageModel
    workload: Workload
    first: Run
    """Warm if it is compiled or captured: that was done in a run before."""
    first_call_s: float
    skipped: float = 0.0
    """MACs of one sequence that the methods left out while it was decoded."""
    runs: list[Run] = field(default_factory=list)

    def step(self) -> None:
        """One run of the workload."""
        self.runs.append(self.workload.run(self.speaker))

    @property
    def sequences(self) -> int:
        return len(self.workload.passages)

    @property
    def decoded(self) -> int:
        """Tokens of one sequence that were decoded one by one, on average."""
        return round(self.first.decoded / self.sequences) - 1

    @property
    def weight_bytes(self) -> float:
        """Bytes of weights that one decoded token reads: each matrix once, less the share that the methods left out."""
        read = self.base.weights_read + self._added(1, 1) - self._added(1, 0) - self.skipped / max(self.decoded, 1)
        return read * DTYPES[self.condition.dtype].itemsize

    def _added(self, prompt: int, decoded: int) -> int:
        return methods.spoken_macs(self.arm, self.base.network, prompt, decoded)

    def _work(self, prompt: int, decoded: int) -> list[MetricValue]:
        """GMACs of one sequence until its first token, and of each further one on average: the network's and the methods' own."""
        first = (self.base.macs(prompt, 0), self._added(prompt, 0))
        whole = (self.base.macs(prompt, decoded) - self.skipped, self._added(prompt, decoded))
        further = [(after - before) / max(decoded, 1) for after, before in zip(whole, first, strict=True)]
        parts = {
            "gmacs_ttft": first[0],
            "gmacs_overhead_ttft": first[1],
            "gmacs_tpot": further[0],
            "gmacs_overhead_tpot": further[1],
        }
        return [MetricValue(name=name, value=macs / 1e9, unit="GMAC") for name, macs in parts.items()]

    def outcome(self) -> ArmOutcome:
        """What is known of the arm before it is timed, and flags where it did not do what was asked."""
        run, asked = self.first, self.workload.passages
        flags = []
        if self.workload.decoding == "teacher_forcing" and run.texts != tuple(passage.continuation for passage in asked):
            flags.append("text_differs")
        if any(len(said) < len(passage.continuation) for said, passage in zip(run.texts, asked, strict=True)):
            flags.append("text_too_short")
        prompt, decoded = round(run.prompt_tokens / self.sequences), self.decoded
        gmacs = (self.base.macs(prompt, decoded) - self.skipped) / 1e9, self._added(prompt, decoded) / 1e9
        known = outcome(self.index, self.speaker, gmacs, prompt, decoded)
        counts = [("characters", run.characters), ("tokens_decoded", run.decoded)]
        return known.model_copy(
            update={
                "batch": self.sequences,
                "tokens_final": run.cached,
                "first_call_s": self.first_call_s,
                "metrics": (
                    *(MetricValue(name=name, value=value, unit="1") for name, value in counts),
                    *self._work(prompt, decoded),
                ),
                "flags": tuple(flags),
            }
        )

    def timings(self) -> list[MetricValue]:
        """What the timed runs say."""
        runs, steps_s = self.runs, np.concatenate([run.steps_s for run in self.runs])
        seconds, tpot_s = np.array([run.seconds for run in runs]), np.array([run.tpot_s for run in runs])
        characters = np.array([run.characters for run in runs])
        spoken = sum(len(self.base.tokenizer.encode(text)) for text in runs[-1].texts)  # of all runs: every one says the same
        prefill_s = np.array([run.ttft_s - run.encoding_s for run in runs])
        return [
            row("ttft", median([run.ttft_s for run in runs]), "ms", 1e3),
            row("tpot", median(tpot_s), "ms", 1e3),
            MetricValue(name="tpot_p95", value=float(np.quantile(steps_s, 0.95)) * 1e3, unit="ms", n=steps_s.size),
            row("time_per_char", median(seconds / characters), "ms", 1e3),
            row("prefill_tokens_per_s", median(self.first.prompt_tokens / prefill_s), "1/s"),
            row("decode_tokens_per_s", median(self.sequences / tpot_s), "1/s"),
            row("chars_per_s", median(characters / seconds), "1/s"),
            row("base_tokens_per_s", median(spoken / seconds), "1/s"),
            row("tokenizer_s", median([run.tokenizer_s for run in runs]), "s"),
            row("achieved_gb_per_s", median(self.weight_bytes / tpot_s), "GB/s", 1e-9),
            MetricValue(name="outlier_share", value=float(outliers(seconds).mean()), unit="1", n=seconds.size),
        ]


def skipped(arm: Arm, speaker: LanguageModel, network: LanguageNetwork, decoded: int, sequences: int) -> float:
    """MACs of one of the sequences that were run since `prepare`: as counted, or as promised by methods that do not count."""
    if speaker.skipped is None:
        return methods.skipped_macs(arm, network, decoded)
    return speaker.skipped() / sequences


def outcome(index: int, speaker: LanguageModel, gmacs: tuple[float, float], prompt: int, decoded: int) -> ArmOutcome:
    """What is known of an arm that reads `prompt` tokens of its own at once and `decoded` more one by one.

    `gmacs` are those of one sequence: of the unmodified network on these tokens, less what the methods left out of it, and of the
    methods themselves.
    """
    parameters = sum(parameter.numel() for parameter in speaker.model.parameters())
    return ArmOutcome(
        arm=index,
        gmacs=gmacs[0],
        gmacs_overhead=gmacs[1],
        parameters=parameters,
        trainable_parameters=parameters,
        batch=1,
        tokens=prompt,
        tokens_final=prompt + decoded,
        trace=(),
        threads=torch.get_num_threads(),
        route=speaker.route,
    )


def proofs(speaker: LanguageModel) -> list[MetricValue]:
    """What the methods counted since they were last prepared."""
    return [MetricValue(name=name, value=float(value), unit="1") for proof in speaker.proofs for name, value in proof().items()]


def build(condition: Condition, arm: Arm, contents: Mapping[str, str]) -> LanguageModel:
    """The model of one arm, on the weights that `loaded` keeps; each dtype has weights of its own. Raises `Unsupported`."""
    own = arm.condition(condition)
    if (reason := compiled_decode.refuses(own)) is not None:
        raise Unsupported(reason)
    speaker = loaded(own, contents)
    if (reason := methods.refuses(arm, speaker.network)) is not None:
        raise Unsupported(reason)
    model = twin(speaker.model)
    speaker = replace(speaker, model=model, route=_attention(model, ATTENTIONS[own.attention]))
    for step in arm.stack:
        method, params = methods.spoken(step)
        if own.runtime != "eager" and (reason := methods.eager_only(method, params)) is not None:
            raise Unsupported(f"{step.method} cannot run with runtime {own.runtime}: {reason}")
        speaker = method.apply(speaker, params)
    speaker.model.eval()
    return replace(speaker, steps=compiled_decode.steps(own.runtime, speaker))


def _attention(model: Any, wanted: str) -> str | None:
    """Give the model the attention that is wanted; where transformers has no such for it, keep and name the one it has."""
    if model._can_set_attn_implementation():
        model.set_attn_implementation(wanted if wanted != "sdpa" or model._supports_sdpa else "eager")
    has: str = model.config._attn_implementation
    return None if has == wanted else f"{has} attention"


def voice(job: Job, index: int, texts: tuple[Passage, ...]) -> PreparedLanguageArm:
    """Arm `index` of the job, built on weights that its other arms share, and run once on the texts; twice if not eager.

    Raises `Unsupported`, `NotANumberError`, and whatever loading, the method and the model raise.
    """
    arm = job.arms[index]
    own = arm.condition(job.condition)
    speaker = build(job.condition, arm, job.content_hashes)
    work = workload(own, texts)
    with compiling(job.protocol.compile_timeout_s) if own.runtime == "compile" else contextlib.nullcontext():
        first = work.run(speaker, look=finite)
    first_call_s = first.seconds
    if own.runtime != "eager":
        first = work.run(speaker, look=finite)
    ready = PreparedLanguageArm(index, arm, own, loaded(own, job.content_hashes), speaker, work, first, first_call_s)
    ready.skipped = skipped(arm, speaker, ready.base.network, ready.decoded, ready.sequences)
    for decoded in (0, ready.decoded):  # what must be counted is counted before timing
        ready.base.macs(round(first.prompt_tokens / ready.sequences), decoded)
    return ready


def workload(condition: Condition, texts: tuple[Passage, ...]) -> Workload:
    """The texts with the cache and the decoding of `condition`, an arm's own."""
    new = condition.new_tokens or NEW_TOKENS
    return Workload(texts, condition.decoding or "teacher_forcing", condition.kv_cache or "dynamic", new)


def texts(job: Job) -> tuple[Passage, ...]:
    """What every arm of the job reads and says, one passage for each sequence of a batch.

    Raises `Unsupported`, `OSError` for a text that is not on this machine, and what the model's loading raises.
    """
    speaker = loaded(job.condition, job.content_hashes)
    prompt, new = job.condition.prompt_tokens or PROMPT_TOKENS, job.condition.new_tokens or NEW_TOKENS
    if prompt + new > (positions := speaker.network.positions):
        raise Unsupported(
            f"a prompt of {prompt} tokens and {new} new ones are {prompt + new}, and {speaker.network.name} has "
            f"{positions} positions"
        )
    return passages(held_out(job.condition), speaker.tokenizer, prompt, new, job.condition.batch_size)


def held_out(condition: Condition) -> Sequence[str]:
    """The documents that the condition's text holds out. Raises `Unsupported` and `OSError`."""
    try:
        return corpus(condition.data or DOCS).held_out
    except DataError as error:
        raise Unsupported(str(error)) from error


def finite(logits_BV: Tensor) -> None:
    """Raises `NotANumberError` unless all are."""
    if wrong := int((~torch.isfinite(logits_BV)).sum()):
        raise NotANumberError(f"{wrong} of {logits_BV.numel()} logits are not finite")
