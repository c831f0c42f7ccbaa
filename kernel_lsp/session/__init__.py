"""State over time without LSP types: settings, documents, scheduling, pipeline, publishing."""
