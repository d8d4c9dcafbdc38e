"""Models in files, as sweeps of users name them: each file is loaded by its path."""
