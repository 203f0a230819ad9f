"""Attacks T5 and T6 on training, and the planted bugs that they must find."""

from __future__ import annotations

from sfumato_referee.attacks import training_records


def test_t5_is_withstood() -> None:
    verdict = training_records.moving(seeds=1)
    assert not verdict.broken, verdict


def test_t5_finds_steps_that_take_row_i_for_record_i() -> None:
    verdict = training_records.moving_control()
    assert verdict.broken and all(name in verdict.text for name in training_records.MOVING), verdict


def test_t6_is_withstood() -> None:
    verdict = training_records.remembering()
    assert not verdict.broken, verdict


def test_t6_finds_a_model_that_is_put_into_train_mode_as_a_whole() -> None:
    verdict = training_records.remembering_control()
    assert verdict.broken and "without noise" in verdict.text and "ran in train mode" in verdict.text, verdict
