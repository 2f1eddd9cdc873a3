"""OpenID for Verifiable Credential Issuance 1.0: an issuer of SD-JWT VCs."""
