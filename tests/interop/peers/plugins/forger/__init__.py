"""A plugin of ACA-Py by which its holder lies; the name of the proof request says how."""

import json

from aries_cloudagent.indy.credx.holder import IndyCredxHolder
from indy_credx import LinkSecret

honest = IndyCredxHolder.create_presentation
kept = {}


async def setup(context):
    """ACA-Py calls this when it starts."""
    IndyCredxHolder.create_presentation = forged


async def forged(holder, request, chosen, *ledger):
    lie = LIES.get(request["name"])
    if lie:
        return json.dumps(await lie(holder, request, chosen, *ledger))
    return await honest(holder, request, chosen, *ledger)


async def made(holder, request, chosen, *ledger):
    return json.loads(await honest(holder, request, chosen, *ledger))


async def another_value(*arguments):
    """Shown in another text than the one that was signed."""
    presentation = await made(*arguments)
    for shown in revealed(presentation):
        shown["raw"] = "Mallory"
    return presentation


async def another_signed_value(*arguments):
    """Text and number are both another's."""
    presentation = await made(*arguments)
    for shown in revealed(presentation):
        shown["raw"], shown["encoded"] = "99", "99"
    return presentation


async def an_old_answer(holder, request, chosen, *ledger):
    """The second time what was sent the first time."""
    if "first" not in kept:
        kept["first"] = await made(holder, request, chosen, *ledger)
    return kept["first"]


async def somebody_elses(holder, request, chosen, *ledger):
    """A credential whose link secret the holder has not."""
    secret = LinkSecret.create()

    async def stolen():
        return secret

    holder.get_link_secret = stolen
    return await made(holder, request, chosen, *ledger)


async def a_weaker_predicate(holder, request, chosen, *ledger):
    """Proves less than was asked."""
    predicates = request["requested_predicates"]
    weaker = {name: one | {"p_value": 0} for name, one in predicates.items()}
    return await made(holder, request | {"requested_predicates": weaker}, chosen, *ledger)


async def no_word_of_revocation(holder, request, chosen, schemas, definitions, states=None):
    """Leaves the non-revocation proof out."""
    for kind in ("requested_attributes", "requested_predicates"):
        for pick in chosen[kind].values():
            pick.pop("timestamp", None)
    request = {name: value for name, value in request.items() if name != "non_revoked"}
    return await made(holder, request, chosen, schemas, definitions, None)


async def a_mere_claim(*arguments):
    """Says what it should prove."""
    presentation = await made(*arguments)
    shown = presentation["requested_proof"]
    for name in list(shown["revealed_attrs"]):
        shown["self_attested_attrs"][name] = shown["revealed_attrs"].pop(name)["raw"]
    return presentation


def revealed(presentation):
    return presentation["requested_proof"]["revealed_attrs"].values()


LIES = {
    lie.__name__: lie
    for lie in (
        another_value,
        another_signed_value,
        an_old_answer,
        somebody_elses,
        a_weaker_predicate,
        no_word_of_revocation,
        a_mere_claim,
    )
}
