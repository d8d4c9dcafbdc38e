"""Profiles of our own arms as rows to audit: of the public views `profile` and `kernel`, whichever
tool recorded them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sweeps.analysis.audit.measured import condition_key
from sweeps.importers.measurement import Measurement, MeasurementTable
from sweeps.model.profile import COUNTERS
from sweeps.number_format import count, is_missing

PROFILED_BY = "profile by "
"""Before the tool, in the setting of a row: profiles are compared with each other, and not with
arms that were only timed."""
_ARM = ("arm_id", "condition_id")


def profiled_rows(
    profiles: Iterable[Mapping[str, Any]],
    kernels: Iterable[Mapping[str, Any]],
    arms: Iterable[Mapping[str, Any]],
    label: Any,
) -> Iterator[Measurement]:
    """A row for each profile, by rows of the views `profile` and `kernel`; `arms` are rows of the
    view `arm`.

    `label` gives the label of a method and its parameters (JSON). The time of the device (on a CPU:
    of operators) stands beside the wall of a forward without a profiler, that of the same arm as it
    was timed where the profile has none; on a GPU that of each kernel too, which profilers hardly
    lengthen, as they do operators.
    """
    timed = {tuple(row[name] for name in _ARM): row for row in map(_known, arms)}
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in map(_known, kernels):
        runs.setdefault(row["profile_id"], []).append(row)
    classes: dict[str, list[dict[str, Any]]] = {}
    for row in map(_known, profiles):
        classes.setdefault(row["profile_id"], []).append(row)
    firsts = {
        profile_id: (classes.get(profile_id) or runs[profile_id])[0]
        for profile_id in dict.fromkeys((*classes, *runs))
    }
    walls = {
        _phase(row): {"wall_ms": row["wall_ms"]} for row in firsts.values() if row.get("wall_ms")
    }
    for profile_id, first in firsts.items():
        beside = {**timed.get(_phase(first)[:-1], {}), **walls.get(_phase(first), {})}
        row = {**beside, **{name: value for name, value in first.items() if value is not None}}
        yield _measurement(row, classes.get(profile_id, []), runs.get(profile_id, []), label)


def _phase(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What profiles of one arm and phase have in common, by any tool."""
    return (*(row.get(name) for name in _ARM), row["phase"])


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if is_missing(value) else value for key, value in row.items()}


def _measurement(
    row: dict[str, Any], classes: list[dict[str, Any]], runs: list[dict[str, Any]], label: Any
) -> Measurement:
    """`row` has the columns of the first row of a profile, and those of the timed arm where it has
    none.
    """
    of_gpu = row["tool"] != "torch" or row.get("device") == "cuda"
    busy_ms = sum(each["ms"] for each in classes if each["time_class"] == "device")
    origin = f"{PROFILED_BY}{row['tool']}{f' in {file}' if (file := row.get('file')) else ''}"
    values: dict[str, Any] = {
        "label": label(row["method"], row["params"])
        if row.get("method")
        else row.get("label") or row.get("side") or "profile",
        "method": row.get("method"),
        "device": row.get("device_name"),
        "model": row.get("model"),
        "setting": ", ".join(
            filter(
                None,
                (condition_key(row), origin, "" if row["phase"] == "forward" else row["phase"]),
            )
        ),
        "image_size": None if row.get("image_shape") else row.get("image_size"),
        "tokens": row.get("prompt_tokens"),
        "batch": row.get("batch_size"),
    }
    values |= {
        "latency_ms": row.get("wall_ms")
        or (row.get("latency_ms") if row["phase"] == "forward" else None),
        "device_ms": busy_ms,
    }
    if of_gpu:
        own = [run for run in runs if run["activity"] == "kernel"]
        values |= {
            "forwards": 1,
            "kernel_ms": sum(run["ms"] for run in own),
            "kernels": round(sum(run["count"] for run in own)),
            "kernel_time_share": row.get("kernel_time_share"),
            "counters": _counters(own),
            "gmacs": row.get("gmacs_total") if row["phase"] == "forward" else None,
            "peak_gflops": row.get("peak_gflops"),
        }
    return Measurement.model_validate(
        {key: value for key, value in values.items() if value not in (None, 0.0, {})}
    )


def _counters(runs: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Means of the counters over kernels, weighted by their time."""
    found = {}
    for name in COUNTERS:
        known = [run for run in runs if run.get(name) is not None and run["ms"]]
        if known:
            found[name] = sum(run[name] * run["ms"] for run in known) / sum(
                run["ms"] for run in known
            )
    return found


def profile_notes(table: MeasurementTable) -> Iterator[str]:
    """How many profiles are among the rows of a table, by their tools."""
    origins = [(row.setting or "").partition(PROFILED_BY)[2] for row in table.rows]
    tools = [origin.partition(",")[0].partition(" in ")[0] for origin in origins if origin]
    if tools:
        by_tool = ", ".join(f"{tools.count(tool)} by {tool}" for tool in sorted(set(tools)))
        yield f"{count(len(tools), 'profile')} among the rows: {by_tool}"
