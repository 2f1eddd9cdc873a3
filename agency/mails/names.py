"""Names that people typed, where others read them."""

import re
import unicodedata

# Of addresses of the web and of mail: a mail program makes a link of what has them.
# And the start of an encoded word (RFC 2047), which would become what it hides.
LINK_MARK = re.compile(
    r"(?<=\S)(?=[.:/@\u2024\u3002\uff0e\uff20\uff61]\S)|(?<==)(?=\?)"
)
ZERO_WIDTH_SPACE = "\u200b"
# They turn the direction of what follows, so that a name reads as another text.
TURNS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def mailed_name(name: str) -> str:
    """Return a name for a mail: one line of what is seen, no link made of it."""
    line = " ".join(name.split())
    shown = "".join(
        letter
        for letter in line
        if unicodedata.category(letter) not in ("Cc", "Cs")
        and unicodedata.bidirectional(letter) not in TURNS
    )
    return LINK_MARK.sub(ZERO_WIDTH_SPACE, shown)
