"""Generation jobs on a small model in a folder: what an outcome holds, and what becomes of arms
that fail.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch

from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Job, Protocol, Step
from sweeps.model.outcome import Outcome
from tests.workers.language_fixtures import scripted_language_arm
from tests.workers.saved_llm import saved, written
from tests.workers.tiny_llms import kv_bytes
from tests.workers.vision_jobs import compared, metrics, planned, reasons
from workers import methods
from workers.arms.generation_workload import Workload
from workers.models.language import load_language
from workers.run import run

QUICK = Protocol(pairs_min=7, pairs_max=7)
"""An odd number of rounds, whose median is one of them: the median rate is then exactly one over
the median time."""

scripted_language_arm = pytest.fixture(scripted_language_arm)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A model in a folder, and a text."""
    folder = tmp_path_factory.mktemp("generation")
    return {"model": str(saved(folder / "model")), "data": written(folder / "text")}


def job(
    place: dict[str, str], arms: Iterable[Arm], protocol: Protocol = QUICK, **condition: Any
) -> Job:
    """A job of short texts on one thread, each arm compared with the first."""
    fields = {
        "threads": 1,
        "prompt_tokens": 24,
        "new_tokens": 6,
        "kv_cache": "dynamic",
        "decoding": "teacher_forcing",
        **place,
    }
    point = Condition(**{**fields, **condition})
    return compared("generation", point, *arms, protocol=protocol)


def answered(requested: Job, **options: Any) -> Outcome:
    """The outcome without a fresh process for each arm, which takes seconds."""
    return run(requested, pass_seconds=0.05, **{"isolated": False, **options})


def test_an_outcome_holds_everything_that_was_measured(place: dict[str, str]):
    """Times of whole and parts, MACs, memory of the cache, and rates that follow."""
    outcome = answered(
        job(
            place,
            [
                DENSE,
                Arm(overrides=Overrides(kv_cache="static")),
                Arm(overrides=Overrides(kv_cache="virtual")),
            ],
        )
    )
    assert not outcome.failures
    samples = outcome.samples
    assert samples is not None
    assert set(samples.series) == {"ttft", "tpot", "time_per_char"}
    assert samples.arms == (0, 1, 2, 0)
    assert samples.inner == (1, 1, 1, 1)
    assert samples.bursts is None
    network = load_language(Condition(**place)).network
    for column in range(4):
        arm = outcome.arms[samples.arms[column]]
        found = metrics(arm)
        assert not arm.flags
        assert (arm.batch, arm.tokens, arm.tokens_final) == (1, 24, 29)
        assert arm.gmacs == network.macs(24, 5) / 1e9
        assert arm.gmacs_overhead == 0
        assert found["gmacs_ttft"] == network.macs(24, 0) / 1e9
        assert found["gmacs_ttft"] + 5 * found["gmacs_tpot"] == pytest.approx(arm.gmacs)
        assert found["tokens_decoded"] == 6
        assert found["kv_bytes_needed"] == kv_bytes(network, 29, 4)
        assert found["kv_bytes_resident"] >= found["kv_bytes_needed"]
        assert found["peak_gb_per_s"] > 0.1
        assert found["peak_gb_per_s"] >= found["achieved_gb_per_s"]
        times = [
            row[other]
            for row in samples.series["tpot"]
            for other in range(4)
            if samples.arms[other] == arm.arm
        ]
        assert found["tpot"] == pytest.approx(1e3 * median(times))
        assert found["decode_tokens_per_s"] == pytest.approx(
            median(1 / seconds for seconds in times)
        )
        assert found["tpot_p95"] >= found["tpot"] / 2
        assert found["ttft"] > 1e3 * found["tokenizer_s"] / 2 > 0
        assert "peak_rss" in found
        assert not {"kernel_calls", "energy_per_token", "peak_rss_isolated"} & set(found)
        shares = []
        for row in range(7):
            whole, ttft, tpot, char = (
                table[row][column] for table in (samples.seconds, *samples.series.values())
            )
            assert ttft + 5 * tpot < whole
            shares.append(char * found["characters"] / whole)
        # a busy machine may interrupt some rounds between the text and the end of the sample
        assert 0.8 < max(shares) <= 1.01
        assert sorted(samples.order[0]) == [0, 1, 2, 3]
    assert len({metrics(arm)["characters"] for arm in outcome.arms}) == 1
    assert (
        metrics(outcome.arms[2])["kv_bytes_virtual"] > metrics(outcome.arms[1])["kv_bytes_virtual"]
    )
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome


def test_failing_arms_fail_alone(place: dict[str, str], scripted_language_arm: Any):
    """Each failure has its own reason; a method's counters become rows."""
    arms = [
        DENSE,
        scripted_language_arm("refusing", refusal="not today"),
        scripted_language_arm("nan", "output = output * float('nan')"),
        scripted_language_arm("greedy", "import torch; torch.empty(10**15)"),
        scripted_language_arm("late", "if len(calls) > 20: raise ValueError('late')", reset="None"),
        scripted_language_arm("counting"),
        Arm(overrides=Overrides(runtime="cudagraph")),
        Arm(stack=(Step(method="tome"),)),
    ]
    outcome = answered(job(place, arms))
    assert reasons(outcome) == {
        1: "unsupported",
        2: "not_a_number",
        3: "out_of_memory",
        4: "error",
        6: "unsupported",
        7: "error",
    }
    assert "not today" in next(failure.message for failure in outcome.failures if failure.arm == 1)
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 5, 0, 5)
    dense, counting = (arm for arm in outcome.arms if "tpot" in metrics(arm))
    assert metrics(counting)["kernel_calls"] == 6
    assert dense.gmacs - counting.gmacs == pytest.approx(3000 * 5 / 1e9)
    assert counting.gmacs_overhead == pytest.approx(1000 * (24 + 5) / 1e9)


SPARSE = ("larosa", "teal", "topk_activation", "wina")


def sparse(method: str, **more: Any) -> Arm:
    """Half of the layers' inputs left out, after a short calibration where there is one."""
    calibrated = {} if method in {"topk_activation", "wina"} else {"calibration_tokens": 64}
    return planned(method, sparsity=0.5, **calibrated, **more)


def test_macs_are_those_of_what_ran_and_not_of_the_promise(place: dict[str, str]):
    """Two sequences fall back to dense products: no MACs left out, every weight read."""
    outcome = answered(job(place, [DENSE, *map(sparse, SPARSE)], batch_size=2))
    assert not outcome.failures
    dense, network = outcome.arms[0], load_language(Condition(**place)).network
    weights = 4 * (network.layers * network.layer_macs + network.head_macs)
    for arm in outcome.arms[1:]:
        found = metrics(arm)
        assert (found["kernel_calls"], found["achieved_sparsity"]) == (0, 0)
        assert arm.gmacs == dense.gmacs
        assert found["gmacs_tpot"] == metrics(dense)["gmacs_tpot"]
        adapters = 4 * 1e9 * found["gmacs_overhead_tpot"]
        assert found["achieved_gb_per_s"] * found["tpot"] / 1e3 * 1e9 == pytest.approx(
            weights + adapters
        )


def test_macs_left_out_are_counted(place: dict[str, str]):
    """MACs and bandwidth follow from the reached sparsity; TEAL's is not the requested one."""
    outcome = answered(job(place, [DENSE, *map(sparse, SPARSE)]))
    assert not outcome.failures
    dense, network = outcome.arms[0], load_language(Condition(**place)).network
    layers = network.layers * network.layer_macs
    for method, arm in zip(SPARSE, outcome.arms[1:], strict=True):
        found = metrics(arm)
        assert found["kernel_calls"] > 0
        left_out = found["achieved_sparsity"] * layers
        assert 1e9 * (dense.gmacs - arm.gmacs) == pytest.approx(5 * left_out)
        assert 1e9 * (metrics(dense)["gmacs_tpot"] - found["gmacs_tpot"]) == pytest.approx(left_out)
        read = 4 * (layers + network.head_macs - left_out + 1e9 * found["gmacs_overhead_tpot"])
        assert found["achieved_gb_per_s"] * found["tpot"] / 1e3 * 1e9 == pytest.approx(read)
        module = methods.of_modality("language")[method]
        promised = module.skipped(module.Params(**sparse(method).stack[0].params), network, 1)
        assert (left_out == pytest.approx(promised)) == (method != "teal")


def test_quality_counts_the_macs_that_were_left_out(place: dict[str, str], tmp_path: Path):
    """Masked tokens stand for decoded ones; LaRoSA's online form leaves none out."""
    arms = [DENSE, sparse("teal"), sparse("larosa", form="online")]
    place = {**place, "model": str(saved(tmp_path / "model", max_position_embeddings=1024))}
    requested = job(place, arms, QUICK.model_copy(update={"characters": 3000})).model_copy(
        update={"kind": "quality"}
    )
    outcome = run(requested)
    assert not outcome.failures
    dense, teal, online = outcome.arms
    network = load_language(Condition(**place)).network
    left_out = metrics(teal)["achieved_sparsity"] * network.layers * network.layer_macs
    decoded = teal.tokens_final - teal.tokens
    assert 1e9 * (dense.gmacs - teal.gmacs) == pytest.approx(decoded * left_out, rel=0.02)
    assert online.gmacs == dense.gmacs


def test_an_arm_that_generates_another_text_is_flagged(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    """A run that decoded other tokens than the first one breaks the identity and is marked."""
    plain, count = Workload.run, itertools.count()

    def forgetful(self: Workload, *args: Any, **more: Any) -> Any:
        done = plain(self, *args, **more)
        return done._replace(cached=done.cached - 1) if next(count) > 8 else done

    monkeypatch.setattr(Workload, "run", forgetful)
    outcome = answered(job(place, [DENSE]))
    assert "consistency_check_failed" in outcome.flags
    assert "consistency_check_failed" in outcome.arms[0].flags


@pytest.mark.slow
def test_a_fresh_process_for_each_arm(place: dict[str, str]):
    """Load time, and a peak that holds at least the weights, of a process of its own."""
    outcome = answered(job(place, [DENSE]), isolated=True)
    found = metrics(outcome.arms[0])
    assert not outcome.arms[0].flags
    assert found["load_s"] > 0
    assert found["peak_rss_isolated"] >= found["rss_isolated"] > 50
    assert found["peak_rss_isolated"] * 2**20 > 4 * outcome.arms[0].parameters
    assert torch.get_num_threads() == 1


def test_a_failing_baseline_fails_its_arms(place: dict[str, str], scripted_language_arm: Any):
    """An arm whose only baseline failed is not measured, with that reason."""
    outcome = answered(
        job(place, [scripted_language_arm("broken", "raise ValueError('broken')"), DENSE])
    )
    assert reasons(outcome) == {0: "error", 1: "error"}
    assert "its baseline broken" in outcome.failures[1].message


def test_text_that_is_not_here_fails_the_job(place: dict[str, str], tmp_path: Path):
    """Neither a missing text nor one that is too short is any arm's fault."""
    assert reasons(answered(job(place, [DENSE], data=f"text:{tmp_path / 'no.txt'}"))) == {
        None: "error"
    }
    (tmp_path / "a.txt").write_text("short")
    assert reasons(answered(job(place, [DENSE], data=f"text:{tmp_path}"))) == {None: "unsupported"}


def test_logits_that_change_while_an_arm_is_timed_are_wrong(
    place: dict[str, str], scripted_language_arm: Any
) -> None:
    """From the 31st token on, with text that is fed, which hides it; the others are timed anew."""
    late = scripted_language_arm("late", "if len(calls) > 30: output = output * 2", reset="pass")
    plain = scripted_language_arm("plain")
    outcome = answered(job(place, [DENSE, late, plain]))
    assert reasons(outcome) == {1: "wrong_result"}
    assert "while checking what late() returns after it was timed" in outcome.failures[0].message
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 2, 0, 2)
