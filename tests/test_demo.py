"""The demo says what it promises: answers with error bars, prices, the budget left, and a refusal."""

import re

import pytest

from sfumato import demo


def test_the_demo_runs_start_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    said = capsys.readouterr().out
    for question, _ in demo.analysis():
        assert question in said
    assert said.count("price epsilon = ") == 5 and said.count("budget: ") == 5
    assert len(re.findall(r"± [\d,.]+ +\(truth", said)) == 2 + 3 + len(demo.DIAGNOSES)
    assert "does not cover this release; nothing was charged" in said


def test_the_demo_s_answers_are_near_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    lines = re.findall(r"([\d,.]+)  ± +([\d,.]+) +\(truth ([\d,.]+)\)", capsys.readouterr().out)
    value, bar, truth = (float(part.replace(",", "")) for part in lines[0])
    assert abs(value - truth) < 10 * bar
