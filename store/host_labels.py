"""Host labels: how the hosts and environments of a sweep's points are distinguished, for the report and the app."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def label_hosts(points: "pd.DataFrame") -> "dict[tuple[str, str], str]":
    """The label of each place in frames with the columns `environment` and `host`; empty where there is only one.

    The host is named, and the environment where a host has several.
    """
    distinct = points[["environment", "host"]].drop_duplicates()
    if len(distinct) < 2:
        return dict.fromkeys(distinct.itertuples(index=False, name=None), "")
    several = distinct["host"].value_counts()
    return {
        (environment, host): f"host {host}" + (f", environment {environment[:8]}" if several[host] > 1 else "")
        for environment, host in distinct.itertuples(index=False)
    }


def describe_missing(row: object) -> str:
    """What a curve in the view `break_even` lacks, such as `incomplete, 5 of 8 points are missing on host a`; empty if nothing."""
    missing, points = int(getattr(row, "points_missing", 0) or 0), int(getattr(row, "points", 0))
    if not missing:
        return ""
    return f"incomplete, {missing} of {points + missing} points are missing on host {getattr(row, 'host', '?')}"
