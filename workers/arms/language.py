"""Arms of language models: built on shared weights, run once on the workload, and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from sweeps.model.condition import QUANTISED, Attention, Condition, Dtype
from sweeps.model.job import Arm, Job
from sweeps.model.method import LanguageNetwork
from sweeps.model.outcome import ArmOutcome, MetricValue
from workers import methods
from workers.arms.counts import stage_metrics
from workers.arms.generation_workload import (
    Passage,
    Run,
    Workload,
    check_positions,
    check_runtime,
    decode_steps,
    passages,
)
from workers.arms.prepared import PreparedArm, check_finite, compile_limit, describe, raised
from workers.data.text import DOCS, corpus
from workers.errors import DataError, Unsupported
from workers.measure.readings import counter_value
from workers.measure.samples import metric_value
from workers.models.language import LanguageModel, shared_language
from workers.models.llama_cpp import LlamaCpp
from workers.models.quantised import bytes_per_weight, integer_weights
from workers.models.share_weights import clone_shared, guard

PROMPT_TOKENS, NEW_TOKENS = 128, 32
"""Of a condition that leaves them open."""
PARITY_TOKENS = 16
"""Tokens that are read and compared before another engine is timed."""
MAX_DIFFERENCE: Mapping[Dtype, float] = {"float32": 0.01, "bfloat16": 0.3, "int8": 0.3, "int4": 3.0}
"""Of log probabilities; queries and keys in the wrong order differ by more."""


@dataclass
class LanguageArm(PreparedArm):
    """An arm of a language model with its workload and its timed runs."""

    base: LanguageModel
    """The unmodified model."""
    model: LanguageModel
    workload: Workload
    first: Run
    """Of a compiled or captured model the second one, which compiled nothing."""
    skipped: float
    """MACs of one sequence that the methods left out while it was decoded."""
    runs: list[Run] = field(default_factory=list)

    def step(self) -> None:
        self.runs.append(self.workload.run(self.model))

    @property
    def captured_bytes(self) -> int:
        return self.model.steps.captured_bytes if self.model.steps is not None else 0

    @property
    def forwards(self) -> int:
        return len(self.first.steps_s)

    @property
    def sequences(self) -> int:
        return len(self.workload.passages)

    @property
    def prompt(self) -> int:
        return round(self.first.prompt_tokens / self.sequences)

    @property
    def decoded(self) -> int:
        """Tokens of one sequence that were decoded one by one, on average."""
        return round(self.first.decoded / self.sequences) - 1

    @property
    def weight_bytes(self) -> float:
        """Bytes of weights that one decoded token reads: each matrix once, less the share that the
        methods left out.
        """
        added = self._overhead(1, 1) - self._overhead(1, 0)
        read = self.base.weights_read + added - self.skipped / max(self.decoded, 1)
        engine = self.model.engine
        each = engine.bytes_per_weight if engine else bytes_per_weight(self.base.model)
        return read * each

    def outcome(self) -> ArmOutcome:
        run, passages, work = self.first, self.workload.passages, (self.prompt, self.decoded)
        forced = self.workload.decoding == "teacher_forcing"
        short = any(
            len(text) < len(passage.continuation)
            for text, passage in zip(run.texts, passages, strict=True)
        )
        metrics = [
            metric_value("characters", run.characters),
            metric_value("tokens_decoded", run.decoded),
            *stage_metrics(self._macs, self._overhead, *work),
        ]
        return describe(
            self.index,
            self.model.model,
            gmacs=self._macs(*work) / 1e9,
            gmacs_overhead=self._overhead(*work) / 1e9,
            integer_weights=integer_weights(self.model.model),
            batch=self.sequences,
            tokens=self.prompt,
            tokens_final=run.cached,
            trace=(),
            first_call_s=self.first_call_s,
            implementation=self.model.implementation,
            metrics=tuple(metrics),
            flags=raised(
                text_differs=forced
                and run.texts != tuple(passage.continuation for passage in passages),
                text_too_short=short,
            ),
        )

    def _macs(self, prompt: int, decoded: int) -> float:
        return self.base.macs(prompt, decoded) - (self.skipped if decoded else 0)

    def _overhead(self, prompt: int, decoded: int) -> int:
        return methods.method_macs(self.arm, self.base.network, prompt, decoded)


def prepare_language(job: Job, index: int, texts: tuple[Passage, ...]) -> LanguageArm:
    """Build arm `index` of the job on weights that its other arms share, and run it once on the
    texts; twice if not eager.

    Raises `Unsupported`, `NotANumberError`, and whatever loading, the method and the model raise.
    """
    arm = job.arms[index]
    own = arm.condition(job.condition)
    model = build_language(job.condition, arm, job.content_hashes)
    work = workload(own, texts)
    with compile_limit(job, own):
        first = work.run(model, check=check_finite)
    first_call_s = first.seconds
    if own.runtime != "eager":
        first = work.run(model, check=check_finite)
    prepared = LanguageArm(
        index,
        arm,
        own,
        first_call_s,
        _base(own, job.content_hashes),
        model,
        work,
        first,
        skipped=0.0,
    )
    prepared.skipped = count_skipped_macs(
        arm, model, prepared.base.network, prepared.decoded, prepared.sequences
    )
    for decoded in (0, prepared.decoded):  # what must be counted is counted before timing
        prepared.base.macs(prepared.prompt, decoded)
    return prepared


def build_language(
    condition: Condition, arm: Arm, content_hashes: Mapping[str, str]
) -> LanguageModel:
    """The model of one arm, on the weights that `shared_language` keeps, one set for each dtype.
    Raises `Unsupported`.
    """
    own = arm.condition(condition)
    check_runtime(own)
    base = _base(own, content_hashes)
    if (reason := methods.stack_refusal(arm, base.network)) is not None:
        raise Unsupported(reason)
    guard(base.model)
    network = clone_shared(base.model)
    implementation = _set_attention(network, own.attention)
    model: LanguageModel = methods.apply_stack(
        arm, replace(base, model=network, implementation=implementation), own, base.network
    )
    if own.runtime == "llamacpp":
        return _in_llama_cpp(base, own)
    model.model.eval()
    return replace(model, steps=decode_steps(own.runtime, model))


def _base(own: Condition, content_hashes: Mapping[str, str]) -> LanguageModel:
    """The unmodified model; another engine makes its integers from bfloat16."""
    if own.runtime == "llamacpp" and own.dtype in QUANTISED:
        own = own.model_copy(update={"dtype": "bfloat16"})
    return shared_language(own, content_hashes)


def _in_llama_cpp(base: LanguageModel, own: Condition) -> LanguageModel:
    """The model in another engine; of its own only the sizes are left."""
    room = (own.prompt_tokens or PROMPT_TOKENS) + (own.new_tokens or NEW_TOKENS)
    engine = LlamaCpp(base.model, own.dtype, room + len(base.bos_ids))
    check_log_probabilities(base, engine, own.dtype)
    hollow = clone_shared(base.model).to("meta")
    return replace(base, model=hollow, engine=engine, implementation=engine.implementation)


def check_log_probabilities(base: LanguageModel, engine: LlamaCpp, dtype: Dtype) -> None:
    """Raises `Unsupported` where those of the likeliest tokens differ by more from the unmodified
    model's than the dtype explains.
    """
    prompt = [*base.bos_ids, *range(1, PARITY_TOKENS)]
    found = engine.likeliest(prompt, PARITY_TOKENS)
    tokens_BT = torch.tensor([prompt])
    with torch.inference_mode():
        logits_V = base.model(tokens_BT, use_cache=False, logits_to_keep=1).logits[0, -1]
    wanted_V = logits_V.float().log_softmax(-1)
    worst = max(abs(value - float(wanted_V[token])) for token, value in found.items())
    if not worst <= MAX_DIFFERENCE[dtype]:
        raise Unsupported(
            f"runtime llamacpp computes other logits: log probabilities of the likeliest tokens"
            f" differ by {worst:.2g}"
        )


def _set_attention(model: Any, wanted: Attention) -> str | None:
    """Give the model this attention; where transformers lacks it for this architecture, the name of
    the one that runs.
    """
    if model._can_set_attn_implementation():
        model.set_attn_implementation(
            wanted if wanted != "sdpa" or model._supports_sdpa else "eager"
        )
    used: str = model.config._attn_implementation
    return None if used == wanted else f"{used} attention"


def count_skipped_macs(
    arm: Arm, model: LanguageModel, network: LanguageNetwork, decoded: int, sequences: int
) -> float:
    """MACs left out of one of the sequences that ran since the counters were reset: as counted, or
    else as promised.
    """
    if model.skipped is None:
        return methods.skipped_macs(arm, network, decoded)
    return model.skipped() / sequences


def counters(model: LanguageModel) -> list[MetricValue]:
    """What the methods counted since the last reset."""
    return [
        counter_value(name, count)
        for each in model.counters
        for name, count in each.metrics().items()
    ]


def workload(condition: Condition, texts: tuple[Passage, ...]) -> Workload:
    """The texts with the cache and the decoding of `condition`, an arm's own."""
    new = condition.new_tokens or NEW_TOKENS
    return Workload(
        texts, condition.decoding or "teacher_forcing", condition.kv_cache or "dynamic", new
    )


def cut_texts(job: Job) -> tuple[Passage, ...]:
    """The texts that every arm of the job reads and decodes, one passage for each sequence of a
    batch.

    Raises `Unsupported`, `OSError` for a text that is not on this machine, and what the model's
    loading raises.
    """
    model = shared_language(job.condition, job.content_hashes)
    prompt, new = (
        job.condition.prompt_tokens or PROMPT_TOKENS,
        job.condition.new_tokens or NEW_TOKENS,
    )
    check_positions(model.network, prompt, new)
    return passages(held_out(job.condition), model.tokenizer, prompt, new, job.condition.batch_size)


def held_out(condition: Condition) -> Sequence[str]:
    """The documents that the condition's text holds out. Raises `Unsupported` and `OSError`."""
    try:
        return corpus(condition.data or DOCS).held_out
    except DataError as error:
        raise Unsupported(str(error)) from error
