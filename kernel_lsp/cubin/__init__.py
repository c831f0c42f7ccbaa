"""Decodes a cubin: resources, names, line table, instructions (pure)."""
