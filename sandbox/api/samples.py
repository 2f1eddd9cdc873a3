"""The samples of the sandbox in the credentials API."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.serializers import Contract
from core.api.views import View, heavy
from sandbox import samples
from sandbox.api.holders import SimulatedHolderContract
from sandbox.models import SimulatedHolder
from tenants.models import Scope
from verifications.models import VerificationPolicy


class SamplesContract(Contract[VerificationPolicy]):
    definitionId = serializers.CharField()
    policyId = serializers.CharField(source="pk")
    holders = SimulatedHolderContract(
        many=True, help_text="The newest simulated holder of each behaviour."
    )

    def get_definitionId(self, policy: VerificationPolicy) -> str | None:
        [item] = policy.unsealed_policy().attributes
        return item.restrictions[0].definition_id

    def get_holders(self, policy: VerificationPolicy) -> list[SimulatedHolder]:
        return list(samples.find_holders(policy.tenant).values())


class Samples(View):
    @operation("setUpSamples", Scope.WALLETS, response=SamplesContract)
    @heavy
    def create(self, request: Request) -> Response:
        """Set the samples up. Holders and definition are committed by `prepare`.

        The offers and the policy are the one transaction of perform().
        """
        policy = self.perform(
            samples.offer_samples,
            self.tenant,
            prepare=lambda: samples.prepare_samples(self.tenant, request),
        )
        return self.to_response(SamplesContract, policy)
