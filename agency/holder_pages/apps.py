from django.apps import AppConfig


class HolderPagesConfig(AppConfig):
    name = "agency.holder_pages"
    label = "holderpages"

    def ready(self) -> None:
        # Importing it registers what happens to a link whose connection is deleted.
        from agency.holder_pages import closed_links  # noqa: F401
