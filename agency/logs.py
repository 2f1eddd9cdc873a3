"""Log lines carry the id of the request (or task) they belong to."""

import logging
from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="-")


class RequestIdFilter(logging.Filter):
    def filter(self, record):
        # Django logs 4xx answers when the middleware that sets the variable has ended already.
        of_request = getattr(getattr(record, "request", None), "id", None)
        record.request_id = of_request or request_id.get()
        return True
