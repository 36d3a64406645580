"""A `ChatModel` behind an OpenAI-compatible endpoint: the simulated user, the judge.

Promises: one answer or one `ChatFailed` that says what to do; limits hold over all processes;
the key stands in no repr, error or log. One client serves any number of tasks and event loops.
Knows nothing of prompts or goals.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from interaction.chat import ChatAnswer, ChatFailed, ChatUnreadable
from interaction.conversation import Message
from serving.answer_cache import AnswerCache
from serving.chat_backoff import Backoff, is_retried
from serving.chat_calls import ChatCalls
from serving.chat_endpoint import ChatEndpoint, endpoint_from
from serving.chat_faults import CallFault, refused_argument, remedy, text_of
from serving.chat_probe import check_endpoint
from serving.chat_request import SEEDS, request
from serving.chat_totals import ChatTotals, Usage
from serving.model_json import read_form

T = TypeVar("T")
FormT = TypeVar("FormT", bound=BaseModel)
Arguments = Callable[[], dict[str, Any]]  # made anew for each try: see `_refused`
_USELESS = ("empty", "length", "filtered")
logger = logging.getLogger(__name__)


class ChatClient:
    """Answers messages over HTTP; `totals` counts what that costs.

    Args:
        endpoint: Who answers, and how it may be called.
        role: Who is played (`user`, `judge`): names the totals, and the keys in errors.
        sleep: How to wait between tries.

    Raises:
        ValueError: If the endpoint needs a key and the environment has none.
    """

    def __init__(
        self,
        endpoint: ChatEndpoint,
        role: str = "user",
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        endpoint.api_key()
        self.endpoint = endpoint
        self.totals = ChatTotals(role)
        self._sleep = sleep
        self._calls = ChatCalls(endpoint)
        self._refused: set[str] = set()  # arguments the endpoint has turned down
        keeps = endpoint.cache_dir is not None and endpoint.temperature == 0
        self._cache = AnswerCache(endpoint.cache_dir) if keeps and endpoint.cache_dir else None

    def __repr__(self) -> str:
        return f"ChatClient({self.totals.role}: {self.endpoint.model} at {self.endpoint.url})"

    async def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int | None = None
    ) -> ChatAnswer[str]:
        """Answer with a text; see `ChatModel`."""
        arguments = self._arguments(messages, None, seed, max_tokens)
        return await self._answer(arguments, lambda text: text)

    async def structured(
        self,
        messages: Sequence[Message],
        form: type[FormT],
        *,
        seed: int,
        max_tokens: int | None = None,
    ) -> ChatAnswer[FormT]:
        """Answer with an object of a form; see `ChatModel`."""
        arguments = self._arguments(messages, form, seed, max_tokens)
        return await self._answer(arguments, lambda text: read_form(text, form))

    async def said(
        self,
        messages: Sequence[Message],
        read: Callable[[Any], T],
        *,
        seed: int,
        max_tokens: int | None = None,
    ) -> ChatAnswer[T]:
        """Answer with what `read` finds in the endpoint's response; never kept.

        Args:
            messages: Ends with what is to be answered.
            read: Raises `CallFault` for a response that is of no use.
            seed, max_tokens: See `ChatModel`.

        Raises:
            ChatFailed: If there is no response of use after all retries.
        """
        usage = Usage()
        try:
            value = await self._tries(
                self._arguments(messages, None, seed, max_tokens), usage, read
            )
        finally:
            used = usage.by_name(self.endpoint)
            self.totals.add(used)
        self.totals.answers += 1
        return ChatAnswer(value, used)

    async def probe(self) -> None:
        """Check, without a second try, that the endpoint answers and has the model.

        Raises:
            ChatFailed: If not; says what to do.
        """
        try:
            await check_endpoint(self.endpoint, self._calls)
            return
        except CallFault as fault:
            failure = fault
        raise self._failed(failure, "a probe is not repeated")

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._calls.close()

    def _arguments(
        self,
        messages: Sequence[Message],
        form: type[BaseModel] | None,
        seed: int,
        max_tokens: int | None,
    ) -> Arguments:
        return lambda: request(
            self.endpoint,
            messages,
            form=form,
            seed=seed,
            max_tokens=max_tokens,
            refused=self._refused,
        )

    async def _answer(self, arguments: Arguments, read: Callable[[str], T]) -> ChatAnswer[T]:
        question = {"url": self.endpoint.url, **arguments()}
        usage = Usage()
        try:
            kept = self._cache.get(question) if self._cache else None
            text = await self._tries(arguments, usage, text_of) if kept is None else kept
            value = read(text)
        except ChatUnreadable:
            self.totals.failures["unreadable"] += 1
            raise
        finally:
            used = usage.by_name(self.endpoint)
            self.totals.add(used)
        self.totals.answers += 1
        self.totals.cache_hits += kept is not None
        if self._cache and kept is None:  # only what could be read: else it would fail for ever
            self._cache.put(question, text)
        return ChatAnswer(value, used)

    async def _tries(self, arguments: Arguments, usage: Usage, read: Callable[[Any], T]) -> T:
        backoff = Backoff(self.endpoint.max_attempts, self.endpoint.max_wait_s)
        retrying = AsyncRetrying(
            sleep=self._sleep,
            wait=backoff.wait,
            stop=backoff.stop,
            retry=retry_if_exception(is_retried),
            before_sleep=self._log_retry,
            reraise=True,
        )
        try:
            return await retrying(self._try, arguments, usage, read)
        except CallFault as fault:
            failure = fault
        raise self._failed(failure, backoff.verdict)

    async def _try(self, arguments: Arguments, usage: Usage, read: Callable[[Any], T]) -> T:
        sent = arguments()
        if "seed" in sent:  # after a useless answer the same seed would give it again
            sent["seed"] = (sent["seed"] + usage.useless) % SEEDS
        try:
            response = await self._calls.send(
                lambda sdk: sdk.chat.completions.create(**sent), usage
            )
            usage.count(response)
            return read(response)
        except CallFault as fault:
            self.totals.failures[fault.kind] += 1
            usage.useless += fault.kind in _USELESS
            refused = refused_argument(fault, sent)
            if refused is None:
                raise
            logger.warning("%r takes no %s; going on without it: %s", self, refused, fault)
        self._refused.add(refused)
        return await self._try(arguments, usage, read)

    def _log_retry(self, state: RetryCallState) -> None:
        fault = state.outcome.exception() if state.outcome else None
        wait = state.upcoming_sleep
        logger.info("%r: try %d: %s; next in %.1f s", self, state.attempt_number, fault, wait)

    def _failed(self, fault: CallFault, verdict: str) -> ChatFailed:
        own, role = self.endpoint, self.totals.role
        return ChatFailed(
            f"the {role} model {own.model} at {own.url} gave no answer: {fault}; "
            f"{verdict}; {remedy(fault, own, role)}"
        )


def connect(config: Mapping[str, Any], role: str) -> ChatClient:
    """Build a client from plain configuration.

    Args:
        config: The fields of `ChatEndpoint`.
        role: Who is played.

    Raises:
        ValueError: If a key is unknown, missing or bad, or the API key is not in the environment.
    """
    return ChatClient(endpoint_from(config, role), role)
