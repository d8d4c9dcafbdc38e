"""Comparison of arms from anywhere: functions, commands, revisions; needs no Ray."""
