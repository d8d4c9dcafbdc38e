"""Ray cluster: nodes, supervisors of workers, and jobs on them; the only package that imports
Ray.
"""
