"""Domain types: conditions, arms, jobs, outcomes, and the declarations of kinds, metrics and
flags.
"""
