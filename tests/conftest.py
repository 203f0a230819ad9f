"""Hypothesis draws the same examples in every run of `make test`; `make test-all` draws new ones each time."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None)
settings.load_profile(os.environ.get("SFUMATO_EXAMPLES", "steady"))
