"""Take what is finished off a connection before it is deleted, in small transactions."""

from django.db.models import QuerySet

from agency.core import transactions
from connections.exchange import Exchange
from connections.models import BasicMessage, Connection

ROWS_AT_ONCE = 200


def remove_finished(connection: Connection) -> None:
    """Delete the texts, and let finished exchanges have no connection any more.

    The last ones are left to the transaction that deletes the connection. With only
    those it is short, and the event feeds, which wait for it, go on.
    """
    texts = BasicMessage.objects.filter(connection=connection)
    while remove_some(connection, texts):
        pass
    for model in Exchange.__subclasses__():
        exchanges = model.objects.filter(connection=connection)
        while remove_some(connection, exchanges.exclude(state__in=model.OPEN)):
            pass


@transactions.atomic()
def remove_some(connection: Connection, rows: QuerySet) -> bool:
    """Do it with some rows of one table. Return whether there may be as many again."""
    keys = list(rows.values_list("pk", flat=True)[:ROWS_AT_ONCE])
    if len(keys) < ROWS_AT_ONCE or not connection.lock():
        return False
    some = rows.filter(pk__in=keys)
    if rows.model is BasicMessage:
        some.delete()
    else:
        some.update(connection=None)
    return True
