"""Policies and their items, as the API takes them."""


def attribute(*names, **more):
    return {"policyName": names[0], "attributeNames": list(names)} | more


def predicate(name, kind, value, **more):
    compared = {"predicateType": kind, "predicateValue": value}
    return {"policyName": name, "attributeName": name} | compared | more


def policy(*attributes, name="Policy", version="1.0", **more):
    return {"name": name, "version": version, "attributes": list(attributes)} | more
