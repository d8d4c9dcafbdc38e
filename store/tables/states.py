"""States of a job in the queue. `failed`: it ended without an answer; `split`: its children carry its questions on."""

STATES = ("waiting", "running", "done", "failed", "cancelled", "split")
