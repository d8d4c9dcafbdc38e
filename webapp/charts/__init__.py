"""Charts: pure functions from data frames to alt.Chart."""
