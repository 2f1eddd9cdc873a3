"""What a test learns that asks for a definition without a stored key."""

import pytest


def test_a_definition_of_a_size_without_a_stored_key_fails_with_a_way_out(faber):
    with pytest.raises(pytest.fail.Exception) as failed:
        faber.defines("a", "b", "c", "d", "e")
    assert "no stored key for 5 attributes, only for 2 or 3" in str(failed.value)
    assert "`python -m tests.fixtures.make NAME`" in str(failed.value)
