"""Host labels: how the hosts and environments of a sweep's points are distinguished, for the report
and the app.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def label_hosts(points: "pd.DataFrame") -> "dict[tuple[str, str], str]":
    """The label of each place in frames with the columns `environment` and `host`; empty where
    there is only one.

    The host is named, and the environment where a host has several.
    """
    distinct = points[["environment", "host"]].drop_duplicates()
    if len(distinct) < 2:
        return dict.fromkeys(distinct.itertuples(index=False, name=None), "")
    several = distinct["host"].value_counts()
    return {
        (environment, host): f"host {host}"
        + (f", environment {environment[:8]}" if several[host] > 1 else "")
        for environment, host in distinct.itertuples(index=False)
    }
