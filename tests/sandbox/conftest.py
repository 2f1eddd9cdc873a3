from tests.support.database import restored
from tests.support.people import Organization


@restored
def faber():
    return Organization("Faber College", is_test=True)
