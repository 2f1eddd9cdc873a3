"""Messages, envelopes, DIDs and signatures as the RFCs write them. No Django."""
