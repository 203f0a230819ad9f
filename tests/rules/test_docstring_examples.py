"""Every name of `from sfumato import ...` has an example in its docstring that runs and prints what it shows.

Examples stand for themselves: each begins with its imports, so that it can be copied into a shell.
"""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import sfumato


@pytest.mark.parametrize("name", sfumato.__all__)
def test_the_example_runs(name: str) -> None:
    value: Any = getattr(sfumato, name)
    example = doctest.DocTestParser().get_doctest(value.__doc__ or "", {}, name, None, None)
    assert any(name in part.source for part in example.examples), f"{name} has no example in its docstring"
    report: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert outcome.failed == 0, "".join(report)
