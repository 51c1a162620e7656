"""The page of a service in headless Chromium: its numbers live, its text harmless, its looks at two widths."""

import re
import time

import msgspec
import pytest

from balog.common.errors import TopicError
from balog.event import Event, encode
from balog.service.api.page import page
from balog.service.control import inspector
from balog.topics import Message

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>&lt;b&gt;\'"\u202e\u0007'
RATE = re.compile(r"[0-9.]+ /s")


@pytest.fixture(autouse=True)
def looks_are_frequent(monkeypatch):
    monkeypatch.setattr(inspector, "EVERY", 0.2)
    monkeypatch.setattr(inspector, "_PART", 0)


class Opened:
    """A page that was opened, and all that it asked for and complained about."""

    def __init__(self, browser, url, width=1280, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page, self.requests, self.messages = self.context.new_page(), [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.goto(url)

    def table(self, name):
        cells = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
        return self.page.eval_on_selector_all(f"#{name} tbody tr", cells)

    def wait(self, selector, text):
        """Wait until the first of these has that text. The page's policy forbids the browser to poll by itself."""
        deadline = time.monotonic() + 30.0
        while True:
            found = self.page.evaluate("selector => document.querySelector(selector)?.innerText ?? ''", selector)
            if text in found:
                return
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


@pytest.fixture
def open_page(browser):
    opened = []

    def open(*args, **options):
        opened.append(Opened(browser, *args, **options))
        return opened[-1]

    yield open
    for one in opened:
        one.context.close()


def test_only_its_own_script_may_run_and_it_asks_nobody_else():
    content, headers = page()
    text = content.decode()

    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "https://" not in text
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "/*style*/" not in text
    assert "innerHTML" not in text


@pytest.mark.service
def test_its_numbers_are_live_on_a_narrow_and_dark_screen_too(controlled, api, open_page):
    filters = [{"name": "big", "sources": ["order"], "to": "big", "where": "payload.n >= 50"}]
    api("POST", "/v1/config?message=the%20first", {"filters": filters})
    controlled.send_orders(100)
    opened = open_page(controlled.url, width=390, scheme="dark")
    opened.wait("#streams tbody tr td:nth-child(4)", "100")
    opened.wait("#topics tbody", "filter.big")
    opened.wait("#services tbody", "service one")

    (stream,) = opened.table("streams")
    assert stream[0] == "order"
    controlled.send_orders(200)
    opened.wait("#streams tbody tr td:nth-child(4)", "300")
    rate = opened.page.inner_text("#facts div:first-child dd")
    assert RATE.search(rate)
    assert not rate.startswith("0 ")
    opened.wait("#topics tbody tr:nth-child(2)", "300")
    topics = {row[0]: row for row in opened.table("topics")}
    assert set(topics) == {"big", "order"}
    assert "filter.big" in topics["order"][5]
    (job,) = opened.table("jobs")
    assert job[:2] == ["filter big", "running"]
    (entry,) = opened.table("history")
    assert (entry[0], entry[1], entry[4]) == ("1", "push", "the first")
    assert opened.page.inner_text("#service") == "service one"

    assert opened.messages == []
    assert {url for url in opened.requests if not url.startswith(controlled.url)} <= {"data:,"}
    wide = opened.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(21, 22, 24)"


@pytest.mark.service
def test_hostile_text_is_only_text(controlled, api, open_page, monkeypatch):
    """Given markup in every text that somebody else can choose, then it is shown as it is and nothing of it runs."""
    event = Event.new(HOSTILE, {"cls_type": HOSTILE, "version": HOSTILE})
    controlled.topics.topic("orders").publish([Message("1", encode(event))])
    api("POST", "/v1/config", {"streams": [{"name": "seven"}]})
    monkeypatch.setattr(controlled.applier, "service", HOSTILE)
    controlled.metrics.count_events({(HOSTILE, 202, "topics"): 3, (HOSTILE, 422, ""): 1})
    hostile = {"service": HOSTILE, "reason": HOSTILE, "state": "refused"}
    controlled.control.report(msgspec.structs.replace(controlled.applier.status(), **hostile))
    controlled.control.push(b'{"streams": [{"name": "nine"}]}', who=HOSTILE, message=HOSTILE)
    names = controlled.inspector._backend.names

    def fail_after_a_turn():
        if controlled.inspector._inspected:
            raise TopicError(HOSTILE)
        return names()

    monkeypatch.setattr(controlled.inspector._backend, "names", fail_after_a_turn)
    opened = open_page(controlled.url)
    opened.wait("#errors", "<script>")
    opened.wait("#history tbody", "onerror")
    opened.wait("#services tbody", "onerror")

    assert "<script>window.hacked=1</script>&lt;b&gt;" in opened.page.inner_text("#streams")
    assert "<script>" in opened.page.inner_text("#service")
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert "\u202e" not in opened.page.inner_text("body")
    assert opened.messages == []
    wide = opened.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


@pytest.mark.service
def test_a_service_with_tokens_asks_for_one_and_keeps_it_in_the_tab(guarded, open_page):
    controlled, tokens = guarded
    controlled.send_orders(5)
    opened = open_page(controlled.url)
    opened.wait("#login h2", "wants a token")
    assert opened.page.is_hidden("#live")
    opened.page.fill("#token", "wrong")
    opened.page.click("#login button")
    opened.wait("#login-why", "the token is not known")
    opened.page.fill("#token", tokens["send"])
    opened.page.click("#login button")
    opened.wait("#login-why", "may not read")
    opened.page.fill("#token", tokens["read"])
    opened.page.click("#login button")
    opened.wait("#streams tbody", "order")

    assert opened.page.evaluate("sessionStorage.length + localStorage.length + document.cookie.length") == 1
    assert tokens["read"] not in " ".join(opened.requests)
    opened.page.reload()
    opened.wait("#streams tbody", "order")
    opened.page.click("#forget")
    assert opened.page.is_hidden("#live")
    assert opened.page.evaluate("sessionStorage.length") == 0


@pytest.mark.service
def test_a_service_that_is_gone_is_said_and_one_that_comes_back_is_shown(tmp_path, make_controlled, open_page):
    with make_controlled(tmp_path).running() as controlled:
        controlled.send_orders(5)
        opened = open_page(controlled.url)
        opened.wait("#streams tbody", "order")
        opened.page.route("**/v1/status", lambda route: route.abort())
        opened.wait("#where.stale", "No numbers for")
        opened.page.unroute("**/v1/status")
        opened.wait("#where:not(.stale)", "Up for")
