"""Each factory makes a row that its table accepts."""

import factory
import pytest

from tests import factories

# They are given what only the API makes: a key of a wallet, a call of a webhook.
GIVEN_A_ROW = {factories.OutboundMessageFactory, factories.AttemptFactory}
FACTORIES = [
    one
    for one in vars(factories).values()
    if isinstance(one, type) and issubclass(one, factory.django.DjangoModelFactory)
    if one._meta.model and one not in GIVEN_A_ROW
]


@pytest.mark.parametrize("made_by", FACTORIES, ids=lambda one: one.__name__)
def test_it_makes_a_row_that_its_table_accepts(made_by, db):
    row = made_by()
    assert type(row).objects.get(pk=row.pk) == row
