"""Patterns for citations in answers, such as ``[Data: Sources (1, 2)]``.

Brackets, colons and commas may be those of Chinese, Japanese or Arabic keyboards.
"""

import re

_OPENS, _CLOSES = "\\[\u3010\u3014\uff3b", "\\]\u3011\u3015\uff3d"
CITATION = re.compile(
    rf"[{_OPENS}]\s*data\s*[:\uff1a]([^{_CLOSES}]*)(?:[{_CLOSES}]|$)", re.IGNORECASE
)
"""Matches a citation; its first group is the part after ``Data:``. The text may end inside it."""
PARTS = re.compile("[,;\u3001\u060c\u061b\uff0c\uff1b\uff64]")
"""Matches the mark between two ids of a citation."""
