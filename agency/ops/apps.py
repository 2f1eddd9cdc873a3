from celery.signals import beat_init, worker_init
from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "agency.ops"
    label = "ops"

    def ready(self) -> None:
        from agency.ops import checks, heartbeats

        for signal in (worker_init, beat_init):
            signal.connect(checks.check_or_exit)
        worker_init.connect(heartbeats.start_for_worker)
        beat_init.connect(heartbeats.start_for_beat)
