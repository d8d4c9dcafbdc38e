"""Confirmation of advice: the arm that came first is measured once more, alone, and on pairs that
it was not chosen by.
"""

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import typer

from orchestrator.commands.run import ANSWERED, run_sweep
from orchestrator.plan import planning
from orchestrator.plan.sites import local_sites
from store.open.engine import connect_readonly
from store.read.advice.timed_arms import fresh_figures
from store.rows.placement import Place
from store.write.submission import newest_attempt
from sweeps.analysis.advice import RankedArm
from sweeps.analysis.labels import SPEEDUP, Conclusion, conclude
from sweeps.errors import UserError
from sweeps.language.confirmation import comparison_at, sweep_of
from sweeps.model.metrics import INTERVAL
from sweeps.text.advice_text import Evidence
from workers.methods import all_methods


class Confirmation(NamedTuple):
    """A speed-up on fresh pairs."""

    found: Conclusion | None
    """`None` where the run did not measure it."""
    pairs: int
    comparison_id: str
    flags: str
    sweep: str

    def text(self, chosen: RankedArm) -> str:
        """Both figures in a sentence: what the arm was chosen by, and what it shows on fresh
        pairs.
        """
        first = f"{chosen.value:.3f}x [{chosen.low:.3f}, {chosen.high:.3f}]"
        if self.found is None:
            return (
                f"Confirmation: chosen by {first}, and not measured again; see: breakeven report"
                f" {self.sweep}"
            )
        flags = f", flagged {self.flags.replace(',', ', ')}" if self.flags else ""
        numbers = (
            f"on {self.pairs} fresh pairs {self.found.numbers} ({INTERVAL}):"
            f" {self.found.word}{flags}"
        )
        held = "confirmed" if self.found.word == "faster" else "NOT confirmed"
        return f"Confirmation: {held}; chosen by {first}, {numbers}."

    def as_dict(self) -> dict[str, Any]:
        own = {
            "comparison_id": self.comparison_id,
            "sweep": self.sweep,
            "pairs": self.pairs,
            "flags": self.flags,
        }
        if self.found is None:
            return own | {"speedup": None, "low": None, "high": None, "word": "not measured"}
        return own | {
            "speedup": self.found.value,
            "low": self.found.low,
            "high": self.found.high,
            "word": self.found.word,
        }


def confirm(winner: Evidence, tokens: int, metric: str, db: str | None) -> Confirmation:
    """Measure the arm at that size in a fresh process, with a generated sweep of this comparison
    alone.

    What the run prints goes to stderr. Raises `UserError` where this machine is not the one that
    the advice rests on, and where no sweep file requests the same question.
    """
    comparison = comparison_at(winner.comparison, int(winner.rows[-1].tokens), tokens)
    device = comparison.condition.device
    site = local_sites()[0]
    last = winner.rows[-1]
    if device not in site.environments or site.place(device) != Place(last.environment, last.host):
        raise UserError(
            f"--confirm: this advice rests on host {last.host}, environment {last.environment[:8]},"
            " and this machine is another one or has changed; confirm it there, or measure the"
            " sweep here first"
        )
    name = f"confirm-{comparison.question_id}"
    unknown = [
        step.method
        for arm in (comparison.arm, comparison.baseline)
        for step in arm.stack
        if step.method not in all_methods()
    ]
    if unknown:
        raise UserError(f"--confirm: the method {unknown[0]} is not installed here")
    text = sweep_of(
        [comparison],
        name,
        f"Is {winner.label} as fast on fresh pairs as when it was chosen?",
        all_methods(),
    )
    expansion = planning.load_sweep(f"{name}.yaml", auto=device, text=text)
    if [each.question_id for each in expansion.comparisons] != [comparison.question_id]:
        raise UserError(
            f"--confirm: no sweep file requests the question of {last.comparison_id} again; run its"
            " own sweep with --remeasure"
        )
    (comparison_id,) = {each for job in expansion.jobs for each in job.comparison_ids()}
    since = _newest(db)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        file = Path(folder) / f"{name}.yaml"
        file.write_text(text, encoding="utf-8")
        code = run_sweep(file, db=db, ray_address=None, device=device, again="all")
    if code != ANSWERED:
        typer.echo(f"the confirmation ended with exit code {code}", err=True)
    engine = connect_readonly(db)
    figures = fresh_figures(
        engine,
        comparison_id,
        comparison.kind,
        Place(last.environment, last.host),
        since=since,
        metric=metric,
    )
    engine.dispose()
    if figures is None:
        return Confirmation(None, 0, comparison_id, "", name)
    bounds = (figures["effect"], figures["effect_low"], figures["effect_high"])
    found = conclude(SPEEDUP, *bounds, verdict=figures["verdict"], floor=figures["floor"])
    return Confirmation(found, int(figures["n"]), comparison_id, figures["flags"], name)


def _newest(db: str | None) -> int:
    engine = connect_readonly(db)
    try:
        return newest_attempt(engine)
    finally:
        engine.dispose()
