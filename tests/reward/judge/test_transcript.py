"""What the judge is shown of a conversation, and that it reads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation, Message, StopReason
from interaction.task import Task
from reward.judge.fence import fenced, read_fenced
from reward.judge.prompt import conversation_prompt, read_prompt
from reward.judge.question import JudgeFailed
from reward.judge.transcript import Shown, read_turns, shown, turn_lines
from tests.reward.judge.judge_server import QUESTIONS

KEY = b"a key"
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
MESSAGE = st.builds(Message, st.sampled_from(["system", "user", "assistant"]), TEXT)
CONVERSATION = st.builds(
    Conversation,
    st.lists(MESSAGE, max_size=6).map(tuple),
    st.none() | st.sampled_from(StopReason),
)


@given(conversation=CONVERSATION)
def test_any_conversation_reads_back_exactly(conversation: Conversation) -> None:
    block = fenced("transcript", turn_lines(conversation), KEY)
    assert read_turns(read_fenced(block, "transcript")) == conversation


@given(conversation=CONVERSATION)
def test_any_conversation_reads_back_from_the_whole_prompt(conversation: Conversation) -> None:
    task = Task.from_json(
        '{"task_id": "t", "family": "f", "ground_truth": "1", "metadata": {}, "goal": '
        '{"summary": "</transcript>", "facts": [], "indifferent": {}}}'
    )
    prompt = conversation_prompt(task, QUESTIONS, Shown(conversation, 0), KEY, 1)
    text = prompt.messages(["clarity"], {"clarity": "no"})[-1].content
    assert read_prompt(text) == conversation


def test_the_judge_sees_what_the_user_saw(talk: Conversation) -> None:
    seen = shown(talk, given=2)
    assert seen.conversation.messages == (
        Message("user", "How many pens?"),
        Message("assistant", "How many boxes?"),
        Message("user", "3."),
        Message("assistant", "36 pens."),
    )
    assert seen.first == 2 and seen.conversation.stop is StopReason.WINDOW


@pytest.mark.parametrize(("given", "first"), [(0, 1), (1, 1), (2, 2), (4, 4)])
def test_the_first_judged_turn_is_counted_without_what_is_hidden(
    talk: Conversation, given: int, first: int
) -> None:
    assert shown(talk, given).first == first


@pytest.mark.parametrize("given", [5, 9])
def test_nothing_to_judge_is_no_verdict(talk: Conversation, given: int) -> None:
    with pytest.raises(JudgeFailed, match="no policy turn"):
        shown(talk, given)


class TestFence:
    def test_the_nonce_changes_with_inside_key_and_salt(self) -> None:
        blocks = [
            fenced("x", ["a"], KEY),
            fenced("x", ["b"], KEY),
            fenced("x", ["a"], b"other"),
            fenced("x", ["a"], KEY, "7"),
        ]
        assert len({block.split("\n")[0] for block in blocks}) == 4

    def test_the_same_inside_has_the_same_fence(self) -> None:
        assert fenced("x", ["a"], KEY, "7") == fenced("x", ["a"], KEY, "7")

    def test_a_nonce_that_stands_inside_is_drawn_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from reward.judge import fence

        class Hash:
            def __init__(self, text: bytes, **_: object) -> None:
                self.text = text

            def hexdigest(self) -> str:
                return "0" * 16 if self.text.startswith(b"0 ") else "1" * 16

        monkeypatch.setattr(fence.hashlib, "blake2b", Hash)
        assert fenced("x", ["0" * 16], KEY).startswith("<x 1111111111111111>")

    @pytest.mark.parametrize(
        "text",
        ["", "<x 0011223344556677>\na", "<x 0011223344556677>\n</x 7766554433221100>"],
    )
    def test_a_block_that_does_not_end_is_none(self, text: str) -> None:
        with pytest.raises(ValueError, match="'x'"):
            read_fenced(text, "x")

    def test_two_blocks_of_a_name_are_none(self) -> None:
        with pytest.raises(ValueError, match="2 blocks"):
            read_fenced("\n".join([fenced("x", ["a"], KEY), fenced("x", ["b"], KEY)]), "x")


@pytest.mark.parametrize(
    "lines",
    [
        ['{"turn": 2, "role": "user", "text": "a"}'],
        ['{"turn": 1, "role": "judge", "text": "a"}'],
        ['{"turn": 1, "role": "user", "text": "a"}', '{"ended": "bored"}'],
    ],
)
def test_lines_that_are_no_turns_are_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError):
        read_turns(lines)
