"""Published measurements: their types, the files that hold them, and tables of measurements that
anyone may have written as CSV.
"""
