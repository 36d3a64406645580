"""What a run says at its end: held-out problems before and after training.

Promises: reads the run's own conversation log, so that every number can be traced to its
conversations; writes `before_after.json`. Knows nothing of training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.console import Console

from evaluation.before_after import as_table, compare
from interaction.questions import questions_in
from recipe.collabllm.conversation_log import logged_steps, read_step
from recipe.collabllm.record import ReplyRecord
from recipe.collabllm.run_folder import RunFolder, write_json

_TABLE_WIDTH = 124


def report_run(run: RunFolder, say: Callable[[str], None]) -> None:
    """Compare the first validation with the last and tell where the rest is."""
    steps = logged_steps(run.path, "validation")
    if len(steps) < 2:
        say("no two validations to compare")
        return
    before, after = (_scores(read_step(run.path, "validation", s)) for s in (steps[0], steps[-1]))
    measures = sorted({name for scores in before.values() for name in scores})
    measures.sort(key=lambda name: (name != "MR", name))
    rows = compare(before, after, measures)
    write_json(
        run.report,
        {"before_step": steps[0], "after_step": steps[-1], "rows": [row.to_dict() for row in rows]},
    )
    title = f"Held-out problems before (step {steps[0]}) and after (step {steps[-1]}) training"
    console = Console()
    console.width = max(console.width, _TABLE_WIDTH)
    console.print(as_table(rows, title))
    say(f"report: {run.report}")
    say(f"every conversation: {run.path / 'conversations'}")
    say(f"curves: tensorboard --logdir {run.path / 'logs' / 'tensorboard'}")


def _scores(records: list[ReplyRecord]) -> dict[tuple[str, str], Mapping[str, float]]:
    """Return what each validation problem scored, by data source and problem."""
    scored: dict[tuple[str, str], Mapping[str, float]] = {}
    for record in records:
        if record.mr is None:
            continue
        scored[record.data_source, f"{record.task_id}#{record.session}"] = {
            "MR": record.mr,
            "asks": float(bool(questions_in(record.reply, {}))),
            "usable reply": float(record.fault is None),
            "reply tokens": float(record.reply_tokens),
            **record.per_metric,
        }
    return scored
