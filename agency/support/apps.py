from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class SupportAdminConfig(AdminConfig):
    default = False
    default_site = "agency.support.site.SupportSite"


class SupportConfig(AppConfig):
    name = "agency.support"
    label = "support"
