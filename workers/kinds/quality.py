"""Quality: all arms of a job read the same held-out text, and how likely each finds it is measured in text and not in tokens.

A window's text is scored given the text before it (see `workers.kinds.log_likelihood`). Where tasks of lm-eval are asked for, arms
answer them after that (see `workers.kinds.zeroshot`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from sweeps.identity import digest
from sweeps.job import Arm, Job, Pair
from sweeps.outcome import ArmOutcome, MetricValue
from sweeps.predictions import pack
from sweeps.protocol import Protocol
from sweeps.text_scores import ArmScores, PairScores, TextScores
from workers.arms.language import build, held_out, outcome, proofs, skipped
from workers.data.scoring_windows import Window, windows
from workers.errors import Unsupported
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.log_likelihood import Said, read
from workers.kinds.zeroshot import UNAVAILABLE, Answers, answers, drops, questions
from workers.measure.threads import use_threads
from workers.measure.timeout import TimedOut
from workers.methods import spoken_macs
from workers.models.language import LanguageModel, loaded


def answer(job: Job) -> KindResult:
    """Score the job's arms; a fault of an arm becomes a failure and the others are scored.

    Arms run eagerly, one window at a time, whatever the cache: none of these changes what a model says. Raises `Unsupported` for
    text that is too short, `OSError` for text that is not on this machine, `TimedOut`, and what the model's loading raises.
    """
    job = _eager(job)
    faults = FailureCollector()
    use_threads(job.condition)
    with torch.inference_mode():
        text = windows(held_out(job.condition), job.protocol.characters)
        if not text:
            raise Unsupported("the held-out text has no document long enough to score a part of it")
        base = loaded(job.condition, job.content_hashes)
        readers: list[Reader] = []
        for index, arm in enumerate(job.arms):
            with faults.of(index, f"preparing {arm}"), faults.changes.watched(index, f"preparing {arm}"):
                speaker = build(job.condition, arm, job.content_hashes)
                for prepare in speaker.prepare:
                    prepare()
                readers.append(Reader(index, arm, speaker))
        seen = Pass(job, readers, faults)
        for window in text:
            try:
                seen.read(window)
            except TimedOut as fault:
                done = f"{seen.count} of {len(text)} windows had been read"
                raise TimedOut(f"{fault}, when {done}; allow a longer timeout or ask for fewer characters") from fault
            if not seen.standing:
                return faults.findings()
        arms = [seen.outcome(reader, base, text) for reader in seen.standing]
        if job.protocol.tasks:  # after the proofs were read, for what the methods count goes on
            arms = zero_shot(job.protocol, seen, arms)
            if not arms:
                return faults.findings()
    return faults.findings(
        arms,
        text_scores=seen.scores(text, complete=len(text) == len(windows(held_out(job.condition)))),
    )


@dataclass
class Reader:
    """An arm with what it found so far, one value per window."""

    index: int
    arm: Arm
    speaker: LanguageModel
    nll: list[float] = field(default_factory=list)
    """Nats."""
    tokens: list[int] = field(default_factory=list)
    """Scored."""
    context: list[int] = field(default_factory=list)
    """Tokens before them."""


@dataclass
class Difference:
    """How an arm's predictions differ from its baseline's, one value per window."""

    positions: list[int] = field(default_factory=list)
    """None where the two read other tokens."""
    agree: list[int] = field(default_factory=list)
    kl: list[float] = field(default_factory=list)


class Pass:
    """One reading of the text by all arms, window by window."""

    def __init__(self, job: Job, readers: Sequence[Reader], faults: FailureCollector) -> None:
        self.readers, self.faults = readers, faults
        self.differences = {Pair(*pair): Difference() for pair in job.pairs}
        self.count = 0

    @property
    def standing(self) -> list[Reader]:
        """Arms that have not failed."""
        return [reader for reader in self.readers if reader.index not in self.faults.arms]

    def read(self, window: Window) -> None:
        """Let every arm that stands read a window."""
        said: dict[int, Said] = {}
        for reader in self.standing:
            doing = f"reading with {reader.arm}"
            try:  # not `faults.of`: whose turn it is when the time is up is chance
                with self.faults.changes.watched(reader.index, doing):
                    said[reader.index] = read(reader.speaker, window)
            except Exception as fault:
                self.faults.add(reader.index, fault, doing)
                continue
            found = said[reader.index]
            reader.nll.append(-found.log_p)
            reader.tokens.append(found.scored)
            reader.context.append(len(found.tokens) - found.scored)
        for pair, difference in self.differences.items():
            if pair.baseline in said and pair.arm in said:
                _compare(difference, said[pair.baseline], said[pair.arm])
        self.count += 1

    def scores(self, text: Sequence[Window], *, complete: bool) -> TextScores:
        """What the arms that stand found; `complete`: there is no more text."""
        standing = {reader.index for reader in self.standing}
        return TextScores(
            windows=len(text),
            listing=digest(text),
            bytes=pack([len(window.scored.encode()) for window in text], "i4"),
            characters=pack([len(window.scored) for window in text], "i4"),
            arms=tuple(
                ArmScores(arm=reader.index, nll=pack(reader.nll, "f8"), tokens=pack(reader.tokens, "i4"))
                for reader in self.standing
            ),
            pairs=tuple(
                PairScores(
                    baseline=pair.baseline,
                    arm=pair.arm,
                    positions=pack(each.positions, "i4"),
                    agree=pack(each.agree, "i4"),
                    kl=pack(each.kl, "f4"),
                )
                for pair, each in self.differences.items()
                if {pair.baseline, pair.arm} <= standing and sum(each.positions) > 0
            ),
            complete=complete,
        )

    def outcome(self, reader: Reader, base: LanguageModel, text: Sequence[Window]) -> ArmOutcome:
        """What is known of an arm: its rows, and what it differs by from the first baseline that it is compared with."""
        size = sum(len(window.scored.encode()) for window in text)
        nll, tokens = sum(reader.nll), sum(reader.tokens)
        rows: dict[str, tuple[float, str]] = {
            "bits_per_byte": (nll / (size * math.log(2)), "bit"),
            "perplexity": (math.exp(min(nll / tokens, 700.0)), "1"),
            "characters_scored": (sum(len(window.scored) for window in text), "1"),
            "tokens_scored": (tokens, "1"),
        }
        first = next((each for pair, each in self.differences.items() if pair.arm == reader.index), None)
        if first is not None and (positions := sum(first.positions)):
            rows["agreement"] = (100 * sum(first.agree) / positions, "%")
            rows["kl"] = (float(np.average(first.kl, weights=first.positions)), "nat")
        prompt, decoded = round(float(np.mean(reader.context))), round(float(np.mean(reader.tokens)))
        left_out = skipped(reader.arm, reader.speaker, base.network, decoded, len(text))
        added = spoken_macs(reader.arm, base.network, prompt, decoded)
        gmacs = (base.macs(prompt, decoded) - left_out) / 1e9, added / 1e9
        known = outcome(reader.index, reader.speaker, gmacs, prompt, decoded)
        metrics = [MetricValue(name=name, value=value, unit=unit, n=len(text)) for name, (value, unit) in rows.items()]
        return known.model_copy(update={"metrics": (*metrics, *proofs(reader.speaker))})


def zero_shot(protocol: Protocol, seen: Pass, arms: Sequence[ArmOutcome]) -> list[ArmOutcome]:
    """What is known of the `arms` that stand, with what each reaches in tasks of lm-eval, or a flag where one cannot be run here.

    Besides, what it loses against the first baseline that it is compared with. An arm that fails is left out. Raises `TimedOut`.
    """
    asked = questions(protocol.tasks or (), protocol.documents)
    said: dict[int, Answers] = {}
    for reader in seen.standing:
        try:
            with seen.faults.changes.watched(reader.index, f"answering zero-shot tasks with {reader.arm}"):
                said[reader.index] = answers(asked, reader.speaker)
        except TimedOut as fault:
            done = f"{len(said)} of {len(arms)} arms had answered the zero-shot tasks"
            raise TimedOut(f"{fault}, when {done}; allow a longer timeout or ask for fewer tasks or documents") from fault
        except Exception as fault:
            seen.faults.add(reader.index, fault, f"answering zero-shot tasks with {reader.arm}")
    found: list[ArmOutcome] = []
    for known in arms:
        if (own := said.get(known.arm)) is None:
            continue
        baseline = next((said.get(pair.baseline) for pair in seen.differences if pair.arm == known.arm), None)
        rows = [*known.metrics, *own.rows, *(drops(baseline, own) if baseline else [])]
        flags = known.flags if own.complete else (*known.flags, UNAVAILABLE)
        found.append(known.model_copy(update={"metrics": tuple(rows), "flags": flags}))
    return found


def _compare(difference: Difference, one: Said, other: Said) -> None:
    """Add how `other` differs from the baseline `one`; nothing can be said where they read other tokens."""
    positions, agree, kl = 0, 0, 0.0
    if one.tokens == other.tokens and one.log_p_TV.shape == other.log_p_TV.shape:
        positions = one.scored
        agree = int((one.log_p_TV.argmax(-1) == other.log_p_TV.argmax(-1)).sum())
        kl = float((one.log_p_TV.exp() * (one.log_p_TV - other.log_p_TV)).sum(-1).clamp(min=0).double().mean())
    difference.positions.append(positions)
    difference.agree.append(agree)
    difference.kl.append(kl)


def _eager(job: Job) -> Job:
    """The job without what changes no answer: runtime, batch and cache."""
    same: Mapping[str, Any] = {"runtime": None, "kv_cache": None}
    arms = tuple(arm.model_copy(update={"overrides": arm.overrides.model_copy(update=same)}) for arm in job.arms)
    return job.model_copy(
        update={"condition": job.condition.model_copy(update={"batch_size": 1, "runtime": "eager"}), "arms": arms}
    )
