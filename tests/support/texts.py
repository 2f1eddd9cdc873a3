"""What texts of Hypothesis are made of."""

from hypothesis import strategies as st

# Those of `st.text()`, which finds them by encoding each character that there is: two
# seconds in each process of a fresh clone.
CHARACTERS = st.characters(exclude_categories=["Cs"])
