from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ConnectionsConfig(AppConfig):
    name = "connections"

    def ready(self):
        autodiscover_modules("handlers")
