from django.apps import AppConfig
from django.core import checks


class AgencyConfig(AppConfig):
    name = "agency"

    def ready(self):
        checks.register(check_master_key, checks.Tags.database)


def check_master_key(databases=None, **kwargs):
    """agency.E001: the master key is not the one the database was sealed with."""
    from django.core.exceptions import ImproperlyConfigured
    from django.db import connection

    from tenants import vault

    if not databases or "tenants_datakey" not in connection.introspection.table_names():
        return []
    try:
        vault.check_master_key()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="agency.E001")]
    return []
