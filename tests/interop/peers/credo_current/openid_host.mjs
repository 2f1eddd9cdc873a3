/* Credo as an issuer and a verifier of OpenID4VC, with a root and a certificate of its own. */

import { ClaimFormat, Kms } from "@credo-ts/core";
import express from "express";

const ISSUER = "state";
const VERIFIER = "shop";
const VCT = "urn:credo:pid";
const DAY = 864e5;
let leaf;

/* The options of the module. port: where it is called; without it, it is only a wallet. */
export const openidOptions = (port) => {
  if (!port) {
    return {};
  }
  const url = `http://127.0.0.1:${port}`;
  const app = express();
  app.listen(port, "127.0.0.1");
  const card = (key) => ({
    payload: { vct: VCT, name: "Alice Åkerlund", year: 7, over_18: true },
    holder: key,
    issuer: { method: "x5c", x5c: [leaf], issuer: url },
    disclosureFrame: { _sd: ["name", "year", "over_18"] },
    headerType: "dc+sd-jwt",
  });
  const credentialRequestToCredentialMapper = ({ holderBinding, issuanceSession }) => {
    if (issuanceSession.issuanceMetadata?.isLater) {
      return { type: "deferral", transactionId: issuanceSession.id, interval: 1 };
    }
    const credentials = holderBinding.keys.map(card);
    return { type: "credentials", format: ClaimFormat.SdJwtDc, credentials };
  };
  return {
    app,
    issuer: {
      baseUrl: `${url}/vci`,
      credentialRequestToCredentialMapper,
      deferredCredentialRequestToCredentialMapper: ({ deferredCredentialRequest, issuanceSession }) => {
        const { holderBinding } = issuanceSession.transactions[0];
        return credentialRequestToCredentialMapper({ holderBinding, issuanceSession: {} });
      },
    },
    verifier: { baseUrl: `${url}/vp` },
  };
};

export const hostActions = (agent, port) => {
  const url = `http://127.0.0.1:${port}`;
  const makeKey = async () => {
    const made = await agent.kms.createKey({ type: { kty: "EC", crv: "P-256" } });
    return Kms.PublicJwk.fromPublicJwk(made.publicJwk);
  };
  const certify = async () => {
    const [authorityKey, subjectPublicKey] = [await makeKey(), await makeKey()];
    const now = Date.now();
    const validity = { notBefore: new Date(now - DAY), notAfter: new Date(now + DAY) };
    const root = await agent.x509.createCertificate({
      issuer: { commonName: "Root of Credo", countryName: "NL" }, authorityKey, validity,
      extensions: {
        basicConstraints: { ca: true }, subjectKeyIdentifier: { include: true },
      },
    });
    const name = [{ type: "dns", value: "127.0.0.1" }, { type: "url", value: url }];
    leaf = await agent.x509.createCertificate({
      issuer: root.subject, subject: { commonName: "Credo", countryName: "NL" },
      authorityKey, subjectPublicKey, validity,
      extensions: {
        subjectAlternativeName: { name }, authorityKeyIdentifier: { include: true },
        subjectKeyIdentifier: { include: true },
      },
    });
    agent.x509.config.addTrustedCertificate(root.toString("base64"));
    return root;
  };
  const configuration = {
    format: "dc+sd-jwt", scope: "pid", vct: VCT,
    cryptographic_binding_methods_supported: ["jwk"],
    credential_signing_alg_values_supported: ["ES256"],
    proof_types_supported: { jwt: { proof_signing_alg_values_supported: ["ES256"] } },
  };

  return {
    /* {root}: its authority, in PEM. */
    openHost: async () => {
      const root = await certify();
      await agent.openid4vc.issuer.createIssuer({
        issuerId: ISSUER, credentialConfigurationsSupported: { pid: configuration },
      });
      await agent.openid4vc.verifier.createVerifier({ verifierId: VERIFIER });
      return { root: root.toString("pem") };
    },
    /* {link, txCode, id} of an offer. */
    offersByLink: async (_, { hasCode, isLater }) => {
      const { credentialOffer, issuanceSession } =
        await agent.openid4vc.issuer.createCredentialOffer({
          issuerId: ISSUER, credentialConfigurationIds: ["pid"], version: "v1",
          issuanceMetadata: { isLater },
          preAuthorizedCodeFlowConfig: {
            txCode: hasCode ? { input_mode: "numeric", length: 4 } : undefined,
          },
        });
      const { id, userPin } = issuanceSession;
      return { link: credentialOffer, txCode: userPin, id };
    },
    issuedByLink: async (id) => {
      const { state } = await agent.openid4vc.issuer.getIssuanceSessionById(id);
      return { state };
    },
    /* {link, id} of a request. */
    asksByLink: async (_, { prefix }) => {
      const claims = [{ path: ["name"] }, { path: ["over_18"], values: [true] }];
      const meta = { vct_values: [VCT] };
      const query = { credentials: [{ id: "card", format: "dc+sd-jwt", meta, claims }] };
      const { authorizationRequest, verificationSession } =
        await agent.openid4vc.verifier.createAuthorizationRequest({
          verifierId: VERIFIER, responseMode: "direct_post.jwt", version: "v1",
          requestSigner: { method: "x5c", x5c: [leaf], clientIdPrefix: prefix },
          dcql: { query },
        });
      return { link: authorizationRequest, id: verificationSession.id };
    },
    /* {state, claims} of an answer. */
    judgedByLink: async (id) => {
      const { verifier } = agent.openid4vc;
      const { state, errorMessage } = await verifier.getVerificationSessionById(id);
      if (state !== "ResponseVerified") {
        return { state, errorMessage };
      }
      const { dcql } = await verifier.getVerifiedAuthorizationResponse(id);
      const [shown] = Object.values(dcql.presentations).flat();
      return { state, claims: shown.prettyClaims };
    },
  };
};
