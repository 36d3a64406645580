"""Values between processes that do not trust each other: data only, never objects.

Promises: what arrives is built anew from plain built-in types and a few of the standard library,
so no `__eq__`, `__class__` or pickle of the sender comes along; anything else is `NotCarried` at
the sender and `Malformed` at the receiver. Knows nothing of what the values mean.
"""

from __future__ import annotations

import json
import os
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence

LARGEST = 16 * 1024 * 1024  # bytes of a message
_SAFE_INT = 2**53
_ITERATORS: tuple[type, ...] = (
    type(_ for _ in ()),
    map,
    filter,
    zip,
    enumerate,
    reversed,
    type(iter([])),
    type(iter(())),
    type(iter(range(0))),
    type(iter({})),
    type(reversed([])),
)
_SEQUENCES: dict[str, type] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
}
_MAPPINGS: dict[str, type] = {"dict": dict, "Counter": Counter, "OrderedDict": OrderedDict}
# Types that have a text they can be made from again.
_FROM_TEXT = {
    "Decimal": ("decimal", "__str__"),
    "Fraction": ("fractions", "__str__"),
    "date": ("datetime", "isoformat"),
    "time": ("datetime", "isoformat"),
    "datetime": ("datetime", "isoformat"),
}


class NotCarried(Exception):
    """A value is not data; the message names its type."""


class Malformed(Exception):
    """What arrived is no value."""


class Closed(Exception):
    """The other process is gone."""


def to_wire(value: object) -> object:
    """Return a value as JSON has it.

    Raises:
        NotCarried: If it is not data.
    """
    try:
        return _to_wire(value)
    except RecursionError as error:
        raise NotCarried("a value nested too deep or in itself") from error


def _to_wire(value: object) -> object:
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return value
    if isinstance(value, int) and kind is int:
        return value if -_SAFE_INT < value < _SAFE_INT else {"int": hex(value)}
    if isinstance(value, list) and kind is list:
        return [_to_wire(item) for item in value]
    if isinstance(value, (bytes, bytearray)) and kind in (bytes, bytearray):
        return {kind.__name__: value.hex()}
    if isinstance(value, complex) and kind is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, range):
        return {"range": [_to_wire(part) for part in (value.start, value.stop, value.step)]}
    return _collection_to_wire(value, kind)


def _collection_to_wire(value: object, kind: type) -> object:
    name = kind.__name__
    if isinstance(value, deque) and kind is deque and value.maxlen is not None:
        raise NotCarried("a bounded deque")
    if kind is _SEQUENCES.get(name) and isinstance(value, Iterable):
        return {name: [_to_wire(item) for item in value]}
    if kind is _MAPPINGS.get(name) and isinstance(value, dict):
        return {name: [[_to_wire(key), _to_wire(item)] for key, item in value.items()]}
    if kind in _ITERATORS and isinstance(value, Iterable):
        return {"iterator": [_to_wire(item) for item in value]}
    return _other_to_wire(value, kind)


def _other_to_wire(value: object, kind: type) -> object:
    module, name = kind.__module__, kind.__name__
    if (module, name) == ("collections", "defaultdict") and isinstance(value, dict):
        return {"dict": [[_to_wire(key), _to_wire(item)] for key, item in value.items()]}
    if name in _FROM_TEXT and module == _FROM_TEXT[name][0]:
        return {name: getattr(value, _FROM_TEXT[name][1])()}
    if (module, name) == ("datetime", "timedelta"):
        return {name: [getattr(value, part) for part in ("days", "seconds", "microseconds")]}
    if module == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        return _to_wire(value.item())
    raise NotCarried(f"{module}.{kind.__qualname__}"[:200])


def from_wire(raw: object) -> object:
    """Build the value anew.

    Raises:
        Malformed: If it is none.
    """
    try:
        return _from_wire(raw)
    except Malformed:
        raise
    except Exception as error:
        raise Malformed(f"{type(error).__name__}: {error}"[:200]) from error


def _from_wire(raw: object) -> object:
    if isinstance(raw, list):
        return [_from_wire(item) for item in raw]
    if not isinstance(raw, dict):
        return raw
    ((name, content),) = raw.items()
    if name in _SEQUENCES:
        return _SEQUENCES[name](_from_wire(item) for item in _sequence(content))
    if name in _MAPPINGS:
        pairs = [_sequence(pair) for pair in _sequence(content)]
        return _MAPPINGS[name]({_from_wire(pair[0]): _from_wire(pair[1]) for pair in pairs})
    if name == "iterator":
        return iter([_from_wire(item) for item in _sequence(content)])
    return _scalar(name, content)


def _scalar(name: str, content: object) -> object:
    if name == "int":
        return int(str(content), 16)
    if name in ("bytes", "bytearray"):
        plain = bytes.fromhex(str(content))
        return plain if name == "bytes" else bytearray(plain)
    if name in _FROM_TEXT:
        return _from_text(name, str(content))
    parts = [_from_wire(part) for part in _sequence(content)]
    if name == "complex":
        return complex(*(float(str(part)) for part in parts))
    whole = [int(str(part)) for part in parts]
    if name == "range":
        return range(*whole)
    if name == "timedelta":
        import datetime

        return datetime.timedelta(*whole)
    raise Malformed(f"no such kind of value: {name[:50]}")


def _from_text(name: str, text: str) -> object:
    if name in ("Decimal", "Fraction"):
        import decimal
        import fractions

        return decimal.Decimal(text) if name == "Decimal" else fractions.Fraction(text)
    import datetime

    kinds = {"date": datetime.date, "time": datetime.time, "datetime": datetime.datetime}
    return kinds[name].fromisoformat(text)  # type: ignore[attr-defined]


def _sequence(content: object) -> Sequence[object]:
    if not isinstance(content, list):
        raise Malformed("a list was expected")
    return content


class Channel:
    """Messages over two pipes, each a JSON value with its length in front."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def send(self, message: object) -> None:
        """Send a message.

        Raises:
            NotCarried: If it is too large.
            Closed: If nobody receives it.
        """
        body = json.dumps(message).encode()
        if len(body) > LARGEST:
            raise NotCarried(f"a value of more than {LARGEST} bytes")
        try:
            _write_all(self._outgoing, len(body).to_bytes(4, "big") + body)
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self) -> object:
        """Wait for a message.

        Raises:
            Malformed: If it is none or too large.
            Closed: If the other process is gone.
        """
        size = int.from_bytes(read_exactly(self._incoming, 4), "big")
        if size > LARGEST:
            raise Malformed(f"a message of {size} bytes")
        body = read_exactly(self._incoming, size)
        try:
            message: object = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Malformed(type(error).__name__) from error
        return message


def read_exactly(source: int, size: int) -> bytes:
    """Read so many bytes, not one more.

    Raises:
        Closed: If there are fewer.
    """
    parts = []
    while size:
        try:
            part = os.read(source, min(size, 1 << 16))
        except OSError as error:
            raise Closed(str(error)) from error
        if not part:
            raise Closed("end of file")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write_all(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
