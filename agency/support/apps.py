from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class SupportAdminConfig(SimpleAdminConfig):
    """Without the records, which agency/urls.py loads: workers show no pages."""

    default = False
    default_site = "agency.support.site.SupportSite"


class SupportConfig(AppConfig):
    name = "agency.support"
    label = "support"
