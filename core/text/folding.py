"""Words as people compare them: without case, accents and marks."""

import unicodedata

MAX_WORDS = 20
APOSTROPHES = "'’‘ʼ＇"
# Letters that Unicode does not take apart.
PLAIN = str.maketrans(
    {
        "æ": "ae",
        "ð": "d",
        "đ": "d",
        "ħ": "h",
        "ı": "i",
        "ł": "l",
        "ø": "o",
        "œ": "oe",
        "þ": "th",
    }
)


def fold(text: str) -> str:
    """Return the text without case, accents, marks and invisible characters."""
    taken_apart = unicodedata.normalize("NFKD", text).casefold()
    taken_apart = unicodedata.normalize("NFKD", taken_apart)
    kept = (
        letter
        for letter in taken_apart
        if unicodedata.category(letter) not in ("Mn", "Me", "Cf", "Cc")
        or letter.isspace()
    )
    # Together again: a letter of Hangul would be three.
    return unicodedata.normalize("NFC", "".join(kept).translate(PLAIN))


def folded_words(text: str) -> list[str]:
    """Return the first MAX_WORDS words of a text, folded, each once.

    A word is of letters and digits. "O'Brien" is two words.
    """
    spaced = "".join(
        letter if unicodedata.category(letter)[0] in "LMN" else " "
        for letter in fold(text.translate(dict.fromkeys(map(ord, APOSTROPHES), " ")))
    )
    return list(dict.fromkeys(spaced.split()))[:MAX_WORDS]


def joined_words(text: str) -> list[str]:
    """Return the words as folded_words(), but "O'Brien" is the one word "obrien"."""
    return folded_words(text.translate(dict.fromkeys(map(ord, APOSTROPHES))))
