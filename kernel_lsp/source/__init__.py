"""The user's text: lines, kernels and launches found in it, with no compiler involved (pure)."""
