# %% [markdown]
"""Queries a store with pandas through the public views, and draws speed-up against tokens with the
charts of the web app.

As a script: `uv run python examples/query_store.py [DATABASE [SWEEP [OUT]]]`. In an editor with
Jupyter cells: run it cell by cell from the root of the repository. Make a store first with `uv run
breakeven run sweeps/quickstart.yaml`.
"""

# %% What to look at
import sqlite3
import sys
from pathlib import Path

import pandas as pd

from webapp.charts.curves import speedup_chart
from webapp.charts.panels import panel_infos
from webapp.plot import render_chart
from workers.methods.arm_labels import params_label

arguments = [] if "ipykernel" in sys.modules else sys.argv[1:]
database, sweep, out = [
    *arguments,
    *["breakeven.db", "quickstart", "speedup.html"][len(arguments) :],
]

# %% The views as data frames; any SQLAlchemy engine does as well as this connection
store = sqlite3.connect(f"{Path(database).resolve().as_uri()}?mode=ro", uri=True)
points = pd.read_sql_query(
    "SELECT * FROM speedup JOIN sweep_comparison USING (comparison_id) WHERE sweep = ?",
    store,
    params=[sweep],
)
break_evens = pd.read_sql_query("SELECT * FROM break_even WHERE sweep = ?", store, params=[sweep])
store.close()
# `topk keep_rate=0.7`: the method with the parameters that are no defaults
for frame in (
    points,
    break_evens,
):
    frame["label"] = [
        params_label(method, params)
        for method, params in zip(frame["method"], frame["params"], strict=True)
    ]

# %% Median speed-up of each arm by tokens, of the points without a flag
trusted = points[points["flags"] == ""]
table = trusted.pivot_table(index="label", columns="tokens", values="speedup", aggfunc="median")
print(table.round(2).to_string())

# %% From where on each arm pays
crossings = break_evens[break_evens["axis"] == "tokens"]
print(crossings[["label", "verdict", "x", "x_low", "x_high"]].to_string(index=False))

# %% The chart of the app, for the first metric of the sweep; in a notebook the last line shows it
metric = points["metric"].iloc[0]
infos = panel_infos(points[points["metric"] == metric], break_evens, "tokens", show_flagged=True)
chart = speedup_chart(infos)
Path(out).write_bytes(render_chart(chart, "html"))
chart  # noqa: B018 - the output of a notebook's cell
