"""Statistics of effects, curves and break-evens: pure functions of arrays."""
