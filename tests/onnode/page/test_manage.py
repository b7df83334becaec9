"""What a key that may administer sees and does on the page, in a real Chromium: by mouse, by keys alone, on a phone."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.page import actions, groups
from tests.onnode.now import recorded
from tests.onnode.now.recorded import OSS, Recorded
from tests.onnode.page import browser, front
from tests.onnode.page.browser import SIZES, Browser, Page
from tests.onnode.page.front import GOOD, PLAIN, Front
from tests.onnode.page.test_acting import USED
from tests.onnode.page.test_browser import CONTRAST, SHOTS, enter, say, shown
from tests.onnode.page.test_browser import _press as press
from tests.onnode.page.test_browser import chromium as chromium  # a fixture
from tests.onnode.page.test_browser import web as web

pytestmark = [
    pytest.mark.skipif(not browser.PROGRAM, reason="no chromium here: apt-get install chromium, as make test does"),
    pytest.mark.slow,
]


def managed(page: Page, web: Front, key: str = GOOD) -> None:
    enter(page, web.url, key)
    shown(page)
    page.until("!document.getElementById('manage').hidden && document.querySelectorAll('#people tr').length > 2")


def click(page: Page, what: str) -> None:
    page.js(f"document.querySelector({json.dumps(what)}).click()")


def made(page: Page) -> str:
    page.until("document.getElementById('confirm').open")
    assert page.js("document.activeElement.id") == "confirm-no", "who presses Enter by habit does nothing"
    click(page, "#confirm-yes")
    page.until("!document.getElementById('made').hidden")
    return page.text("made-key")


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_key_is_made_used_and_revoked(chromium: Browser, site: Recorded, web: Front, size: str, scheme: str) -> None:
    site.route(0)
    site.used = USED
    page = chromium.page(size, scheme)
    managed(page, web)
    assert "alice" in page.text("me") and "190" not in page.text("used") and "140" in page.text("used")
    page.js("document.getElementById('new-name').value = 'carol'; document.getElementById('new-days').value = '90'")
    click(page, "#opens input[value='chat'], #opens input")
    page.js("document.getElementById('make').requestSubmit()")
    page.until("document.getElementById('confirm').open")
    assert page.text("confirm-words").startswith("Make a key of carol for glm-5.3-flash, until 20") and not site.changed
    if folder := os.environ.get(SHOTS):
        page.shot(Path(folder) / f"confirm-{size}-{scheme}.png", whole=False)
    key = made(page)
    page.until("document.getElementById('manage-state').innerText.includes('shown this once')")
    assert key.startswith("sk-")
    assert page.js("document.getElementById('new-name').value") == "" and "carol" in page.text("people")
    assert "alice: make a key of carol" in page.text("journal")
    width = SIZES[size][0]
    assert page.js("document.documentElement.scrollWidth") == width, "nothing is wider than the screen"
    small = "[...document.querySelectorAll('#manage :is(button, input, select)')].filter((one) => one.offsetParent"
    assert page.js(f"{small} && one.getBoundingClientRect().height < 28).length") == 0
    cut = (
        "[...document.querySelectorAll('#people button')].some((one) => one.getBoundingClientRect().right > innerWidth)"
    )
    assert page.js(cut) is False, "to revoke, nobody has to move a table aside"
    assert page.js(CONTRAST) == []
    if folder := os.environ.get(SHOTS):
        page.shot(Path(folder) / f"manage-{size}-{scheme}.png")
    click(page, "[data-revoke='carol']")
    page.until("document.getElementById('confirm').open")
    click(page, "#confirm-yes")
    page.until("!document.getElementById('people').innerText.includes('carol')")
    assert page.js("document.getElementById('made').hidden") is True, "the key is not on the screen any more"
    assert key not in page.js("document.documentElement.outerHTML") and page.errors == []
    assert [line.split(" ", 1)[1].partition(" of ")[0] for line in site.journal] == [
        "alice: make a key", "alice: revoke the key"]  # fmt: skip


@pytest.mark.skipif(not os.environ.get(SHOTS), reason=f"{SHOTS}=docs/pictures makes those of docs/watch.md anew")
def test_pictures_of_the_documents(chromium: Browser, site: Recorded, web: Front) -> None:
    folder = Path(os.environ[SHOTS])
    page = chromium.page("phone", "dark")
    managed(page, web)
    web.chat = ["A spark is a small glowing particle,", " and here also a small machine."]
    say(page, "What is a spark?")
    page.until("document.getElementById('chat-state').innerText.startsWith('First word after')")
    page.js("document.getElementById('try').scrollIntoView({behavior: 'instant'})")
    page.shot(folder / "page-phone-dark.jpg", whole=False)
    page = chromium.page()
    managed(page, web)
    page.js("document.getElementById('new-name').value = 'carol'; document.getElementById('make').requestSubmit()")
    made(page)
    page.until("document.getElementById('journal').innerText.includes('carol')")
    page.js("document.getElementById('manage').scrollIntoView({behavior: 'instant'})")
    page.js("scrollTo({top: scrollY + 180, behavior: 'instant'})")
    page.shot(folder / "page-manage.jpg", whole=False)
    recorded.two_fail(site)
    site.measure(time.time())
    page = chromium.page()
    enter(page, web.url)
    shown(page)
    page.shot(folder / "page-two-fail.jpg", whole=False)


def test_a_key_without_the_right_sees_nothing_of_it(chromium: Browser, site: Recorded, web: Front) -> None:
    page = chromium.page()
    enter(page, web.url, PLAIN)
    shown(page)
    page.until("performance.getEntriesByName(location.origin + '/page/act/session').length === 1")
    page.js("new Promise((then) => setTimeout(then, 300))")
    assert page.js("document.getElementById('manage').hidden && document.getElementById('manage-link').hidden")
    refused = "fetch('/page/act/keys', {method: 'POST', body: '{}', headers: {Authorization: 'Bearer " + PLAIN + "'}})"
    assert page.js(f"{refused}.then((answer) => answer.status)") == 403 and site.changed == []


def test_a_log_is_shown_as_text(chromium: Browser, site: Recorded, web: Front) -> None:
    site.logs = {
        "glm-rank0-0": f"\x1b[32mready\x1b[0m\n{front.BAD_TEXT}\n",
        "glm-rank1-0": "".join(f"{n}\n" for n in range(200)),
    }
    page = chromium.page("phone")
    managed(page, web)
    click(page, "#show-log")
    page.until("document.querySelectorAll('#logs pre').length === 2")
    text = page.text("logs")
    assert "Rank 0 on spark1" in text and "ready\n" in text and front.BAD_TEXT in text and "\x1b" not in text
    assert page.js("document.querySelectorAll('#logs :is(img, script, b)').length") == 0
    assert page.js("document.querySelectorAll('#logs pre')[1].scrollTop") > 0, "its end is what is read"
    assert page.js("document.documentElement.scrollWidth") == SIZES["phone"][0] and page.errors == []


def test_it_all_goes_without_a_mouse_and_escape_does_nothing(chromium: Browser, site: Recorded, web: Front) -> None:
    page = chromium.page()
    managed(page, web)
    page.js("document.getElementById('new-name').focus()")
    page.call("Input.insertText", text="carol")
    press(page, "Enter", 13, "\r")
    page.until("document.getElementById('confirm').open")
    press(page, "Escape", 27)
    page.until("document.getElementById('manage-state').innerText === 'Nothing was done.'")
    assert site.changed == [] and page.js("document.getElementById('confirm').open") is False
    page.js("document.getElementById('new-name').focus()")
    press(page, "Enter", 13, "\r")
    page.until("document.getElementById('confirm').open")
    press(page, "Tab", 9, modifiers=8)
    assert page.js("document.activeElement.id") == "confirm-yes"
    press(page, "Enter", 13, "\r")
    page.until("!document.getElementById('made').hidden && document.activeElement.id === 'made-key'")
    assert {one.name for one in site.keys} == {"alice", "bob", "carol", "owner"} and page.errors == []


@pytest.mark.parametrize("size", SIZES)
def test_a_group_is_stopped_and_started_by_keys_alone(chromium: Browser, site: Recorded, web: Front, size: str) -> None:
    page = chromium.page(size)
    managed(page, web)

    def press_act(name: str, words: str) -> None:
        page.js("document.getElementById('group').value = 'chat'")
        page.js(f"document.querySelector('[data-act={name}]').focus()")
        press(page, "Enter", 13, "\r")
        page.until("document.getElementById('confirm').open")
        assert page.text("confirm-words").startswith(words)
        assert page.js("document.activeElement.id") == "confirm-no", "who presses Enter twice does nothing"
        assert page.js("document.documentElement.scrollWidth") == SIZES[size][0], "nothing is wider than the screen"
        press(page, "Tab", 9, modifiers=8)
        press(page, "Enter", 13, "\r")

    press_act("stop", "Stop chat on spark4 (51.07 GiB): requests that run have 40 s to end, then whoever asks it")
    page.until("document.getElementById('headline').innerText === '2 of 3 models serve, 1 stopped'")
    assert "stopped by alice on the page, " in page.text("groups")
    press_act("start", "Start chat on spark4 (51.07 GiB).")
    page.until("document.getElementById('headline').innerText === '3 of 3 models serve'")
    page.until("document.getElementById('journal').innerText.includes('alice: start chat')")
    assert page.js(CONTRAST) == [] and page.errors == []


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_one_takes_the_place_of_another(
    chromium: Browser, site: Recorded, web: Front, monkeypatch: pytest.MonkeyPatch, size: str, scheme: str
) -> None:
    monkeypatch.setattr(groups, "EVERY", 0.2)
    recorded.one_place(site)
    page = chromium.page(size, scheme)
    managed(page, web)
    page.js("document.getElementById('group').value = 'chat'")
    click(page, "[data-act=start]")
    page.until("document.getElementById('confirm').open")
    words = page.text("confirm-words")
    assert words.startswith(f"Stop {OSS}, as spark4 does not hold both:") and "; then start chat on spark4" in words
    if folder := os.environ.get(SHOTS):
        page.shot(Path(folder) / f"switch-{size}-{scheme}.png", whole=False)
    click(page, "#confirm-yes")
    page.until(f"document.getElementById('manage-state').innerText === 'chat starts once {OSS} is gone.'")
    page.until("document.querySelectorAll('.group .state')[2].innerText === 'serves'")
    page.until("document.querySelectorAll('.group .state')[1].innerText.startsWith('stopped by alice on the page')")
    assert page.text("headline") == "2 of 3 models serve, 1 stopped" and page.errors == []


def test_the_command_for_what_a_pod_may_not_do_is_copied(chromium: Browser, web: Front) -> None:
    page = chromium.page("phone")
    managed(page, web)
    page.js("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    click(page, "[data-copy=switch]")
    page.until("document.getElementById('manage-state').innerText === 'Copied.'")
    assert "playbooks/switch.yml -e profile=" in page.js("window.copied")


def test_an_action_of_a_group_is_offered_and_says_first_what_it_will_do(
    chromium: Browser, site: Recorded, web: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []

    def says(where: Any, given: Any) -> str:
        return f"stop {given['group']}, which 4 requests use now"

    def does(where: Any, given: Any, person: str) -> dict[str, Any]:
        stopped.append(f"{person} {given['group']}")
        return {"said": f"{given['group']} stops."}

    monkeypatch.setitem(actions.ACTIONS, "stop", actions.Action(says, does, of_group=True))
    page = chromium.page("phone")
    managed(page, web)
    page.js("document.getElementById('group').value = 'chat'")
    click(page, "#group-acts button")
    page.until("document.getElementById('confirm').open")
    assert page.text("confirm-words") == "Stop chat, which 4 requests use now." and stopped == []
    click(page, "#confirm-yes")
    page.until("document.getElementById('manage-state').innerText === 'chat stops.'")
    assert stopped == ["alice chat"] and site.journal[0].endswith("alice: stop chat, which 4 requests use now")


def test_screen_readers_hear_whose_key_a_button_revokes_and_what_happened(chromium: Browser, web: Front) -> None:
    page = chromium.page("phone")
    managed(page, web)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [(one["role"]["value"], one.get("name", {}).get("value", "")) for one in nodes if not one.get("ignored")]
    assert [role for role, name in named if role in ("button", "textbox", "spinbutton", "checkbox") and not name] == []
    assert {("button", "Revoke the key of bob"), ("combobox", "Group"), ("textbox", "For"), ("spinbutton", "Days"),
            ("region", "Keys"), ("region", "Usage"), ("checkbox", "May administer this site"),
            ("button", "Stop"), ("button", "Start"), ("button", "Copy the command"),
            ("group", "Models; none chosen means all"), ("heading", "Manage")} <= set(named)  # fmt: skip
    click(page, "[data-revoke='bob']")
    page.until("document.getElementById('confirm').open")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    dialogs = [one for one in nodes if one["role"]["value"] == "dialog"]
    assert dialogs[0]["name"]["value"] == "Shall this happen?"
    assert dialogs[0]["description"]["value"].startswith("Revoke the key of bob")
    click(page, "#confirm-no")


def test_a_server_that_began_anew_is_asked_for_another_session(chromium: Browser, site: Recorded, web: Front) -> None:
    page = chromium.page()
    managed(page, web)
    with front.running(site) as other:
        web.behind = other.server_address[1]
        click(page, "[data-revoke='bob']")
        page.until("document.getElementById('confirm').open")
        click(page, "#confirm-yes")
        page.until("document.getElementById('people').innerText.includes('revoked by alice')")


def test_another_site_s_page_cannot_act_even_with_the_key(chromium: Browser, site: Recorded, web: Front) -> None:
    """It may know the key: its requests are of another origin, and a form brings neither key nor token."""
    with front.fronted(site) as evil:
        page = chromium.page()
        page.go(f"{evil.url}/")
        away = f"{web.url}/page/act/key-revoke"
        asked = (
            "{method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body: '{\"name\": \"bob\"}'}"
        )
        blocked = f"fetch({away!r}, {asked}).then((answer) => answer.type).catch((error) => 'blocked')"
        assert page.js(blocked) in ("opaque", "blocked")
        given = f"{{method: 'POST', headers: {{Authorization: 'Bearer {GOOD}'}}, body: '{{}}'}}"
        assert page.js(f"fetch({away!r}, {given}).then((answer) => answer.status).catch(() => 'blocked')") == "blocked"
        assert site.changed == [] and {one.taken for one in site.keys} == {""}


def test_a_forgotten_key_leaves_nothing_of_it(chromium: Browser, web: Front) -> None:
    page = chromium.page()
    managed(page, web)
    click(page, "#leave")
    assert page.js("document.getElementById('manage').hidden && document.getElementById('manage-link').hidden")
    assert page.text("people") == "" and "alice: " not in page.js("document.documentElement.outerHTML")
