"""The user's templates: placeholders, what a remote shell is given, and which program is run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.project import user_command
from kernel_lsp.project.user_command import (
    UserCommandError,
    extended,
    filled,
    goes_through_ssh,
    placeholders,
    with_program,
)

NASTY = ["a b", "$(touch ran)", "`touch ran`", "it's", '"', "\\", "a;touch ran", "*", "~", "regex:^_ZN.*x$", "", "€\n"]
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def as_sshd_does(argv: tuple[str, ...], n_own: int, cwd: Path) -> list[str]:
    """What arrives behind the host: ssh joins the words, the shell of the other machine takes them apart."""
    joined = " ".join(argv[n_own:])
    printed = subprocess.run(["/bin/sh", "-c", f"printf '%s\\0' {joined}"], cwd=cwd, capture_output=True, check=True)
    return printed.stdout.decode().split("\0")[:-1]


def test_words_stay_words_without_ssh() -> None:
    assert extended(("srun", "--gres=gpu:1", "ncu"), NASTY) == ("srun", "--gres=gpu:1", "ncu", *NASTY)


def test_a_remote_shell_gives_the_same_words_and_runs_nothing(tmp_path: Path) -> None:
    argv = extended(("ssh", "gpuhost"), ["echo", *NASTY])
    assert as_sshd_does(argv, 2, tmp_path) == ["echo", *NASTY]
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_words_are_for_the_remote_shell_to_read() -> None:
    assert extended(("ssh", "-tt", "gpuhost", "cd work && ncu"), ["a b"])[3:] == ("cd work && ncu", "'a b'")


@settings(max_examples=30)
@given(st.lists(words, min_size=1, max_size=4))
def test_any_words_pass_a_remote_shell(given_words: list[str]) -> None:
    argv = extended(("/usr/bin/ssh", "host"), given_words)
    assert as_sshd_does(argv, 2, Path("/")) == given_words


@pytest.mark.parametrize(
    ("template", "through"),
    [
        (("ssh", "h", "ncu"), True),
        (("/usr/bin/ssh", "h"), True),
        (("sshpass", "-f", "x", "ssh", "h", "ncu"), True),
        (("ncu",), False),
        (("sshfs", "x"), False),
    ],
)
def test_what_counts_as_ssh(template: tuple[str, ...], through: bool) -> None:
    assert goes_through_ssh(template) is through


def test_placeholders_are_filled_within_words_and_others_left() -> None:
    template = ("scp", "gpuhost:{remote}", "{local}", "{other}", "{}", "{a b}")
    assert placeholders(template) == {"remote", "local", "other"}
    got = filled(template, {"remote": "/tmp/{local}", "local": "/a b"})
    assert got == ("scp", "gpuhost:/tmp/{local}", "/a b", "{other}", "{}", "{a b}")  # a value is not read again


def test_a_value_for_a_remote_shell_is_quoted() -> None:
    assert filled(("ssh", "h", "cd work && ./bench {size}"), {"size": "$(x)"})[2] == "cd work && ./bench '$(x)'"


def test_a_path_counts_from_the_folder(tmp_path: Path) -> None:
    app = program(tmp_path / "build" / "app")
    assert with_program(("build/app", "x"), "s", tmp_path, {}) == (str(app), "x")
    assert with_program(("./build/app",), "s", tmp_path, {}) == (str(app),)
    assert with_program((str(app),), "s", Path("/"), {}) == (str(app),)


@pytest.mark.parametrize(("name", "says"), [("build/none", "does not exist"), ("build/text", "not a program")])
def test_no_program_at_a_path(tmp_path: Path, name: str, says: str) -> None:
    program(tmp_path / "build" / "text", 0o644)
    with pytest.raises(UserCommandError, match=f"kernelLsp.profile.program: .*{name}.* {says}"):
        with_program((name,), "profile.program", tmp_path, {})


def test_a_name_is_looked_for_in_absolute_folders_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(tmp_path / "bin" / "bench")
    program(tmp_path / "bench")
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join([".", "", str(tmp_path / "bin")])
    assert with_program(("bench",), "benchmark.command", tmp_path, {"PATH": path})[0] == str(found)
    with pytest.raises(UserCommandError, match=r"kernelLsp\.benchmark\.command starts with bench"):
        with_program(("bench",), "benchmark.command", tmp_path, {"PATH": ".:"})


def test_ncu_is_found_where_installers_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_command, "machine_places", lambda environment: ())
    ncu = program(tmp_path / "cuda" / "bin" / "ncu")
    found = with_program(("ncu", "--kill", "yes"), "profile.command", tmp_path, {"CUDA_HOME": str(tmp_path / "cuda")})
    assert found == (str(ncu), "--kill", "yes")


def test_no_ncu_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_command, "machine_places", lambda environment: ())
    monkeypatch.setattr(user_command, "_ncu_elsewhere", lambda name, environment: None)  # the machine's own, if any
    with pytest.raises(UserCommandError) as raised:
        with_program(("ncu",), "profile.command", tmp_path, {"PATH": str(tmp_path)})
    message = str(raised.value)
    assert "CUDA toolkit" in message
    assert "conda install -c nvidia nsight-compute" in message
    assert '["ssh", "gpuhost", "ncu"]' in message
