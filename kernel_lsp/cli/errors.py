"""What ends a command early, with its exit status."""

from __future__ import annotations


class CliError(Exception):
    """One line for stderr: what is wrong, where, and what to do."""

    def __init__(self, message: str, exit_status: int = 2) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_status = exit_status


class MissingToolError(CliError):
    """A tool is missing; the message says which and the command that brings it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_status=3)
