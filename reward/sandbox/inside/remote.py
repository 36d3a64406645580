"""The functions of the code under test, as its tests see them.

Promises: a call returns data or raises a built-in exception; a call that cannot be answered marks
the running case as lost whatever the test makes of it, so that no `except` turns it into a pass.
Knows nothing of what is tested.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

from .wire import Channel, Closed, Malformed, NotCarried, from_wire, to_wire

# What a test may see of these would stop the tests instead of failing one.
_NOT_RAISED = ("KeyboardInterrupt", "GeneratorExit", "BaseException", "BaseExceptionGroup")


class Lost(BaseException):
    """A call has no answer. Not an `Exception`: tests that expect one must not catch it."""


class Remote:
    """The code process, and what went wrong with it.

    Attributes:
        fault: Why the running case has no verdict of its own, else "".
        uncarried: Whether the fault is a value that is no data.
        gone: Why no call will be answered any more, else "".
        calls: How many calls were made.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.fault = ""
        self.uncarried = False
        self.gone = ""
        self.calls = 0

    def next_case(self) -> None:
        """Forget the fault of the case that ended; what prepares the next one counts for it."""
        self.fault, self.uncarried = self.gone, False

    def wait_until_loaded(self) -> None:
        """Wait for the program; if it cannot be loaded it is gone."""
        try:
            message = self._channel.receive()
            loaded = message["loaded"] if isinstance(message, dict) else "no such message"
            self.gone = "" if loaded is None else f"the program cannot be loaded: {loaded}"
        except (Closed, Malformed, KeyError) as error:
            self.gone = f"the program ended while it was loaded: {error}"

    def function(self, name: str) -> Callable[..., object]:
        """Return what calls a function of the program."""

        def call(*arguments: object, **keywords: object) -> object:
            return self._call(name, arguments, keywords)

        call.__name__ = call.__qualname__ = name
        return call

    def _call(
        self, name: str, arguments: tuple[object, ...], keywords: dict[str, object]
    ) -> object:
        self.calls += 1
        if self.gone:
            raise self._lost(self.gone)
        try:
            returned, error, changed = self._exchange(name, arguments, keywords)
        except NotCarried as problem:
            raise self._lost(f"not data: {problem}", uncarried=True) from None
        except Exception as problem:
            # Whatever else goes wrong here is of the program's making, an answer too large for
            # the memory of this process included.
            self.gone = f"the program ended in a call or broke the protocol: {problem}"
            raise self._lost(self.gone) from None
        _copy_back(arguments, changed)
        if error is not None:
            raise error
        return returned

    def _exchange(
        self, name: str, arguments: tuple[object, ...], keywords: dict[str, object]
    ) -> tuple[object, BaseException | None, object]:
        request = {"name": name, "args": to_wire(list(arguments)), "kwargs": to_wire(keywords)}
        self._channel.send(request)
        answer = self._channel.receive()
        if isinstance(answer, dict) and "uncarried" in answer:
            raise NotCarried(str(answer["uncarried"])[:200])
        return _parse(answer)

    def _lost(self, why: str, uncarried: bool = False) -> Lost:
        self.fault, self.uncarried = why, uncarried
        return Lost(why)


def _parse(answer: object) -> tuple[object, BaseException | None, object]:
    """Return the result or the exception, and the arguments as the call left them."""
    if not isinstance(answer, dict):
        raise Malformed("an answer must be an object")
    changed = from_wire(answer.get("args"))
    if "raised" in answer:
        return None, _exception(answer["raised"], from_wire(answer.get("with"))), changed
    if "returned" not in answer:
        raise Malformed("an answer without a result")
    return from_wire(answer["returned"]), None, changed


def _copy_back(arguments: tuple[object, ...], changed: object) -> None:
    """Do to the caller's lists, dicts and sets what the call did to its copies."""
    if not isinstance(changed, list) or len(changed) != len(arguments):
        return
    for mine, theirs in zip(arguments, changed):  # noqa: B905
        if type(mine) is not type(theirs) or mine == theirs:
            continue
        if isinstance(mine, (list, bytearray)) and isinstance(theirs, (list, bytearray)):
            mine[:] = theirs
        elif isinstance(mine, (dict, set)) and isinstance(theirs, (dict, set)):
            mine.clear()
            mine.update(theirs)


def _exception(name: object, arguments: object) -> BaseException:
    kind = getattr(builtins, str(name), None)
    if name in _NOT_RAISED or not (isinstance(kind, type) and issubclass(kind, BaseException)):
        kind = Exception
    values = arguments if isinstance(arguments, list) else [arguments]
    try:
        return kind(*values)
    except Exception:
        return Exception(*values)
