"""What each public view holds, and queries to begin with: shown beside the SQL console; tests
compare them with docs/views.md.
"""

from collections.abc import Mapping

from sweeps.model.flags import FLAGS

ONE_ROW_PER: Mapping[str, str] = {
    "speedup": "question, metric, environment and host",
    "break_even": "sweep, curve, metric, environment, host, axis and crossing",
    "effect": "question, metric, environment and host",
    "accuracy": "question and environment",
    "quality": "question and environment",
    "sweep_comparison": "sweep and comparison",
    "cost_model": "sweep, curve along tokens, metric, environment and host",
    "arm": "arm, condition, kind of job, environment and host",
    "generation": "arm, condition of generation, environment and host",
    "profile": "profile of an arm (or an imported file), phase and class of time",
    "kernel": "kernel, copy or operator of a profile",
    "failures": "comparison without a measurement, and failure",
    "metric": "attempt, arm and metric",
    "execution": "attempt",
    "reference": "row of a published table",
}
"""By view what it has a row for."""
_NOT_WRONG = "".join(
    f"\n    AND flags NOT LIKE '%{name}%'" for name, flag in FLAGS.items() if flag.wrong
)
EXAMPLES: Mapping[str, str] = {
    "Speed-ups of a sweep": (
        """SELECT arm_label, model, batch_size, tokens, speedup, speedup_low, speedup_high, verdict
FROM speedup JOIN sweep_comparison USING (comparison_id)
WHERE sweep = '{sweep}'
ORDER BY model, batch_size, arm_label, tokens"""
    ),
    "Where it pays": (
        """SELECT model, batch_size, arm_label, verdict, x, x_low, x_high, why
FROM break_even
WHERE sweep = '{sweep}' AND axis = 'tokens'
ORDER BY model, batch_size, arm_label"""
    ),
    "How much of the promise arrives": """WITH shares AS (
  SELECT method, model, batch_size, runtime, device_name, metric, realised_share,
    row_number() OVER (alike ORDER BY realised_share) AS place,
    count(*) OVER alike AS points
  FROM speedup JOIN sweep_comparison USING (comparison_id)
  WHERE sweep = '{sweep}' AND realised_share IS NOT NULL{right}
  WINDOW alike AS (PARTITION BY method, model, batch_size, runtime, device_name, metric)
)
SELECT method, model, batch_size, runtime, device_name, metric, points,
  round(CAST(avg(realised_share) AS numeric), 2) AS median
FROM shares
WHERE 2 * place BETWEEN points AND points + 2
GROUP BY method, model, batch_size, runtime, device_name, metric, points
ORDER BY median DESC""".replace("{right}", _NOT_WRONG),
    "Accuracy beside speed": (
        """SELECT a.method, a.params, a.top1, a.top1_drop, s.speedup, s.batch_size, a.gmacs_total
FROM accuracy AS a JOIN speedup AS s USING (arm_id, model, weights, image_size)
ORDER BY s.speedup DESC"""
    ),
    "Failures by reason": (
        """SELECT reason, message, count(*) AS comparisons, max(at) AS newest
FROM failures
GROUP BY reason, message
ORDER BY comparisons DESC"""
    ),
    "Attempts that were quarantined": (
        """SELECT attempt, host, device_name, quarantine, flags,
  datetime(ended_at, 'unixepoch') AS ended
FROM execution
WHERE quarantine IS NOT NULL
ORDER BY ended_at DESC"""
    ),
    "Columns of a view": "SELECT * FROM speedup LIMIT 1",
}
"""Queries by title; `{sweep}` stands for the name of a sweep, with its quotes doubled."""
