"""Settings, environment and the machine's usual places become the paths of NVIDIA's tools (no process is started).

A workspace never names a tool by itself: PATH entries inside a workspace folder and relative ones are passed over,
and the compiler of a compile database is a candidate only where the caller says the workspace is trusted.
"""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOOL_NAMES = ("nvcc", "ptxas", "nvdisasm", "cuobjdump")
INSTALL_COMMAND = "pip install 'kernel-lsp[cuda]'"
_SUFFIX = ".exe" if sys.platform == "win32" else ""
_FORWARDER = re.compile(r"""#!\s*/[\w/]*sh\s*\n(?:\s*(?:#.*)?\n)*\s*exec\s+["']?(/[\w./+-]+)["']?\s+"\$@"\s*""")
_PURPOSE = {
    "nvcc": "nothing can be built",
    "ptxas": "nothing can be built",
    "nvdisasm": "no SASS can be shown",
    "cuobjdump": "resources cannot be cross-checked",
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool found on the machine. `version` is "13.0.88"; None: not asked yet or the tool would not say."""

    name: str
    path: Path
    where: str  # "setting kernelLsp.tools.nvcc", "CUDA_HOME", "PATH", "/usr/local/cuda/bin" ...
    version: str | None = None


@dataclass(frozen=True, slots=True)
class MissingTool:
    """A tool that was not found, the places in the order they were tried, and what to do, for people."""

    name: str
    looked_in: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools in use. `problems` are sentences for the user: a setting that names no file, releases that clash."""

    nvcc: Tool | None
    ptxas: Tool | None
    nvdisasm: Tool | None
    cuobjdump: Tool | None
    missing: tuple[MissingTool, ...] = ()
    problems: tuple[str, ...] = ()
    toolkit: Path | None = None  # the folder nvcc itself says it works from; None: not asked yet
    gpu_code: tuple[str, ...] = ()  # what `nvcc --list-gpu-code` names: "sm_75" ...; (): not asked yet

    def tools(self) -> tuple[Tool, ...]:
        """Those found, in the order of TOOL_NAMES."""
        return tuple(t for t in (self.nvcc, self.ptxas, self.nvdisasm, self.cuobjdump) if t is not None)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder to look in, and how that is said to people."""

    folder: Path
    where: str


def find_toolchain(
    *,
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    workspace_folders: Sequence[Path] = (),
    entry_compiler: str | None = None,
    trusted: bool = False,
    usual_places: Sequence[Place] | None = None,
    wheel_places: Sequence[Place] | None = None,
) -> Toolchain:
    """Look for each tool by itself; `settings` maps a tool's name to the path the user gave ("": none).

    nvcc: setting, `entry_compiler` (only where `trusted`), CUDA_HOME, CUDA_PATH, PATH, usual places, wheels.
    The others: setting, next to that nvcc (its own release reads what it made), then the same places.
    `usual_places` and `wheel_places` stand for the machine's where they are given.
    """
    usual = machine_places(environment) if usual_places is None else usual_places
    wheels = own_wheel_places() if wheel_places is None else wheel_places
    general = (
        *_environment_places(environment),
        *_path_places(environment, workspace_folders),
        *usual,
        *wheels,
    )
    found: dict[str, Tool | None] = {}
    missing: list[MissingTool] = []
    problems: list[str] = []
    for name in TOOL_NAMES:
        setting = settings.get(name, "")
        tool = _from_setting(name, setting)
        if setting and tool is None:
            problems.append(
                f"kernelLsp.tools.{name} is {setting!r}, which is not an absolute path of a program; "
                f"{name} is looked for in the usual way instead."
            )
        places: tuple[Place, ...] = general
        nvcc = found.get("nvcc")
        if name == "nvcc":
            if tool is None and trusted and entry_compiler and "nvcc" in Path(entry_compiler).name:
                tool = _named(name, Path(entry_compiler), "compiler of the compile database")
        elif nvcc is not None:
            places = (*_beside(nvcc.path), *general)
        tool = tool or _search(name, places)
        found[name] = tool
        if tool is None:
            named = (
                (f"the compile database ({entry_compiler})",) if name == "nvcc" and entry_compiler and trusted else ()
            )
            looked = (f"setting kernelLsp.tools.{name}", *named, *dict.fromkeys(_said(place) for place in places))
            missing.append(MissingTool(name, looked, _missing_message(name, looked)))
    return Toolchain(
        found["nvcc"],
        found["ptxas"],
        found["nvdisasm"],
        found["cuobjdump"],
        tuple(missing),
        tuple(problems),
    )


def find_launcher(
    words: Sequence[str], environment: Mapping[str, str], workspace_folders: Sequence[Path] = ()
) -> tuple[tuple[str, ...], str | None]:
    """The user's own launcher (`["sccache"]`) with its program's path, and what is wrong with it.

    By name it is looked for in PATH, folders of the workspace left out.
    """
    if not words:
        return (), None
    program = Path(words[0]).expanduser()
    places = [] if program.is_absolute() else _path_places(environment, workspace_folders)
    candidates = [program] if program.is_absolute() else [place.folder / (words[0] + _SUFFIX) for place in places]
    is_plain = program.is_absolute() or program.name == words[0]
    found = next((path for path in candidates if is_plain and _is_program(path)), None)
    if found is None:
        return (), f"kernelLsp.build.launcher is {words[0]!r}, which is no program on PATH; nvcc is started without it."
    return (str(found), *words[1:]), None


def machine_places(environment: Mapping[str, str]) -> tuple[Place, ...]:
    """The folders that CUDA's installers use on this system, the newest release first."""
    if sys.platform == "win32":
        roots = [Path(environment.get("ProgramFiles", r"C:\Program Files")) / "NVIDIA GPU Computing Toolkit" / "CUDA"]
        folders = [folder / "bin" for root in roots for folder in _newest_first(root, "v*")]
    else:
        folders = [Path("/usr/local/cuda/bin"), Path("/opt/cuda/bin")]
        folders += [folder / "bin" for folder in _newest_first(Path("/usr/local"), "cuda-*")]
    return tuple(Place(folder, str(folder)) for folder in folders)


def own_wheel_places() -> tuple[Place, ...]:
    """Where NVIDIA's PyPI packages put their programs in the server's own Python environment."""
    packages = [*sys.path, *_site_packages()]
    folders: list[Path] = []
    for entry in dict.fromkeys(packages):
        root = Path(entry)
        if not entry or not root.is_absolute() or root.name not in ("site-packages", "dist-packages"):
            continue  # the working directory may stand on sys.path; it is not the server's environment
        folders += [folder / "bin" for folder in _newest_first(root / "nvidia", "cu*") if (folder / "bin").is_dir()]
    # Never empty, so that a message about a missing tool names this place too.
    folders = folders or [Path(sysconfig.get_path("purelib")) / "nvidia"]
    return tuple(Place(folder, f"PyPI packages of {sys.prefix}") for folder in folders)


def is_from_pypi(toolchain: Toolchain) -> bool:
    """Whether nvcc is that of NVIDIA's PyPI packages, whose libraries are packages beside it."""
    nvcc = toolchain.nvcc
    toolkit = toolchain.toolkit or (nvcc.path.resolve().parent.parent if nvcc else None)
    return toolkit is not None and toolkit.parent.name == "nvidia" and toolkit.name.startswith("cu")


def tool_in(folder: Path, name: str, where: str) -> Tool | None:
    """The tool in one folder; None: not there."""
    return _named(name, folder / (name + _SUFFIX), where)


def _environment_places(environment: Mapping[str, str]) -> Iterator[Place]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        value = environment.get(variable, "")
        if value and Path(value).is_absolute():
            yield Place(Path(value) / "bin", variable)


def _path_places(environment: Mapping[str, str], workspace_folders: Sequence[Path]) -> Iterator[Place]:
    workspaces = [folder.resolve() for folder in workspace_folders]
    for entry in environment.get("PATH", "").split(os.pathsep):
        folder = Path(entry)
        if not entry or not folder.is_absolute():
            continue
        real = folder.resolve()
        if any(real == workspace or workspace in real.parents for workspace in workspaces):
            continue
        yield Place(folder, "PATH")


def _beside(nvcc: Path) -> Iterator[Place]:
    yield Place(nvcc.parent, f"next to {nvcc}")
    real = nvcc.resolve()
    if real.parent != nvcc.parent:
        yield Place(real.parent, f"next to {real}")


def _from_setting(name: str, setting: str) -> Tool | None:
    if not setting:
        return None
    path = Path(setting).expanduser()
    where = f"setting kernelLsp.tools.{name}"
    return _named(name, path / (name + _SUFFIX) if path.is_dir() else path, where)


def _named(name: str, path: Path, where: str) -> Tool | None:
    if not path.is_absolute() or not _is_program(path):
        return None
    started = _started_by(path, name)
    return Tool(name, started, f"{where}, by way of {path}") if started else Tool(name, path, where)


def _search(name: str, places: Sequence[Place]) -> Tool | None:
    for place in places:
        if tool := tool_in(place.folder, name, place.where):
            return tool
    return None


def _is_program(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:
        return False


def _started_by(script: Path, name: str) -> Path | None:
    """The program behind a script that does nothing else (`exec /usr/lib/.../nvcc "$@"`, as Debian has it)."""
    try:
        with script.open("rb") as file:
            head = file.read(1024)
    except OSError:
        return None
    match = _FORWARDER.fullmatch(head.decode("utf-8", "replace"))
    target = Path(match[1]) if match else None
    return target if target is not None and target.name == name and _is_program(target) else None


def _said(place: Place) -> str:
    return f"{place.where} ({place.folder})" if place.where in ("CUDA_HOME", "CUDA_PATH") else place.where


def _missing_message(name: str, looked: Sequence[str]) -> str:
    return (
        f"{name} not found, so {_PURPOSE[name]}. Looked in: {', '.join(looked)}. "
        f"Install it with: {INSTALL_COMMAND}, or set kernelLsp.tools.{name}."
    )


def _newest_first(root: Path, pattern: str) -> list[Path]:
    def release(folder: Path) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", folder.name))

    try:
        return sorted((f for f in root.glob(pattern) if f.is_dir()), key=release, reverse=True)
    except OSError:
        return []


def _site_packages() -> list[str]:
    folders = list(site.getsitepackages()) if hasattr(site, "getsitepackages") else []
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return folders
