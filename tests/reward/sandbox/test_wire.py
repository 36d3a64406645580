"""Values between processes: what comes across, what does not, and rubbish."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import math
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.sandbox.inside.wire import Channel, Closed, Malformed, NotCarried, from_wire, to_wire

HASHABLE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.binary(), st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False), st.decimals(allow_nan=False), st.fractions(),
    st.dates(), st.times(), st.datetimes(), st.timedeltas(),
)  # fmt: skip
VALUES = st.recursive(
    HASHABLE,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.sets(HASHABLE),
        st.frozensets(HASHABLE),
        st.dictionaries(HASHABLE, inner),
        st.lists(inner).map(collections.deque),
    ),
    max_leaves=20,
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner, max_size=2)),
    max_leaves=20,
)


def carried(value: object) -> object:
    return from_wire(json.loads(json.dumps(to_wire(value))))


@given(VALUES)
def test_data_comes_across_as_it_is(value: object) -> None:
    arrived = carried(value)
    assert arrived == value and type(arrived) is type(value)


@given(JSON)
def test_rubbish_is_refused_or_plain_data(raw: object) -> None:
    try:
        arrived = from_wire(raw)
    except Malformed:
        return
    assert type(arrived).__module__ in ("builtins", "collections", "datetime", "decimal")


def test_what_is_no_number_comes_across() -> None:
    arrived = carried([float("nan"), float("inf"), -0.0])
    assert isinstance(arrived, list)
    assert math.isnan(arrived[0]) and arrived[1] == float("inf") and str(arrived[2]) == "-0.0"


@pytest.mark.parametrize(
    "value",
    [
        collections.Counter("abca"),
        collections.OrderedDict(b=1, a=2),
        bytearray(b"x"),
        range(3, 9, 2),
        10**5000,
        -(10**30),
        True,
        fractions.Fraction(1, 3),
        decimal.Decimal("1.10"),
        datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds_of_the_standard_library_keep_their_type(value: object) -> None:
    arrived = carried(value)
    assert arrived == value and type(arrived) is type(value)


def test_iterators_are_used_up_and_arrive_as_iterators() -> None:
    for value in ((x for x in "abc"), map(str.lower, "ABC"), iter("abc" and ["a", "b", "c"])):
        arrived = carried(value)
        assert arrived != ["a", "b", "c"] and list(arrived) == ["a", "b", "c"]  # type: ignore[call-overload]


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize("value", [Liar(3), object(), Colour.RED, len, type, [1, {2: Liar(3)}]])
def test_objects_do_not_come_across(value: object) -> None:
    with pytest.raises(NotCarried):
        to_wire(value)


def test_what_holds_itself_does_not_come_across() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(NotCarried, match="nested too deep"):
        to_wire(value)


def pair() -> tuple[Channel, Channel, list[int]]:
    a, b = os.pipe(), os.pipe()
    return Channel(a[0], b[1]), Channel(b[0], a[1]), [*a, *b]


def test_a_channel_carries_messages_of_any_size() -> None:
    one, other, _ = pair()
    message = {"text": "x" * 1_000_000}
    sender = threading.Thread(target=one.send, args=(message,))
    sender.start()
    assert other.receive() == message
    sender.join()


@pytest.mark.parametrize(
    "sent",
    [b"\xff\xff\xff\xff", b"\0\0\0\2{]", b"\0\0\0\2\xff\xfe", b"\0\0\x27\x10" + b"[" * 10_000],
)
def test_a_broken_message_is_malformed(sent: bytes) -> None:
    _, other, ends = pair()
    os.write(ends[3], sent)
    with pytest.raises(Malformed):
        other.receive()


def test_an_end_in_a_message_is_closed() -> None:
    a = os.pipe()
    os.write(a[1], b"\0\0\0\x09{")
    os.close(a[1])
    with pytest.raises(Closed):
        Channel(a[0], 1).receive()
