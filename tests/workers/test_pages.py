"""Pages behind caches: on a CPU by being touched, on a GPU by being mapped, and given back either
way.
"""

import gc
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workers.host_pages import HostPages
from tests.workers.tiny_llms import greedy, prompt, tiny_llm
from workers.errors import Unsupported
from workers.kv_caches import cache_memory, make_cache
from workers.kv_caches.virtual import (
    ByteSpan,
    MappedReservation,
    covering,
    inside,
    pages_to_leave,
    pages_to_map,
)


@pytest.fixture(autouse=True)
def _calm() -> Iterator[None]:
    with torch.inference_mode():
        yield


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([1, 7, 4096]))
def test_pages_of_a_span(one: int, other: int, page: int) -> None:
    """Pages are whole; those that cover a span hold all of it, those inside hold nothing else."""
    span = ByteSpan(min(one, other), max(one, other))
    outer, inner = covering(span, page), inside(span, page)
    assert all(byte % page == 0 for byte in (*outer, *inner))
    assert outer.start <= span.start <= span.end <= outer.end < span.end + page
    assert outer.size - span.size < 2 * page
    if inner.size:
        assert span.start <= inner.start <= inner.end <= span.end
    assert span.size - inner.size < 2 * page
    assert list(pages_to_leave(span, page)) == list(range(inner.start // page, inner.end // page))
    assert len(pages_to_map(0, span.end, page)) * page == covering(ByteSpan(0, span.end), page).end
    assert len(pages_to_map(10**7, span.end, page)) == 0


def test_mapped_pages_are_unmapped_when_memory_is_short() -> None:
    """Released pages of any reservation are taken; with none of them it is an error."""
    pages = HostPages(limit=6)
    size = pages.size
    one, other = MappedReservation(8 * size, pages), MappedReservation(8 * size, pages)
    one.grow(4 * size)
    one.values(torch.uint8)[: 4 * size] = 7
    one.release(ByteSpan(size + 1, 8 * size))
    assert (one.resident(), other.resident()) == (4 * size, size)
    other.grow(3 * size)
    assert (one.resident(), other.resident()) == (2 * size, 3 * size)
    assert (pages.settled, pages.spared) == (1, 1)
    assert one.values(torch.uint8)[: 2 * size].unique().tolist() == [7], (
        "what is in use is not taken"
    )
    other.grow(4 * size)
    with pytest.raises(MemoryError):
        one.grow(3 * size)
    assert one.resident() == 2 * size


def test_a_page_to_which_access_is_refused_is_not_left_mapped() -> None:
    """Memory and addresses are given back, and can be mapped once access is granted."""
    pages = HostPages()
    reservation = MappedReservation(8 * pages.size, pages)
    pages.forbidden = True
    with pytest.raises(RuntimeError, match="no access"):
        reservation.grow(2 * pages.size)
    assert (len(pages.mapped), len(pages.memory), reservation.resident()) == (1, 1, pages.size)
    pages.forbidden = False
    reservation.grow(2 * pages.size)
    reservation.values(torch.uint8)[: 2 * pages.size] = 7
    assert (len(pages.mapped), len(pages.memory)) == (2, 2)


def test_mapped_pages_outlive_the_reservation_in_its_tensors() -> None:
    """Pages and addresses go back once the last tensor over them is gone, not before."""
    pages = HostPages()
    reservation = MappedReservation(10 * pages.size, pages)
    values = reservation.values(torch.bfloat16)
    del reservation
    gc.collect()
    values[:100] = 3
    assert values[:100].float().sum() == 300
    assert len(pages.memory) == 1
    del values
    gc.collect()
    assert not pages.memory
    assert not pages.reserved


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["grow", "crop", "slide", "trim", "reset"]),
        st.integers(0, 300),
    )
)


@settings(deadline=None)
@given(STEPS, st.sampled_from([100, 256, 1000]), st.integers(1, 300))
def test_mapped_pages_hold_what_is_kept(
    steps: list[tuple[int, str, int]], row: int, rows: int
) -> None:
    """What a cache may touch is mapped, not idle, and holds what was written."""
    pages = HostPages(size=4096, limit=400)
    both = [MappedReservation(rows * row, pages) for _ in range(2)]
    kept = [range(0), range(0)]
    for which, action, at in steps:
        one, held = both[which], kept[which]
        values = one.values(torch.uint8)
        if action == "grow":
            end = max(held.stop, min(at, rows))
            one.grow((end + 16) * row)
            assert (
                set(range(held.start * row // one.page, -(-end * row // one.page)))
                <= set(one._mapped)
                or end == held.start
            )
            for token in range(held.stop, end):
                values[token * row : (token + 1) * row] = 1 + token % 255
            kept[which] = range(held.start, end)
        elif action == "crop" and held:
            length = max(held.start, min(at, held.stop))
            one.release(ByteSpan(length * row, rows * row))
            kept[which] = range(held.start, length)
        elif action == "slide":
            first = max(held.start, min(at, held.stop))
            one.release(ByteSpan(held.start * row // one.page * one.page, first * row))
            kept[which] = range(first, held.stop)
        elif action == "trim":
            one.trim()
        elif action == "reset":
            one.release(ByteSpan(0, rows * row))
            kept[which] = range(0)
        for reservation, tokens in zip(both, kept, strict=True):
            if tokens:
                touched = covering(
                    ByteSpan(tokens.start * row, tokens.stop * row), reservation.page
                )
                numbers = set(
                    range(touched.start // reservation.page, touched.end // reservation.page)
                )
                assert numbers <= set(reservation._mapped), "a touched page is mapped"
                assert not numbers & reservation._idle, (
                    "a touched page is not one that may be unmapped"
                )
                for token in (tokens.start, tokens[-1]):
                    held_bytes = reservation.values(torch.uint8)[token * row : (token + 1) * row]
                    assert held_bytes.unique().tolist() == [1 + token % 255]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu() -> None:
    """Where there is no GPU the refusal names that."""
    from workers.kv_caches.virtual import cuda_driver

    with pytest.raises(Unsupported, match="needs a GPU, and torch finds none here"):
        cuda_driver(torch.device("cuda"))


@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU: CUDA's virtual memory management"
)
def test_pages_of_a_gpu() -> None:
    """On a GPU the virtual cache gives the dynamic one's tokens, on whole pages."""
    import copy
    import dataclasses

    lm = tiny_llm("llama", torch.bfloat16)
    lm = dataclasses.replace(lm, model=copy.deepcopy(lm.model).cuda())
    output = []
    for kind in ("dynamic", "virtual"):
        cache = make_cache(kind, lm, 2, 100)
        output.append(greedy(lm, cache, prompt(2, 20).cuda(), 60))
    assert torch.equal(output[1], output[0])
    memory = cache_memory(cache)
    assert memory.resident >= memory.needed
    assert memory.resident % (2 << 20) == 0
    cache.reset()
    assert cache_memory(cache).resident == memory.resident
