"""What the policy finally delivered: answers, documents and code out of whole conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from reward.extraction import final_answer, final_code, final_document, policy_texts
from reward.extraction.numbers import value_of
from reward.metric import MetricContext

FINDERS: list[Callable[[Sequence[str]], str | None]] = [final_answer, final_document, final_code]
ARTICLE = "Bees live in hives. They make honey from nectar, and they dance to tell where it is."
NEWER = "Bees live in hives. They make honey from pollen, and they dance to show where it is."


def test_the_policys_turns_are_those_after_what_was_given_without_thinking() -> None:
    talk = (
        Conversation()
        .add("system", "s")
        .add("user", "u")
        .add("assistant", "given")
        .add("user", "u")
        .add("assistant", "<think>hm</think>said")
        .add("user", "bye")
    )
    assert policy_texts(talk, MetricContext(given=4)) == ["said"]
    assert policy_texts(talk, MetricContext()) == ["given", "said"]
    assert policy_texts(Conversation(), MetricContext()) == []


class TestFinalAnswer:
    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("so we get 5. The answer is 42.", "42"),
            ("The answer is 41. No, the answer is 42.", "42"),
            ("It costs 3 dollars; the final answer is 12.", "12"),
            ("The answer is 12, which is 3 more than 9.", "12"),
            (r"It is \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
            (r"\boxed{\frac{\sqrt{2}}{2}} of 7", r"\frac{\sqrt{2}}{2}"),
            (r"\boxed{1} and then \boxed{2}", "2"),
            (r"\boxed{\$1{,}234\text{ per day}}", "1234"),
            (r"The answer is $\boxed{7}$ apples.", "7"),
            (r"\boxed{x = 5}", "x = 5"),
            (r"\boxed{\text{even}}", r"\text{even}"),
            ("She makes $1,234.50 each day.", "1234.50"),
            ("Answer: **18** dollars", "18"),
            ("**Final Answer**\n18", "18"),
            ("**Final Answer:** \\[\n18\n\\]", "18"),
            ("#### 1,234", "1234"),
            ("The answer is $18 per day and $20 per night.", "18"),
            (r"The answer is $\frac{3}{4}$ cup.", r"\frac{3}{4}"),
            (r"So the total is $\frac{3}{4}$.", r"\frac{3}{4}"),
            ("The answer is 3 + 4 = 7 apples.", "7"),
            ("So 3 * 6 = 18 apples.", "18"),
            ("Sally pays 3 * 6 = $18 for 5 apples.", "18"),
            ("First 3 * 6 = 18. Each of 2 friends gets 9.", "9"),
            ("The answer is about 70 000 meters.", "70000"),
            ("The answer is 1 1/2 cups.", "1 1/2"),
            ("The answer is \u22125.", "-5"),
            ("My answer: -$5", "-5"),
            ("The answer is 50%.", "50%"),
            ("The answer is .5", ".5"),
            ("It is $.5$.", ".5"),
            ("The answer is 18 m.", "18"),
            ("The answer is 5km", "5"),
            ("The answer is 20°C.", "20"),
            ("The answer is 2x + 3.", "2x + 3"),
            ("The answer is [0, 1).", "[0, 1)"),
            ("The answer is (B).", "(B)"),
            ("The answer is blue.", "blue"),
            ("The final answer, in dollars, is 18.", "18"),
            ("Answer (in dollars): 18", "18"),
            ("We express the answer as a percentage: 3 / 4 * 100% = 75%", "75%"),
            ("The answer is not 5 but 6.", "6"),
            ("5 apples and 3 pears make 8 fruits", "8"),
            ("18", "18"),
            ("(B)", "(B)"),
        ],
    )
    def test_is_what_the_turn_states_or_ends_on(self, text: str, answer: str) -> None:
        assert final_answer([text]) == answer

    @pytest.mark.parametrize(
        "text",
        [
            "I do not know.",
            "Is the answer 5?",
            "So the answer is 5?",
            "The answer is not 5.",
            "The answer isn't 5.",
            "To get the final answer, I need to know: how many?",
            "<think>The answer is 5.</think>",
            "<think>The answer is 5.",
            "\\boxed{}",
            "",
        ],
    )
    def test_questions_denials_and_thoughts_are_none(self, text: str) -> None:
        assert final_answer([text]) is None

    @pytest.mark.parametrize(
        ("texts", "answer"),
        [
            (["The answer is 5.", "You're welcome!"], "5"),
            (["The answer is 5.", "Sorry, the answer is 6."], "6"),
            (["The answer is 5.", "I was wrong: \\boxed{6}."], "6"),
            (["\\boxed{5}", "My mistake. Final answer: 6"], "6"),
            (["The answer is 5.", "Glad to help with all 3 of your questions!"], "5"),
            (["The answer is 5.", "Shall I explain step 2 of 3?"], "5"),
            (["The answer is 5.", "Do you think the answer is 7?"], "5"),
            (["The answer is 5.", "<think>No, the answer is 6.</think>Anything else?"], "5"),
            (["I get 5 apples.", "Oh, 2 more, so 7 apples."], "7"),
            (["I get 5 apples.", "Do you have 9 baskets?"], "5"),
            (["The answer is 5.", "The answer is as I said."], "5"),
            (["The answer is blue.", "I like 3 colours."], "3"),
            ([], None),
            (["", ""], None),
        ],
    )
    def test_is_the_last_one_of_the_conversation(
        self, texts: list[str], answer: str | None
    ) -> None:
        assert final_answer(texts) == answer

    @given(number=st.integers(-(10**9), 10**9), later=st.sampled_from(["Bye!", "More?", ""]))
    def test_a_stated_number_survives_thousands_separators_and_later_talk(
        self, number: int, later: str
    ) -> None:
        assert final_answer([f"So the answer is {number:,} apples.", later]) == str(number)

    @given(
        value=st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=999),
        box=st.booleans(),
    )
    def test_a_fraction_keeps_its_worth(self, value: Fraction, box: bool) -> None:
        text = rf"\boxed{{{value}}}" if box else f"The answer is {value}."
        assert value_of(final_answer([text]) or "") == value


class TestFinalDocument:
    @pytest.mark.parametrize(
        "text",
        [
            f"Here it is:\n\n```markdown\n{ARTICLE}\n```\nDo you like it?",
            f"~~~text\n{ARTICLE}\n~~~",
            f"Sure!\n  ```md\n  {ARTICLE}\n  ```",
            f"```markdown\n{ARTICLE}",
            f"```\n{ARTICLE}\n```\nWhat do you say?",
            f"<document>\n{ARTICLE}\n</document>\nWhat do you say?",
            f"Here is the new version:\n\n{ARTICLE}\n\nLet me know what to change.",
            f"{ARTICLE}\n\nIs there anything you would like me to change?",
            ARTICLE,
        ],
    )
    def test_comes_without_fence_and_talk(self, text: str) -> None:
        assert final_document([text]) == ARTICLE

    def test_a_code_block_within_does_not_end_it(self) -> None:
        document = "# Guide\n\n```python\nprint(1)\n```\n\nThe end."
        assert final_document([f"```markdown\n{document}\n```"]) == document

    @pytest.mark.parametrize(
        "later",
        [
            "You're welcome!",
            "Which tone do you like? Who is the reader? How long may it be? Is there a deadline?",
            "I have moved the second sentence up.",
            "<think>" + ARTICLE * 3 + "</think>Done.",
            "",
        ],
    )
    def test_talk_in_a_later_turn_does_not_replace_it(self, later: str) -> None:
        assert final_document([ARTICLE, later]) == ARTICLE

    @pytest.mark.parametrize("first", [ARTICLE, f"```text\n{ARTICLE}\n```"])
    @pytest.mark.parametrize("second", [NEWER, f"Better:\n```text\n{NEWER}\n```"])
    def test_a_revision_replaces_it(self, first: str, second: str) -> None:
        assert final_document([first, second, "Enjoy!"]) == NEWER

    @pytest.mark.parametrize("texts", [[], [""], ["Who is it for?"], ["Thank you!", "Bye?"]])
    def test_there_is_none_where_nothing_was_written(self, texts: list[str]) -> None:
        assert final_document(texts) is None


class TestFinalCode:
    @pytest.mark.parametrize(
        "text",
        [
            "```python\ndef f():\n    return 1\n```",
            "~~~python\ndef f():\n    return 1\n~~~",
            "```\ndef f():\n    return 1\n```",
            "````py\ndef f():\n    return 1\n````",
            "```{.python}\ndef f():\n    return 1\n```",
            "1. Like this:\n   ```python\n   def f():\n       return 1\n   ```",
            "```python\r\ndef f():\r\n    return 1\r\n```",
            "```python\ndef f():\n    return 1",
            "```python\ndef f():\n    return 1\n```\nIt prints:\n```output\n1\n```",
            "```python\ndef f():\n    return 1\n```\nIt prints:\n```\n1\n```",
            "```python\ndef f():\n    return 1\n```\nRun it:\n```bash\npython f.py\n```",
            "```python\ndef f():\n    return 1\n```\nUse it:\n```python\nprint(f())\n```",
            "```python\ndef f():\n    return 1\n```\n```python\ndef test_f():\n    f()\n```",
        ],
    )
    def test_is_the_last_block_of_a_program(self, text: str) -> None:
        assert (final_code([text]) or "").strip() == "def f():\n    return 1"

    def test_a_revision_replaces_it_and_thanks_do_not(self) -> None:
        texts = ["```python\ndef f(): pass\n```", "```python\ndef f(): ...\n```", "Bye!"]
        assert final_code(texts) == "def f(): ..."

    def test_a_later_example_of_use_does_not_replace_it(self) -> None:
        texts = ["```python\ndef f(): pass\n```", "Like so:\n```python\nassert f() is None\n```"]
        assert final_code(texts) == "def f(): pass"

    def test_a_later_script_of_its_own_does(self) -> None:
        texts = ["```python\ndef f(): pass\n```", "```python\nprint('hi')\n```"]
        assert final_code(texts) == "print('hi')"

    def test_a_query_is_code(self) -> None:
        assert final_code(["```sql\nSELECT 1\n```", "Bye."]) == "SELECT 1"

    def test_shell_is_code_where_there_is_nothing_else(self) -> None:
        assert final_code(["```bash\nls\n```"]) == "ls"

    @pytest.mark.parametrize("text", ["", "`x = 1`", "```text\nhello\n```", "```python\n\n```"])
    def test_there_is_none_without_a_block_of_code(self, text: str) -> None:
        assert final_code([text]) is None

    @given(code=st.text(alphabet=st.characters(exclude_characters="`~\r"), min_size=1))
    def test_what_is_fenced_comes_out_as_it_was(self, code: str) -> None:
        found = final_code([f"So:\n```python\n{code}\n```\nGood?"])
        # What looks like thinking is taken out of the turn before.
        assert found == code if code.strip() and "think" not in code else True


PIECES = st.sampled_from(
    "the answer is|\\boxed{|}|{|$|\\(|\\[|```|```python|~~~|\n|?|.|,|5|1/2| |x=|<document>|"
    "</document>|<think>|</think>|def f(|-|#### |\\frac{|word|not |\u2028|\0|٣".split("|")
)


@pytest.mark.parametrize("find", FINDERS)
@given(texts=st.lists(st.lists(PIECES, max_size=12).map("".join) | st.text(), max_size=3))
def test_any_text_is_survived(
    find: Callable[[Sequence[str]], str | None], texts: list[str]
) -> None:
    found = find(texts)
    assert found is None or found.strip()


@pytest.mark.parametrize("find", FINDERS)
@given(texts=st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=3))
def test_thanks_at_the_end_change_nothing(
    find: Callable[[Sequence[str]], str | None], texts: list[str]
) -> None:
    assert find([*texts, "You're welcome!"]) == find(texts)
