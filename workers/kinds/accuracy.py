"""Accuracy: all arms of a job on the very same images in one pass, what each says of each image, and how far arms agree.

Shapes: B images, L blocks, D channels, K classes of the data.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sweeps.identity import digest
from sweeps.job import Dtype, Job, Pair
from sweeps.outcome import ArmOutcome, MetricValue
from sweeps.predictions import ArmImages, PairImages, Predictions, pack, unpack
from sweeps.stats.classification import Interval, compare, share
from workers.arms.vision import PreparedArm, loaded, make_ready
from workers.data import images, listing
from workers.data.corruptions import CORRUPTIONS
from workers.data.images import Images, spread
from workers.data.preprocessing import Batch, Preprocessing, batches
from workers.errors import DataError, NotANumberError, Unsupported
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.measure.environment import cores
from workers.measure.feature_similarity import Features, Likeness, features
from workers.measure.threads import use_threads
from workers.measure.timeout import TimedOut
from workers.models.vision import DTYPES

TOKENS_AT_ONCE: Mapping[str, int] = {"cpu": 2**14, "cuda": 2**16}
"""Tokens of a batch, by device: enough that arithmetic bounds a forward, few enough that its activations fit."""
LARGEST_BATCH = 512


def answer(job: Job) -> KindResult:
    """Evaluate the job's arms; a fault of an arm becomes a failure and the others are evaluated.

    Arms run eagerly and the batch is this kind's own: neither changes what a model says. Raises `Unsupported` for data that does
    not fit the model, `OSError` for data that is not on this machine, `TimedOut`, and what the model's loading raises.
    """
    job = _eager(job)
    faults = FailureCollector()
    use_threads(job.condition)
    with torch.inference_mode():
        found, corrupted = _images(job)
        model = loaded(job.condition, job.content_hashes)
        try:
            outputs = found.outputs(model.model.num_classes)
        except DataError as error:
            raise Unsupported(str(error)) from error
        inputs: dict[tuple[int, Dtype], Tensor] = {}
        ready: list[PreparedArm] = []
        for index, arm in enumerate(job.arms):
            with faults.of(index, f"preparing {arm}"), faults.changes.watched(index, f"preparing {arm}"):
                ready.append(make_ready(job, index, model, inputs))
        if not ready:
            return faults.findings()
        seen = Pass(job, ready, faults, torch.as_tensor(outputs, device=job.condition.device))
        size = _batch_size(job, ready)
        places = spread(len(found), job.protocol.images)
        prepare = Preprocessing(model.model, job.condition, {arm.condition.pixels for arm in ready})
        try:
            for batch in batches(found, places, prepare, size, threads=max(1, int(cores()))):
                seen.look(batch, torch.as_tensor(found.labels[list(batch.places)], device=job.condition.device))
                if not seen.standing:
                    return faults.findings()
        except TimedOut as fault:
            done = f"{len(seen.read)} of {len(places)} images had been evaluated"
            raise TimedOut(f"{fault}, when {done}; allow a longer timeout or ask for fewer images") from fault
    if not seen.read:
        raise Unsupported(f"none of the {len(places)} images can be read, the first being {seen.unreadable[0]}")
    evaluation = seen.evaluation(found, outputs, corrupted)
    outcomes = {arm.index: arm.outcome().model_copy(update={"batch": min(size, len(seen.read))}) for arm in ready}
    return faults.findings(
        (seen.with_metrics(outcomes[index], outcomes, evaluation) for index in seen.standing),
        predictions=evaluation,
        flags=("unreadable_images",) if seen.unreadable else (),
    )


class Said(NamedTuple):
    """What an arm made of a batch."""

    logits_BK: Tensor
    """Double precision."""
    features: Features


@dataclass
class Answers:
    """One arm's answers so far, an array for each batch."""

    predicted: list[NDArray[Any]] = field(default_factory=list)
    rank: list[NDArray[Any]] = field(default_factory=list)
    margin: list[NDArray[Any]] = field(default_factory=list)
    diversity: list[NDArray[Any]] = field(default_factory=list)

    def add(self, said: Said, labels_B: Tensor, outputs_K: Tensor) -> None:
        true_B1 = said.logits_BK.gather(1, labels_B[:, None])
        others_BK = said.logits_BK.scatter(1, labels_B[:, None], -torch.inf)
        self.predicted.append(outputs_K[said.logits_BK.argmax(-1)].cpu().numpy())
        self.rank.append((others_BK > true_B1).sum(-1).cpu().numpy())
        self.margin.append((true_B1[:, 0] - others_BK.amax(-1)).cpu().numpy())
        self.diversity.append(said.features.diversity_B.cpu().numpy())


class Pass:
    """One look at the images by all arms, batch by batch."""

    def __init__(self, job: Job, arms: Iterable[PreparedArm], faults: FailureCollector, outputs_K: Tensor) -> None:
        self.faults, self.outputs_K = faults, outputs_K
        self.arms = {arm.index: arm for arm in arms}
        self.pairs = [Pair(*pair) for pair in job.pairs]
        self.first: dict[int, Pair] = {}
        """For each arm the pair with the first baseline that it is compared with."""
        for pair in self.pairs:
            self.first.setdefault(pair.arm, pair)
        self.answers = {index: Answers() for index in self.arms}
        self.kl: dict[Pair, list[NDArray[Any]]] = {pair: [] for pair in self.pairs}
        self.likeness = {pair: Likeness() for pair in self.first.values()}
        self.read: list[int] = []
        """Places of the images that were evaluated."""
        self.unreadable: list[str] = []

    @property
    def standing(self) -> list[int]:
        """Arms that have not failed."""
        return [index for index in self.arms if index not in self.faults.arms]

    def look(self, batch: Batch, labels_B: Tensor) -> None:
        """Let every arm that stands see a batch."""
        self.unreadable += batch.unreadable
        if not batch.places:
            return
        self.read += batch.places
        inputs: dict[tuple[int, Dtype], Tensor] = {}
        said: dict[int, Said] = {}
        for index in self.standing:
            doing = f"evaluating {self.arms[index].arm}"
            try:  # not `faults.of`: whose turn it is when the time is up is chance
                with self.faults.changes.watched(index, doing):
                    said[index] = self._said(self.arms[index], batch, inputs)
            except Exception as fault:
                self.faults.add(index, fault, doing)
        for index, each in said.items():
            self.answers[index].add(each, labels_B, self.outputs_K)
        for pair in self.pairs:
            if pair.baseline in said and pair.arm in said:
                self._compare(pair, said[pair.baseline], said[pair.arm])

    def _said(self, arm: PreparedArm, batch: Batch, inputs: dict[tuple[int, Dtype], Tensor]) -> Said:
        condition = arm.condition
        key = (condition.pixels, condition.dtype)
        if key not in inputs:
            inputs[key] = batch.inputs[condition.pixels].to(condition.device, DTYPES[condition.dtype])
        said = _forward(arm, inputs[key])
        if wrong := int((~torch.isfinite(said.logits_BK).all(-1)).sum()):
            raise NotANumberError(f"the logits of {wrong} of {len(said.logits_BK)} images are not finite")
        return Said(said.logits_BK[:, self.outputs_K], said.features)

    def _compare(self, pair: Pair, one: Said, other: Said) -> None:
        self.kl[pair].append(divergence(one.logits_BK, other.logits_BK).cpu().numpy())
        if pair in self.likeness:
            self.likeness[pair].add(one.features.blocks_LBD, other.features.blocks_LBD)

    def evaluation(self, found: Images, outputs: NDArray[np.int64], corrupted: str | None) -> Predictions:
        """What the arms that stand said of each image."""
        labels = found.labels[self.read]
        names = [found.names[place] for place in self.read]
        arms = self.standing
        return Predictions(
            images=len(names),
            classes=len(outputs),
            labels=pack(outputs[labels], "i2"),
            listing=digest({"names": names, "labels": outputs[labels].tolist(), "corruption": corrupted}),
            unreadable=tuple(self.unreadable),
            arms=tuple(
                ArmImages(
                    arm=index,
                    predicted=pack(np.concatenate(self.answers[index].predicted), "i2"),
                    rank=pack(np.concatenate(self.answers[index].rank), "i2"),
                    margin=pack(np.concatenate(self.answers[index].margin), "f4"),
                )
                for index in arms
            ),
            pairs=tuple(
                PairImages(baseline=pair.baseline, arm=pair.arm, kl=pack(np.concatenate(values), "f4"))
                for pair, values in self.kl.items()
                if pair.baseline in arms and pair.arm in arms
            ),
        )

    def with_metrics(self, outcome: ArmOutcome, outcomes: Mapping[int, ArmOutcome], evaluation: Predictions) -> ArmOutcome:
        """The outcome with its rows: accuracy, and what it loses against the first baseline that it is compared with."""
        index = outcome.arm
        rank = unpack(next(each.rank for each in evaluation.arms if each.arm == index), "i2")
        metrics = [_metric("top1", share(rank == 0), "%"), _metric("top5", share(rank < 5), "%")]
        if (diverse := _finite(np.concatenate(self.answers[index].diversity))).size:
            metrics.append(MetricValue(name="diversity", value=float(diverse.mean()), unit="1", n=diverse.size))
        pair = self.first.get(index)
        if pair is None or pair.baseline not in self.standing:
            return outcome.model_copy(update={"metrics": (*outcome.metrics, *metrics)})
        found = compare(evaluation, pair.baseline, index)
        metrics += [
            _metric(name, value, unit)
            for name, value, unit in (("kl", found.kl, "nat"), ("margin_change", found.margin_change, "logit"))
            if value
        ]
        if found.margin_change_p05 is not None:
            metrics.append(MetricValue(name="margin_change_p05", value=found.margin_change_p05, unit="logit", n=found.images))
        likeness = self.likeness[pair]
        for name, blocks, unit in (("cka", likeness.cka, "1"), ("angle", likeness.angles, "degree")):
            if blocks:
                rows = {
                    name: float(np.mean(blocks)),
                    f"{name}_last": blocks[-1],
                    **{f"{name}_block_{at}": value for at, value in enumerate(blocks)},
                }
                metrics += [MetricValue(name=key, value=value, unit=unit, n=likeness.images) for key, value in rows.items()]
        baseline = outcomes[pair.baseline]
        cost = (outcome.gmacs + outcome.gmacs_overhead) / (baseline.gmacs + baseline.gmacs_overhead)
        metrics.append(MetricValue(name="relative_cost", value=cost, unit="1"))
        return outcome.model_copy(update={"metrics": (*outcome.metrics, *metrics)})


def divergence(baseline_BK: Tensor, arm_BK: Tensor) -> Tensor:
    """KL(baseline || arm) of two sets of logits in nats, [B]; rounding makes none negative.

    K are the outputs that stand for the classes of the data: with a class map those that it names, and the softmax is over them
    alone, so that probability which a model gives to other outputs plays no part.
    """
    log_p_BK, log_q_BK = baseline_BK.log_softmax(-1), arm_BK.log_softmax(-1)
    return (log_p_BK.exp() * (log_p_BK - log_q_BK)).sum(-1).clamp(min=0)


def _forward(arm: PreparedArm, x_BCHW: Tensor) -> Said:
    """One forward; where memory does not suffice, of either half."""
    try:
        with features(arm.model) as found:
            logits_BK = arm.model(x_BCHW)
        return Said(logits_BK.double(), found[0])
    except torch.OutOfMemoryError:
        if len(x_BCHW) == 1:
            raise
    torch.cuda.empty_cache()
    halves = [_forward(arm, half_BCHW) for half_BCHW in x_BCHW.tensor_split(2)]
    blocks_LBD = torch.cat([half.features.blocks_LBD for half in halves], 1)
    diversity_B = torch.cat([half.features.diversity_B for half in halves])
    return Said(torch.cat([half.logits_BK for half in halves]), Features(blocks_LBD, diversity_B))


def _eager(job: Job) -> Job:
    """The job without what changes no answer: batch size and runtime."""
    arms = tuple(arm.model_copy(update={"overrides": arm.overrides.model_copy(update={"runtime": None})}) for arm in job.arms)
    return job.model_copy(
        update={"condition": job.condition.model_copy(update={"batch_size": 1, "runtime": "eager"}), "arms": arms}
    )


def _images(job: Job) -> tuple[Images, str | None]:
    """The job's images, and their corruption as text.

    Raises `Unsupported`, and `OSError` for a path that is not here or holds other files than when the job was planned.
    """
    condition = job.condition
    if condition.data is None:
        raise Unsupported("an accuracy job needs data: digits, imagefolder:PATH or huggingface:PATH")
    if condition.corruption is not None and (condition.corruption not in CORRUPTIONS or condition.severity is None):
        raise Unsupported(
            f"corruption {condition.corruption}, severity {condition.severity}: there are {', '.join(CORRUPTIONS)}, from 1 to 5"
        )
    try:
        found = images(condition.data)
    except DataError as error:
        raise Unsupported(str(error)) from error
    if "data" in job.content_hashes and job.content_hashes["data"] != listing(condition)["data"]:
        raise OSError(
            f"{condition.data} holds other files than when the sweep was planned: run the sweep again, or copy the same data here"
        )
    return found, condition.corruption and f"{condition.corruption}/{condition.severity}"


def _batch_size(job: Job, arms: Sequence[PreparedArm]) -> int:
    """Images per forward: a power of two that suits the arm with the most tokens."""
    tokens = max(block.attention for arm in arms for block in arm.trace.blocks)
    wanted = max(1, TOKENS_AT_ONCE[job.condition.device] // tokens)
    return min(LARGEST_BATCH, 1 << wanted.bit_length() - 1)


def _metric(name: str, found: Interval, unit: str) -> MetricValue:
    """`found` as a row; an interval that is open is left out."""
    closed = {"low": found.low, "high": found.high} if np.isfinite([found.low, found.high]).all() else {}
    return MetricValue(name=name, value=found.value, unit=unit, n=found.n, **closed)


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    finite: NDArray[Any] = values[np.isfinite(values)]
    return finite
