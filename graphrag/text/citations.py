"""Citations in answers, as ``[Data: Sources (1, 2)]``, with the marks of any keyboard."""

import re

_OPENS, _CLOSES = "\\[\u3010\u3014\uff3b", "\\]\u3011\u3015\uff3d"
CITATION = re.compile(
    rf"[{_OPENS}]\s*data\s*[:\uff1a]([^{_CLOSES}]*)(?:[{_CLOSES}]|$)", re.IGNORECASE
)
"""A citation, what it names in the first group; the last one may be cut off."""
PARTS = re.compile("[,;\u3001\u060c\u061b\uff0c\uff1b\uff64]")
"""What stands between two ids of a citation."""
