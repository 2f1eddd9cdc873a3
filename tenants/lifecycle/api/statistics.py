"""How many credentials and proofs there were on each day, in the credentials API."""

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.serializers import Contract, IntegerField, SharedFields
from core.api.views import View
from tenants.lifecycle import statistics
from tenants.models import Scope


class StatisticsQuery(SharedFields):
    days = IntegerField(
        default=30,
        min_value=1,
        max_value=statistics.MAX_DAYS,
        help_text="How many days, the last of which is today.",
    )


class DayContract(Contract):
    day = serializers.DateField(help_text="In UTC.")
    offers = serializers.IntegerField(help_text="Credentials that were offered.")
    issued = serializers.IntegerField(
        source="credentials", help_text="Credentials that were issued."
    )
    validProofs = serializers.IntegerField(source="valid_proofs")
    invalidProofs = serializers.IntegerField(source="invalid_proofs")

    def get_day(self, count: statistics.DayCount) -> str:
        return count.day.isoformat()


class Statistics(View):
    @operation(
        "getStatistics",
        Scope.READ,
        response=DayContract(many=True),
        parameters=[StatisticsQuery],
    )
    def list(self, request: Request) -> Response:
        days = self.parse_query(StatisticsQuery).validated_data["days"]
        found = statistics.count_by_day(self.caller.wallet, days, timezone.now())
        return Response(DayContract(found, many=True).data)
