"""Parsing of sweep files: YAML to jobs, without torch, timm or Ray."""
