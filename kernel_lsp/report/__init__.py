"""The bottleneck report, as Markdown and JSON (pure)."""
