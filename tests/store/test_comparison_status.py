"""Where comparisons without numbers stand, and tuned arms beside the control of their tuning, read
from a store.
"""

from collections.abc import Sequence

from sqlalchemy import Engine

from store.read.quality import beside_controls, states
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Arm, Pair, Step
from tests.fixtures.quality_states import filled, found_states
from tests.store.conftest import keep
from tests.store.language_fixtures import NOW, a_quality_job, a_reading


def tuned(ngrams: int) -> Arm:
    return Arm(stack=(Step(method="tuned", params={"ngrams": ngrams}),))


def control_of(arm: Arm, among: Sequence[Arm]) -> tuple[Arm, int | None] | None:
    """The control of an arm with n-grams is that without."""
    if arm.method != "tuned" or not arm.stack[0].params["ngrams"]:
        return None
    return tuned(0), next((place for place, other in enumerate(among) if other == tuned(0)), None)


def test_each_comparison_has_a_state(engine: Engine) -> None:
    """Measured, failed with its reason, queued, and requested without being in the queue."""
    filled(engine)
    expected = (
        ("measured", None),
        ("failed", "out_of_memory"),
        ("queued", None),
        ("not measured", None),
    )
    arms = [f'{{"form":"absorbed","sparsity":{sparsity}}}' for sparsity in (0.2, 0.3, 0.4, 0.5)]
    assert found_states(engine) == dict(zip(arms, expected, strict=True))
    assert states(engine, "requested", "accuracy").empty
    assert states(engine, "unknown", "quality").empty


def test_a_tuned_arm_is_paired_with_its_control(engine: Engine) -> None:
    """The newest unflagged attempt with both counts; without the control in the job there is a row,
    and no change.
    """
    with_control, without = a_quality_job([tuned(500), tuned(0)]), a_quality_job([tuned(300)])
    requested = [
        (job.comparison(Pair(*pair)), job.content_hashes)
        for job in (with_control, without)
        for pair in job.pairs
    ]
    submit_sweep(engine, NewSweep("tuned", "text", "What does tuning do?"), requested, [])
    spoilt = a_reading(with_control, (0.0, 1.0, 0.0), noise=0.001, ended_at=NOW + 9).model_copy(
        update={"flags": ("contended",)}
    )
    for outcome in (
        a_reading(with_control, (0.0, -0.47, -0.5), noise=0.001),
        spoilt,
        a_reading(without, (0.0, -0.4)),
    ):
        keep(engine, outcome)
    found = beside_controls(engine, "tuned", control_of).set_index("params")
    row = found.loc['{"ngrams":500}']
    assert (row["control"], row["control_params"]) == ("tuned", '{"ngrams":0}')
    assert row["change_low"] < 0.03 < row["change_high"]
    assert row["change_high"] - row["change_low"] < 0.01
    assert found.loc['{"ngrams":300}', ["change", "change_low", "change_high"]].isna().all()
    assert len(found) == 2
