"""How a conversation is worth something: metrics, R* and the multiturn-aware reward.

from reward import multiturn_reward, score_conversation
"""

from reward.judge.judge import Judge
from reward.metric import Metric, MetricContext, MetricFailed, TaskUnfit
from reward.multiturn_reward import MultiturnReward, multiturn_reward
from reward.registry import make_metric
from reward.score import score_conversation

__all__ = [
    "Judge",
    "Metric",
    "MetricContext",
    "MetricFailed",
    "MultiturnReward",
    "TaskUnfit",
    "make_metric",
    "multiturn_reward",
    "score_conversation",
]
