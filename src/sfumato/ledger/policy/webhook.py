"""One thread that posts to webhooks, and a short queue in front of it: whoever puts something there never waits.

An endpoint that is dead, slow or hostile costs alerts, which the log tells of, and nothing else: no redirect is
followed, nothing of an answer is read or kept, and neither an address nor a secret is ever logged.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import queue
import threading
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .parts import AlertRule

_LOG = logging.getLogger("sfumato.ledger")
_QUEUED = 100  # posts that wait at most
_TIMEOUT = 5.0  # seconds for one step of a post
_PAUSES = (0.2, 1.0)  # seconds before each retry
_AT_EXIT = 2.0  # seconds that the end of the process waits


class _Post(NamedTuple):
    address: str
    body: bytes
    header: str
    secret: str | None  # the variable's name; its value is read when it is sent


class _Sender:
    """The queue and its thread, of one process."""

    def __init__(self) -> None:
        self._posts: queue.Queue[_Post] = queue.Queue(_QUEUED)
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._open = 0  # posts that are queued or on their way
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def put(self, post: _Post) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="sfumato-webhook", daemon=True)
                thread.start()  # raises where no thread can be had, and changes nothing
                self._thread = thread
            full = self._posts.full()
            if not full:
                self._posts.put_nowait(post)
                self._open += 1
        if full:  # told outside the lock: a log handler may come back here
            _LOG.warning("alerts are not posted: the webhook does not keep up")

    def flush(self, seconds: float) -> bool:
        with self._idle:
            return self._idle.wait_for(lambda: self._open == 0, timeout=seconds)

    def end(self) -> None:
        if self._thread is not None and not self.flush(_AT_EXIT):
            _LOG.warning("the process ends before its alerts could be posted")

    def _work(self) -> None:
        while True:
            post = self._posts.get()
            try:
                self._deliver(post)
            except Exception as problem:  # the thread outlives every post
                _LOG.warning("alerts could not be posted (%s)", type(problem).__name__)
            finally:
                with self._idle:
                    self._open -= 1
                    self._idle.notify_all()

    def _deliver(self, post: _Post) -> None:
        for pause in (*_PAUSES, None):
            problem = _send(post)
            if problem is None:
                return
            _LOG.warning("the webhook did not take alerts (%s)%s", problem, "" if pause is None else ": trying again")
            if pause is not None:
                self._ending.wait(pause)


def _send(post: _Post) -> str | None:
    """Post once; what went wrong, in words without the address, the secret, or what the other side said."""
    from urllib import request

    headers = {"Content-Type": "application/json", "User-Agent": "sfumato"}
    if post.secret is not None:
        value = os.environ.get(post.secret)
        if not value or not value.isprintable() or not value.isascii():
            return f"the environment variable {post.secret} holds no secret that can be sent"
        headers[post.header] = value
    opener = request.OpenerDirector()
    secure = urlsplit(post.address).scheme == "https"
    opener.add_handler(request.HTTPSHandler() if secure else request.HTTPHandler())  # none for redirects or files
    if secure:
        opener.add_handler(request.ProxyHandler())
    asked = request.Request(post.address, data=post.body, headers=headers, method="POST")
    try:
        with opener.open(asked, timeout=_TIMEOUT) as answer:
            return None if 200 <= answer.status < 300 else f"status {answer.status}"
    except Exception as problem:  # whatever the other side does is one more way not to take it
        return type(problem).__name__


_sender = _Sender()


def _renew() -> None:
    """In a forked child: its parent's thread is not here, and its parent's posts are not its own."""
    global _sender
    _sender = _Sender()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
atexit.register(lambda: _sender.end())


def post(body: dict[str, Any], rule: AlertRule) -> None:
    """Put it on its way. Returns at once."""
    if rule.webhook is not None:
        text = json.dumps(body, allow_nan=False).encode("ascii")
        _sender.put(_Post(rule.webhook, text, rule.header, rule.secret))


def flush(seconds: float) -> bool:
    return _sender.flush(seconds)
