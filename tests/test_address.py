"""The text of an address: one for each data set, version and blocks, and no other text is one."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.address import Address, read, written
from sfumato.errors import ArgumentError

letters = st.characters(exclude_categories=["Cs"])
texts = st.text(st.one_of(st.sampled_from("%@#,&+ 2540é"), letters), min_size=1, max_size=12)
addresses = st.builds(Address, texts, texts, st.lists(st.one_of(texts, st.just("")), max_size=3).map(tuple))
settled = settings(derandomize=True, deadline=None, max_examples=300)


@settled
@given(st.lists(addresses, min_size=1, max_size=4, unique_by=lambda each: each.name))
@example([Address("a", "1", ("",))])
@example([Address("%2540", "@", ("#", ",")), Address("&", "&", ("", ""))])
def test_what_is_written_is_read_back(several: list[Address]) -> None:
    text = written(several)
    assert sorted(read(text)) == sorted(several)
    assert written(read(text)) == text


@settled
@given(addresses, addresses)
@example(Address("a", "1", ()), Address("a", "1", ("",)))
@example(Address("a", "1#b"), Address("a", "1", ("b",)))
@example(Address("a@1", "2"), Address("a", "1@2"))
@example(Address("a", "1", ("b", "c")), Address("a", "1", ("b,c",)))
@example(Address("a", "1&b@2"), Address("a", "1"))
@example(Address("%40", "1"), Address("@", "1"))
def test_no_two_addresses_share_a_text(one: Address, other: Address) -> None:
    assert (str(one) == str(other)) == (one == other)


@settled
@given(st.text(st.one_of(st.sampled_from("%@#,&24cf"), letters), max_size=12))
def test_a_text_is_refused_or_the_only_one_of_its_address(text: str) -> None:
    """Else one data set would be asked for under two texts, and answers looked up under one."""
    try:
        found = read(text)
    except ArgumentError:
        return
    assert "&".join(map(str, found)) == text
    assert all(each.name and each.version for each in found)


@pytest.mark.parametrize(
    "text",
    ["", "a", "@", "a@", "@1", "a@1@2", "a@1&", "&a@1", "a@1&&b@1", "a@1#b#c", "a%40b", "a%zz@1", "a%2@1", "a%ff@1",
     "%61@1", "a@1#%62", "a%2c@1", "#b", "a#b@1"],
)  # fmt: skip
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="an address such as 'visits@1'"):
        read(text)


def test_a_data_set_is_named_once() -> None:
    with pytest.raises(ArgumentError, match="an address such as"):
        read("a@1&a@2")
