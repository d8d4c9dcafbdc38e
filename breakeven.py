"""From where on does an optimisation save time? The public interface for Python.

    import breakeven
    result = breakeven.compare({"old": old, "new": new}, inputs=make, time="30s")
    curve = breakeven.curve({"old": old, "new": new}, inputs=make, over={"n": [64, 256, 1024]})

See docs/compare.md.
"""

from orchestrator.api.callables import DifferentResultsError
from orchestrator.api.comparison import ArmFailedError, measure
from orchestrator.api.functions import Curve
from orchestrator.api.functions import compare_functions as compare
from orchestrator.api.functions import measure_curve as curve
from orchestrator.api.result import Result
from orchestrator.api.result import StoredResults as open  # noqa: A004, N813 - reads as breakeven.open

__all__ = [
    "ArmFailedError",
    "Curve",
    "DifferentResultsError",
    "Result",
    "compare",
    "curve",
    "measure",
    "open",
]
