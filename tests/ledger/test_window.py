"""Attack L17 in short: what a crash and one flipped byte take from the log is seen."""

from __future__ import annotations

from sfumato_referee.attacks.ledger import window


def test_an_end_that_is_lost_after_a_crash_is_seen() -> None:
    verdict = window.attack(every=2503)
    assert not verdict.broken and verdict.figures["lost entries"] > 20, verdict


def test_the_planted_bug_is_found() -> None:
    verdict = window.attack(opened=window.alone, every=9973)
    assert verdict.broken and verdict.figures["spent from"] > 3, verdict
