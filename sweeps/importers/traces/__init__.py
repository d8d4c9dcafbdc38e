"""Files of outside profilers (Nsight Systems, Nsight Compute) as profiles of an arm."""
