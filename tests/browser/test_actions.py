"""Every action, end to end: what a person does in the browser is what memory then holds."""

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Open, Place
from tests.server.test_server_auth import http, token
from tests.server.test_server_inspector import say
from tests.support.server import Server

pytestmark = pytest.mark.browser


def first(place: Place, path: str, links: str) -> None:
    place.go(path)
    place.page.locator(links).first.click()


def test_a_question_is_answered(own: Open) -> None:
    place = own()
    place.go("today")
    assert list(place.files.iterdir()) == []
    place.page.get_by_role("button", name="Approve").click()
    place.page.get_by_text("See what came of it").click(timeout=30_000)
    place.shows("What it did")
    [written] = place.files.iterdir()
    assert "paint" in written.read_text()
    place.go("today")
    assert place.page.get_by_role("button", name="Approve").count() == 0


def test_a_question_is_refused_with_a_reason(own: Open) -> None:
    place = own()
    place.go("today")
    place.page.get_by_label("Why not").fill("the list is on the wall")
    place.page.get_by_role("button", name="Refuse").click()
    place.page.get_by_text("See what came of it").wait_for(timeout=30_000)
    assert list(place.files.iterdir()) == []
    place.go("log?what=question_answered")
    assert "the list is on the wall" in (place.page.locator(".log").text_content() or "")


def test_a_fact_is_mended_and_mended_back(changing: Place) -> None:
    place = changing
    first(place, "memory?q=Paris&kind=fact", ".memory .words a")
    place.page.get_by_role("link", name="Correct", exact=True).click()
    place.page.get_by_label("What is true").fill("I live in Oslo.")
    place.page.get_by_role("button", name="Show what would change").click()
    place.shows("would hold from now on, as said by Ada")
    place.page.get_by_role("button", name="Correct it").click()
    place.shows("What replaced what")
    place.page.get_by_role("link", name="correct it to the old words").click()
    place.page.get_by_role("button", name="Correct it").click()
    place.go("memory?holds=ended")
    place.shows("I live in Oslo.")


def test_a_memory_is_forgotten_for_good(changing: Place) -> None:
    place = changing
    first(place, "memory?q=thunder&kind=fact", ".memory .words a")
    where = place.page.url
    place.page.get_by_role("link", name="Forget", exact=True).click()
    place.shows("This cannot be taken back")
    place.page.get_by_role("button", name="Forget it for good").click()
    place.page.get_by_text("this is for good").wait_for(timeout=30_000)
    gone = place.page.goto(where)
    assert gone is not None
    assert gone.status == 404


def test_somebody_is_forgotten(changing: Place) -> None:
    place = changing
    first(place, "people?q=Ben", "a.name")
    place.page.get_by_role("link", name="Forget Ben").click()
    place.shows("What would be forgotten with Ben")
    place.page.get_by_role("button", name="Forget Ben for good").click()
    place.page.get_by_text("It is done").wait_for(timeout=30_000)
    place.go("memory")
    assert "Rex" not in place.page.locator("main").inner_text()


def test_a_night_is_previewed_with_its_progress_applied_and_taken_back(own: Open) -> None:
    place = own()
    page = place.page
    place.go("preview")
    page.get_by_role("button", name="Start the preview").click()
    page.get_by_text("See what came of it").click(timeout=30_000)
    place.shows("nothing of it is in memory")
    place.shows("Learned 1 fact")
    place.go("memory?kind=fact")
    assert "Wilma" not in page.locator("main").inner_text()
    first(place, "nights", "tbody a")
    page.get_by_role("link", name="Apply this night").click()
    page.get_by_role("button", name="Apply it").click()
    page.get_by_text("See what came of it").click(timeout=30_000)
    place.go("memory?kind=fact")
    place.shows("Wilma")
    first(place, "nights", "tbody a")
    page.get_by_role("link", name="Undo this night").click()
    page.get_by_role("button", name="Undo it").click()
    place.shows("Taken back")
    place.go("memory?kind=fact")
    assert "Wilma" not in page.locator("main").inner_text()


def test_a_preview_is_let_go(changing: Place) -> None:
    place = changing
    place.go("preview")
    place.page.get_by_role("button", name="Start the preview").click()
    place.page.get_by_text("See what came of it").click(timeout=30_000)
    place.page.get_by_role("link", name="Discard this night").click()
    place.page.get_by_role("button", name="Discard it").click()
    place.shows("it is never applied")


def signed_in(page: Page, server: Server, user: str) -> Page:
    page.goto(f"{server.url}/circadian/inspect")
    page.get_by_label("Your token").fill(token(user))
    page.get_by_role("button", name="Sign in").click()
    return page


def test_two_users_at_once_see_and_change_their_own(browser: Browser, token_server: Server) -> None:
    """Each in a browser of their own, on one server; the third user has no agent yet."""
    ada, ben, eve = (f"{name}-in-the-browser" for name in ("ada", "ben", "eve"))
    say(token_server, ada, "adas", "My canary Zeno sings in Frisian")
    say(token_server, ben, "bens", "My hedge is made of hazel")
    with browser.new_context() as hers, browser.new_context() as his, browser.new_context() as new:
        page = hers.new_page()
        page.goto(f"{token_server.url}/circadian/inspect")
        page.get_by_label("Your token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").wait_for()
        pages = [signed_in(page, token_server, ada), signed_in(his.new_page(), token_server, ben)]
        for page, name, words in zip(pages, ("adas", "bens"), ("Zeno", "hazel"), strict=True):
            page.get_by_role("heading", name="Today").wait_for()
            assert page.locator(".brand strong").inner_text() == name
            assert page.locator(".agents").count() == 0
            page.get_by_role("link", name="Memory", exact=True).click()
            page.locator(".memory .words a").get_by_text(words).first.click()
            page.get_by_role("link", name="Forget", exact=True).wait_for()
        [cookie] = hers.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        # By the addresses of what is Ada's, Ben comes to nothing.
        adas, bens = pages
        where = adas.url
        for address in (where, where.replace("/adas/", "/bens/"), where.partition("/memory")[0]):
            bens.goto(address)
            bens.get_by_role("heading", name="Not found").wait_for()
            assert "Zeno" not in bens.content()
        bens.get_by_role("button", name="Sign out").click()
        bens.get_by_label("Your token").wait_for()
        adas.get_by_role("link", name="Forget", exact=True).click()
        adas.get_by_role("button", name="Forget it for good").click()
        adas.get_by_text("this is for good").wait_for(timeout=30_000)
        nobody = signed_in(new.new_page(), token_server, eve)
        nobody.get_by_text("makes one").wait_for()
        nobody.get_by_role("button", name="Sign out").click()
        nobody.get_by_label("Your token").wait_for()
    with http(token_server, ben) as client:
        assert client.get("/circadian/agents/bens/facts").json()["total"] == 1
