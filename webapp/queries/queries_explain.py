"""What the page Explain reads beside the points of its scope: profiles, kernels, cost models, and
the audit of the sweep.
"""

from typing import Any

import pandas as pd

from store.read.audits import audit_of_sweep
from store.read.curves import curve_costs
from store.read.profiling import (
    EXPLAINED_METRICS,
    ProfileContext,
    ProfiledCondition,
    activity_differences,
    explain_profiles,
    operator_rows,
)
from store.read.queries import panel_rows
from sweeps.analysis.audit.report import AuditReport
from sweeps.stats.cost_model import RelativeCosts
from webapp.display.scope import Scope
from webapp.queries import kept
from workers.methods import purpose
from workers.methods.arm_labels import params_label

_PLACE = ("device_name", "environment", "host")


def profiled(scope: Scope, url: str | None = None) -> list[ProfiledCondition]:
    """The profiles of the scope's condition at all sizes, with what they show; those of imported
    files, which have no host, too.
    """

    def read(engine: Any) -> list[ProfiledCondition]:
        fixed = {
            name: value
            for name, value in scope.fixed.items()
            if name not in (*_PLACE, "baseline_id", "exclusive")
        }
        rows = panel_rows(engine, scope.sweep, "profile", fixed, {})
        here = pd.Series(data=True, index=rows.index)
        for name in ("environment", "host"):
            here &= rows[name] == scope.fixed[name] if name in scope.fixed else True
        own = rows[here | rows["attempt"].isna()]
        if own.empty:
            return []
        effects = panel_rows(
            engine, scope.sweep, "effect", scope.fixed, {"metric": EXPLAINED_METRICS}
        )
        points = panel_rows(engine, scope.sweep, "speedup", scope.fixed, {})
        beside = ProfileContext(points, operator_rows(engine, own["profile_id"]), only_cuts)
        return explain_profiles(own, effects, params_label, beside)

    return kept(read, "profiled", scope.key, url=url)


def fitted_costs(scope: Scope, curve_id: str, url: str | None = None) -> RelativeCosts | None:
    """Of one curve of the scope, where its fit describes its points; see
    `store.read.curves.curve_costs`.
    """

    def read(engine: Any) -> RelativeCosts | None:
        own = {**scope.chosen, "curve_id": (curve_id,)}
        fits, points = (
            panel_rows(engine, scope.sweep, view, scope.conditions, own)
            for view in ("cost_model", "speedup")
        )
        return next(iter(curve_costs(engine, fits, points).values()), None)

    return kept(read, "fitted_costs", scope.key, curve_id, url=url)


def only_cuts(method: str) -> bool:
    """Whether a method only cuts tokens, so that it is a ceiling of others."""
    return purpose(method) == "ceiling"


def activities(baseline: str, arm: str, url: str | None = None) -> pd.DataFrame:
    """Kernels or operators of two profiles side by side, see
    `store.read.profiling.activity_differences`.
    """
    return kept(
        lambda engine: activity_differences(engine, baseline, arm),
        "activities",
        baseline,
        arm,
        url=url,
    )


def audit_report(sweep: str, url: str | None = None) -> AuditReport:
    """The audit of a sweep, as `breakeven audit` makes it."""
    return kept(lambda engine: audit_of_sweep(engine, sweep, params_label), "audit", sweep, url=url)
