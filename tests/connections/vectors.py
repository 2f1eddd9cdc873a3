"""Samples that other implementations wrote and read (PyNaCl, askar, ACA-Py)."""

import json
from pathlib import Path

VECTORS = json.loads(Path(__file__).with_name("wire_vectors.json").read_text())
SEED_A, SEED_B = (
    VECTORS[name].encode() for name in ("seed_sender_A", "seed_recipient_B")
)
VERKEY_A, VERKEY_B = VECTORS["verkey_A"], VECTORS["verkey_B"]
