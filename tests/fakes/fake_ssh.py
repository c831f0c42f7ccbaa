"""ssh without another machine: joins the words behind the host with spaces and has a shell read them, as sshd does.

`install(folder, home)` writes an executable `ssh`; the shell starts in `home`, with no more of the environment than
PATH and HOME.
"""

from __future__ import annotations

from pathlib import Path

_SCRIPT = """#!/bin/sh
[ "$1" = -tt ] && shift
host="$1"; shift
[ "$host" = gpuhost ] || {{ echo "ssh: Could not resolve hostname $host: Name or service not known" >&2; exit 255; }}
cd "{home}" && exec env -i PATH="{path}" HOME="{home}" KERNEL_LSP_RUN="$KERNEL_LSP_RUN" /bin/sh -c "$*"
"""


def install(folder: Path, home: Path, path: str) -> Path:
    """Make `folder/ssh`; `path` is PATH on the other machine."""
    folder.mkdir(parents=True, exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    program = folder / "ssh"
    program.write_text(_SCRIPT.format(home=home, path=f"{path}:/usr/bin:/bin"), encoding="utf-8")
    program.chmod(0o755)
    return program
