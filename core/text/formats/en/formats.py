"""Days in English, as the studio writes them (studio/moment.html)."""

DATE_FORMAT = "j M Y"
