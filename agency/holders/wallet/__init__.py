"""The pages of a hosted wallet for its holder, who has no app: a link and a PIN."""
