"""One row to be: a task, the context in which the policy is to reply, and where it belongs.

Promises: rows hold verl's columns (docs/data.md); the task travels as one JSON string, so that
parquet's nested types never add or drop a field. Knows nothing of families or files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from interaction.conversation import Conversation
from interaction.task import Task

Split = Literal["train", "validation"]


@dataclass(frozen=True)
class Example:
    """A context to reply to.

    Attributes:
        task: The problem.
        prompt: Ends with a user turn.
        context: What kind of context it is: "opening", "middle", "terminal" or "complete".
        data_source: Under which name verl reports validation.
        ability: verl's column of that name.
    """

    task: Task
    prompt: Conversation
    context: str
    data_source: str
    ability: str

    def to_row(self, index: int, split: Split) -> dict[str, Any]:
        """Return the row; `index` is its place in the file."""
        return {
            "prompt": self.prompt.to_dicts(),
            "data_source": self.data_source,
            "ability": self.ability,
            "reward_model": {"style": "rule", "ground_truth": self.task.ground_truth},
            "extra_info": {
                "index": index,
                "split": split,
                "context": self.context,
                "task": self.task.to_json(),
            },
            "agent_name": "collabllm",
        }
