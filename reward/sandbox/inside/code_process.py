"""The process of the code under test: loads it, then calls its functions as it is asked to.

Promises: nothing but data goes out. Once the program is loaded it owns this process and may say
whatever it likes; whoever listens believes none of it. Knows nothing of the tests.
"""

from __future__ import annotations

import sys
import types

from .wire import Channel, Closed, NotCarried, from_wire, to_wire

_MUTABLE = (list, dict, set, bytearray)


def serve(channel: Channel, prefix: str, program: str) -> None:
    """Load a program and answer calls until nobody asks any more.

    Args:
        channel: To the test process.
        prefix: Source that is executed first; the program may redefine what it defines.
        program: Source of the program.
    """
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module  # where dataclasses and pickle look for it
    try:
        for source in (prefix, program):
            exec(compile(source, "candidate", "exec"), module.__dict__)  # noqa: S102
        channel.send({"loaded": None})
    except BaseException as error:
        channel.send({"loaded": f"{type(error).__name__}: {error}"[:300]})
        return
    while True:
        try:
            request = channel.receive()
            channel.send(_answer(module.__dict__, request))
        except Closed:
            return
        except NotCarried as error:
            channel.send({"uncarried": str(error)})


def _answer(namespace: dict[str, object], request: object) -> object:
    if not isinstance(request, dict):
        raise Closed("not a request")
    arguments, keywords = from_wire(request["args"]), from_wire(request["kwargs"])
    if not isinstance(arguments, list) or not isinstance(keywords, dict):
        raise Closed("not a request")
    answer: dict[str, object] = {}
    try:
        answer["returned"] = to_wire(_call(namespace, request["name"], arguments, keywords))
    except NotCarried as error:
        return {"uncarried": str(error)}
    except BaseException as error:
        answer = _raised(error)
    if any(isinstance(argument, _MUTABLE) for argument in arguments):
        answer["args"] = to_wire(arguments)
    return answer


def _call(
    namespace: dict[str, object],
    name: str,
    arguments: list[object],
    keywords: dict[str, object],
) -> object:
    function = namespace.get(name)
    if not callable(function):
        raise NameError(f"name {name!r} is not defined as a function")
    return function(*arguments, **keywords)


def _raised(error: BaseException) -> dict[str, object]:
    names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    try:
        arguments = to_wire(list(error.args))
    except NotCarried:
        arguments = [str(error)]
    return {"raised": names[0], "with": arguments}
