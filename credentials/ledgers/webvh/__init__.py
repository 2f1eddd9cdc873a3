"""AnonCreds below https addresses: DIDs of did:webvh and their attested resources."""
