from django.apps import AppConfig


class MailsConfig(AppConfig):
    name = "agency.mails"
    label = "mails"
