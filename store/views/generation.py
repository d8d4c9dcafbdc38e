"""The SELECT behind the public view `language`: one row per arm and condition of generation, its metrics side by side.

FileSection in SQL that SQLite and PostgreSQL both understand; every figure is one that the worker measured.
"""

_MILLISECONDS = " * CASE WHEN m.unit = 's' THEN 1000 ELSE 1 END"
_BYTES = " * CASE WHEN m.unit = 'MiB' THEN 1048576 ELSE 1 END"


def _metric(name: str, scale: str = "") -> str:
    return f"max(CASE WHEN m.metric = '{name}' THEN m.value{scale} END)"


METRICS: dict[str, str] = {
    **{f"{name}_ms": _metric(name, _MILLISECONDS) for name in ("ttft", "tpot", "tpot_p95")},
    **{name: _metric(name) for name in ("prefill_tokens_per_s", "decode_tokens_per_s", "chars_per_s", "base_tokens_per_s")},
    **{name: _metric(name) for name in ("tokenizer_s", "load_s", "achieved_gb_per_s", "peak_gb_per_s")},
    **{name: _metric(name, _BYTES) for name in ("kv_bytes_needed", "kv_bytes_resident", "kv_bytes_virtual")},
    **{
        f"{name}_bytes": _metric(name, _BYTES)
        for name in ("rss_isolated", "peak_rss_isolated", "rss_before", "peak_rss", "cuda_peak_allocated")
    },
    **{name: _metric(name) for name in ("characters", "tokens_decoded", "achieved_sparsity", "kernel_calls", "fallback_calls")},
    **{name: _metric(name) for name in ("energy_per_token", "mean_power")},
}
"""Columns that are metrics of an arm, and how each is read from the rows of `metric_row`; NULL where it was not measured."""

_FLAGGED = "CASE WHEN {0}.flags = '' AND {1}.flags = '' THEN 0 ELSE 1 END"
_OLD, _NEW = _FLAGGED.format("t", "a"), _FLAGGED.format("u", "n")
# For each arm and condition the newest attempt, one without a flag before one with any.
_NEWEST = f"""NOT EXISTS (
  SELECT 1 FROM spoken_arm AS o
  JOIN attempt AS u ON u.id = o.attempt
  JOIN measured_arm AS n ON n.attempt = o.attempt AND n.arm = o.arm
  WHERE o.setting_id = k.setting_id AND u.environment = t.environment AND u.host = t.host
    AND ({_NEW} < {_OLD} OR ({_NEW} = {_OLD} AND u.id > t.id)))"""  # noqa: S608 - made of constants

SELECT = f"""
SELECT
  k.attempt, k.arm, k.arm_id, k.condition_id, t.environment, e.device, e.device_name, k.model, k.weights, k.method, k.params,
  k.data, k.prompt_tokens, k.new_tokens, k.decoding, k.batch_size, k.kv_cache, k.dtype, k.attention, k.runtime, a.threads, k.seed,
  a.parameters, a.gmacs, a.gmacs_method, {", ".join(f"p.{name}" for name in METRICS)},
  a.flags AS arm_flags, t.flags AS job_flags, t.source, t.ended_at, k.setting_id, t.host, a.route,
  k.exclusive
FROM spoken_arm AS k
JOIN attempt AS t ON t.id = k.attempt
JOIN environment AS e ON e.environment_id = t.environment
JOIN measured_arm AS a ON a.attempt = k.attempt AND a.arm = k.arm
LEFT JOIN (
  SELECT m.attempt, m.arm, {", ".join(f"{value} AS {name}" for name, value in METRICS.items())}
  FROM spoken_arm AS s JOIN metric_row AS m ON m.attempt = s.attempt AND m.arm = s.arm
  GROUP BY m.attempt, m.arm
) AS p ON p.attempt = k.attempt AND p.arm = k.arm
WHERE {_NEWEST}"""  # noqa: S608 - made of constants
