"""Facts from PTX text: written by hand as nvcc writes it, with zero bytes for line ends."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.cubin.ptx import PtxKernel, read_ptx

TEXT = """
.version 9.0
.target sm_86
.extern .func  (.param .b32 func_retval0) far
(
.param .b32 far_param_0
)
;
.extern .shared .align 16 .b8 pool[];
.extern .shared .align 4 .b8 pool_unused[];
.func  (.param .b32 func_retval0) _Z3fibi(
.param .b32 _Z3fibi_param_0
)
{
call.uni (retval0),
_Z3fibi,
(param0);
ret;
}
.func _Z5touchv()
{
mov.u32 \t%r1, pool;
ret;
}
.visible .entry direct(
.param .u64 direct_param_0
)
.maxntid 256, 1, 1
.minnctapersm 3
{
mov.u32 \t%r3, pool;
}
.visible .entry through_call(
)
{
call.uni _Z5touchv, ();
call.uni _Z5other, ();
}
.visible .entry other_names()
.minnctapersm 2
{
mov.u32 \t%r3, pool_of_mine;
mov.u32 \t%r3, my_pool;
mov.u32 \t%r3, $pool;
}
.entry recurses()
{
{ call.uni (retval0), _Z3fibi, (param0); }
}
"""


def test_facts() -> None:
    assert read_ptx(TEXT.replace("\n", "\0").encode()) == {
        "direct": PtxKernel(3, True, False),
        "through_call": PtxKernel(None, True, False),
        "other_names": PtxKernel(2, False, False),
        "recurses": PtxKernel(None, False, True),
    }


def test_no_ptx_no_facts() -> None:
    assert read_ptx(b"") == {}
    assert read_ptx(b"\0" * 1000) == {}


def test_long_circles_and_chains_end() -> None:
    """10,000 functions that call one another in a row, the last the first again, and 2,000 kernels on them."""
    functions = "".join(f".func f{n}()\n{{\ncall f{(n + 1) % 10_000};\n}}\n" for n in range(10_000))
    kernels = "".join(f".entry k{n}()\n{{\ncall f{n};\n}}\n" for n in range(2_000))
    started = time.process_time()
    facts = read_ptx((functions + kernels + ".entry plain()\n{ }\n").encode())
    assert time.process_time() - started < 3
    assert facts["k7"].recurses
    assert not facts["plain"].recurses


def test_too_many_arrays_are_not_looked_for() -> None:
    arrays = "".join(f".extern .shared .align 4 .b8 a{n}[];\n" for n in range(20_000))
    facts = read_ptx((arrays + ".entry k()\n{ mov.u32 %r1, a5; }\n").encode())
    assert facts["k"].uses_dynamic_shared is None


@given(st.lists(st.sampled_from(
    [b".entry ", b".func ", b"(", b")", b"{", b"}", b"name", b"call ", b";", b"\0", b".extern .shared ", b"[]", b" "]
), max_size=300))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_noise(pieces: list[bytes]) -> None:
    for facts in read_ptx(b"".join(pieces)).values():
        assert facts.min_blocks_per_sm is None
