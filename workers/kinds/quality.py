"""Quality: all arms of a job read the same held-out text, and its likelihood is measured per byte
and not per token; then the zero-shot tasks of lm-eval that follow from likelihoods.

An arm encodes a text and its context apart: so the sum over the text's tokens, its first one
included, is the likelihood of that very text, whatever the tokenizer. One forward stands for
decoding it one token at a time (`LanguageModel.scored_logits`).

lm-eval is no dependency of the project: tasks run where it is installed and their data are on this
disk. A task that cannot run here gives a line in the log and the flag `UNAVAILABLE`.

Shapes: B texts (always 1), T tokens of the scored text, V tokens of the vocabulary.
"""

import contextlib
import importlib
import logging
import math
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from sweeps.model.identity import digest
from sweeps.model.job import Job, Pair
from sweeps.model.outcome import ArmOutcome, ArmScores, MetricValue, PairScores, TextScores, pack
from sweeps.stats.quality import accuracy_drop
from workers import methods
from workers.arms.language import build_language, count_skipped_macs, counters, held_out
from workers.arms.prepared import JobArm, check_finite, describe
from workers.data.images import evenly_spaced
from workers.data.text import Window, scoring_windows
from workers.errors import Unsupported
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.item_job import ItemKind, explain_timeout, run_items
from workers.measure.samples import metric_value, text_metrics
from workers.models.language import LanguageModel, shared_language


class ScoredText(NamedTuple):
    """The predictions of an arm for the scored text of a window."""

    tokens: list[int]
    """All that were read, context included; the last `scored` of them are scored."""
    scored: int
    log_p_TV: Tensor
    """Log probabilities at each scored position, single precision."""

    @property
    def log_p(self) -> float:
        """Log probability of the scored text in nats."""
        chosen_T1 = torch.tensor(self.tokens[-self.scored :], device=self.log_p_TV.device)[:, None]
        return float(self.log_p_TV.gather(1, chosen_T1).double().sum())

    @property
    def greedy(self) -> bool:
        """Whether each scored token is the most likely one at its position."""
        return bool(self.log_p_TV.argmax(-1).tolist() == self.tokens[-self.scored :])


def score(model: LanguageModel, window: Window) -> ScoredText:
    """The predictions for a window; where it is longer than the model's positions, its context is
    cut from the left.

    Raises `Unsupported` where even the scored part is too long, `NotANumberError`, and what the
    model raises.
    """
    context, scored = model.tokenizer.encode(window.context), model.tokenizer.encode(window.scored)
    room = model.network.positions - len(scored) - len(model.bos_ids)
    if room < 1:
        raise Unsupported(
            f"{len(scored)} tokens are read at once, and {model.network.name} has"
            f" {model.network.positions} positions"
        )
    before = [*model.bos_ids, *context[-room:]]
    return ScoredText(before + scored, len(scored), log_probabilities(model, before, scored))


def log_probabilities(model: LanguageModel, before: Sequence[int], scored: Sequence[int]) -> Tensor:
    """Log probabilities [T, V] at each position of `scored`, given the tokens `before` it.

    Where there are none, not even one that begins every text, nothing predicts the first position:
    all of its V tokens count as equally likely there. Raises `NotANumberError`, and what the model
    raises.
    """
    tokens_BT = torch.tensor([[*before, *scored][:-1]], dtype=torch.long, device=model.model.device)
    if not tokens_BT.numel():
        return torch.full(
            (len(scored), model.network.vocabulary), -math.log(model.network.vocabulary)
        )
    logits_BTV = model.scored_logits(
        tokens_BT, max(len(before), 1), keep=len(scored) - (not before)
    )
    check_finite(logits_BTV)
    log_p_TV: Tensor = logits_BTV[0].float().log_softmax(-1)
    if before:
        return log_p_TV
    even_V = log_p_TV.new_full((1, log_p_TV.shape[1]), -math.log(log_p_TV.shape[1]))
    return torch.cat((even_V, log_p_TV))


def score_whole(model: LanguageModel, text: str) -> float:
    """Log probability in nats of a text with only the special tokens before it that begin every
    text, however long it is.

    What is longer than the model's positions is read in parts, each after the half of the positions
    before it. Raises `NotANumberError`, and what the model raises.
    """
    tokens = model.tokenizer.encode(text)
    total, at, room = 0.0, 0, model.network.positions - len(model.bos_ids)
    while at < len(tokens):
        context = min(at, room // 2)
        end = min(len(tokens), at + room - context)
        before = [*model.bos_ids, *tokens[at - context : at]]
        total += ScoredText(
            tokens[at:end], end - at, log_probabilities(model, before, tokens[at:end])
        ).log_p
        at = end
    return total


_LOG = logging.getLogger(__name__)
UNAVAILABLE = "zeroshot_unavailable"
SUPPORTED = ("multiple_choice", "loglikelihood", "loglikelihood_rolling")
"""Output types of lm-eval that need only the likelihood of texts."""
NORMAL_95 = 1.959964
"""Standard errors to each side of a mean that hold 95 % of a normal distribution."""
BOOTSTRAPS = 1000
"""Resamples for the standard error of what is no mean, such as a perplexity; as many as lm-eval
draws at once."""
OFFLINE = {
    "huggingface_hub.constants": ("HF_HUB_OFFLINE",),
    "datasets.config": ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"),
}
"""Modules that read the variables of these names when they are imported, and keep them under the
same names."""


class TaskResults(NamedTuple):
    """The results of an arm in the tasks."""

    metrics: list[MetricValue]
    hits: Mapping[str, Sequence[bool]]
    """For each metric that is a share of documents, which of them are right, in the order of the
    task."""
    complete: bool
    """Whether all requested tasks could be run."""


def load_tasks(names: Sequence[str]) -> tuple[dict[str, Any], bool]:
    """lm-eval's tasks of these names (a group's name stands for each task of it), or in the YAML
    files of these paths, by name; and whether all of them can be run here.

    Logs which cannot, and why.
    """
    tasks: dict[str, Any] = {}
    complete = True
    for name in dict.fromkeys(names):
        try:
            with _sandboxed():
                tasks |= _tasks(name)
        except Exception as error:  # lm-eval, datasets and a task's own code raise anything
            _log(name, error)
            complete = False
    return tasks, complete


def run_tasks(
    tasks: Mapping[str, Any], model: LanguageModel, documents: int | None, *, complete: bool
) -> TaskResults:
    """The results of an arm in each task, with so many `documents` of each (`None`: all); raises
    what the model raises.
    """
    metrics: list[MetricValue] = []
    hits: dict[str, list[bool]] = {}
    if not tasks:
        return TaskResults(metrics, hits, complete)
    from lm_eval.evaluator import evaluate

    for name, task in tasks.items():
        adapter = make_adapter(model)
        try:
            with _sandboxed():
                some = documents and {name: [*evenly_spaced(len(task.eval_docs), documents)]}
                found = evaluate(
                    lm=adapter,
                    task_dict={"tasks": {name: task}},
                    samples=some,
                    bootstrap_iters=BOOTSTRAPS,
                )
            own = _metrics(name, found["results"][name], found["n-samples"][name]["effective"])
            hits |= _hits(name, own, found["samples"][name])
            metrics += own
        except Exception as error:
            if adapter.error is not None:
                raise adapter.error from None
            _log(name, error)
            complete = False
    return TaskResults(metrics, hits, complete)


def drops(baseline: TaskResults, arm: TaskResults) -> list[MetricValue]:
    """What an arm loses against its baseline on the very same documents, as a share: above 0 the
    arm is worse.

    The interval is that of the drop in top-1 of an accuracy job
    (`sweeps.stats.quality.accuracy_drop`).
    """
    found = {
        name: accuracy_drop(baseline.hits[name], right)
        for name, right in arm.hits.items()
        if name in baseline.hits
    }
    return [
        metric_value(
            f"{name}_drop", each.value / 100, low=each.low / 100, high=each.high / 100, n=each.n
        )
        for name, each in found.items()
    ]


def make_adapter(model: LanguageModel) -> Any:
    """The arm as an `lm_eval.api.model.LM`; `error` is what its model raised, which is no error of
    the task.
    """
    from lm_eval.api.model import LM

    class Adapter(LM):  # type: ignore[misc]  # mypy runs without lm-eval
        """Handles one request at a time."""

        error: Exception | None = None

        def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
            return [self._call(score_continuation, *request.args) for request in requests]

        def loglikelihood_rolling(self, requests: Sequence[Any]) -> list[float]:
            return [self._call(score_whole, *request.args) for request in requests]

        def generate_until(self, requests: Sequence[Any]) -> list[str]:
            raise Unsupported(
                f"{len(requests)} requests let the model generate; only likelihoods are computed"
                " here"
            )

        def _call(self, function: Callable[..., Any], *texts: str) -> Any:
            try:
                return function(model, *texts)
            except Unsupported:
                raise
            except Exception as error:
                self.error = error
                raise

    return Adapter()


def score_continuation(model: LanguageModel, context: str, continuation: str) -> tuple[float, bool]:
    """Log probability in nats of the continuation, and whether each of its tokens is the most
    likely one.

    White space at the end of the context counts to the continuation, because tokenizers begin a
    word with it. The two are encoded apart: a token that spans the place, as in a vocabulary of
    n-grams, would else make another text of each.
    """
    stripped = context.rstrip()
    scored = context[len(stripped) :] + continuation
    if not scored:
        return 0.0, True
    found = score(model, Window(stripped, scored))
    return found.log_p, found.greedy


def _tasks(name: str) -> dict[str, Any]:
    """The tasks of a name (several for a group) or of a YAML file, by their names and without
    examples in the prompt.

    Raises `Unsupported`, and anything else.
    """
    importlib.import_module("lm_eval")  # alone, so that the error names it where it is missing
    is_file = Path(name).suffix in {".yaml", ".yml"}
    if is_file and not Path(name).is_file():
        raise FileNotFoundError(
            f"there is no file {name}; a path counts from the current folder, {Path.cwd()}"
        )
    found: dict[str, Any] = _manager(builtin=not is_file).load([name])["tasks"]
    for label, task in found.items():
        if task.OUTPUT_TYPE not in SUPPORTED:
            raise Unsupported(
                f"the output of {label} is {task.OUTPUT_TYPE}; only likelihoods are computed here"
            )
        task.set_config(key="num_fewshot", value=0)
    return found


@cache
def _manager(*, builtin: bool) -> Any:
    """lm-eval's index of tasks, with or without its built-in ones, which are thousands of files."""
    from lm_eval.tasks import TaskManager

    return TaskManager(include_defaults=builtin)


def _metrics(task: str, found: Mapping[str, Any], documents: int) -> list[MetricValue]:
    """lm-eval's numbers for a task as metrics, with an interval where the standard error is
    known.
    """
    metrics = []
    for key, value in found.items():
        name, _, how = key.partition(",")
        if how != "none" or name.endswith("_stderr") or not isinstance(value, Real):
            continue
        error = found.get(f"{name}_stderr,none")
        share = name.startswith("acc")
        bounds: dict[str, float] = {}
        # 0 where all documents gave the same: no evidence that others would
        if isinstance(error, Real) and float(error) > 0:
            low, high = (float(value) + side * NORMAL_95 * float(error) for side in (-1, 1))
            bounds = {
                "low": max(low, 0.0) if share else low,
                "high": min(high, 1.0) if share else high,
            }
        metrics.append(metric_value(f"zeroshot_{task}_{name}", float(value), n=documents, **bounds))
    return metrics


def _hits(
    task: str, metrics: Sequence[MetricValue], documents: Sequence[Mapping[str, Any]]
) -> dict[str, list[bool]]:
    """Which documents are right, for each of the metrics that is the share of these."""
    found: dict[str, list[bool]] = {}
    plain = sorted(
        (each for each in documents if each["filter"] == "none"),
        key=lambda each: int(each["doc_id"]),
    )
    for metric in metrics:
        values = [each.get(metric.name.removeprefix(f"zeroshot_{task}_")) for each in plain]
        if values and all(isinstance(value, Real) and value in {0, 1} for value in values):
            right = [bool(value) for value in values]
            if abs(sum(right) / len(right) - metric.value) < 1e-9:
                found[metric.name] = right
    return found


def _log(name: str, error: Exception) -> None:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name == "lm_eval":
        reason = "lm-eval is not installed here; add it with: uv pip install lm-eval"
    _LOG.warning("the zero-shot task %s is not run: %s", name, reason)


@contextlib.contextmanager
def _sandboxed() -> Iterator[None]:
    """Until the block ends downloads and processes are off, random numbers are always the same, and
    only errors are logged.
    """
    log = logging.getLogger("lm_eval")
    variables = {"DISABLE_MULTIPROC", *(name for names in OFFLINE.values() for name in names)}
    with contextlib.ExitStack() as undo:
        for place, names in OFFLINE.items():
            with contextlib.suppress(ImportError):
                module = importlib.import_module(place)
                for name in filter(partial(hasattr, module), names):
                    undo.enter_context(patch.object(module, name, new=True))
        undo.enter_context(patch.dict(os.environ, dict.fromkeys(variables, "1")))
        undo.callback(log.setLevel, log.level)
        log.setLevel(logging.ERROR)
        undo.callback(random.setstate, random.getstate())
        random.seed(0)
        yield


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
        rows: dict[str, float] = {}
        first = self.differences.get(self.first[arm.index]) if arm.index in self.first else None
        if first is not None and (positions := sum(first.positions)):
            rows["agreement"] = 100 * sum(first.agree) / positions
            rows["kl"] = float(np.average(first.kl, weights=first.positions))
        prompt, decoded = round(float(np.mean(arm.context))), round(float(np.mean(arm.tokens)))
        skipped = count_skipped_macs(arm.arm, arm.model, self.base.network, decoded, windows)
        return describe(
            arm.index,
            arm.model.model,
            gmacs=(self.base.macs(prompt, decoded) - skipped) / 1e9,
            gmacs_overhead=methods.method_macs(arm.arm, self.base.network, prompt, decoded) / 1e9,
            batch=1,
            tokens=prompt,
            tokens_final=prompt + decoded,
            trace=(),
            implementation=arm.model.implementation,
            metrics=(
                *text_metrics(arm.nll, arm.tokens, self.bytes, self.characters),
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
