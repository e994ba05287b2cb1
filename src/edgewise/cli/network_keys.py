"""edgewise network request, sign, renew and revoke"""

from edgewise.cli.network import expires
from edgewise.cli.network_options import RenewOptions, RequestOptions, RevokeOptions, SignOptions
from edgewise.cli.shell import output, print_json
from edgewise.errors import InputError

COMPARE = "Compare the fingerprint with that at the other side, by telephone or in person."


def request(o: RequestOptions) -> None:
    from edgewise.peers.operations import keys

    made = keys.request(o.peer)
    secret = "made, and stays here" if made.made else "was there"
    output(o).print(
        f"{made.config.key.name} {secret}; send {made.path}, which is no secret, to who keeps the "
        f"authority's key\nfingerprint of the key: {made.fingerprint}\n{COMPARE}",
        highlight=False,
        soft_wrap=True,
    )
    if o.json:
        told = {"peer": made.config.id, "request": str(made.path), "key_made": made.made}
        print_json({"command": "network request", **told, "fingerprint": made.fingerprint})


def sign(o: SignOptions) -> None:
    from edgewise.peers.operations import keys

    if not o.requests:
        raise InputError("no requests: give the files that `edgewise network request` made")
    signed, console = keys.sign(o.folder, o.requests, o.days), output(o)
    for config, fingerprint in signed:
        console.print(
            f"peer {config.id}: copy {config.certificate.name} to its host; fingerprint of its "
            f"key: {fingerprint}",
            highlight=False,
            soft_wrap=True,
        )
    console.print(COMPARE, highlight=False)
    if o.json:
        peers = [
            {"id": c.id, "file": c.certificate.name, "fingerprint": f, "expires": expires(c)}
            for c, f in signed
        ]
        print_json({"command": "network sign", "peers": peers})


def renew(o: RenewOptions) -> None:
    from edgewise.peers.operations import keys

    renewed = keys.renew(o.folder, o.peer, o.days)
    files = {c.id: [c.certificate.name, c.key.name] for c in renewed}
    console = output(o)
    for id, names in files.items():
        console.print(
            f"peer {id}: copy {' '.join(names)} to its host", highlight=False, soft_wrap=True
        )
    if o.json:
        peers = [{"id": c.id, "files": files[c.id], "expires": expires(c)} for c in renewed]
        print_json({"command": "network renew", "peers": peers})


def revoke(o: RevokeOptions) -> None:
    from edgewise.peers.config.revocation import LIST
    from edgewise.peers.operations import keys

    if o.peer is None:
        raise InputError("no peer: give the number of the one whose certificates are taken back")
    new = keys.revoke(o.folder, o.peer)
    several = "certificate" if new == 1 else "certificates"
    output(o).print(
        f"{new} {several} of peer {o.peer} revoked: copy {LIST} to every host, beside "
        "authority.pem. Peers that run read it at once and hang up. If the peer is to stay, give "
        "it a new certificate (`network renew`, or `request` and `sign`)",
        highlight=False,
        soft_wrap=True,
    )
    if o.json:
        print_json({"command": "network revoke", "peer": o.peer, "revoked": new, "list": LIST})
