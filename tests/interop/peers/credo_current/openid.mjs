/* What a wallet by Credo does with links of OpenID4VC: actions as in wallet.mjs. */

import { Kms } from "@credo-ts/core";

export const openidActions = (agent) => {
  const wallet = agent.openid4vc.holder;
  const makeKey = async () => {
    const made = await agent.kms.createKey({ type: { kty: "EC", crv: "P-256" } });
    return Kms.PublicJwk.fromPublicJwk(made.publicJwk);
  };
  const store = async ([{ record } = {}]) => {
    if (!record) {
      return { claims: null };
    }
    const stored = await agent.sdJwtVc.store({ record });
    return { claims: stored.firstCredential.prettyClaims };
  };
  let waiting;

  return {
    trust: async (_, { certificate }) => {
      agent.x509.config.addTrustedCertificate(certificate);
      return {};
    },
    throwAway: async () => {
      for (const { id } of await agent.sdJwtVc.getAll()) {
        await agent.sdJwtVc.deleteById(id);
      }
      return {};
    },
    /* {claims} of the credential that it stores; null if the issuer lets it wait. */
    takeByLink: async (_, { link, txCode, boundToken }) => {
      const resolvedCredentialOffer = await wallet.resolveCredentialOffer(link);
      const dpop = boundToken ? { alg: "ES256", jwk: await makeKey() } : undefined;
      const token = await wallet.requestToken({ resolvedCredentialOffer, txCode, dpop });
      const found = await wallet.requestCredentials({
        resolvedCredentialOffer, ...token, verifyCredentialStatus: true,
        credentialBindingResolver: async () => ({ method: "jwk", keys: [await makeKey()] }),
      });
      const [deferred] = found.deferredCredentials ?? [];
      const issuerMetadata = resolvedCredentialOffer.metadata;
      waiting = { issuerMetadata, ...deferred, ...token, dpop: found.dpop ?? token.dpop };
      return store(found.credentials);
    },
    /* The same for the one that it waits for. */
    takeLater: async () => {
      const found = await wallet.requestDeferredCredentials(waiting);
      return store(found.credentials);
    },
    /* {isMet, status}: whether it has what is asked for, and the reply to its answer. */
    answerByLink: async (_, { link }) => {
      const { authorizationRequestPayload, dcql } =
        await wallet.resolveOpenId4VpAuthorizationRequest(link);
      if (!dcql.queryResult.can_be_satisfied) {
        return { isMet: false };
      }
      const credentials = wallet.selectCredentialsForDcqlRequest(dcql.queryResult);
      const answer = await wallet.acceptOpenId4VpAuthorizationRequest({
        authorizationRequestPayload, dcql: { credentials },
      });
      return { isMet: true, status: answer.serverResponse.status };
    },
  };
};
