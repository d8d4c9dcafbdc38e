"""Data of a report: the rows of the public views that belong to one sweep."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from store.open.engine import connect_readonly, disposing
from store.read.advice.timed_arms import provenance_rows
from store.read.audits import MAX_AUDITED, audit_of_sweep
from store.read.curves import CurveKey, curve_costs, label_hosts
from store.read.profiling import operator_rows
from store.read.quality import beside_controls, states
from store.read.queries import (
    counter_rows,
    execution_rows,
    find_sweep,
    peaks_of_hosts,
    sweep_rows,
    zeroshot_rows,
)
from store.rows.frames import groups, rows_of
from store.rows.location import database_option
from store.rows.row_mapping import timestamp
from sweeps.analysis.audit.report import AuditReport
from sweeps.analysis.labels import PeaksOfHosts
from sweeps.analysis.rows import SpeedupRow
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import notes_on, worst
from sweeps.stats.cost_model import RelativeCosts
from workers.methods import tuning_control
from workers.methods.arm_labels import params_label

_POINT = ("comparison_id", "environment", "host")
MAIN_METRICS = frozenset(kind.metrics[0] for kind in KINDS.values() if kind.metrics)
"""The first of each kind."""


@dataclass(frozen=True, kw_only=True)
class PointRow(SpeedupRow):
    """View `speedup`, and what stood out of the machine while it was measured."""

    system_notes: str = ""


@dataclass(frozen=True, kw_only=True)
class ProvenanceRow:
    """Where and when jobs of one source were measured; `facts` is JSON."""

    environment: str
    device_name: str
    host: str
    first: float
    last: float
    attempts: int
    source: str
    commit: str | None
    facts: str


@dataclass(frozen=True)
class Report:
    """The rows of one sweep, newest answers only; frames have the columns of the public views."""

    name: str
    question: str
    text: str
    """The sweep file."""
    effects: pd.DataFrame
    """View `effect`: every metric."""
    speedups: pd.DataFrame
    """View `speedup`, and `system_notes`: what stood out of the machine while it was measured."""
    break_evens: pd.DataFrame
    cost_models: pd.DataFrame
    """View `cost_model`."""
    failures: pd.DataFrame
    accuracies: pd.DataFrame
    """View `accuracy`, and `classes`: the number of outputs that accuracy and KL are about."""
    qualities: pd.DataFrame
    arms: pd.DataFrame
    """View `generation`: arms of generation jobs with their metrics."""
    zeroshot: pd.DataFrame
    """Zero-shot tasks, see `store.read.queries.zeroshot_rows`."""
    quality_states: pd.DataFrame
    """Comparisons of the kinds that are not timed, see `store.read.quality`, and their
    `kind`."""
    controls: pd.DataFrame
    """Tuned arms against their controls, see `store.read.quality.beside_controls`."""
    executions: pd.DataFrame
    """Attempts with what the monitors read, see `store.read.queries.execution_rows`."""
    profiles: pd.DataFrame
    """View `profile`: classes of time of the arms that were profiled."""
    counters: pd.DataFrame
    """View `kernel`: kernels with hardware counters, from imported files of ncu."""
    provenance: pd.DataFrame
    """Where and when it was measured, see `store.read.advice.timed_arms.provenance_rows`."""
    operators: pd.DataFrame
    """View `kernel`: operators of the profiles."""
    relative_costs: Mapping[CurveKey, RelativeCosts]
    """Of the curves in `cost_models` whose fit describes their points."""
    compile_s: Mapping[tuple[str, str], float]
    """Seconds to compile or export an arm, once, by `condition_id` and `arm_id`."""
    peaks: PeaksOfHosts
    options: str = ""
    """What commands that are printed need besides to find this store, such as ` --db other.db`."""
    audit: AuditReport | None = None
    """What the rules of the audit find; `None` of a sweep of more than
    `store.read.audits.MAX_AUDITED` comparisons."""

    @cached_property
    def points(self) -> list[PointRow]:
        """The rows of `speedups`."""
        return rows_of(self.speedups, PointRow)

    @cached_property
    def main_speedups(self) -> pd.DataFrame:
        """Those by the first metric of their kind."""
        return self.speedups[self.speedups["metric"].isin(MAIN_METRICS)]

    @property
    def holds_values(self) -> bool:
        """Whether anything was measured."""
        return any(map(len, (*self.compared, self.arms, self.profiles)))

    @cached_property
    def hosts(self) -> Mapping[tuple[str, str], str]:
        """The label of each environment and host; empty where there is only one."""
        return label_hosts(self.speedups)

    @property
    def compared(self) -> tuple[pd.DataFrame, ...]:
        """The wide frames with a row for each comparison that has an effect."""
        return self.speedups, self.accuracies, self.qualities


def load_report(db: str | None, name: str) -> Report:
    """The report of the newest revision of the sweep called `name`. Raises `StoreError` for an
    unknown name.
    """
    with disposing(connect_readonly(db)) as engine:
        found = find_sweep(engine, name)
        speedups = sweep_rows(engine, name, "speedup")
        executions = execution_rows(engine, name)
        cost_models, profiles = (
            sweep_rows(engine, name, view) for view in ("cost_model", "profile")
        )
        return Report(
            name,
            found["question"],
            found["text"],
            sweep_rows(engine, name, "effect"),
            with_system_notes(speedups, executions),
            sweep_rows(engine, name, "break_even"),
            cost_models,
            sweep_rows(engine, name, "failures"),
            sweep_rows(engine, name, "accuracy"),
            sweep_rows(engine, name, "quality"),
            sweep_rows(engine, name, "generation"),
            zeroshot_rows(engine, name),
            pd.concat(
                [
                    states(engine, name, kind).assign(kind=kind)
                    for kind, spec in KINDS.items()
                    if not spec.timed
                ]
            ),
            beside_controls(engine, name, tuning_control),
            executions,
            profiles,
            counter_rows(engine, name),
            provenance_rows(engine, name),
            operator_rows(engine, profiles["profile_id"]),
            curve_costs(engine, cost_models, speedups),
            _compile_s(sweep_rows(engine, name, "arm")) if _is_compiled(speedups) else {},
            peaks_of_hosts(engine, zip(speedups["environment"], speedups["host"], strict=True)),
            database_option(db),
            audit_of_sweep(engine, name, params_label) if len(speedups) <= MAX_AUDITED else None,
        )


def with_system_notes(points: pd.DataFrame, executions: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `system_notes`: what stands out in the readings of the
    attempts that count, if anything does.

    `executions` are those of `store.read.queries.execution_rows`; quarantined ones count where
    there are no others.
    """
    read: dict[tuple[str, str, str], list[tuple[bool, Mapping[str, float]]]] = defaultdict(list)
    columns = ("comparison_ids", "environment", "host", "quarantine", "system_metrics")
    for ids, environment, host, quarantine, readings in zip(
        *(executions[name] for name in columns), strict=True
    ):
        for comparison_id in ids:
            read[comparison_id, environment, host].append((pd.isna(quarantine), readings))
    notes = {}
    for key, attempts in read.items():
        counted = [readings for counts, readings in attempts if counts]
        notes[key] = ", ".join(notes_on(worst(counted or [each for _, each in attempts])))
    keys = points[list(_POINT)].itertuples(index=False, name=None)
    return points.assign(system_notes=[notes.get(key, "") for key in keys])


def _is_compiled(speedups: pd.DataFrame) -> bool:
    return bool((speedups["runtime"].fillna("eager") != "eager").any())


def _compile_s(arms: pd.DataFrame) -> dict[tuple[str, str], float]:
    known = arms.dropna(subset="seconds_to_compile")
    return {
        (key["condition_id"], key["arm_id"]): float(own["seconds_to_compile"].median())
        for key, own in groups(known, ("condition_id", "arm_id"))
    }


def facts_text(row: ProvenanceRow) -> str:
    """The facts of an environment in a line: `cores 2, python 3.12.1, torch 2.8`; not which
    specimen of a device it was.
    """
    facts = sorted(json.loads(row.facts).items())
    return ", ".join(f"{name} {value}" for name, value in facts if not name.endswith("uuid"))


def day(seconds: float) -> str:
    """A time in UTC to the minute."""
    return timestamp(seconds)[:16].replace("T", " ")
