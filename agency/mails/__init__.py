"""The mails to people: one layout, our words, the language of each person."""
