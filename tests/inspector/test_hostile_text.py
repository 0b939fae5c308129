"""Whatever people write, the pages have our own elements alone, and show the words as text."""

import asyncio
import shutil
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.agents import said
from tests.support.clock import Clock
from tests.support.visiting import Visitor, visiting

PIECES = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</textarea><svg onload=alert(1)>",
    '" autofocus onfocus="alert(1)',
    "' onmouseover='alert(1)",
    "</title></style><iframe src=//x.example>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp;",
    "<!--",
    "]]>",
    "\u202etxt.exe",
    "Wilma",
)
words = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map(" ".join)

STRANGE = ("iframe", "object", "embed", "style", "base", "meta-refresh", "b")


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.strange: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = dict(attrs)
        scripts = tag == "script" and not (kept.get("src") or "").startswith("/static/")
        images = tag == "img" and not (kept.get("src") or "").startswith("/static/")
        handlers = any(name.startswith("on") for name in kept)
        places = [kept[name] or "" for name in ("href", "src", "action") if name in kept]
        elsewhere = any(not place.startswith(("/", "#")) for place in places)
        if tag in STRANGE or scripts or images or handlers or elsewhere or "style" in kept:
            self.strange.append(f"<{tag} {attrs}>")

    def handle_data(self, data: str) -> None:
        self.text += data


async def seen(visitor: Visitor, text: str) -> None:
    """Look at every page on which a message, its sender and a correction appear."""
    facts = await visitor.agent.resources.semantic.all(visitor.agent.scope)
    await visitor.post(f"/correct/{facts[0]['id']}", text=f"Home is in {text} now.")
    tick = (await visitor.agent.aget_state()).values["tick"]
    paths = ["/today", "/people", f"/ticks/{tick}", "/ticks", "/log", "/memory", "/nights"]
    lists = [await visitor.get(path) for path in ("/people", "/memory", "/nights")]
    links = {one for page in lists for one in page.split('"') if one.startswith("/default/")}
    paths += [
        one.removeprefix("/default")
        for one in links
        if any(kind in one for kind in ("/memory/", "/people/", "/nights/"))
    ]
    shown = ""
    for path in paths:
        elements = Elements(await visitor.get(path))
        assert elements.strange == [], path
        assert "\u202e" not in elements.text, path
        shown += " ".join(elements.text.split())
    for path in ("/memory", "/people"):
        assert Elements(await visitor.get(path, q=text)).strange == []
    visible = " ".join(text.replace("\u202e", "").split())
    assert visible in shown


@settings(max_examples=settings().max_examples // 6)
@given(text=words)
@example(text="\u202etxt.exe Wilma")
def test_words_of_others_never_become_markup(lived: Path, text: str) -> None:
    async def check(data: Path) -> None:
        clock = Clock()
        clock.advance(days=2)
        async with visiting(data, clock) as visitor:
            await visitor.agent.ainvoke(said(f"My friend is called {text}", f"Eve {text}"[:80]))
            await visitor.agent.ainvoke({"request": "sleep"})
            await seen(visitor, text)

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(lived, Path(folder, "data"))
        asyncio.run(check(Path(folder, "data")))
