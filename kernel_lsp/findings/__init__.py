"""What the numbers mean: rules that turn a file's analysis into findings (pure)."""
