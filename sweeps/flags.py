"""Flags of timed jobs that another run may not have, and what to do before it."""

from collections.abc import Mapping

ADVICE: Mapping[str, str] = {
    "contended": "the machine was busy; when it is quiet, run again",
    "throttled": "the device lowered its clocks; let it cool, fix its clocks, and run again",
    "warmup_not_converged": "warm-up had not converged; run again",
}
