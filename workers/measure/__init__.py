"""Measuring: one module for each thing that is read off a running model or its machine."""
