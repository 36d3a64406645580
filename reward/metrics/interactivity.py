"""`interactivity`: is the policy a good partner to talk to? By a judge.

After the metric of arXiv 2502.00640, which asks a judge how engaged, clarifying and little
burdensome an assistant was. One number for all of that hides what it stands for, so three are
asked for, each with its own anchors, and the score is their mean. In 0..1. Where the slots of a
task are known, `interactivity_rule` says nearly the same by rule, for free.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from interaction.conversation import Conversation
from interaction.task import Task
from reward.judge.question import JudgeFailed, Question, ScoreField
from reward.metric import MetricContext, MetricFailed
from reward.registry import register

INTERACTIVITY = Question(
    name="interactivity",
    instruction=(
        "Was the assistant a good partner for this user? Look at how it found out what the user "
        "wants and at what it asked of the user. Whether its results are right is not the point "
        "here. The reference says what the user wants and would tell if asked; an assistant that "
        "guesses it without asking has not found it out."
    ),
    fields=(
        ScoreField(
            "asks_for_what_is_missing",
            "0: it went ahead on guesses although something that matters was open; 0.5: it asked "
            "about some of it, or so vaguely that the user could hardly know what to tell; 1: it "
            "asked clearly, and in time, for everything that mattered and was open, or nothing was",
        ),
        ScoreField(
            "no_needless_questions",
            "0: most of its questions were about what the user had said, could not know or need "
            "not decide, or it asked instead of working when all was clear; 0.5: about half of "
            "them were; 1: every question had a use, or there was none and none was needed",
        ),
        ScoreField(
            "easy_to_work_with",
            "0: it ignored or misread what the user said, or buried them in questions or text; "
            "0.5: it followed, but the user had to repeat, search or sort things out; 1: it took "
            "up what the user said, kept each turn easy to answer and moved the work forward",
        ),
    ),
    needs_goal=True,
)


@register("interactivity")
@dataclass(frozen=True)
class Interactivity:
    """How good a partner the policy was, as the mean of a judge's three numbers."""

    question = INTERACTIVITY
    range = (0.0, 1.0)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the mean of the judge's numbers.

        Raises:
            MetricFailed: If there is no judge, no policy turn or no usable verdict.
        """
        if context.verdicts is None:
            raise MetricFailed("it needs a judge, and none is configured; configure one")
        if not context.policy_turns(conversation):
            raise MetricFailed("the conversation has no policy turn")
        try:
            verdict = await context.verdicts.of(self.question)
        except JudgeFailed as error:
            raise MetricFailed(str(error)) from error
        return fmean(float(verdict[field.name]) for field in self.question.fields)
