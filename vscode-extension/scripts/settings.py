"""Writes the server's declared settings into the extension's manifest, its README and the page on editors.

    python scripts/settings.py           rewrites package.json, README.md and docs/editors.md
    python scripts/settings.py --check   fails where they are not what it would write

The settings that only the extension reads (the interpreter, the trace) stand in package.json by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kernel_lsp.session.settings import json_schema

EXTENSION = Path(__file__).resolve().parents[1]
MANIFEST = EXTENSION / "package.json"
PAGES = (EXTENSION / "README.md", EXTENSION.parent / "docs" / "editors.md")
OF_THE_EXTENSION = ("kernelLsp.interpreter", "kernelLsp.trace.server")
START, END = "<!-- settings: written by vscode-extension/scripts/settings.py -->\n", "<!-- /settings -->"


def manifest() -> str:
    """The text of package.json with the declared settings in it."""
    package = json.loads(MANIFEST.read_text(encoding="utf-8"))
    configuration = package["contributes"]["configuration"]
    by_hand = {name: configuration["properties"][name] for name in OF_THE_EXTENSION}
    interpreter, trace = OF_THE_EXTENSION
    configuration["properties"] = {interpreter: by_hand[interpreter], **json_schema(), trace: by_hand[trace]}
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def page(path: Path, properties: dict[str, dict[str, object]]) -> str:
    """The text of a page with a table of all settings."""
    rows = [
        f"| `{name}` | `{json.dumps(value['default'])}` | {value['markdownDescription']} |\n"
        for name, value in properties.items()
    ]
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(START)
    after = rest.split(END)[1]
    return before + START + "| Setting | Default | |\n|---|---|---|\n" + "".join(rows) + END + after


def main() -> int:
    """Exit status 0: written, or up to date."""
    new_manifest = manifest()
    properties = json.loads(new_manifest)["contributes"]["configuration"]["properties"]
    wanted = {MANIFEST: new_manifest, **{path: page(path, properties) for path in PAGES}}
    if "--check" in sys.argv[1:]:
        stale = [path.name for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
        if stale:
            sys.stderr.write(f"{', '.join(stale)}: run python vscode-extension/scripts/settings.py\n")
        return 1 if stale else 0
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
