"""Runs the compiler: the one place that starts processes, and the store of what they made."""
