"""The router of the site's models: its files and its objects. Keys are in no result and in no log."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from sparkloom.base.errors import InputError
from sparkloom.base.repository import WORK, place
from sparkloom.inputs import client_keys, serving
from sparkloom.onnode.key_table import OWNER
from sparkloom.render import keys
from sparkloom.render.manifests import gateway
from sparkloom.render.manifests import router as objects
from sparkloom.render.router import Terms
from sparkloom.site import ansible, client, keyring, router, usage
from sparkloom.site.ansible import Context, Data
from sparkloom.site.checks import report
from sparkloom.site.groups import observed


def give(
    context: Context,
    image: str,  # Envoy's
    memory: int,  # MiB that its pod may take
    timeout: int,  # seconds that an answer may say nothing
    paths: Sequence[str],  # what clients may ask for; * at the end is a model's name
    body_megabytes: int,  # how long a request may be
    key_file: str,  # file with the site's own key; a relative one starts at the repository
    ingress: str,  # class of the Ingress that ends TLS before it; empty: it does itself; auto
    profile: str = "",  # what is served where the inventory has no list
) -> Data:
    """Makes the Secret with all its files, has a router that runs go by it, and plans its objects."""
    if not image:
        message = "nothing says which image; expected Envoy's, as in inventories/gb10 (group_vars/all/versions.yml)"
        raise InputError.single("gateway_router_image", message, rule="missing-key")
    cluster, dry = context.cluster, context.dry
    reached = client.of(cluster)
    runs = observed.running(cluster)
    listed = ansible.listed(context.vars) or {"profile": profile or None}
    found = router.models(serving.from_vars(listed, cluster), cluster, runs)
    asleep = {name for name, one in runs.items() if not one.awake and not one.stopped}
    stopped = {name for name, one in runs.items() if one.stopped}
    page = reached.has_service(objects.PAGE)
    terms = Terms(
        paths=tuple(paths),
        megabytes=body_megabytes,
        timeout=timeout,
        memory=memory,
        tls="" if gateway.ingress_class(cluster, ingress) else objects.CERTIFICATES,
        page=f"{objects.PAGE}.{cluster.namespace}.svc.cluster.local:{objects.PAGE_PORT}" if page else "",
    )
    listed_keys = client_keys.place(context.vars.get("inventory_dir") or WORK / "build")
    known = client_keys.read(listed_keys)[1]
    own, made = keys.ensure(place(key_file), dry=dry)
    owner = client_keys.renewed(known, OWNER, own, datetime.datetime.now(datetime.UTC).date())
    if owner and owner not in known:  # its first entry, or another key's
        known = [*(one for one in known if one.name != OWNER), owner]
        if not dry:
            keyring.put(listed_keys, owner)
            known = client_keys.read(listed_keys)[1]
    content = router.files(found, router.engine_keys(reached, found), known, terms)
    there = reached.secret(objects.NAME) is not None
    if not dry:
        usage.note(reached)
    given = router.give(reached, content, context.say, dry=dry, kind=objects.started_by(terms, content))
    if not dry and client_keys.read(listed_keys)[1] != known:  # somebody added or took one meanwhile
        given = router.push(reached, listed_keys, context.say) or given
    effective = "" if given.seconds is None else f", which it goes by after {given.seconds:.1f} s"
    return {
        "changed": made or given.changed,
        "drift": report.secret(objects.NAME, there=there, differs=given.changed, expected="the router's files"),
        "objects": objects.router(image, terms, [one.port for one in found], cluster, content),
        "names": [one.name for one in found if one.secret and one.name not in asleep | stopped],
        "asleep": sorted(asleep),
        "stopped": sorted(stopped),
        "msg": f"{len(known)} keys and {len(found)} models for the router{effective}",
    }
