"""Numbers from a kernel and a machine: occupancy, cliffs, launches (pure)."""
