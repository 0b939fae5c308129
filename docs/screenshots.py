"""Makes the pictures of docs/inspector.md: the demo's life, seen in a browser.

    .venv/bin/python docs/screenshots.py

Needs chromium and the extra `dev` (playwright; with Pillow the pictures are smaller). It plays the
demo in a temporary folder, and writes `docs/images/inspector-*.png`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
COLOURS = 64
LARGEST = 120_000
"""Bytes of a picture."""


class Shot(NamedTuple):
    """A picture: its name, the way to the page, and the browser's view of it."""

    name: str
    path: str
    links: tuple[str, ...] = ()
    """Selectors of links to follow from there."""
    width: int = 1080
    height: int = 760
    dark: bool = False
    opened: str = ""
    """Selector of something to unfold first."""


FACT = ".memory:has(.kind-fact) .words a"

SHOTS = (
    Shot("today", "today"),
    Shot("search", "memory?q=allergic", opened=".why > summary >> nth=0"),
    Shot("memory", "memory?q=oak+beams", (f"{FACT} >> nth=0",), height=860),
    Shot("person", "people", ('a.name:has-text("Amina")',)),
    Shot("night", "nights", ("tbody a >> nth=0",), dark=True),
    Shot("tick", "ticks", (".memory .words a >> nth=0",), height=900),
    Shot("narrow", "today", width=380, height=780),
)


def main() -> None:
    """Play the demo, open the inspector on it, and take every picture."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if browser is None:
        sys.exit("chromium is not on PATH: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        inspected(Path(folder) / "data") as address,
        sync_playwright() as playwright,
    ):
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        # The address signs one browser in: all pictures are its own.
        page = opened.new_page()
        page.goto(address)
        parts = urlsplit(address)
        for shot in SHOTS:
            take(page, f"{parts.scheme}://{parts.netloc}/default", shot)
        opened.close()


@contextmanager
def inspected(data: Path) -> Iterator[str]:
    """The inspector's address, on the demo's memory."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "CIRCADIAN_OFFLINE": "1", "TZ": "UTC"}
    circadian = [sys.executable, "-m", "graph.cli"]
    played = [*circadian, "demo", "--json", "--data", str(data)]
    subprocess.run(played, env=variables, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    served = [*circadian, "inspect", "--json", "--data", str(data)]
    with subprocess.Popen(served, env=variables, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def take(page: Page, base: str, shot: Shot) -> None:
    """Take one picture."""
    page.set_viewport_size({"width": shot.width, "height": shot.height})
    page.emulate_media(color_scheme="dark" if shot.dark else "light")
    page.goto(f"{base}/{shot.path}")
    for link in shot.links:
        page.click(link)
    if shot.opened:
        page.click(shot.opened)
    picture = smaller(page.screenshot())
    if len(picture) > LARGEST:
        sys.exit(f"{shot.name}: {len(picture):,} bytes are too many")
    (IMAGES / f"inspector-{shot.name}.png").write_bytes(picture)


def smaller(picture: bytes) -> bytes:
    """The picture with few colours, where Pillow is there."""
    try:
        from PIL import Image
    except ImportError:
        return picture
    made = BytesIO()
    few = Image.open(BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(made, "PNG", optimize=True)
    return made.getvalue()


if __name__ == "__main__":
    main()
