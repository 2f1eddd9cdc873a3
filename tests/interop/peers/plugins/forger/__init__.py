"""A plugin for both ACA-Py releases and both wallets that makes the holder lie.

The first word of a proof request's name says how. All other requests get an honest
answer.
"""

import importlib
import json

HOLDERS = ("indy.credx.holder.IndyCredxHolder", "anoncreds.holder.AnonCredsHolder")
honest = {}
kept = {}


async def setup(context):
    """ACA-Py calls this when it starts."""
    release = type(context).__module__.partition(".")[0]
    for place in HOLDERS:
        module, _, name = place.rpartition(".")
        holder = getattr(importlib.import_module(f"{release}.{module}"), name)
        honest[holder] = holder.create_presentation
        holder.create_presentation = answer


async def answer(holder, request, *arguments):
    lie = LIES.get(request["name"].partition(" ")[0], made)
    return json.dumps(await lie(holder, request, *arguments))


async def made(holder, *arguments):
    return json.loads(await honest[type(holder)](holder, *arguments))


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
    name = request["name"]
    if name not in kept:
        kept[name] = await made(holder, request, chosen, *ledger)
    return kept[name]


async def somebody_elses(holder, request, chosen, *ledger):
    """A credential whose link secret the holder has not."""

    async def of_indy():
        return importlib.import_module("indy_credx").LinkSecret.create()

    async def of_anoncreds():
        return importlib.import_module("anoncreds").create_link_secret()

    holder.get_link_secret, holder.get_master_secret = of_indy, of_anoncreds
    return await made(holder, request, chosen, *ledger)


async def a_weaker_predicate(holder, request, chosen, *ledger):
    """Proves less than was asked."""
    predicates = request["requested_predicates"]
    weaker = {
        name: one | ({} if one["p_type"].startswith("<") else {"p_value": 0})
        for name, one in predicates.items()
    }
    return await made(
        holder, request | {"requested_predicates": weaker}, chosen, *ledger
    )


async def no_word_of_revocation(
    holder, request, chosen, schemas, definitions, states=None
):
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
