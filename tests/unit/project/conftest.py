"""Property tests here have no time limit for each example: the machine that runs them may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
