"""The process that measures: threads, time limits, state that a method may change, and cleanup."""
