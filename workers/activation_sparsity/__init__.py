"""Activation sparsity in language models: calibration, rotations and matrix products that skip
rows.
"""
