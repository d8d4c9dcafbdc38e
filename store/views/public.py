"""The public SQL views: what people query. Columns may be added at the end, never changed or removed.

FileSection in SQL that SQLite and PostgreSQL both understand. They only select: every figure was computed by `sweeps.stats.timing`,
`sweeps.stats.classification`, `sweeps.stats.text_stats` and `sweeps.stats.breakeven` and stored by `store/derive`.
"""

from sqlalchemy import Connection, text

from store.views import generation

# Only the newest answer to a question counts: a raised method VERSION or protocol makes the older comparison_id's answer stale.
_NEWER = """newer.question_id = r.question_id AND newer.environment = r.environment
      AND (newer.measured_at > r.measured_at
           OR (newer.measured_at = r.measured_at AND newer.comparison_id > r.comparison_id))"""
_SAME_SERIES = "newer.metric = r.metric AND newer.host = r.host"
NEWEST = f"NOT EXISTS (SELECT 1 FROM speedup_row AS newer WHERE {_SAME_SERIES} AND {_NEWER})"  # noqa: S608 - made of constants
NEWEST_ACCURACY = f"NOT EXISTS (SELECT 1 FROM accuracy_row AS newer WHERE {_NEWER})"  # noqa: S608 - made of constants
NEWEST_QUALITY = f"NOT EXISTS (SELECT 1 FROM quality_row AS newer WHERE {_NEWER})"  # noqa: S608 - made of constants

NEWEST_REVISION = """
  NOT EXISTS (SELECT 1 FROM sweep AS newer WHERE newer.name = s.name AND newer.revision > s.revision)"""

# Every answer of whatever kind, failures included; not a view of its own.
ANSWERS = """
  SELECT comparison_id, failure, CASE WHEN speedup IS NULL THEN 0 ELSE 1 END AS measured FROM speedup_row
  UNION ALL
  SELECT comparison_id, failure, CASE WHEN images IS NULL THEN 0 ELSE 1 END AS measured FROM accuracy_row
  UNION ALL
  SELECT comparison_id, failure, CASE WHEN windows IS NULL THEN 0 ELSE 1 END AS measured FROM quality_row"""

VIEWS = {
    "speedup": f"""
SELECT
  r.comparison_id, r.question_id, c.arm_id, c.kind, r.metric, r.source, r.measured_at, r.environment, e.device, e.device_name,
  c.model, c.weights, c.method, c.params, c.baseline, c.dtype, c.attention, c.runtime, r.threads, c.batch_size, c.image_size,
  r.tokens, r.tokens_final, r.gmacs_baseline, r.gmacs, r.gmacs_method, r.baseline_ms, r.method_ms, r.device_ms,
  r.speedup, r.speedup_low, r.speedup_high, r.pairs, r.rounds, r.verdict, r.floor, r.flags, c.seed, c.curve_id,
  c.data, c.prompt_tokens, c.new_tokens, c.kv_cache, c.decoding, c.baseline_id, c.condition_id, r.host, r.route,
  c.exclusive
FROM speedup_row AS r
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment
WHERE r.speedup IS NOT NULL AND {NEWEST}""",  # noqa: S608 - made of constants
    "sweep_comparison": f"""
SELECT s.name AS sweep, l.comparison_id
FROM sweep_comparison_row AS l
JOIN sweep AS s ON s.id = l.sweep
WHERE {NEWEST_REVISION}""",  # noqa: S608 - made of constants
    "break_even": f"""
SELECT
  s.name AS sweep, b.environment, e.device_name, c.model, c.method, c.params, c.baseline, c.dtype, c.attention, c.runtime,
  c.batch_size, b.axis, b.verdict, b.x, b.x_low, b.x_high, b.points,
  b.direction, b.grid_limited, b.why, e.device, c.weights, b.threads, c.seed, b.floor, b.curve_id, b.varies,
  b.metric, c.kind, c.data, c.new_tokens, c.kv_cache, c.decoding, c.baseline_id, c.image_size, c.prompt_tokens,
  b.host, b.points_missing, c.exclusive
FROM break_even_row AS b
JOIN sweep AS s ON s.id = b.sweep
JOIN comparison AS c ON c.comparison_id = b.comparison_id
JOIN environment AS e ON e.environment_id = b.environment
WHERE {NEWEST_REVISION}""",  # noqa: S608 - made of constants
    "failures": f"""
SELECT
  r.comparison_id, r.question_id, r.environment, e.device, e.device_name, c.model, c.weights, c.method, c.params, c.baseline,
  c.dtype, c.attention, c.runtime, c.threads, c.batch_size, c.image_size, f.reason, f.message, r.measured_at AS at, f.attempt,
  c.kind, c.data, c.corruption, c.severity, c.prompt_tokens, c.new_tokens, c.kv_cache, c.decoding, c.baseline_id, t.host,
  c.exclusive
FROM (
  SELECT r.comparison_id, r.question_id, r.environment, r.measured_at, r.failure FROM speedup_row AS r WHERE {NEWEST}
  UNION
  SELECT r.comparison_id, r.question_id, r.environment, r.measured_at, r.failure FROM accuracy_row AS r WHERE {NEWEST_ACCURACY}
  UNION
  SELECT r.comparison_id, r.question_id, r.environment, r.measured_at, r.failure FROM quality_row AS r WHERE {NEWEST_QUALITY}
) AS r
JOIN failure AS f ON f.id = r.failure
JOIN attempt AS t ON t.id = f.attempt
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment""",  # noqa: S608 - made of constants
    "metric": """
SELECT m.attempt, m.arm, m.metric, m.value, m.unit, m.low, m.high, m.n, a.arm_id, t.environment, t.flags, t.host, a.route
FROM metric_row AS m
JOIN attempt AS t ON t.id = m.attempt
LEFT JOIN measured_arm AS a ON a.attempt = m.attempt AND a.arm = m.arm""",
    "accuracy": f"""
SELECT
  r.comparison_id, r.question_id, c.arm_id, c.kind, r.source, r.measured_at, r.environment, e.device, e.device_name,
  c.model, c.weights, c.method, c.params, c.baseline, c.dtype, c.attention, c.data, c.corruption, c.severity, c.image_size,
  r.images, r.tokens, r.tokens_final, r.gmacs_baseline, r.gmacs, r.gmacs_method,
  r.top1_baseline, r.top1, r.top1_low, r.top1_high, r.top1_drop, r.top1_drop_low, r.top1_drop_high, r.mcnemar_p, r.verdict,
  r.top5_baseline, r.top5, r.kl, r.kl_low, r.kl_high,
  r.margin_change, r.margin_change_low, r.margin_change_high, r.margin_change_tail, r.flags,
  r.lost, r.gained, r.unreadable, r.floor, c.seed
FROM accuracy_row AS r
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment
WHERE r.images IS NOT NULL AND {NEWEST_ACCURACY}""",  # noqa: S608 - made of constants
    "quality": f"""
SELECT
  r.comparison_id, r.question_id, c.arm_id, c.kind, r.source, r.measured_at, r.environment, e.device, e.device_name,
  c.model, c.weights, c.method, c.params, c.baseline, c.baseline_id, c.dtype, c.attention, c.data, c.seed,
  r.windows, r.unscored, r.bytes, r.characters, r.tokens_baseline, r.tokens, r.bits_per_byte_baseline, r.bits_per_byte,
  r.bits_per_byte_change, r.bits_per_byte_change_low, r.bits_per_byte_change_high, r.verdict, r.floor,
  r.perplexity_baseline, r.perplexity, r.top1_agreement, r.top1_agreement_low, r.top1_agreement_high,
  r.kl, r.kl_low, r.kl_high, r.flags, c.condition_id
FROM quality_row AS r
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment
WHERE r.windows IS NOT NULL AND {NEWEST_QUALITY}""",  # noqa: S608 - made of constants
    "language": generation.SELECT,
}
"""Name of each view and the SELECT behind it."""


def create(connection: Connection) -> None:
    """Create all views."""
    for name, select in VIEWS.items():
        connection.execute(text(f"CREATE VIEW {name} AS {select}"))


def drop(connection: Connection) -> None:
    """Drop the views that exist."""
    for name in VIEWS:
        connection.execute(text(f"DROP VIEW IF EXISTS {name}"))
