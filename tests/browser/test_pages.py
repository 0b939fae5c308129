"""Every page as a person sees it: both schemes, narrow and wide; axe finds nothing."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import HOSTILE, Open, Place

pytestmark = pytest.mark.browser

LISTS = ("today", "memory", "memory?q=thunder", "people", "nights", "ticks", "log", "preview")
FIRST = {
    "memory?kind=fact": ".memory .words a",
    "memory?kind=entry": ".memory .words a",
    "people": "a.name",
    "nights": "tbody a",
    "ticks": ".memory .words a",
}
"""List -> the links to what it lists; the first of each is looked at."""


COLOURS = {"runOnly": ["color-contrast"]}
"""What can differ in the dark; everything else is looked at once."""


def all_pages(place: Place) -> list[str]:
    """The paths of every page: the lists, and of each kind of thing the first one."""
    found = [*LISTS, "progress"]
    for path, links in FIRST.items():
        place.go(path)
        there = place.page.locator(links)
        link = there.first.get_attribute("href")
        assert link is not None
        found.append(link.removeprefix("/default/"))
    facts = [path for path in found if path.startswith("memory/") and "event_" not in path]
    people = [path for path in found if path.startswith("people/")]
    nights = [path for path in found if path.startswith("nights/")]
    found += [f"memory/{facts[0].partition('/')[2]}?hops=2"]
    found += [f"{does}/{facts[0].partition('/')[2]}" for does in ("correct", "forget")]
    found += [f"correct/{facts[0].partition('/')[2]}?text=Other.", f"{people[0]}/forget"]
    return [*found, f"{nights[0]}/undo"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 380), ("dark", 1600)])
def test_every_page_is_whole_and_without_barriers(shared: Open, scheme: str, width: int) -> None:
    place = shared(color_scheme=scheme, viewport={"width": width, "height": 900})
    page, wrong = place.page, []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(place.base) else wrong.append(asked.url),
    )
    axe = Axe()
    for path in all_pages(place):
        place.go(path)
        assert page.title() != "taken", path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = axe.run(page, options=None if width == 380 else COLOURS)
        assert found.violations_count == 0, (path, found.generate_report())
    assert wrong == []


def test_markup_of_others_is_shown_as_text(shared: Open) -> None:
    place = shared()
    for path in ("memory", "people", "ticks", "log", "today"):
        place.go(path)
        assert place.page.locator("img[src=x]").count() == 0
        assert place.page.locator("script:not([src])").count() == 0
    place.go("memory?kind=entry")
    assert HOSTILE in place.page.locator("main").inner_text()
    place.go("people")
    assert HOSTILE in place.page.locator("main").inner_text()


def test_the_keyboard_alone_is_enough(shared: Open) -> None:
    place = shared()
    page, keys = place.page, place.page.keyboard
    place.go("today")
    keys.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    keys.press("Enter")
    expect(page.locator("main")).to_be_focused()
    place.go("today")
    tab_to(place, "Memory")
    keys.press("Enter")
    expect(page.locator("h1")).to_have_text("Memory")
    tab_to(place, "Search")
    keys.type("thunder")
    keys.press("Enter")
    place.shows("the best first")
    tab_to(place, "Rex is afraid of thunder", within=60)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keys.press("Enter")
    place.shows("Where it was said")
    tab_to(place, "Correct")
    keys.press("Enter")
    expect(page.get_by_label("What is true")).to_be_visible()
    tab_to(place, "What is true")
    keys.press("Control+A")
    keys.type("Rex is afraid of rain.")
    tab_to(place, "Show what would change")
    keys.press("Enter")
    place.shows("would hold from now on")


def test_filters_wait_until_they_are_sent(shared: Open) -> None:
    """A date has a year from its first digit on, and a list a choice from the first arrow on."""
    place = shared()
    page, keys = place.page, place.page.keyboard
    place.go("memory")
    page.get_by_label("Kind").focus()
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    page.get_by_label("Day").focus()
    keys.type("03022026", delay=50)
    keys.press("Enter")
    page.wait_for_url("**kind=entry&person=&day=2026-03-02")


def tab_to(place: Place, name: str, within: int = 20) -> None:
    """Press Tab until the element with this text or label has the focus."""
    told = (
        "() => { const e = document.activeElement;"
        " return [e, ...(e.labels || [])].map(one => one.innerText || '').join(' ') }"
    )
    for _ in range(within):
        place.page.keyboard.press("Tab")
        if name in place.page.evaluate(told) and place.page.locator(":focus").count():
            return
    raise AssertionError(f"no Tab leads to {name!r} on {place.page.url}")


def test_without_javascript_everything_is_there(own: Open) -> None:
    place = own(java_script_enabled=False)
    page = place.page
    place.go("memory")
    page.get_by_label("Search").fill("thunder")
    page.get_by_role("button", name="Show").click()
    place.shows("Rex is afraid of thunder")
    page.get_by_text("Why it was found").first.click()
    page.locator('a:has-text("Rex is afraid of thunder")').first.click()
    place.shows("Where it was said")
    place.go("preview")
    page.get_by_role("button", name="Start the preview").click()
    # The page loads itself again until the work has ended.
    page.get_by_text("See what came of it").click(timeout=30_000)
    place.shows("nothing of it is in memory")
