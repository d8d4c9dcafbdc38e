"""Former names of renamed fields and values: identities hash them, and data written before a rename is read by them.

To rename a field of an outcome or job, or one of its values, add it here; ids, digests and stored data then stay valid. A parameter
of a method keeps its former name as `serialization_alias` in the method's own file (see `sweeps.method.Params`).
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

FORMER_FIELDS: Mapping[str, str] = {
    "content_hashes": "contents",
    "predictions": "evaluation",
    "text_scores": "scores",
    "system_metrics": "readings",
    "gmacs_overhead": "gmacs_method",
    "event_seconds": "device_seconds",
}
"""Former name of each renamed field of `Job`, `Outcome`, `ArmOutcome` and `Samples`."""
FORMER_FLAGS: Mapping[str, str] = {
    "warmup_not_converged": "unsteady",
    "token_trace_mismatch": "tokens_differ",
    "consistency_check_failed": "identity_violated",
    "isolated_run_skipped": "fresh_skipped",
}
FORMER_METRICS: Mapping[str, str] = {
    "margin_change_p05": "margin_change_tail",
    "gmacs_overhead_ttft": "gmacs_method_ttft",
    "gmacs_overhead_tpot": "gmacs_method_tpot",
    "achieved_gb_per_s": "effective_gb_per_s",
    "peak_gb_per_s": "machine_gb_per_s",
    "rss_isolated": "rss_fresh",
    "peak_rss_isolated": "peak_rss_fresh",
    "cuda_peak_allocated_isolated": "cuda_peak_allocated_fresh",
    "cuda_peak_reserved_isolated": "cuda_peak_reserved_fresh",
}
VALUES: Mapping[str, Mapping[str, str]] = {
    "attention": {"eager": "manual"},
    "decoding": {"teacher_forcing": "replay"},
    "flags": FORMER_FLAGS,
    "metrics": FORMER_METRICS,
}
"""Former names of values, by field; of a list's items, or of their `name`."""

_YOUNGER: Mapping[str, Any] = {
    **dict.fromkeys(("data", "corruption", "severity", "prompt_tokens", "new_tokens", "kv_cache", "decoding", "exclusive")),
    **dict.fromkeys(("spare_cores", "wait_policy", "pinning", "inputs")),
    **dict.fromkeys(("images", "characters", "tasks", "documents", "route", "cores", "process", "system_series")),
    "compile_timeout_s": 900.0,
    "protocol_version": 1,
    "passes": 1,
    "notes": [],
    "peaks": [],
    "suspects": [],
}
"""Fields of an outcome that its first version lacked, with their defaults, at which payloads and digests leave them out."""
_OPAQUE = frozenset({"params", "facts", "solved", "samples", "trace", *FORMER_FIELDS.keys(), *FORMER_FIELDS.values()})
"""Fields whose content holds no renamed name, or is a mapping of the user's or a method's own."""


def former(data: Any) -> Any:
    """The plain data of a model under the names that its identities hash."""
    return _translated(data, FORMER_FIELDS, VALUES)


def current(data: Any) -> Any:
    """Plain data of a job or outcome, written under any names, under the present ones; models inside stay as they are."""
    return _translated(data, _PRESENT_FIELDS, _PRESENT_VALUES)


def present_value(word: Any, known: Collection[str]) -> str | None:
    """The present name of a value that `word` was the former name of, if it is among the known ones."""
    found = (new for names in VALUES.values() for new, old in names.items() if old == word and new in known)
    return next(found, None)


def without_younger(outcome: Mapping[str, Any]) -> Any:
    """The plain data of an outcome without the younger fields at their defaults; its digest is that of the `former` of this."""
    return _mapped(outcome, lambda key, item: None if key in _YOUNGER and item == _YOUNGER[key] else (key, item))


def _turned(names: Mapping[str, str]) -> Mapping[str, str]:
    return {old: new for new, old in names.items()}


_PRESENT_FIELDS = _turned(FORMER_FIELDS)
_PRESENT_VALUES = {field: _turned(names) for field, names in VALUES.items()}


def _translated(data: Any, fields: Mapping[str, str], values: Mapping[str, Mapping[str, str]]) -> Any:
    def value(item: Any, names: Mapping[str, str]) -> Any:
        if isinstance(item, str):
            return names.get(item, item)
        if isinstance(item, list | tuple):
            return [value(each, names) for each in item]
        return {**item, "name": value(item["name"], names)} if isinstance(item, dict) and "name" in item else item

    def change(key: str, item: Any) -> tuple[str, Any]:
        if key == "samples" and isinstance(item, dict):
            item = {fields.get(name, name): table for name, table in item.items()}
        return fields.get(key, key), value(item, values[key]) if key in values else item

    return _mapped(data, change)


def _mapped(data: Any, change: Callable[[str, Any], tuple[str, Any] | None]) -> Any:
    """`data` with every entry of its mappings changed, or left out where `change` gives `None`."""
    if isinstance(data, list | tuple):
        return [_mapped(item, change) for item in data]
    if not isinstance(data, dict):
        return data
    changed = (change(key, item if key in _OPAQUE else _mapped(item, change)) for key, item in data.items())
    return dict(entry for entry in changed if entry is not None)
