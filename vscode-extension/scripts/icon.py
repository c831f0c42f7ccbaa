"""Draws images/icon.svg into images/icon.png (256 x 256) with the Chromium of the VS Code tests."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "images"


def main() -> None:
    """Needs playwright and a Chromium on PATH (tests/editors/install.sh vscode)."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 256, "height": 256})
        page.set_content(f"<body style='margin:0'>{(IMAGES / 'icon.svg').read_text(encoding='utf-8')}")
        page.screenshot(path=str(IMAGES / "icon.png"), omit_background=True)
        browser.close()


if __name__ == "__main__":
    main()
