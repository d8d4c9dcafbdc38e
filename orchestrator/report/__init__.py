"""Report: a sweep's answers as text for people and data for programs."""
