"""Readings of one stretch of work: its time, memory and rates."""
