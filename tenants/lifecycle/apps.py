from django.apps import AppConfig


class OrganizationsConfig(AppConfig):
    name = "tenants.lifecycle"
