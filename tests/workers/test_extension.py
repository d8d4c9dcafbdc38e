"""What a contributor adds to the workers, done as the README describes: a method, a timed metric, a
kind.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import workers.kinds
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Step
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.outcome import Outcome
from tests.workers.saved_llm import saved, written
from tests.workers.vision_jobs import QUICK, compared
from workers import methods
from workers.arms.generation_workload import Run
from workers.measure.readings import counter_value
from workers.measure.samples import metric_value
from workers.run import run

ROOT = Path(workers.kinds.__file__).parents[2]
FOLDERS = ("sweeps", "workers", "store", "orchestrator", "webapp")
TECHNIQUES = ("token_reduction", "activation_sparsity", "vocabulary")
VISION = Condition(model="test_vit", image_size=32, threads=1)
SHARED = {"budget", "align", "inflect"}
"""Parameters of the interface `token_reduction/__init__.py` that `workers/arms/budget.py` solves
by."""
WORDS = {
    *("random", "truncate", "temperature", "data", "file", "layers", "margin", "place", "seed"),
    *("sparsity", "alpha", "beta", "tau", "implementation", "kernel", "prefill", "quota"),
    *("energy", "rows", "fused", "merge", "clip", "r"),
}
"""Words with another meaning elsewhere: random weights, a temperature of a GPU, a margin of a
logit, symbols of statistics, what a GPU runs, the phases of a language model, what a cgroup allows,
rows of a table, a fused attention, a command, marks beyond a chart's edge, a column of LaTeX."""
PUBLISHED = (
    "sweeps/analysis/audit",
    "sweeps/importers",
    "sweeps/references",
    "store/write/references.py",
    "store/schema/references.py",
)
"""Columns of published tables, `keep_rate` among them, whatever methods are here."""
TOY = MetricSpec(
    name="toy", unit="ms", label="a toy", read="round", compared="ratio", better="lower"
)
VISION_METHOD = '''
    """Scales the input."""
    from sweeps.model import method
    PAPER = "none"
    VERSION = 1
    class Params(method.Params):
        """A factor."""
        toy_factor: float
    def tokens(params, network, image_size): return network.dense_tokens(image_size)
    def macs(params, network, image_size): return 7_000_000
    def refuses(params, network): return "no factor" if params.toy_factor == 0 else None
    def apply(model, params):
        from workers.models.share_weights import clone_shared
        scaled = clone_shared(model)
        scaled.register_forward_pre_hook(lambda _, inputs: (inputs[0] * params.toy_factor,))
        return scaled
'''
LANGUAGE_METHOD = '''
    """Scales the logits."""
    from sweeps.model import method
    MODALITY = "language"
    PAPER = "none"
    VERSION = 1
    class Params(method.Params):
        """A factor."""
        toy_factor: float
    def macs(params, network, prompt, decoded): return 1000 * (prompt + decoded)
    def skipped(params, network, tokens): return 0
    def refuses(params, network): return "no factor" if params.toy_factor == 0 else None
    def apply(model, params):
        from dataclasses import replace
        from workers.models.share_weights import clone_shared
        scaled, calls = clone_shared(model.model), []
        def scale(module, inputs, output):
            calls.append(None)
            return output * params.toy_factor
        scaled.lm_head.register_forward_hook(scale)
        class Calls:
            def reset(self): calls.clear()
            def metrics(self): return {"toy_calls": len(calls)}
        return replace(model, model=scaled, counters=(Calls(),))
'''
KIND = '''
    """Latency, and the time of two forwards."""
    from functools import partial
    from workers.kinds.latency import LatencyKind
    from workers.kinds.timed_job import ArmMetrics, run_timed
    from workers.measure.samples import median_time
    def run(job):
        return run_timed(job, partial(Twice, pass_seconds=0.05))
    class Twice(LatencyKind):
        """Reads one metric more."""
        def read(self, arm, samples):
            measured = super().read(arm, samples)
            columns = [column for column, index in enumerate(samples.arms) if index == arm.index]
            twice = [2 * row[column] for row in samples.seconds for column in columns]
            return ArmMetrics([*measured.metrics, median_time("toy", twice)], measured.flags)
'''


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The declarations of a toy metric in `sweeps/model/metrics.py` and of a toy kind in
    `sweeps/model/kinds.py`.
    """
    monkeypatch.setitem(METRICS, "toy", TOY)
    toy_kind = replace(KINDS["latency"], name="toy_kind", metrics=("latency", "toy"))
    monkeypatch.setitem(KINDS, "toy_kind", toy_kind)


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Condition:
    """A small language model in a folder, with a text."""
    folder = tmp_path_factory.mktemp("extension")
    place = {"model": str(saved(folder / "model")), "data": written(folder / "text")}
    return Condition(threads=1, prompt_tokens=24, new_tokens=6, **place)


def job(kind: Any, condition: Condition, *arms: Arm) -> Job:
    return compared(kind, condition, *arms, protocol=QUICK)


def metrics(outcome: Outcome, arm: int) -> dict[str, tuple[float, str]]:
    return {metric.name: (metric.value, metric.unit) for metric in outcome.arms[arm].metrics}


def toy_arm(factor: float) -> Arm:
    return Arm(stack=(Step(method="toy_method", params={"toy_factor": factor}),))


def test_a_vision_method_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in a folder of methods is refused, counted and timed; nothing else names it."""
    (tmp_path / "toy_method.py").write_text(dedent(VISION_METHOD))
    monkeypatch.setenv(methods.VARIABLE, str(tmp_path))
    outcome = run(job("latency", VISION, DENSE, toy_arm(2), toy_arm(0)), pass_seconds=0.05)
    assert [(failure.arm, failure.message.rpartition(": ")[2]) for failure in outcome.failures] == [
        (2, "no factor")
    ]
    assert [arm.gmacs_overhead for arm in outcome.arms] == [0, 0.007]
    assert metrics(outcome, 1)["latency"][0] > 0


def test_a_language_method_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: Condition
) -> None:
    """The same for a language model, with a counter that is declared nowhere."""
    (tmp_path / "toy_method.py").write_text(dedent(LANGUAGE_METHOD))
    monkeypatch.setenv(methods.VARIABLE, str(tmp_path))
    outcome = run(
        job("generation", language, DENSE, toy_arm(2), toy_arm(0)),
        pass_seconds=0.05,
        isolated=False,
    )
    assert [(failure.arm, failure.message.rpartition(": ")[2]) for failure in outcome.failures] == [
        (2, "no factor")
    ]
    assert outcome.arms[1].gmacs_overhead == pytest.approx(1000 * (24 + 5) / 1e9)
    assert metrics(outcome, 1)["toy_calls"] == (6, "1")


def test_a_timed_metric_is_a_declaration_and_its_measurement(
    declared: None, monkeypatch: pytest.MonkeyPatch, language: Condition
) -> None:
    """One more part of a run is a series of the samples and a metric in its declared unit."""
    parts = Run.parts_s.fget
    monkeypatch.setattr(
        Run, "parts_s", property(lambda run: {**parts(run), "toy": run.tokenizer_s})
    )
    outcome = run(job("generation", language, DENSE), pass_seconds=0.05, isolated=False)
    assert not outcome.failures
    assert outcome.samples is not None
    assert len(outcome.samples.series["toy"]) == len(outcome.samples.seconds)
    value, unit = metrics(outcome, 0)["toy"]
    assert unit == "ms"
    assert value == pytest.approx(1e3 * metrics(outcome, 0)["tokenizer_s"][0])


def test_a_kind_is_one_file_of_the_workers(
    declared: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kinds/NAME.py` runs the jobs of its kind; what it does not declare is the pipeline's."""
    (tmp_path / "toy_kind.py").write_text(dedent(KIND))
    monkeypatch.setitem(KINDS, "toy_kind", replace(KINDS["latency"], name="toy_kind"))
    monkeypatch.setattr(workers.kinds, "__path__", [*workers.kinds.__path__, str(tmp_path)])
    outcome = run(job("toy_kind", VISION, DENSE, Arm(replicate=1)))
    assert not outcome.failures
    for arm in range(2):
        found = metrics(outcome, arm)
        assert found["toy"] == (pytest.approx(2 * found["latency"][0]), "ms")


def test_values_are_made_by_their_declarations(declared: None) -> None:
    """Units are declared; undeclared names and counters named like a metric are errors."""
    assert metric_value("toy", 1.0).unit == "ms"
    assert metric_value("cka_block_3", 1.0).unit == "1"
    assert metric_value("zeroshot_piqa_bits_per_byte", 1.0).unit == "bit"
    with pytest.raises(KeyError, match="'toys' is not declared"):
        metric_value("toys", 1.0)
    with pytest.raises(ValueError, match="rename it"):
        counter_value("toy", 1)


def test_no_method_and_no_parameter_is_named_outside_its_file() -> None:
    """Methods and parameters are named in their file and technique alone."""
    known = methods.all_methods()
    names = set(known) | {
        field for method in known.values() for field in method.Params.model_fields
    }
    names -= SHARED | WORDS | set(Condition.model_fields)
    assert {"tome", "larosa", "keep_rate", "calibration_tokens", "finetune_steps"} <= names
    own = [
        ROOT / "workers" / folder for folder in ("methods/vision", "methods/language", *TECHNIQUES)
    ]
    files = [
        file
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*.py")
        if "migrations" not in file.parts
    ]
    own += [ROOT / path for path in PUBLISHED]
    files = [file for file in files if not any(file.is_relative_to(folder) for folder in own)]
    assert len(files) > 150
    found = {
        (str(file.relative_to(ROOT)), node.value)
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    }
    assert found == set()


def test_no_method_is_named_in_a_longer_text_of_the_pipeline() -> None:
    """Messages and names of the workers' pipeline name no method either."""
    names = "|".join(set(methods.all_methods()) - WORDS)
    pipeline = [
        ROOT / "workers" / folder
        for folder in ("kinds", "arms", "models", "measure", "data", "training", "kv_caches")
    ]
    files = [ROOT / "workers" / "run.py", ROOT / "workers" / "methods" / "__init__.py"]
    files += [file for folder in pipeline for file in folder.glob("*.py")]
    assert len(files) > 50
    pattern = re.compile(rf"\b({names})\b", re.IGNORECASE)
    assert [
        (file.name, match[0])
        for file in files
        for match in pattern.finditer(file.read_text(encoding="utf-8"))
    ] == []
