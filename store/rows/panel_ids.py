"""Identity of a panel: the comparisons of a page's chart, which differ in sizes and in parameters
of a method alone.
"""

import json
from functools import lru_cache
from typing import Any

from sweeps.model.identity import digest_of

PANEL_FIELDS = (
    *(
        "kind",
        "device",
        "model",
        "weights",
        "batch_size",
        "threads",
        "spare_cores",
        "wait_policy",
        "pinning",
        "seed",
    ),
    *("data", "new_tokens", "decoding", "exclusive", "inputs", "baseline", "baseline_id"),
    *("method", "dtype", "attention", "runtime", "kv_cache"),
)
"""Columns of `comparison` that are equal for the comparisons of one panel."""


def panel_id(comparison: Any) -> str:
    """The column `panel_id` for the other columns of a comparison."""
    return _digest(tuple([comparison[name] for name in PANEL_FIELDS]))


@lru_cache(maxsize=10_000)
def _digest(values: tuple[Any, ...]) -> str:
    return digest_of(json.dumps(values))
