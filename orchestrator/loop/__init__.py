"""The loop of a run: dispatch, refinement and progress."""
