"""Days and times in English, as the studio writes them (studio/moment.html)."""

DATE_FORMAT = "j M Y"
DATETIME_FORMAT = "j M Y, H:i"
YEAR_MONTH_FORMAT = "M Y"
MONTH_DAY_FORMAT = "j M"
