from django.apps import AppConfig


class SandboxConfig(AppConfig):
    name = "sandbox"

    def ready(self) -> None:
        from sandbox import answering
        from webhooks.events import emit

        emit.follow_test_wallet = answering.enqueue_answer
