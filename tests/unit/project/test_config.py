"""kernel-lsp.yaml: every field, every kind of mistake with its line, any bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.model.launch import Launch
from kernel_lsp.project.config import MAX_CONFIG_BYTES, ProjectConfig, find_config, load_config, parse_config

PATH = Path("/p/kernel-lsp.yaml")


def parse(text: str) -> ProjectConfig:
    return parse_config(text, PATH)


def test_every_field() -> None:
    config = parse(
        """\
flags: [-O3, "-DNAME=\\"a b\\"", -Iinclude]
arch: "9.0a"
gpu: RTX 4090
compile_commands: build/compile_commands.json
database_entry: Debug
headers:
  include/tile.cuh: src/gemm.cu
launches:
  gemm:
    block: [16, 16]
    grid: [64, 64]
    dynamic_shared: 48 KB
  "reduce*":
    - block: 256
    - {block: 1_024, dynamic_shared: 49152, cluster: 2}
severity:
  KL110: hint
  KL201: off
ignore: [KL310, spill]
"""
    )
    assert config.problems == ()
    assert config.flags == ("-O3", '-DNAME="a b"', "-Iinclude")
    assert config.arch == "sm_90a"
    assert config.gpu == "RTX 4090"
    assert config.compile_commands == Path("/p/build/compile_commands.json")
    assert config.database_entry == "Debug"
    assert config.headers == (("include/tile.cuh", Path("/p/src/gemm.cu")),)
    assert config.severity == (("KL110", "hint"), ("KL201", "off"))
    assert config.ignore == ("KL310", "spill")
    assert [(found.pattern, found.launch) for found in config.launches] == [
        ("gemm", Launch((16, 16, 1), (64, 64, 1), 48 * 1024, None, "config", "kernel-lsp.yaml:10")),
        ("reduce*", Launch((256, 1, 1), None, None, None, "config", "kernel-lsp.yaml:14")),
        ("reduce*", Launch((1024, 1, 1), None, 49152, 2, "config", "kernel-lsp.yaml:15")),
    ]


@pytest.mark.parametrize(
    ("pattern", "kernel", "matches"),
    [
        ("gemm", "gemm(float*, int)", True),
        ("gemm", "gemm<16, float>(float*, int)", True),
        ("gemm", "void gemm<16>(float*)", True),
        ("gemm", "void ns::inner::gemm<ns::T>(float*)", True),
        ("ns::inner::gemm", "void ns::inner::gemm<16>(float*)", True),
        ("gemm<16>", "void gemm<16>(float*)", True),
        ("gemm<32>", "void gemm<16>(float*)", False),
        ("gemm", "void gemm2<16>(float*)", False),
        ("gemm*", "void gemm2<16>(float*)", True),
        ("*", "anything(int)", True),
        ("(anonymous namespace)::k", "(anonymous namespace)::k(float*)", True),
        ("k", "(anonymous namespace)::k(float*)", True),
    ],
)
def test_kernel_names(pattern: str, kernel: str, matches: bool) -> None:
    config = parse(f'launches: {{"{pattern}": {{block: 64}}}}')
    assert config.problems == ()
    assert bool(config.launches_for(kernel)) == matches


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "/p/kernel-lsp.yaml:1: expected fields such as `flags:`, got a list"),
        ("flags: -O3\n", "/p/kernel-lsp.yaml:1: flags: expected a list"),
        ("gpu: x\n\nflags: [[1]]\n", "/p/kernel-lsp.yaml:3: flags: expected a text, got a list"),
        ("arch: hopper\n", "/p/kernel-lsp.yaml:1: arch: expected an architecture such as sm_90a, got 'hopper'"),
        ("gpu:\n", "gpu: expected a text, got nothing"),
        ("database_entry: 0\n", "database_entry: expected a number from 1"),
        ("typo: 1\n", "/p/kernel-lsp.yaml:1: typo: unknown field; known are flags, arch, gpu"),
        ("launches: 5\n", "launches: expected names with values, got '5'"),
        ("launches:\n  k: {grid: 3}\n", "/p/kernel-lsp.yaml:2: launches.k: block is missing"),
        ("launches:\n  k: {block: 2048}\n", "block: expected a whole number from 1 to 1,024, got '2048'"),
        ("launches:\n  k: {block: [64, 64]}\n", "block 64x64x1 has more than 1,024 threads"),
        ("launches:\n  k: {block: [1, 1, 1, 1]}\n", "expected one to three numbers, got 4"),
        (
            "launches:\n  k: {block: 64, smem: 3}\n",
            "unknown field 'smem'; known are block, grid, dynamic_shared, cluster",
        ),
        ("launches:\n  k: {block: 64, dynamic_shared: 4 XB}\n", "dynamic_shared: expected bytes or a text"),
        ("launches:\n  k: {block: 64, dynamic_shared: -1}\n", "dynamic_shared: expected bytes or a text"),
        ("launches:\n  k: {block: 64, cluster: 99}\n", "cluster: expected a whole number from 1 to 16"),
        ("severity: {KL1: loud}\n", "severity.KL1: expected KLnnn: one of error"),
        ("ignore: KL110\n", "ignore: expected a list of codes"),
        ("ignore: [KL110, 7]\n", "ignore: expected a code such as KL110, got '7'"),
        ("a: [\n", "/p/kernel-lsp.yaml:2: not YAML"),
        ("a: &x [1]\nb: *x\n", "aliases (*name) are not read here"),
        ("a: \x01\n", "not used"),
        ("[" * 60_000, "nested deeper than 20 levels"),
        ("- " * 30_000, "nested deeper than 20 levels"),
        ("arch: " + "x" * 50_000, "got 'xxxxx"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, said: str) -> None:
    problems = parse(text).problems
    assert any(said in problem for problem in problems), problems
    assert all(len(problem) < 300 for problem in problems)


def test_other_fields_survive_a_mistake() -> None:
    config = parse("flags: 3\narch: sm_80\nlaunches:\n  a: {block: 0}\n  b: {block: 64}\nignore: [x y, KL110]\n")
    assert config.arch == "sm_80"
    assert [found.pattern for found in config.launches] == ["b"]
    assert config.ignore == ("KL110",)
    assert len(config.problems) == 3


def test_tags_make_no_objects() -> None:
    config = parse('flags: !!python/object/apply:os.system ["touch pwned"]\n')
    assert config.flags == ("touch pwned",)  # a list of texts, whatever its tag says
    assert not Path("pwned").exists()


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    assert isinstance(parse_config(data, PATH), ProjectConfig)


FIELDS = ["flags", "arch", "gpu", "compile_commands", "database_entry", "headers", "launches", "severity", "ignore"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([*FIELDS, "block", "grid", "cluster"]) | st.text(max_size=3), inner, max_size=4),
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_any_values(fields: dict[str, object]) -> None:
    import yaml

    config = parse(yaml.safe_dump(fields))
    for found in config.launches:
        assert 1 <= found.launch.threads <= 1024


def test_found_upwards_within_the_workspace(tmp_path: Path) -> None:
    document = tmp_path / "ws" / "src" / "a.cu"
    document.parent.mkdir(parents=True)
    (tmp_path / "kernel-lsp.yaml").write_text("")
    roots = (tmp_path / "ws",)
    assert find_config(document, roots) is None
    (tmp_path / "ws" / "kernel-lsp.yaml").write_text("")
    assert find_config(document, roots) == tmp_path / "ws" / "kernel-lsp.yaml"
    (tmp_path / "ws" / "src" / "kernel-lsp.yml").write_text("")
    assert find_config(document, roots) == tmp_path / "ws" / "src" / "kernel-lsp.yml"


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    assert "cannot be read" in load_config(tmp_path / "none.yaml").problems[0]
    (tmp_path / "large.yaml").write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    assert "larger than 64 KB" in load_config(tmp_path / "large.yaml").problems[0]
    (tmp_path / "empty.yaml").write_text("")
    assert load_config(tmp_path / "empty.yaml").problems == ()
