"""Statistics of curves: break-evens, cost models, and where to measure next."""
