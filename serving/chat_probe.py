"""Is the endpoint there, and has it the model? Asked once before a run.

Promises: a `CallFault` says what is missing; where models are listed nothing is generated,
elsewhere one token. Knows nothing of tries or of remedies.
"""

from __future__ import annotations

from collections.abc import Sequence

from interaction.conversation import Message
from serving.chat_calls import ChatCalls
from serving.chat_endpoint import ChatEndpoint
from serving.chat_faults import CallFault
from serving.chat_request import request
from serving.chat_totals import Usage

_NO_LIST = (404, 405, 501)


async def check_endpoint(endpoint: ChatEndpoint, calls: ChatCalls) -> None:
    """Check that an endpoint answers and has its model.

    Raises:
        CallFault: If not.
    """
    try:
        page = await calls.send(lambda sdk: sdk.models.list(), Usage())
    except CallFault as fault:
        if fault.status not in _NO_LIST:
            raise
    else:
        listed = getattr(page, "data", None) or ()
        _check_listed(endpoint.model, [str(getattr(model, "id", "")) for model in listed])
        return
    sent = request(endpoint, [Message("user", "Hi")], form=None, seed=None, max_tokens=1)
    await calls.send(lambda sdk: sdk.chat.completions.create(**sent), Usage())


def _check_listed(wanted: str, names: Sequence[str]) -> None:
    # Some list `models/x` and take `x`; some list nothing.
    if names and not any(name == wanted or name.endswith(f"/{wanted}") for name in names):
        offered = ", ".join(sorted(names)[:10])
        raise CallFault("http_404", f"no model {wanted}; it has {offered}", status=404)
