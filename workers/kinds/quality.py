"""Quality: all arms of a job read the same held-out text, and its likelihood is measured per byte
and not per token.

A window's text is scored given the text before it (see `workers.kinds.likelihood`). Requested
tasks of lm-eval are run after that (see `workers.kinds.likelihood`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sweeps.model.identity import digest
from sweeps.model.job import Job, Pair
from sweeps.model.outcome import ArmOutcome, ArmScores, PairScores, TextScores, pack
from workers import methods
from workers.arms.language import build_language, count_skipped_macs, counters, held_out
from workers.arms.prepared import JobArm, describe
from workers.data.text import Window, scoring_windows
from workers.errors import Unsupported
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.item_job import ItemKind, explain_timeout, run_items
from workers.kinds.likelihood import (
    UNAVAILABLE,
    ScoredText,
    TaskResults,
    drops,
    load_tasks,
    run_tasks,
    score,
)
from workers.measure.readings import metric_value
from workers.models.language import LanguageModel, shared_language


def run(job: Job) -> KindResult:
    """Score the job's arms, one window at a time (see `run_items`).

    Raises `Unsupported` for text that is too short, `OSError` for text that is not on this machine,
    `TimedOut`, and what the model's loading raises.
    """
    return run_items(job, QualityKind)


@dataclass
class ScoredArm(JobArm):
    """An arm with its scores so far, one value per window."""

    model: LanguageModel
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
    """0 where the two read other tokens."""
    agree: list[int] = field(default_factory=list)
    kl: list[float] = field(default_factory=list)


class QualityKind(ItemKind[ScoredArm, Window, ScoredText]):
    """One pass over the text, window by window."""

    verb, progress, bounded_by = "reading with", "windows had been read", "characters"

    def __init__(self, job: Job, failures: FailureCollector) -> None:
        super().__init__(job, failures)
        documents = held_out(job.condition)
        self.text = scoring_windows(documents, job.protocol.characters)
        if not self.text:
            raise Unsupported("the held-out text has no document long enough to score a part of it")
        self.total = len(self.text)
        self.bytes = [len(window.scored.encode()) for window in self.text]
        self.characters = [len(window.scored) for window in self.text]
        self.complete = self.total == len(scoring_windows(documents))
        self.base = shared_language(job.condition, job.content_hashes)
        self.differences = {pair: Difference() for pair in self.pairs}

    def prepare(self, index: int) -> ScoredArm:
        arm = self.job.arms[index]
        model = build_language(self.job.condition, arm, self.job.content_hashes)
        model.reset_counters()
        return ScoredArm(index, arm, model)

    def items(self) -> Iterable[Window]:
        for window in self.text:
            yield window
            self.done += 1

    def read(self, arm: ScoredArm, item: Window) -> ScoredText:
        return score(arm.model, item)

    def keep(self, arm: ScoredArm, item: Window, output: ScoredText) -> None:  # noqa: ARG002 - part of the contract
        arm.nll.append(-output.log_p)
        arm.tokens.append(output.scored)
        arm.context.append(len(output.tokens) - output.scored)

    def compare(self, pair: Pair, baseline: ScoredText, arm: ScoredText) -> None:
        """Nothing is known where they read other tokens."""
        positions, agree, kl = 0, 0, 0.0
        p_TV, q_TV = baseline.log_p_TV, arm.log_p_TV
        if baseline.tokens == arm.tokens and p_TV.shape == q_TV.shape:
            positions = baseline.scored
            agree = int((p_TV.argmax(-1) == q_TV.argmax(-1)).sum())
            kl = float((p_TV.exp() * (p_TV - q_TV)).sum(-1).clamp(min=0).double().mean())
        difference = self.differences[pair]
        difference.positions.append(positions)
        difference.agree.append(agree)
        difference.kl.append(kl)

    def result(self) -> tuple[Sequence[ArmOutcome], Mapping[str, Any]]:
        outcomes = [self._outcome(arm) for arm in self.remaining]
        # after the counters were read, because they count the tasks as well
        if self.job.protocol.tasks:
            outcomes = self._with_tasks(outcomes)
        indices = {arm.index for arm in self.remaining}
        scores = TextScores(
            windows=len(self.text),
            listing=digest(self.text),
            bytes=pack(self.bytes, "i4"),
            characters=pack(self.characters, "i4"),
            documents=pack([window.document for window in self.text], "i4"),
            arms=tuple(
                ArmScores(arm=arm.index, nll=pack(arm.nll, "f8"), tokens=pack(arm.tokens, "i4"))
                for arm in self.remaining
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
                if {pair.baseline, pair.arm} <= indices and sum(each.positions) > 0
            ),
            complete=self.complete,
        )
        return outcomes, {"text_scores": scores}

    def _outcome(self, arm: ScoredArm) -> ArmOutcome:
        """With what it differs by from the first baseline that it is compared with."""
        windows = len(self.text)
        nll, tokens = sum(arm.nll), sum(arm.tokens)
        rows: dict[str, float] = {
            "bits_per_byte": nll / (sum(self.bytes) * math.log(2)),
            "perplexity": math.exp(min(nll / tokens, 700.0)),
            "characters_scored": sum(self.characters),
            "tokens_scored": tokens,
        }
        first = self.differences.get(self.first[arm.index]) if arm.index in self.first else None
        if first is not None and (positions := sum(first.positions)):
            rows["agreement"] = 100 * sum(first.agree) / positions
            rows["kl"] = float(np.average(first.kl, weights=first.positions))
        prompt, decoded = round(float(np.mean(arm.context))), round(float(np.mean(arm.tokens)))
        return describe(
            arm.index,
            arm.model.model,
            macs=self.base.macs(prompt, decoded)
            - count_skipped_macs(arm.arm, arm.model, self.base.network, decoded, windows),
            macs_overhead=methods.method_macs(arm.arm, self.base.network, prompt, decoded),
            batch=1,
            tokens=prompt,
            tokens_final=prompt + decoded,
            trace=(),
            implementation=arm.model.implementation,
            metrics=(
                *(metric_value(name, value, n=windows) for name, value in rows.items()),
                *counters(arm.model),
            ),
        )

    def _with_tasks(self, outcomes: Sequence[ArmOutcome]) -> list[ArmOutcome]:
        """The outcomes with the results of each arm in tasks of lm-eval, or a flag where one cannot
        be run here.

        Each is also compared with the first baseline. An arm that fails is left out. Raises
        `TimedOut`.
        """
        protocol = self.job.protocol
        tasks, complete = load_tasks(protocol.tasks or ())
        results: dict[int, TaskResults] = {}
        with explain_timeout(
            lambda: f"{len(results)} of {len(outcomes)} arms had run the zero-shot tasks",
            "tasks or documents",
        ):
            for arm in self.remaining:
                doing = f"running zero-shot tasks with {arm.arm}"
                with self.failures.collect(arm.index, doing, timeout=False):
                    results[arm.index] = run_tasks(
                        tasks, arm.model, protocol.documents, complete=complete
                    )
        found: list[ArmOutcome] = []
        for outcome in outcomes:
            if (own := results.get(outcome.arm)) is None:
                continue
            pair = self.first.get(outcome.arm)
            baseline = results.get(pair.baseline) if pair else None
            metrics = (*outcome.metrics, *own.metrics, *(drops(baseline, own) if baseline else []))
            flags = outcome.flags if own.complete else (*outcome.flags, UNAVAILABLE)
            found.append(outcome.model_copy(update={"metrics": metrics, "flags": flags}))
        return found
