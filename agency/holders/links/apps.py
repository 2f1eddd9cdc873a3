from django.apps import AppConfig


class HolderPagesConfig(AppConfig):
    name = "agency.holders.links"
    label = "holderpages"

    def ready(self) -> None:
        # Importing it registers what happens to a link whose connection is deleted.
        from agency.holders.links import closed_links  # noqa: F401
