"""A YAML loader for files of a workspace: safe types only, no aliases, bounded nesting, so that reading ends soon."""

from __future__ import annotations

import yaml

MAX_DEPTH = 20


class BoundedLoader(yaml.SafeLoader):
    """Raises ValueError at the first alias and where collections are nested deeper than MAX_DEPTH."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """One node of the document; the base class calls it for every node inside another."""
        if self.check_event(yaml.AliasEvent):
            raise ValueError("aliases (*name) are not read here")
        if self.depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1
