"""Settings: any JSON in, usable settings out; a bad field costs only itself and is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.session.settings import DECLARED, Settings, default_of, json_schema, resolve

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([d.name for d in DECLARED])


def test_nothing_given_gives_the_defaults() -> None:
    assert resolve(None) == (Settings(), ())
    assert resolve({}) == (Settings(), ())


def test_nested_and_flat_names_mean_the_same() -> None:
    nested, _ = resolve({"build": {"flags": ["-O3"], "onType": True}, "tools": {"nvcc": "/x/nvcc"}})
    flat, _ = resolve({"build.flags": ["-O3"], "build.onType": True, "tools.nvcc": "/x/nvcc"})
    assert nested == flat == Settings(build_flags=("-O3",), build_on_type=True, tools_nvcc="/x/nvcc")


def test_a_bad_field_costs_only_itself() -> None:
    settings, problems = resolve({"gpu": 3070, "arch": "sm_90a", "build": {"flags": "-O3", "maxParallel": 0}})
    assert settings == Settings(arch="sm_90a")
    assert problems == (
        "kernelLsp.gpu: expected a string, got 3070; using ''",
        "kernelLsp.build.flags: expected a list of strings, got '-O3'; using []",
        "kernelLsp.build.maxParallel: expected a whole number from 1 to 64, got 0; using 1",
    )


def test_severities_are_checked() -> None:
    assert resolve({"severity": {"KL101": "off"}})[0].severity == (("KL101", "off"),)
    _, problems = resolve({"severity": {"KL101": "loud"}})
    assert "KL101: expected one of error, warning, information, hint, off, got 'loud'" in problems[0]


@given(json_values)
def test_any_json_gives_settings(value: object) -> None:
    settings, problems = resolve(value)
    assert isinstance(settings, Settings)
    assert all(problem.startswith("kernelLsp") for problem in problems)


@given(st.dictionaries(names, json_values, max_size=4))
def test_any_values_under_real_names_give_settings(section: dict[str, object]) -> None:
    settings, problems = resolve(section)
    for declared in DECLARED:
        if any(f"kernelLsp.{declared.name}:" in problem for problem in problems):
            assert getattr(settings, declared.field) == getattr(Settings(), declared.field)


def test_defaults_pass_their_own_checks() -> None:
    for declared in DECLARED:
        assert declared.check(default_of(declared)) == getattr(Settings(), declared.field)
    described = json_schema()["kernelLsp.build.maxParallel"]
    assert isinstance(described, dict)
    assert described["default"] == 1
