"""What the policy finally delivered in a conversation: its last answer, document or code.

Promises: by rule, over all its turns, so that "You're welcome!" loses nothing and a revision
wins; thinking does not count; None where nothing was delivered; any text is survived. Knows
nothing of tasks or of right and wrong.
"""

from reward.extraction.answer import final_answer
from reward.extraction.code import final_code
from reward.extraction.document import final_document
from reward.extraction.turns import policy_texts

__all__ = ["final_answer", "final_code", "final_document", "policy_texts"]
