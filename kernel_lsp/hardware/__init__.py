"""Machine facts: limits per compute capability and peaks per board, from `hw_profiles/` (pure)."""
