"""Text to tokens: exactly the chat template's, whatever the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from interaction.conversation import Conversation, StopReason
from serving.chat_tokens import ChatTokens, NoChatTemplate, read_stop_token_ids

QWEN2_5 = (
    "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content']"
    " + '<|im_end|>\\n' }}{%- else %}{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba"
    " Cloud. You are a helpful assistant.<|im_end|>\\n' }}{%- endif %}{%- for message in messages %}"
    "{%- if (message.role == 'user') or (message.role == 'system' and not loop.first) or"
    " (message.role == 'assistant') %}{{- '<|im_start|>' + message.role + '\\n' + message.content"
    " + '<|im_end|>' + '\\n' }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
LLAMA_3_STYLE = (
    "{{- '<|begin|>' }}{%- for message in messages %}{{- '<|head|>' + message['role'] + '<|/head|>"
    "\\n\\n' + message['content'] | trim + '<|im_end|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|head|>assistant<|/head|>\\n\\n' }}{%- endif %}"
)
TURNS = [
    ("user", "I need a plan."),
    ("assistant", "Which city?"),
    ("user", "Lisbon.\nAnd quickly!"),
    ("assistant", "How many days?"),
    ("user", "Five."),
    ("assistant", "Who is coming?"),
    ("user", "My kids."),
]


@pytest.fixture(scope="module")
def tokenizer(smollm2: Path) -> PreTrainedTokenizerBase:
    loaded = AutoTokenizer.from_pretrained(smollm2)
    loaded.add_special_tokens({"additional_special_tokens": ["<|begin|>", "<|head|>", "<|/head|>"]})
    return loaded


def with_template(tokenizer: PreTrainedTokenizerBase, name: str) -> ChatTokens:
    templates = {"smollm2": tokenizer.chat_template, "qwen": QWEN2_5, "llama": LLAMA_3_STYLE}
    tokens = ChatTokens(tokenizer)
    tokens._template_kwargs["chat_template"] = templates[name]
    return tokens


@pytest.mark.parametrize("name", ["smollm2", "qwen", "llama"])
def test_over_four_turns_the_prompt_is_the_full_templates(
    tokenizer: PreTrainedTokenizerBase, name: str
) -> None:
    tokens = with_template(tokenizer, name)
    talk = Conversation().add("system", "Be kind.")
    for role, content in TURNS:
        talk = talk.add(role, content)  # type: ignore[arg-type]
        if role == "user":
            whole = tokenizer.apply_chat_template(
                talk.to_dicts(), add_generation_prompt=True, tokenize=True, return_dict=True,
                **tokens._template_kwargs,
            )  # fmt: skip
            assert tokens.encode(talk) == list(whole["input_ids"])


def test_the_newline_after_a_turn_is_there(tokenizer: PreTrainedTokenizerBase) -> None:
    """verl's default builder drops it (verl#6501)."""
    tokens = ChatTokens(tokenizer)
    talk = Conversation().add("user", "Hi").add("assistant", "Which city?").add("user", "Lisbon")
    assert "Which city?<|im_end|>\n<|im_start|>user" in tokenizer.decode(tokens.encode(talk))


def test_what_was_generated_goes_on_as_the_template_would_have_it(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    """The reply's own tokens are a prefix of the next prompt, so its keys can be reused."""
    tokens = ChatTokens(tokenizer)
    start = Conversation().add("user", "Hi")
    generated = [*tokenizer.encode("Which city?"), tokenizer.eos_token_id]
    turn = tokens.decode(generated)
    longer = start.add("assistant", turn.text).add("user", "Lisbon")
    prefix = tokens.encode(start) + generated
    assert tokens.encode(longer)[: len(prefix)] == prefix


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=8), st.sampled_from(["<|im_", "end|>", "<|im_end|>", "<|im_start|>"])
        ),
        max_size=6,
    ).map("".join)
)
def test_no_text_ever_becomes_a_control_token(
    tokenizer: PreTrainedTokenizerBase, text: str
) -> None:
    tokens = ChatTokens(tokenizer)
    plain = tokens.encode(Conversation().add("system", "s").add("user", "x"))
    hostile = tokens.encode(Conversation().add("system", "s").add("user", text))
    # Bytes that the vocabulary lacks become the unknown token: ugly, but it opens no turn.
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    assert [t for t in hostile if t in special] == [t for t in plain if t in special]


def test_a_turn_cut_by_its_budget_is_not_finished(tokenizer: PreTrainedTokenizerBase) -> None:
    turn = ChatTokens(tokenizer).decode(tokenizer.encode("Which city"))
    assert not turn.finished and turn.fault is StopReason.LENGTH


def test_an_empty_turn_is_invalid(tokenizer: PreTrainedTokenizerBase) -> None:
    assert ChatTokens(tokenizer).decode([tokenizer.eos_token_id]).fault is StopReason.POLICY_INVALID


def test_a_turn_that_opens_another_role_is_malformed(tokenizer: PreTrainedTokenizerBase) -> None:
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    turn = ChatTokens(tokenizer).decode([*tokenizer.encode("Hi"), start, tokenizer.eos_token_id])
    assert turn.malformed and turn.fault is StopReason.POLICY_INVALID and turn.text == "Hi"


def test_a_tokenizer_without_template_is_refused(
    tokenizer: PreTrainedTokenizerBase, smollm2: Path
) -> None:
    bare = AutoTokenizer.from_pretrained(smollm2)
    bare.chat_template = None
    with pytest.raises(NoChatTemplate, match="no chat template"):
        ChatTokens(bare)


def test_the_folder_tells_what_ends_a_turn(
    smollm2: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    assert read_stop_token_ids(smollm2) == {tokenizer.eos_token_id}


def test_the_embedded_tokenizer_is_mended(smollm2: Path) -> None:
    loaded = AutoTokenizer.from_pretrained(smollm2)
    assert loaded.eos_token == "<|im_end|>" and loaded.pad_token == "<|endoftext|>"
    assert loaded.model_max_length == 8192 and loaded.padding_side == "left"
