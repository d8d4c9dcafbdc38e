"""Orchestrator: planning, dispatch over Ray, and the command line."""
