"""What is told, how often, and that telling it never costs, delays or fails anything."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.ledger.policy import webhook
from sfumato.ledger.policy.alerts import Alert, Watch, flush, tell
from sfumato.ledger.policy.policy import AlertRule, Policy

START = datetime(2026, 1, 1, tzinfo=UTC)
PEOPLE = {"omar": ("privacy officer",), "pia": ("privacy officer",), "dora": ("data owner",)}


def policy(**fields: Any) -> Policy:
    return Policy(people=PEOPLE, alerts=AlertRule(**{"burn": None, "alike": None, **fields}))


class Account:
    """An account that is watched, step by step."""

    def __init__(self, rules: Policy) -> None:
        self.rules, self.watch, self.share, self.failures, self.day = rules, Watch(account="a"), Fraction(0), 0, 0.0

    def step(self, share: Any = None, question: str | None = None, failed: bool = False, days: float = 0) -> list[str]:
        self.day += days
        self.failures += failed
        before, self.share = self.share, self.share if share is None else Fraction(str(share))
        at = (START + timedelta(days=self.day)).isoformat()
        self.watch, alerts = self.watch.after(self.rules, at, before, self.share, question, self.failures)
        assert record.parse(record.canonical(self.watch)) == self.watch
        return [alert.what for alert in alerts]

    def raised(self, factor: int) -> None:
        self.share /= factor


# what is told


def test_a_threshold_is_told_once() -> None:
    account = Account(policy())
    told = [bool(account.step(share)) for share in ("0.49", "0.5", "0.6", "0.79", "0.8", "0.94", "0.951", "1", "1")]
    assert told == [False, True, False, False, True, False, True, False, False]


def test_of_several_at_once_the_largest_is_told() -> None:
    watch, alerts = Watch(account="a").after(policy(), START, Fraction(0), Fraction(97, 100), None, 0)
    assert [(alert.what, alert.level) for alert in alerts] == [("spent", "urgent")]
    assert "97 %" in alerts[0].words
    assert "95 %" in alerts[0].words
    assert watch.told == Fraction(95, 100)


def test_the_higher_the_more_urgent() -> None:
    account, levels = Account(policy()), []
    for share in (Fraction(1, 2), Fraction(4, 5), Fraction(19, 20)):
        account.watch, alerts = account.watch.after(account.rules, START, Fraction(0), share, None, 0)
        levels += [alert.level for alert in alerts]
    # a share that is said to have fallen to 0 each time is told anew
    assert levels == ["note", "warning", "urgent"]


def test_after_a_raise_what_was_passed_may_be_told_again() -> None:
    account = Account(policy())
    assert account.step("0.85") == ["spent"]
    account.raised(2)
    assert account.step("0.45") == []
    assert account.step("0.55") == ["spent"]
    assert account.step("0.81") == ["spent"]
    assert account.step("0.82") == []


def test_a_policy_that_comes_late_tells_where_an_account_stands() -> None:
    _, alerts = Watch(account="a").after(policy(), START, Fraction(9, 10), Fraction(91, 100), None, 0)
    assert [alert.what for alert in alerts] == ["spent"]


def test_burning_fast_is_told_once_a_window() -> None:
    account = Account(policy(spent=(), burn=0.25, days=7))
    assert account.step("0.2") == []
    assert account.step("0.24", days=6) == []
    assert account.step("0.25") == ["burn"]
    assert account.step("0.5") == []
    assert account.step("0.74", days=1) == []  # a new window, from 0.5 on
    assert account.step("0.75") == ["burn"]
    slow = Account(policy(spent=(), burn=0.25, days=7))
    assert [slow.step(Fraction(n, 5), days=7) for n in range(1, 6)] == [[]] * 5


def test_a_raise_shrinks_what_was_burnt_with_the_rest() -> None:
    account = Account(policy(spent=(), burn=0.25, days=7))
    account.step("0.2")
    account.raised(2)
    assert account.step("0.24") == []
    assert account.step("0.25") == ["burn"]
    later = Account(policy(spent=(), burn=0.25, days=7))
    later.step("0.6")
    later.step("0.6", days=8)
    later.raised(2)  # the window began at what is now 0.3
    assert later.step("0.54") == []
    assert later.step("0.55") == ["burn"]


def test_the_same_question_again_and_again() -> None:
    account = Account(policy(alike=3, days=7))
    asked = [account.step(question=q) for q in ("x" * 64, "y" * 64, "x" * 64, "x" * 64, "x" * 64, "x" * 64, "x" * 64)]
    assert asked == [[], [], [], ["alike"], [], [], ["alike"]]
    assert account.step(question="y" * 64) == []
    assert account.step(question="y" * 64, days=8) == []  # another window
    assert account.step() == []


def test_failures_are_told_and_then_the_lock() -> None:
    account = Account(policy(failures=2, lock_after=3))
    assert [account.step(failed=True) for _ in range(3)] == [[], ["failures"], ["locked"]]
    assert account.step() == []  # told once
    account.failures = 0  # unlocked
    assert [account.step(failed=True) for _ in range(3)] == [[], ["failures"], ["locked"]]
    usual = Account(policy())
    assert [usual.step(failed=True) for _ in range(3)] == [["failures"], ["failures"], ["locked"]]


# the clock


def test_a_clock_that_goes_back_reopens_nothing() -> None:
    account = Account(policy(spent=(), burn=0.25, alike=3, days=7))
    account.step("0.1", question="q", days=100)
    since = account.watch.since
    assert account.step("0.2", question="q", days=-99) == []
    assert account.watch.since == since
    assert sorted(account.step("0.25", question="q", days=-10_000)) == ["alike", "burn"]
    assert account.watch.since == since
    account.step("0.3", days=10_000 + 99 + 3)
    assert account.watch.since == since  # the window goes on where it was


def test_a_clock_that_goes_far_ahead_is_safe() -> None:
    account = Account(policy(spent=(), burn=0.25, days=7))
    account.step("0.1")
    account.day = 2_900_000  # the year 9965
    assert account.step("0.2") == []
    account.day = 1
    assert account.step("0.44") == ["burn"]  # what follows is all one window: more is told, not less
    for at in (datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)):
        account.watch.after(account.rules, at, Fraction(0), Fraction(0), None, 0)


@pytest.mark.parametrize("at", ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", 3, None, datetime(2026, 1, 1)])
def test_a_time_without_a_zone_is_no_time(at: Any) -> None:
    with pytest.raises(ArgumentError, match="at"):
        Watch(account="a").after(policy(), at, Fraction(0), Fraction(0), None, 0)


def test_times_of_other_zones_are_the_same_times() -> None:
    here, _ = Watch(account="a").after(policy(), "2026-01-01T12:00:00+00:00", Fraction(0), Fraction(0), None, 0)
    there, _ = Watch(account="a").after(policy(), "2026-01-01T14:00:00+02:00", Fraction(0), Fraction(0), None, 0)
    assert here == there


# what is remembered


_steps = st.tuples(
    st.fractions(min_value=0, max_value=1),
    st.integers(-400, 400),
    st.integers(0, 300),
    st.booleans(),
    st.integers(1, 3),
)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(_steps, max_size=120))
def test_it_stays_small_and_never_breaks(steps: list[tuple[Fraction, int, int, bool, int]]) -> None:
    rules, watch, share, day = policy(alike=2, burn=0.1), Watch(account="a"), Fraction(0), 0
    latest = ""
    for more, days, question, failed, factor in steps:
        day += days
        before = share / factor
        share = min(before + more / 10, Fraction(1))
        at = START + timedelta(days=day)
        watch, alerts = watch.after(rules, at, before, share, f"{question:064d}"[::-1], watch.failures + failed)
        assert len(record.canonical(watch)) < 6000
        assert len(alerts) <= 4
        assert watch.latest >= latest
        assert watch.since <= watch.latest
        assert 0 <= watch.before <= watch.share <= 1
        assert watch.told <= watch.share
        latest = watch.latest


def test_many_questions_do_not_push_out_one_that_repeats() -> None:
    account = Account(policy(alike=50))
    told = 0
    for n in range(2000):
        account.step(question=f"{n:064d}"[::-1])
        told += account.step(question="x" * 64) == ["alike"]
    assert told == 2000 // 50
    assert len(account.watch.alike) <= 64


def test_a_thousand_digits_are_not_kept() -> None:
    share = Fraction(10**1000 // 3, 10**1000)
    watch, _ = Watch(account="a").after(policy(), START, share, share, None, 0)
    assert watch.share == Fraction(333333, 10**6)


# telling


def alert(words: str = "account 'a' has spent 51 %", account: str = "a") -> Alert:
    return Alert(account=account, what="spent", level="note", words=words)


def test_an_alert_is_of_a_known_kind() -> None:
    with pytest.raises(ArgumentError, match="what"):
        Alert(account="a", what="gossip", level="note", words="x")
    with pytest.raises(ArgumentError, match="level"):
        Alert(account="a", what="spent", level="fatal", words="x")


def test_the_log_and_the_terminal(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    tell((alert(), alert("two\nlines \x1b[2J")), policy(log=True, terminal=True))
    assert [(r.name, r.levelno) for r in caplog.records] == [("sfumato.ledger", logging.WARNING)] * 2
    assert caplog.messages == ["note: account 'a' has spent 51 %", "note: two?lines ?[2J"]
    assert capsys.readouterr().err == "sfumato: note: account 'a' has spent 51 %\nsfumato: note: two?lines ?[2J\n"
    caplog.clear()
    tell((alert(),), policy(log=False, terminal=False))
    tell((), policy(log=True, terminal=True))
    assert caplog.messages == []
    assert capsys.readouterr().err == ""


def test_no_terminal_and_no_log_fails_a_spend(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()

    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("a handler of somebody else")

    logger, broken = logging.getLogger("sfumato.ledger"), Broken()
    logger.addHandler(broken)
    try:
        for stream in (closed, None):
            monkeypatch.setattr(sys, "stderr", stream)
            tell((alert(),), policy(log=True, terminal=True))
    finally:
        logger.removeHandler(broken)


class Hook:
    """A webhook on this machine: what it was sent, and what it answers."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[int] = []
        self.hold = threading.Event()
        self.hold.set()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                hook.got.append((self.path, dict(self.headers), json.loads(body or b"null")))
                hook.hold.wait(600)
                self.send_response(hook.answers.pop(0) if hook.answers else 204)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    def close(self) -> None:
        self.hold.set()
        assert flush(120)
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    monkeypatch.setattr(webhook, "_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(webhook, "_TIMEOUT", 60.0)  # a slow machine is no dead endpoint
    hook = Hook()
    yield hook
    hook.close()


def told(hook: Hook, **fields: Any) -> list[tuple[str, dict[str, str], Any]]:
    tell((alert(),), policy(log=False, webhook=hook.address, **fields))
    assert flush(120)
    return hook.got


def test_a_webhook_gets_the_alerts(hook: Hook) -> None:
    ((path, headers, body),) = told(hook)
    assert path == "/hook"
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers
    words = {"account": "a", "what": "spent", "level": "note", "words": "account 'a' has spent 51 %"}
    assert body == {"text": "note: account 'a' has spent 51 %", "alerts": [words]}


def test_a_secret_comes_from_the_environment(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("A_SECRET", "Bearer s3cret")
    ((_, headers, _),) = told(hook, secret="A_SECRET", header="X-Token")
    assert headers["X-Token"] == "Bearer s3cret"
    hook.got.clear()
    for value in ("s3cret\r\nX-Evil: 1", "", "s3crét"):
        monkeypatch.setenv("A_SECRET", value)
        assert told(hook, secret="A_SECRET") == []  # without its secret it is not sent at all
    monkeypatch.delenv("A_SECRET")
    assert told(hook, secret="A_SECRET") == []
    assert "A_SECRET" in caplog.text
    assert "s3cr" not in caplog.text


@pytest.mark.parametrize(("answers", "posts"), [([500], 2), ([500, 404], 3), ([500] * 9, 3), ([], 1), ([200], 1)])
def test_what_was_not_taken_is_tried_twice_more(
    hook: Hook, answers: list[int], posts: int, caplog: pytest.LogCaptureFixture
) -> None:
    hook.answers = list(answers)
    assert len(told(hook)) == posts
    refused = min(len([code for code in answers if code >= 300]), 3)
    assert len([words for words in caplog.messages if "did not take" in words]) == refused
    assert hook.address not in caplog.text


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(hook: Hook, code: int) -> None:
    hook.answers = [code] * 3
    assert [path for path, _, _ in told(hook)] == ["/hook"] * 3


def test_a_dead_endpoint_delays_nothing_and_loses_only_alerts(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    """All of it is put while the first post hangs: were anything sent by the one who tells, this would never end."""
    hook.hold.clear()
    rules = policy(log=False, webhook=hook.address)
    for _ in range(300):
        tell((alert(),), rules)
    assert not flush(0)
    assert any("does not keep up" in words for words in caplog.messages)
    hook.hold.set()
    assert flush(120)
    assert 100 <= len(hook.got) <= 102
    tell((alert(),), rules)
    assert flush(120)


def test_nobody_listens(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    rules = policy(log=False, webhook="http://127.0.0.1:1/hook")
    tell((alert(),), rules)
    assert flush(120)
    assert len([words for words in caplog.messages if "did not take" in words]) == 3
    assert len(told(hook)) == 1  # the thread lives on


def test_no_thread_to_be_had_fails_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(webhook, "_sender", webhook._Sender())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    tell((alert(),), policy(log=False, webhook="http://127.0.0.1:1/hook"))
    assert flush(0)
    assert "could not be told" in caplog.text


# On a slow machine too: as long as it waits at all.
PATIENT = "from sfumato.ledger.policy import webhook; webhook._AT_EXIT *= 30; webhook._TIMEOUT *= 30\n"


def _in_another_process(code: str, hook: Hook) -> subprocess.CompletedProcess[str]:
    start = (
        f"import os, sys; sys.path.insert(0, {str(Path(sfumato.__file__).parents[1])!r})\n"
        "from sfumato.ledger.policy.alerts import Alert, flush, tell\n"
        "from sfumato.ledger.policy.policy import AlertRule, Policy\n"
        f"rules = Policy(people={PEOPLE!r}, alerts=AlertRule(log=False, webhook={hook.address!r}))\n"
        "alert = Alert(account='a', what='spent', level='note', words='from another process')\n"
    )
    return subprocess.run(
        [sys.executable, "-I", "-c", start + code], capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.slow
def test_the_end_of_a_process_waits_for_its_alerts(hook: Hook) -> None:
    done = _in_another_process(f"{PATIENT}tell((alert,), rules)\n", hook)
    assert (done.returncode, done.stderr) == (0, "")
    assert [body["text"] for _, _, body in hook.got] == ["note: from another process"]


@pytest.mark.slow
def test_the_end_of_a_process_does_not_wait_for_ever(hook: Hook) -> None:
    hook.hold.clear()
    done = _in_another_process("tell((alert,), rules)\n", hook)
    assert done.returncode == 0
    assert "ends before its alerts" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_tells_its_own_alerts_once(hook: Hook) -> None:
    code = (
        f"{PATIENT}tell((alert,), rules); assert flush(120)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    tell((alert,), rules)\n"
        "    os._exit(0 if flush(120) else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    done = _in_another_process(code, hook)
    assert done.returncode == 0, done.stderr
    assert len(hook.got) == 2
