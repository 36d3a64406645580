"""A reward model behind a server of vLLM or SGLang.

vLLM (`vllm serve MODEL --runner pooling`) applies the chat template itself and is asked at
/pooling for the output before any activation. SGLang (`--is-embedding`) takes text at /classify,
so that its model's tokenizer is needed here; its /v1/classify is no use, being a softmax, which
is 1 for every model with one output.
Promises: calls within the endpoint's limits, tried again as its settings say; the key stands in
no error. Knows nothing of ranges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from tenacity import AsyncRetrying, retry_if_exception

from interaction.conversation import Message
from reward.scorers.local import control_tokens, load_tokenizer
from reward.scorers.scorer import ScorerFailed, finite, without_control
from serving.chat_backoff import Backoff, is_retried
from serving.chat_calls import ChatCalls
from serving.chat_endpoint import endpoint_from
from serving.chat_faults import CallFault, remedy
from serving.chat_totals import Usage

Api = Literal["vllm", "sglang"]
_ROLE = "reward_model"


class ServedScorer:
    """Scores over HTTP.

    Args:
        endpoint: The fields of `ChatEndpoint`: base_url (its /v1 is left out for these routes),
            model, api_key_env, concurrency, timeout_s, max_attempts, ...
        api: Whose routes the server has.
        label: Which output is the number.
        tokenizer: Folder or hub name of the model's tokenizer; needed for SGLang. With vLLM it
            serves to take control tokens out of the turns before they are sent.

    Raises:
        ValueError: If a setting is missing or bad, or the key is not in the environment.
    """

    def __init__(
        self, endpoint: Mapping[str, Any], api: Api, label: int = 0, tokenizer: str | None = None
    ) -> None:
        self._endpoint = endpoint_from(endpoint, _ROLE)
        self._endpoint.api_key()
        if api not in get_args(Api):
            raise ValueError(f"api must be {' or '.join(get_args(Api))}, got {api!r}")
        if api == "sglang" and tokenizer is None:
            raise ValueError("api: sglang needs tokenizer: the folder or hub name of the model's")
        self._api = api
        self._label = label
        self._tokenizer = tokenizer
        self._calls = ChatCalls(self._endpoint)

    async def number(self, messages: Sequence[Message]) -> float:
        """Return the output for a conversation; see `Scorer`."""
        route, body, read = await asyncio.to_thread(self._request, messages)
        url = self._endpoint.url.removesuffix("/v1") + route
        answer = await self._tries(url, {"model": self._endpoint.model, **body})
        try:
            return finite(read(answer)[self._label])
        except (KeyError, IndexError, TypeError):
            raise ScorerFailed(
                f"{url} answered in no form that is known: {str(answer)[:200]}"
            ) from None

    def _request(
        self, messages: Sequence[Message]
    ) -> tuple[str, dict[str, Any], Callable[[Any], Any]]:
        """Return route, body and how to read the outputs."""
        tokenizer = load_tokenizer(self._tokenizer) if self._tokenizer else None
        turns = without_control(messages, control_tokens(tokenizer) if tokenizer else ())
        if self._api == "vllm":
            return "/pooling", {"messages": turns, "use_activation": False}, _of_vllm
        assert tokenizer is not None
        text = tokenizer.apply_chat_template(turns, tokenize=False)
        return "/classify", {"text": text}, _of_sglang

    async def _tries(self, url: str, body: dict[str, Any]) -> Any:
        backoff = Backoff(self._endpoint.max_attempts, self._endpoint.max_wait_s)
        retrying = AsyncRetrying(
            wait=backoff.wait,
            stop=backoff.stop,
            retry=retry_if_exception(is_retried),
            reraise=True,
        )
        try:
            return await retrying(self._send, url, body)
        except CallFault as fault:
            advice = remedy(fault, self._endpoint, _ROLE)
            reason = f"{url} gave no answer: {fault}; {backoff.verdict}; {advice}"
        raise ScorerFailed(reason)

    async def _send(self, url: str, body: dict[str, Any]) -> Any:
        return await self._calls.send(lambda sdk: sdk.post(url, cast_to=object, body=body), Usage())


def _of_vllm(answer: Any) -> Any:
    return answer["data"][0]["data"]


def _of_sglang(answer: Any) -> Any:
    return (answer[0] if isinstance(answer, list) else answer)["embedding"]
