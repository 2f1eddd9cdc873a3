"""Issuance and proof in ACA-Py's admin API, in both versions."""

from typing import Any

from tests.interop.peers.acapy import Acapy
from tests.support.processes import eventually

FORMS = {"askar": "indy", "askar-anoncreds": "anoncreds"}


class Exchanges:
    """Of one protocol and version. States are written as in 2.0, with hyphens."""

    PROTOCOL = ""
    IDS: dict[str, str] = {}
    FIRST_STATES: dict[str, str] = {}

    def __init__(self, agent: Acapy, version: str):
        self.agent, self.version = agent, version
        self.form = FORMS[agent.release.wallet_type]
        self.path = self.PROTOCOL if version == "1.0" else f"{self.PROTOCOL}-2.0"
        self.id_name = self.IDS[version]

    def state(self, name: str) -> str:
        if self.version == "1.0":
            return self.FIRST_STATES.get(name, name.replace("-", "_"))
        return name

    def records(self, **wanted: Any) -> list[dict[str, Any]]:
        """The records with these members, with their details."""
        listed = [
            self.flat(one) for one in self.agent.get(f"{self.path}/records")["results"]
        ]
        return [one for one in listed if wanted.items() <= one.items()]

    def next(self, state: str, **wanted: Any) -> dict[str, Any]:
        """A record in this state that no test had before, once there is one."""

        def look():
            found = self.records(state=self.state(state), **wanted)
            return [one for one in found if one[self.id_name] not in self.agent.known]

        record = eventually(look)[0]
        self.agent.known.add(record[self.id_name])
        return record

    def flat(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of issue-credential 2.0 comes with its details beside it."""
        found = record.get("cred_ex_record")
        details = next(
            (record[form] for form in FORMS.values() if record.get(form)), {}
        )
        return found | {"details": details} if found else record

    def read(self, identifier: str) -> dict[str, Any]:
        return self.flat(self.agent.get(f"{self.path}/records/{identifier}"))

    def until(
        self, record: dict[str, Any], state: str, seconds: float = 40
    ) -> dict[str, Any]:
        """The record as it is when it has come to this state."""
        wanted, identifier = self.state(state), record[self.id_name]

        def look():
            seen = self.read(identifier)
            return seen if seen["state"] == wanted else None

        return eventually(look, seconds)

    def act(
        self, record: dict[str, Any], step: str, body: Any = None
    ) -> dict[str, Any]:
        path = f"{self.path}/records/{record[self.id_name]}/{step}"
        return self.flat(self.agent.post(path, body))

    def decline(self, record: dict[str, Any]) -> None:
        self.act(record, "problem-report", {"description": "No, thank you."})

    def formed(self, content: Any) -> Any:
        """What 2.0 wants below the name of its format."""
        return content if self.version == "1.0" else {self.form: content}


class Issuance(Exchanges):
    PROTOCOL = "/issue-credential"
    IDS = {"1.0": "credential_exchange_id", "2.0": "cred_ex_id"}
    FIRST_STATES = {"done": "credential_acked"}

    def offer(
        self, connection_id: str, definition_id: str, values: dict[str, str]
    ) -> dict:
        attributes = [{"name": name, "value": value} for name, value in values.items()]
        kind = f"https://didcomm.org/issue-credential/{self.version}/credential-preview"
        body = {
            "connection_id": connection_id,
            "auto_issue": True,
            "auto_remove": False,
        }
        body["credential_preview"] = {"@type": kind, "attributes": attributes}
        if self.version == "1.0":
            body["cred_def_id"] = definition_id
        else:
            body["filter"] = self.formed({"cred_def_id": definition_id})
        return self.flat(self.agent.post(f"{self.path}/send-offer", body))

    def stored(self, record: dict[str, Any]) -> str:
        """The id of the credential in the agent's wallet."""
        return record.get("credential_id") or record["details"]["cred_id_stored"]

    def accept(self, connection_id: str) -> dict:
        """Request the credential offered on a connection.

        Return the record once it is stored.
        """
        offered = self.next("offer-received", connection_id=connection_id)
        self.act(offered, "send-request")
        return self.until(offered, "done")


class Proof(Exchanges):
    PROTOCOL = "/present-proof"
    IDS = {"1.0": "presentation_exchange_id", "2.0": "pres_ex_id"}
    FIRST_STATES = {"done": "presentation_acked"}

    def ask(self, connection_id: str, asked: dict[str, Any]) -> dict:
        body = {"connection_id": connection_id, **self.request(asked)}
        return self.agent.post(f"{self.path}/send-request", body)

    def propose(self, connection_id: str, name: str, definition_id: str) -> dict:
        """As prover: offers to show an attribute."""
        body: dict[str, Any] = {"connection_id": connection_id}
        if self.version == "1.0":
            kind = "https://didcomm.org/present-proof/1.0/presentation-preview"
            shown = [{"name": name, "cred_def_id": definition_id}]
            preview = {"@type": kind, "attributes": shown, "predicates": []}
            body["presentation_proposal"] = preview
        else:
            item = {"name": name, "restrictions": [{"cred_def_id": definition_id}]}
            asked = {"name": "Proposed", "version": "1.0", "requested_predicates": {}}
            asked["requested_attributes"] = {name: item}
            body["presentation_proposal"] = self.formed(asked)
        return self.agent.post(f"{self.path}/send-proposal", body)

    def ask_anybody(self, asked: dict[str, Any]) -> dict:
        """A request without a connection, to be delivered in another way."""
        return self.agent.post(f"{self.path}/create-request", self.request(asked))

    def request(self, asked: dict[str, Any]) -> dict:
        name = "proof_request" if self.version == "1.0" else "presentation_request"
        return {name: self.formed(asked)}

    def verdict(self, record: dict[str, Any]) -> bool:
        """What ACA-Py as verifier found."""
        state = "verified" if self.version == "1.0" else "done"
        return self.until(record, state)["verified"] == "true"

    def fitting(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        """Its credentials that fit any item."""
        path = f"{self.path}/records/{record[self.id_name]}/credentials"
        return self.agent.get(path, count=100)

    def present(self, record: dict[str, Any], credential: str = "") -> None:
        """Answer each item with this credential, else with the first that fits."""
        fitting = [
            one
            for one in self.fitting(record)
            if credential in ("", one["cred_info"]["referent"])
        ]
        chosen: dict[str, Any] = {"self_attested_attributes": {}}
        chosen |= {"requested_attributes": {}, "requested_predicates": {}}
        asked = self.asked(record)
        for kind in ("requested_attributes", "requested_predicates"):
            for referent in asked[kind]:
                first = next(
                    c for c in fitting if referent in c["presentation_referents"]
                )
                pick = {"cred_id": first["cred_info"]["referent"]}
                chosen[kind][referent] = pick | (
                    {"revealed": True} if "attr" in kind else {}
                )
        form = next(iter(record.get("by_format", {}).get("pres_request", {})), None)
        self.act(record, "send-presentation", {form: chosen} if form else chosen)

    def asked(self, record: dict[str, Any]) -> dict[str, Any]:
        if self.version == "1.0":
            return record["presentation_request"]
        return next(iter(record["by_format"]["pres_request"].values()))
