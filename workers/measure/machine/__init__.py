"""The machine: its identity, cores, counters, energy and monitors."""
