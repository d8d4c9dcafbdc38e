"""Writing: sweeps and jobs into the queue, outcomes out of it."""
