"""Command `export-policy`: the measured answers of a store as a file that `sweeps.analysis.policy`
applies at run time.
"""

from pathlib import Path

import typer

from orchestrator.commands.run import ANSWERED, UNANSWERED
from store.errors import StoreError
from store.open.engine import connect_readonly
from store.read.advice.advice import RefusedError, condition_arms
from store.read.advice.condition_arms import MethodFacts
from store.read.advice.policy_file import policy_file
from sweeps.model.condition import Device
from sweeps.number_format import count
from workers.methods import purpose
from workers.methods.arm_labels import params_label


def write_policy(
    out: Path,
    *,
    db: str | None,
    model: str | None,
    device: Device | None,
    runtime: str | None,
    data: str | None,
    metric: str | None,
    max_drop: float | None,
    now: float,
) -> int:
    """Write the policy of what was measured. Returns the exit code: 1 where nothing was. Raises
    `StoreError` for a wrong path.
    """
    engine = connect_readonly(db)
    methods = MethodFacts(params_label, purpose)
    try:
        conditions = condition_arms(
            engine, methods, model=model, device=device, runtime=runtime, data=data, metric=metric
        )
        made = policy_file(engine, conditions, max_drop=max_drop, created=now)
    except RefusedError as error:
        typer.echo(f"breakeven: {error}", err=True)
        return UNANSWERED
    finally:
        engine.dispose()
    try:
        out.write_text(made.text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{out} cannot be written: {error.strerror}; choose a folder that exists and is"
            " writable"
        ) from None
    made_of = f"{count(made.rules, 'rule')} (a condition and a batch each)"
    typer.echo(
        f"{out}: {made_of} with {count(made.arms, 'arm')} to use; apply it with"
        " sweeps/analysis/policy.py"
    )
    for line in made.lines:
        typer.echo(line)
    return ANSWERED if made.rules else UNANSWERED
