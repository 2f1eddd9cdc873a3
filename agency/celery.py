"""Celery is the doorbell: tasks find their work as due rows, arguments carry ids only."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

app = Celery("agency")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
