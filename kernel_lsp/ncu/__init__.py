"""Nsight Compute's measurements: reports and CSV pages become counters, and counters find their source lines."""
