"""Accuracy: all arms of a job on the very same images in one pass: what each predicts for each
image, how far arms agree, and how similar their features are.

Shapes: B images, L blocks, N tokens, D channels, K classes of the data.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sweeps.model.condition import ImageSize
from sweeps.model.identity import digest
from sweeps.model.job import Job, Pair
from sweeps.model.outcome import (
    ArmImages,
    ArmOutcome,
    MetricValue,
    PairImages,
    Predictions,
    pack,
)
from sweeps.stats.quality import compare_predictions
from workers.arms.prepared import check_finite, raised
from workers.arms.vision import ImageInputs, VisionArm, prepare_vision
from workers.data import data_hash, images
from workers.data.corruptions import CORRUPTIONS
from workers.data.images import Images, evenly_spaced
from workers.data.preprocessing import Batch, Preprocessing, batches
from workers.errors import DataError, Unsupported
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.item_job import ItemKind, run_items
from workers.measure.environment import cores
from workers.measure.samples import accuracy_metrics, estimated, metric_value
from workers.models.exported import CALIBRATION
from workers.models.share_weights import DTYPES
from workers.models.vision import shared_vision

MIN_BATCH = 4
"""Images in a batch below which the unbiased estimate of HSIC is not defined."""


class Features(NamedTuple):
    """Of one batch."""

    blocks_LBD: Tensor
    """After each block the class token, or, in models without one, the mean of the patch tokens
    weighted by their sizes."""
    diversity_B: Tensor
    """Mean cosine distance between two of the tokens (prefix tokens included) that leave the last
    block; NaN for a single token."""


@contextmanager
def features(model: nn.Module) -> Iterator[list[Features]]:
    """Collects the features of every forward of `model` in the block, one entry each."""
    trunk: Any = next(part for part in model.modules() if hasattr(part, "blocks"))
    seen: list[Tensor] = []
    found: list[Features] = []

    def look(_: nn.Module, __: object, result: Any) -> None:
        x_BND, passed_on = result[:2] if isinstance(result, tuple) else (result, None)
        # of tokens that are merged around the attention only groups are passed on
        size_BN1 = passed_on if isinstance(passed_on, Tensor) else None
        seen.append(feature(x_BND, size_BN1, trunk))
        if len(seen) == len(trunk.blocks):
            found.append(Features(torch.stack(seen), diversity(x_BND)))
            seen.clear()

    with ExitStack() as hooks:
        for block in trunk.blocks:
            hooks.enter_context(block.register_forward_hook(look))
        hooks.callback(seen.clear)
        yield found


def feature(x_BND: Tensor, size_BN1: Tensor | None, trunk: Any) -> Tensor:
    """The image's feature in float32, [B, D]."""
    if trunk.cls_token is not None:
        return x_BND[:, 0].float()
    x_BND = x_BND[:, trunk.num_prefix_tokens :].float()
    if size_BN1 is None:
        return x_BND.mean(1)
    size_BN1 = size_BN1[:, trunk.num_prefix_tokens :].float()
    return (x_BND * size_BN1).sum(1) / size_BN1.sum(1)


def diversity(x_BND: Tensor) -> Tensor:
    """Mean cosine distance between two different tokens of an image, [B]; NaN where there is one
    token only.
    """
    unit_BND = nn.functional.normalize(x_BND.float(), dim=-1)
    N = x_BND.shape[1]
    cosines_B = unit_BND.sum(1).square().sum(-1) - unit_BND.square().sum((1, 2))
    return 1 - cosines_B / (N * (N - 1)) if N > 1 else torch.full_like(cosines_B, torch.nan)


class FeatureSimilarity:
    """Running comparison of two models' features, block by block, over batches of the same
    images.
    """

    def __init__(self) -> None:
        self.images = 0
        self.angle_L: Tensor | float = 0.0
        self.hsic_3L: Tensor | float = 0.0

    def add(self, one_LBD: Tensor, other_LBD: Tensor) -> None:
        """Add one batch; one of fewer than `MIN_BATCH` images counts for the angle only."""
        one_LBD, other_LBD = one_LBD.double(), other_LBD.double()
        B = one_LBD.shape[1]
        cosine_LB = nn.functional.cosine_similarity(one_LBD, other_LBD, dim=-1).clamp(-1, 1)
        self.angle_L = self.angle_L + cosine_LB.acos().sum(-1).rad2deg()
        self.images += B
        if B >= MIN_BATCH:
            one_LBB, other_LBB = one_LBD @ one_LBD.mT, other_LBD @ other_LBD.mT
            pairs = ((one_LBB, other_LBB), (one_LBB, one_LBB), (other_LBB, other_LBB))
            self.hsic_3L = self.hsic_3L + B * torch.stack([hsic(*pair) for pair in pairs])

    @property
    def angles(self) -> list[float]:
        """Mean angle between the two features of an image after each block, in degrees."""
        return (torch.as_tensor(self.angle_L) / self.images).tolist() if self.images else []

    @property
    def cka(self) -> list[float]:
        """Linear CKA after each block: 1 for features equal but for rotation and scale; empty where
        it is not defined.

        Minibatch CKA: Nguyen, Raghu and Kornblith, ICLR 2021, arXiv 2010.15327, section 3.
        """
        if not isinstance(self.hsic_3L, Tensor):
            return []
        both_L, one_L, other_L = self.hsic_3L
        if not bool(((one_L > 0) & (other_L > 0)).all()):
            return []
        cka: list[float] = (both_L / (one_L * other_L).sqrt()).tolist()
        return cka


def hsic(k_LBB: Tensor, l_LBB: Tensor) -> Tensor:
    """Unbiased estimate of the Hilbert-Schmidt independence criterion of two Gram matrices, [L]; B
    is at least 4.

    Song, Smola, Gretton, Bedo and Borgwardt, Journal of Machine Learning Research 13, 2012, section
    3.2.
    """
    B = k_LBB.shape[-1]
    off_BB = 1 - torch.eye(B, dtype=k_LBB.dtype, device=k_LBB.device)
    k_LBB, l_LBB = k_LBB * off_BB, l_LBB * off_BB
    trace_L = (k_LBB * l_LBB).sum((1, 2))
    sums_L = k_LBB.sum((1, 2)) * l_LBB.sum((1, 2)) / ((B - 1) * (B - 2))
    rows_L = (k_LBB.sum(1) * l_LBB.sum(1)).sum(-1) * 2 / (B - 2)
    return (trace_L + sums_L - rows_L) / (B * (B - 3))


TOKENS_AT_ONCE: Mapping[str, int] = {"cpu": 2**14, "cuda": 2**16}
"""Tokens of a batch, by device: enough that arithmetic bounds a forward, few enough that its
activations fit."""
LARGEST_BATCH = 512
PACKED = {"predicted": "i2", "rank": "i2", "margin": "f4"}
"""Types in which the predictions of an arm are stored."""


def run(job: Job) -> KindResult:
    """Evaluate the job's arms (see `run_items`).

    Raises `Unsupported` for data that does not fit the model, `OSError` for data that is not on
    this machine, `TimedOut`, and what the model's loading raises.
    """
    return run_items(job, AccuracyKind)


class BatchOutput(NamedTuple):
    """The output of an arm for a batch."""

    logits_BK: Tensor
    """Double precision."""
    features: Features | None
    """`None` where another engine runs the model, which shows its output alone."""


class LabelledBatch(NamedTuple):
    """A batch with the classes of its images."""

    batch: Batch
    labels_B: Tensor
    inputs: ImageInputs


class AccuracyKind(ItemKind[VisionArm, LabelledBatch, BatchOutput]):
    """One pass over the images, batch by batch."""

    verb, progress, bounded_by = "evaluating", "images had been evaluated", "images"

    def __init__(self, job: Job, failures: FailureCollector) -> None:
        super().__init__(job, failures)
        self.images, self.corruption = _images(job)
        self.loaded = shared_vision(job.condition, job.content_hashes)
        try:
            self.outputs = self.images.outputs(self.loaded.model.num_classes)
        except DataError as error:
            raise Unsupported(str(error)) from error
        self.outputs_K = torch.as_tensor(self.outputs, device=job.condition.device)
        self.places = evenly_spaced(len(self.images), job.protocol.images)
        self.total = len(self.places)
        self.inputs: ImageInputs = {}
        self.evaluated: dict[int, defaultdict[str, list[NDArray[Any]]]] = {}
        """By arm its predictions and the diversity of its tokens so far, an array for each
        batch."""
        self.kl: dict[Pair, list[NDArray[Any]]] = {pair: [] for pair in self.pairs}
        self.similarity = {pair: FeatureSimilarity() for pair in self.first.values()}
        self.evaluated_places: list[int] = []
        self.unreadable: list[str] = []

    def prepare(self, index: int) -> VisionArm:
        self.evaluated[index] = defaultdict(list)
        return prepare_vision(self.job, index, self.loaded, self.inputs, self._calibration_images)

    def _calibration_images(self, size: ImageSize) -> Tensor | None:
        """Some of the job's images, without their labels; `None` where none can be read."""
        preprocessing = Preprocessing(self.loaded.model, self.job.condition, {size})
        chosen = [self.places[each] for each in evenly_spaced(len(self.places), CALIBRATION)]
        read = batches(self.images, chosen, preprocessing, len(chosen), threads=1)
        return next(read).inputs.get(size)

    def items(self) -> Iterable[LabelledBatch]:
        arms, condition = self.remaining, self.job.condition
        preprocessing = Preprocessing(
            self.loaded.model, condition, {arm.condition.pixels for arm in arms}
        )
        self.batch_size = _batch_size(condition.device, arms)
        for batch in batches(
            self.images, self.places, preprocessing, self.batch_size, threads=max(1, int(cores()))
        ):
            self.unreadable += batch.unreadable
            if batch.places:
                self.evaluated_places += batch.places
                self.done = len(self.evaluated_places)
                labels_B = torch.as_tensor(
                    self.images.labels[list(batch.places)], device=condition.device
                )
                yield LabelledBatch(batch, labels_B, {})
        if not self.evaluated_places:
            raise Unsupported(
                f"none of the {self.total} images can be read, the first being {self.unreadable[0]}"
            )

    def read(self, arm: VisionArm, item: LabelledBatch) -> BatchOutput:
        condition = arm.condition
        key = (condition.pixels, condition.dtype)
        if key not in item.inputs:
            item.inputs[key] = item.batch.inputs[condition.pixels].to(
                condition.device, DTYPES[condition.dtype]
            )
        output = _forward(arm, item.inputs[key])
        check_finite(output.logits_BK)
        return BatchOutput(output.logits_BK[:, self.outputs_K], output.features)

    def keep(self, arm: VisionArm, item: LabelledBatch, output: BatchOutput) -> None:
        logits_BK, labels_B1 = output.logits_BK, item.labels_B[:, None]
        true_B1 = logits_BK.gather(1, labels_B1)
        others_BK = logits_BK.scatter(1, labels_B1, -torch.inf)
        before_BK = torch.arange(logits_BK.shape[1], device=logits_BK.device) < labels_B1
        # of equal logits the first class goes first, as in argmax
        ahead_BK = (others_BK > true_B1) | (before_BK & (others_BK == true_B1))
        found = {
            "predicted": self.outputs_K[logits_BK.argmax(-1)],
            "rank": ahead_BK.sum(-1),
            "margin": true_B1[:, 0] - others_BK.amax(-1),
        }
        if output.features is not None:
            found["diversity"] = output.features.diversity_B
        for name, values_B in found.items():
            self.evaluated[arm.index][name].append(values_B.cpu().numpy())

    def compare(self, pair: Pair, baseline: BatchOutput, arm: BatchOutput) -> None:
        self.kl[pair].append(divergence(baseline.logits_BK, arm.logits_BK).cpu().numpy())
        if pair in self.similarity and baseline.features and arm.features:
            self.similarity[pair].add(baseline.features.blocks_LBD, arm.features.blocks_LBD)

    def result(self) -> tuple[Sequence[ArmOutcome], Mapping[str, Any]]:
        """With accuracy, and what each arm loses against the first baseline that it is compared
        with.
        """
        batch = min(self.batch_size, len(self.evaluated_places))
        plain = {
            arm.index: arm.outcome().model_copy(update={"batch": batch}) for arm in self.remaining
        }
        outcomes = [
            outcome.model_copy(
                update={"metrics": (*self._own(index), *self._losses(outcome, plain))}
            )
            for index, outcome in plain.items()
        ]
        return outcomes, {
            "predictions": self.predictions,
            "flags": raised(unreadable_images=bool(self.unreadable)),
        }

    @cached_property
    def predictions(self) -> Predictions:
        """What the remaining arms predict for each image."""
        labels = self.outputs[self.images.labels[self.evaluated_places]]
        names = [self.images.names[place] for place in self.evaluated_places]
        arms = [arm.index for arm in self.remaining]
        return Predictions(
            images=len(names),
            classes=len(self.outputs),
            labels=pack(labels, "i2"),
            listing=digest(
                {"names": names, "labels": labels.tolist(), "corruption": self.corruption}
            ),
            unreadable=tuple(self.unreadable),
            arms=tuple(
                ArmImages(
                    arm=index,
                    **{
                        name: pack(np.concatenate(self.evaluated[index][name]), code)
                        for name, code in PACKED.items()
                    },
                )
                for index in arms
            ),
            pairs=tuple(
                PairImages(
                    baseline=pair.baseline, arm=pair.arm, kl=pack(np.concatenate(values), "f4")
                )
                for pair, values in self.kl.items()
                if pair.baseline in arms and pair.arm in arms
            ),
        )

    def _own(self, index: int) -> list[MetricValue]:
        metrics = accuracy_metrics(self.predictions, index)
        diversity = np.concatenate(self.evaluated[index].get("diversity", [np.empty(0)]))
        if (finite := diversity[np.isfinite(diversity)]).size:
            metrics.append(metric_value("diversity", float(finite.mean()), n=finite.size))
        return metrics

    def _losses(self, outcome: ArmOutcome, outcomes: Mapping[int, ArmOutcome]) -> list[MetricValue]:
        pair = self.first.get(outcome.arm)
        if pair is None or pair.baseline not in outcomes:
            return []
        found = compare_predictions(self.predictions, pair.baseline, outcome.arm)
        estimates = {"kl": found.kl, "margin_change": found.margin_change}
        metrics = [estimated(name, estimate) for name, estimate in estimates.items() if estimate]
        if found.margin_change_p05 is not None:
            metrics.append(
                metric_value("margin_change_p05", found.margin_change_p05, n=found.images)
            )
        similarity = self.similarity[pair]
        for name, blocks in (("cka", similarity.cka), ("angle", similarity.angles)):
            if blocks:
                rows = {name: float(np.mean(blocks)), f"{name}_last": blocks[-1]}
                rows |= {f"{name}_block_{block}": value for block, value in enumerate(blocks)}
                metrics += [
                    metric_value(key, value, n=similarity.images) for key, value in rows.items()
                ]
        baseline = outcomes[pair.baseline]
        cost = outcome.gmacs_total / baseline.gmacs_total
        return [*metrics, metric_value("relative_cost", cost)]


def divergence(baseline_BK: Tensor, arm_BK: Tensor) -> Tensor:
    """KL(baseline || arm) of two sets of logits in nats, [B]; rounding makes none negative.

    K are the outputs that stand for the classes of the data: with a class map those that it names,
    and the softmax is over them alone, so that probability which a model gives to other outputs
    plays no part.
    """
    log_p_BK, log_q_BK = baseline_BK.log_softmax(-1), arm_BK.log_softmax(-1)
    return (log_p_BK.exp() * (log_p_BK - log_q_BK)).sum(-1).clamp(min=0)


def _forward(arm: VisionArm, x_BCHW: Tensor) -> BatchOutput:
    """One forward; where memory does not suffice, of either half."""
    try:
        collected: AbstractContextManager[list[Features]] = nullcontext([])
        if arm.described:
            collected = features(arm.model)
        with collected as found:
            logits_BK = arm.model(x_BCHW)
        return BatchOutput(logits_BK.double(), found[0] if found else None)
    except torch.OutOfMemoryError:
        if len(x_BCHW) == 1:
            raise
    torch.cuda.empty_cache()
    halves = [_forward(arm, half_BCHW) for half_BCHW in x_BCHW.tensor_split(2)]
    logits_BK = torch.cat([half.logits_BK for half in halves])
    seen = [half.features for half in halves if half.features]
    if not seen:
        return BatchOutput(logits_BK, None)
    blocks_LBD = torch.cat([each.blocks_LBD for each in seen], 1)
    diversity_B = torch.cat([each.diversity_B for each in seen])
    return BatchOutput(logits_BK, Features(blocks_LBD, diversity_B))


def _images(job: Job) -> tuple[Images, str | None]:
    """The job's images, and their corruption as text.

    Raises `Unsupported`, and `OSError` for a path that is not here or holds other files than when
    the job was planned.
    """
    condition = job.condition
    if condition.data is None:
        raise Unsupported(
            "an accuracy job needs data: digits, imagefolder:PATH or huggingface:PATH"
        )
    if condition.corruption is not None and (
        condition.corruption not in CORRUPTIONS or condition.severity is None
    ):
        raise Unsupported(
            f"corruption {condition.corruption}, severity {condition.severity}: there are"
            f" {', '.join(CORRUPTIONS)}, from 1 to 5"
        )
    try:
        found = images(condition.data)
    except DataError as error:
        raise Unsupported(str(error)) from error
    if "data" in job.content_hashes and job.content_hashes["data"] != data_hash(condition)["data"]:
        raise OSError(
            f"{condition.data} holds other files than when the sweep was planned: run the sweep"
            " again, or copy the same data here"
        )
    return found, condition.corruption and f"{condition.corruption}/{condition.severity}"


def _batch_size(device: str, arms: Sequence[VisionArm]) -> int:
    """Images per forward: a power of two that suits the arm with the most tokens."""
    tokens = max(
        max((block.attention for block in arm.trace.blocks), default=arm.trace.final)
        for arm in arms
    )
    wanted = max(1, TOKENS_AT_ONCE[device] // tokens)
    return min(LARGEST_BATCH, 1 << wanted.bit_length() - 1)
