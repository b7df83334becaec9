"""The page in a real Chromium, as people with a large and a small screen see it, light and dark, while groups fail."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.onnode.now import recorded
from tests.onnode.now.recorded import OSS, Recorded
from tests.onnode.page import browser, front
from tests.onnode.page.browser import SIZES, Browser, Page
from tests.onnode.page.front import GOOD, LIMITED, Front

pytestmark = [
    pytest.mark.skipif(not browser.PROGRAM, reason="no chromium here: apt-get install chromium, as make test does"),
    pytest.mark.slow,
]
SHOTS = "SPARKLOOM_SHOTS"  # a folder for pictures that somebody wants to look at


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.fixture
def web(site: Recorded) -> Iterator[Front]:
    with front.fronted(site) as running:
        yield running


def enter(page: Page, url: str, key: str = GOOD) -> None:
    """As a person does: a key is typed and sent."""
    page.go(f"{url}/")
    page.js(f"document.getElementById('key').value = '{key}'")
    page.js("document.getElementById('enter').requestSubmit()")


def shown(page: Page) -> None:
    page.until("!document.getElementById('content').hidden && document.querySelectorAll('.group').length === 3")
    page.until("document.getElementById('model').options.length === 3 && !!document.querySelector('#ways .way')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_shows_two_groups_that_fail_on_every_screen(
    chromium: Browser, site: Recorded, web: Front, size: str, scheme: str
) -> None:
    recorded.two_fail(site)
    page = chromium.page(size, scheme)
    enter(page, web.url)
    shown(page)
    assert page.text("headline") == "1 of 3 models serves"
    states = page.js("[...document.querySelectorAll('.group .state')].map((one) => one.innerText)")
    assert states == ["starts", "serves", "failed"]
    text = page.text("groups")
    assert "loading weights, shard 3 of 10" in text and "does not come to spark4" in text
    assert 'Back-off pulling image "<img src=x onerror=alert(1)>"' in text, "what the cluster says is text"
    assert "engines started 5 times; last ended: rank 1 on spark2: rail b" in text
    width = SIZES[size][0]
    assert page.js("document.documentElement.scrollWidth") == width, "nothing is wider than the screen"
    wide = "[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1"
    assert page.js(f"{wide} && !one.closest('.scroll, pre')).map((one) => one.outerHTML.slice(0, 80))") == []
    small = "[...document.querySelectorAll('button, input, select, summary')].filter((one) => one.offsetParent"
    assert page.js(f"{small} && one.getBoundingClientRect().height < 28).length") == 0, "a finger has to meet it"
    assert page.errors == [] and page.hosts == {web.url.split("/")[2]}
    if folder := os.environ.get(SHOTS):
        page.shot(Path(folder) / f"fails-{size}-{scheme}.png")


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark"), ("phone", "light")])
def test_who_sleeps_and_who_wakes_are_no_errors(
    chromium: Browser, site: Recorded, web: Front, size: str, scheme: str
) -> None:
    recorded.one_sleeps(site, time.time())
    site.route(0)
    page = chromium.page(size, scheme)
    enter(page, web.url)
    shown(page)
    assert page.text("headline") == "1 of 3 models serves, 1 asleep"
    states = page.js("[...document.querySelectorAll('.group .state')].map((one) => one.innerText)")
    assert states == ["wakes", "serves", "asleep"]
    text = page.text("groups")
    assert "Asleep, wakes with the next request." in text and "sleeps after 15 min without a request" in text
    assert "min of about 10 min, 2 waiting for it" in text and "its place is on 42 % of spark4" in text
    assert page.js("document.querySelectorAll('.cause:not(.mild):not(.calm)').length") == 0
    assert page.js("document.documentElement.scrollWidth") == SIZES[size][0]
    offered = page.js("[...document.getElementById('model').options].map((one) => one.text)")
    assert "qwen3.8-27b (asleep)" in offered, "who asks it wakes it"
    assert page.js(CONTRAST) == [] and page.errors == []
    if folder := os.environ.get(SHOTS):
        page.shot(Path(folder) / f"asleep-{size}-{scheme}.png")


def test_who_was_stopped_is_no_error_and_says_by_whom(chromium: Browser, site: Recorded, web: Front) -> None:
    recorded.one_is_stopped(site)
    site.route(0)
    page = chromium.page("phone", "light")
    enter(page, web.url)
    shown(page)
    assert page.text("headline") == "2 of 3 models serve, 1 stopped"
    assert f"stopped by {recorded.BY}" in page.text("groups")
    assert page.js("document.querySelectorAll('.cause:not(.mild):not(.calm)').length") == 0
    assert page.js("document.documentElement.scrollWidth") == SIZES["phone"][0]
    assert page.js(CONTRAST) == [] and page.errors == []
    if folder := os.environ.get(SHOTS):
        page.shot(Path(folder) / "stopped-phone-light.png")


def test_a_chat_says_how_far_a_waking_is(chromium: Browser, web: Front) -> None:
    web.waking = [": ping", ": qwen starts, 35 s of about 490 s"]
    page = chromium.page("desktop", "light")
    enter(page, web.url)
    shown(page)
    page.js("document.getElementById('words').value = 'hi'")
    page.js("document.getElementById('ask').requestSubmit()")
    page.until("document.getElementById('chat-state').innerText === 'qwen starts, 35 s of about 490 s…'")
    page.until("document.getElementById('chat-state').innerText.startsWith('First word after')")


CONTRAST = """
(() => {
  const linear = (v) => (v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  const light = (rgb) => { const [r, g, b] = rgb.map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b; };
  const parse = (text) => (text.match(/[0-9.]+/g) || []).map(Number);
  const ground = (one) => { for (; one; one = one.parentElement) {
    const c = parse(getComputedStyle(one).backgroundColor);
    if (c.length === 3 || c[3] > .99) return c.slice(0, 3); } return [255, 255, 255]; };
  const low = [];
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !one.offsetParent || one.disabled) continue;
    const a = light(parse(getComputedStyle(one).color).slice(0, 3)), b = light(ground(one));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) low.push(`${one.tagName}.${one.className} ${ratio.toFixed(2)} ${one.innerText.slice(0, 30)}`);
  }
  return low;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_has_the_contrast_that_eyes_need(chromium: Browser, site: Recorded, web: Front, scheme: str) -> None:
    """4.5 to 1, as WCAG 2.2 AA wants it of text."""
    page = chromium.page("desktop", scheme)
    enter(page, web.url)
    shown(page)
    assert page.js(CONTRAST) == []
    recorded.two_fail(site)
    page.until("document.getElementById('headline').innerText.startsWith('1 of')")
    assert page.js(CONTRAST) == []


def test_a_site_that_serves_tells_how_fast(chromium: Browser, site: Recorded, web: Front) -> None:
    page = chromium.page()
    enter(page, web.url)
    shown(page)
    site.made["glm"] += 4000
    site.made[OSS] += 500
    page.until("/tokens a second\\s*[1-9]/.test(document.getElementById('totals').innerText)")
    assert page.text("headline") == "3 of 3 models serve"
    assert "94.9 to 94.9 Gb/s" in page.text("rails") and "as fast as it should be" in page.text("rails")
    assert "roce: 4 HCAs" in page.text("groups") and page.errors == []


def test_screen_readers_find_names_roles_and_an_order(chromium: Browser, web: Front) -> None:
    page = chromium.page("phone")
    enter(page, web.url)
    shown(page)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [(one["role"]["value"], one.get("name", {}).get("value", "")) for one in nodes if not one.get("ignored")]
    unnamed = [role for role, name in named if role in ("button", "textbox", "combobox", "link", "image") and not name]
    assert unnamed == []
    assert {name for role, name in named if role == "heading"} >= {"fleet", "What is served now", "glm-5.3-flash"}
    levels = page.js("[...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1 and all(later - before <= 1 for before, later in itertools.pairwise(levels))
    assert sum(role == "image" and name.startswith("Memory of spark") for role, name in named) == 4
    assert {"main", "navigation", "log", "status"} <= {role for role, _ in named}


def test_a_wrong_key_is_said_and_kept_nowhere(chromium: Browser, web: Front) -> None:
    page = chromium.page("phone")
    enter(page, web.url, "sk-wrong")
    page.until("!document.getElementById('notice').hidden")
    assert "This key opens nothing here" in page.text("notice")
    assert page.js("sessionStorage.length + localStorage.length + document.cookie.length") == 0
    assert page.js("document.activeElement.id") == "key" and page.js("document.getElementById('content').hidden")
    assert page.js("document.getElementById('key').value") == ""


def test_a_key_that_is_limited_waits_as_long_as_it_is_told(chromium: Browser, web: Front) -> None:
    page = chromium.page()
    enter(page, web.url, LIMITED)
    page.until("!document.getElementById('notice').hidden")
    assert page.text("notice").endswith("(60 requests a minute) Again in 7 s.")
    page.js("document.getElementById('leave').click()")
    assert page.js("sessionStorage.length") == 0 and page.js("document.getElementById('enter').hidden") is False


def test_a_right_key_stays_in_this_tab_alone(chromium: Browser, web: Front) -> None:
    page = chromium.page()
    enter(page, web.url)
    shown(page)
    assert page.js("JSON.stringify({...sessionStorage})") == f'{{"sparkloom-key":"{GOOD}"}}'
    assert page.js("localStorage.length + document.cookie.length") == 0
    assert GOOD not in page.js("document.documentElement.outerHTML")
    page.go(f"{web.url}/")
    shown(page)
    other = chromium.page()
    other.go(f"{web.url}/")
    assert other.js("document.getElementById('enter').hidden") is False


def say(page: Page, words: str) -> None:
    page.js(f"document.getElementById('words').value = {words!r}; document.getElementById('ask').requestSubmit()")


def test_an_answer_streams_as_text_and_the_next_question_knows_it(chromium: Browser, web: Front) -> None:
    page = chromium.page("phone")
    enter(page, web.url)
    shown(page)
    say(page, "Hello you")
    page.until("document.getElementById('chat-state').innerText.startsWith('First word after')")
    assert front.BAD_TEXT in page.text("chat"), "markup of a model is shown, not obeyed"
    assert page.js("document.querySelectorAll('#chat img, #chat script, #chat b').length") == 0
    assert page.js("document.title") != "taken" and "21 tokens" in page.text("chat-state")
    say(page, "And again")
    page.until("document.querySelectorAll('#chat .turn').length === 4 && !document.getElementById('send').disabled")
    first, second = web.bodies
    assert first["model"] == "glm-5.3-flash" and first["stream"] is True
    assert [turn["role"] for turn in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == "".join(web.chat), "without its thoughts"
    assert page.errors == []


def test_stop_ends_the_request_itself(chromium: Browser, web: Front) -> None:
    web.endless = True
    page = chromium.page()
    enter(page, web.url)
    shown(page)
    say(page, "Count")
    page.until("document.getElementById('chat').innerText.includes('word word word')")
    assert page.js("document.getElementById('send').disabled") is True
    page.js("document.getElementById('stop').click()")
    page.until("document.getElementById('chat-state').innerText.startsWith('Stopped.')")
    limit = 100
    while not web.left and limit:
        page.js("new Promise((then) => setTimeout(then, 50))")
        limit -= 1
    assert web.left == 1, "the server saw its client leave"
    assert page.js("document.getElementById('send').disabled") is False and page.errors == []


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ((429, {"Retry-After": "9"}, "200000 tokens a minute"), "Again in 9 s."),
        ((503, {"Retry-After": "15"}, "glm is not up now; its engine starts or has failed"), "glm is not up now"),
        ((413, {}, "longer than 100 MB"), "longer than this site takes"),
    ],
)
def test_a_question_that_is_refused_says_why_and_is_not_lost(
    chromium: Browser, web: Front, refusal: tuple[int, dict[str, str], str], words: str
) -> None:
    web.refuses = refusal
    page = chromium.page()
    enter(page, web.url)
    shown(page)
    say(page, "Hello")
    page.until(f"document.getElementById('chat-state').innerText.includes({words!r})")
    assert page.js("document.getElementById('words').value") == "Hello"


def test_data_that_is_late_says_how_late(chromium: Browser, site: Recorded, web: Front) -> None:
    page = chromium.page()
    enter(page, web.url)
    shown(page)
    site.away = "the cluster's API does not answer: timed out"
    page.until("document.getElementById('problems').innerText.includes('does not answer')")
    assert page.js("document.querySelectorAll('.group').length") == 3, "what was last seen stays"
    page.until("/^As of [1-9]\\d* s ago/.test(document.getElementById('freshness').innerText)")


def test_a_site_without_an_answer_is_said_and_asked_again(chromium: Browser, site: Recorded, web: Front) -> None:
    site.away = "the cluster's API does not answer: timed out"
    page = chromium.page()
    enter(page, web.url)
    page.until("document.getElementById('notice').innerText.includes('does not answer')")
    site.away = ""
    shown(page)
    assert page.js("document.getElementById('notice').hidden") is True


def test_it_can_be_used_without_a_mouse(chromium: Browser, web: Front) -> None:
    page = chromium.page()
    page.go(f"{web.url}/")
    seen = []
    for _ in range(3):
        _press(page, "Tab", 9)
        seen.append(page.js("document.activeElement.id || document.activeElement.className"))
    assert seen == ["skip", "key", ""] or seen[:2] == ["skip", "key"]
    page.js("document.getElementById('key').focus()")
    page.call("Input.insertText", text=GOOD)
    _press(page, "Enter", 13, "\r")
    shown(page)
    page.js("document.getElementById('words').focus()")
    page.call("Input.insertText", text="Hello")
    _press(page, "Enter", 13, "\r", modifiers=2)
    page.until("document.getElementById('chat-state').innerText.startsWith('First word after')")


def _press(page: Page, key: str, code: int, text: str = "", modifiers: int = 0) -> None:
    for what in ("keyDown", "keyUp"):
        told = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        page.call("Input.dispatchKeyEvent", type=what, **told,
                  **({"text": text} if text and what == "keyDown" else {}))  # fmt: skip
