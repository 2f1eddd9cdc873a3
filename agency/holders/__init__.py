"""The pages of holders: of links (links/), and of their hosted wallets (wallet/)."""
